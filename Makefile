# Two commands set everything up on a machine with Python 3.11 or newer, make and a package index:
#   make demo    audits three census algorithms on a real census tree and leaves results/
#   make test    lint, types and tests
PYTHON ?= python3
BIN    := .venv/bin
# Tests start hundreds of processes, which share compiled modules even where the environment forbids to write them.
export PYTHONDONTWRITEBYTECODE :=
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# All that a file lists, known by its hashes, and nothing else; plaudit itself is built with the setuptools among it.
LOCKED := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-explorer test-engines test-lowest coverage mutation lint figures libraries peers reliability bench docs links dist requirements clean

help:
	@echo "make demo         audit GDPC, RDPC and ADPC on the Moroccan census tree; leaves results/"
	@echo "make test         lint, types and the tests (4 minutes on 2 cores)"
	@echo "make test-slow    the long tests (more than an hour on 2 cores)"
	@echo "make test-explorer  the explorer's page in a browser (needs Chromium)"
	@echo "make test-engines  what runs on dask, ray and Spark, started on this machine (Spark needs Java)"
	@echo "make test-lowest  the tests with the lowest versions of dependencies that pyproject.toml allows"
	@echo "make coverage     branches that the tests take: at least 95% of audit, 90% of algorithms"
	@echo "make mutation     random small changes of what proves a bound, and how many of them the tests notice"
	@echo "make lint         ruff and mypy only"
	@echo "make figures      run every experiment in full, redraw figures/ and check the expectations"
	@echo "make libraries    run public libraries in an environment of their own, test their adapters, audit their outputs"
	@echo "make peers        run the auditors of others that can be installed, and ours, on the same outputs"
	@echo "make reliability  write docs/reliability.md from what python -m tests.reliability measured"
	@echo "make bench        time and memory of what is read and released by its size, and what audits cost beside their runs"
	@echo "make docs         the site, from docs/, docstrings and saved numbers: build/docs/index.html"
	@echo "make links        every link of the site that leads to another one is followed (needs the internet)"
	@echo "make dist         sdist and wheel, checked, and tried in a fresh environment"
	@echo "make requirements  the hashes of what is installed, for the versions of constraints.txt"

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "plaudit needs Python >= 3.11, and $(PYTHON) is $$($(PYTHON) --version): make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/python pyproject.toml requirements.txt
	@echo "installing plaudit into .venv ..."
	@$(LOCKED) --require-hashes --requirement requirements.txt
	@$(LOCKED) --no-build-isolation --editable .
	@touch $@

.venv/installed-dev: .venv/python pyproject.toml requirements-dev.txt
	@echo "installing plaudit and its development tools into .venv ..."
	@$(LOCKED) --require-hashes --requirement requirements-dev.txt
	@$(LOCKED) --no-build-isolation --editable .
	@touch .venv/installed $@

# The versions of constraints.txt, with the hashes of all files that the index has of them.
LOCK := build/lock/bin/uv pip compile pyproject.toml - --constraint constraints.txt --generate-hashes --universal \
  --python-version 3.11.5 --no-annotate --no-header --quiet
requirements:
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/pip --disable-pip-version-check install --quiet uv
	@echo "setuptools>=77" | $(LOCK) --output-file requirements.txt
	@echo "setuptools>=77" | $(LOCK) --extra dev --output-file requirements-dev.txt

demo: .venv/installed
	@$(BIN)/plaudit audit gdpc rdpc rdpc-all adpc --data morocco --epsilon 1 --seed 20240901 --out results
	@$(BIN)/plaudit explore phsafe --html results/explorer.html

lint: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest --numprocesses 2 --dist worksteal

test-slow: .venv/installed-dev
	$(BIN)/pytest --numprocesses 2 --dist worksteal -m "slow and not reliability"

test-explorer: .venv/installed-dev
	$(BIN)/pytest -m "slow or not slow" tests/audit/explorer

test-engines: .venv/installed-dev
	@$(PIP) --editable '.[dask,ray,spark]'
	$(BIN)/pytest -m "slow or not slow" tests/engines

# Old versions of one package warn of new ones of another, which is nothing that plaudit does.
test-lowest:
	@$(PYTHON) -m venv build/lowest
	@build/lowest/bin/pip --disable-pip-version-check install --quiet uv
	@build/lowest/bin/uv pip compile pyproject.toml --extra census --extra dask --extra release --resolution lowest-direct \
	  --python-version 3.11 --quiet --output-file build/lowest/versions.txt
	@build/lowest/bin/pip --disable-pip-version-check install --quiet --constraint build/lowest/versions.txt --editable '.[dev]'
	build/lowest/bin/pytest -W ignore::DeprecationWarning --numprocesses 2 --dist worksteal

coverage: .venv/installed-dev
	$(BIN)/python -m tests.reliability.branches

mutation: .venv/installed-dev
	@$(PIP) --editable '.[mutation]'
	$(BIN)/python -m tests.reliability.mutation

# Libraries that plaudit shares no environment with: their outputs are files, of which the experiment makes audits.
LIBRARIES := build/libraries
$(LIBRARIES)/outputs: experiments/others/libraries.txt experiments/others/libraries_outputs.py
	@$(PYTHON) -m venv $(LIBRARIES)/environment
	@$(LIBRARIES)/environment/bin/pip --disable-pip-version-check install --quiet --requirement experiments/others/libraries.txt \
	  $(if $(TORCH),--requirement experiments/others/libraries_torch.txt) --editable . pytest hypothesis
	$(LIBRARIES)/environment/bin/python -m pytest -m "slow or not slow" tests/audit/adapters  # 10 minutes
	$(LIBRARIES)/environment/bin/python -P experiments/others/libraries_outputs.py $@  # -P: what stands beside it is none of theirs

libraries: .venv/installed-dev $(LIBRARIES)/outputs
	$(BIN)/python -m experiments run libraries

# Auditors of others, in an environment of their own: the experiment gives them outputs in files, and reads their bounds.
PEERS := build/peers
$(PEERS)/installed: experiments/others/peers.txt
	@$(PYTHON) -m venv $(PEERS)/environment
	@$(PEERS)/environment/bin/pip --disable-pip-version-check install --quiet --requirement experiments/others/peers.txt
	@touch $@

peers: .venv/installed-dev $(PEERS)/installed
	$(BIN)/python -m experiments run other_auditors

figures: .venv/installed-dev $(LIBRARIES)/outputs $(PEERS)/installed
	$(BIN)/python -m experiments run all --jobs 2
	$(BIN)/python -m experiments check

reliability: .venv/installed-dev
	$(BIN)/python -m tests.reliability page

bench: .venv/installed-dev
	$(BIN)/python -m tests.benchmarks.sizes
	$(BIN)/python -m tests.benchmarks.cost

docs: .venv/installed-docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs build/docs

links: .venv/installed-docs
	$(BIN)/python -m sphinx --quiet --keep-going --define nb_execution_mode=off --builder linkcheck docs build/links

.venv/installed-docs: .venv/installed-dev
	@$(PIP) --editable '.[docs]'
	@touch $@

# What a user gets: the wheel in an environment of its own, the README's lines in it, and the demo.
dist: .venv/installed-docs
	rm -rf dist build/dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	@! tar --list --file dist/*.tar.gz | grep --extended-regexp '^[^/]*/(tests|experiments|figures|docs|examples|results|build)/'
	@$(PYTHON) -m venv build/dist
	@build/dist/bin/pip --disable-pip-version-check install --quiet --constraint constraints.txt dist/*.whl
	cd build/dist && bin/python -P -m doctest $(CURDIR)/README.md
	cd build/dist && bin/plaudit audit gdpc rdpc rdpc-all adpc --data morocco --epsilon 1 --seed 20240901 --out results
	cd build/dist && bin/plaudit explore phsafe --html explorer.html

clean:
	rm -rf .venv build dist results docs/generated *.egg-info
