"""The programs of examples/ run in their folder, and so do the commands that pages show."""

import ast
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.topdown import preset
from algorithms.topdown.ledger import Ledger
from algorithms.topdown.presets import FORMS, settings_of
from audit.results.formatting import at_least, at_most
from tests.docs.pages import PAGES, ROOT, blocks, interactive

EXAMPLES = ROOT / "examples"
OTHERS = {"mymodule.py", "counting.py", "record_outputs.py"}  # which need a command or arguments
PROGRAMS = sorted(path for kind in ("*.py", "*.sh") for path in EXAMPLES.glob(kind) if path.name not in OTHERS)
LINES = (10, 40)
EXPECTED = re.compile(r"\s*# exit code (\d)$")

# What programs print that tells that they did what they say.
TOLD = {
    "dp_sgd.py": ["as promised: not refuted after 600 trainings", "noise: violated after", "people: violated after"],
    "library.py": ["promised epsilon 0.5", "not refuted"],
    "one_release.py": ["GDPC: not refuted", "RDPC: not refuted"],
    "ordinary_households.py": ["12,328 persons in 5,000 homes, in ordinary/"],
    "outputs.py": ["violated: promised epsilon 0.5", "not refuted: promised epsilon 1"],
    "own_mechanism.py": ["violated: promised epsilon 0.5", "not refuted: promised epsilon 1"],
    "pipeline.py": ["mean ['output']", "repaired no violation"],
    "records.py": ["not refuted", "violated"],
    "release_deaths.sh": ["with secure noise, written to out/deaths/top-down", "not refuted"],
    "release_households.sh": ["with secure noise, written to out/households/tables", "not refuted"],
    "release_persons.sh": ["written to out/persons/tables", "report.html"],
    "survey.py": ["20,000 persons in 12 districts"],
    "small_budget.py": ["40 people: 140 runs", "not refuted"],
}


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Return a folder with the examples and their data, and nothing that they made elsewhere."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out", "__pycache__")))


def run(words: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = os.environ | {"PATH": path, "COLUMNS": "200"} | environment
    return subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, check=False, timeout=300)


def test_every_program_is_short_and_has_a_test() -> None:
    assert {program.name for program in PROGRAMS} == TOLD.keys()
    assert len(PROGRAMS) >= 10
    for program in PROGRAMS:
        assert LINES[0] <= len(program.read_text("utf-8").splitlines()) <= LINES[1], program.name


FIRST = "own_mechanism.py"  # the others take minutes together
ALL = [pytest.param(one, marks=() if one.name == FIRST else pytest.mark.slow, id=one.name) for one in PROGRAMS]


@pytest.mark.parametrize("program", ALL)
def test_programs_run(program: Path, desk: Path) -> None:  # each in a process of its own, with whole audits
    found = run(["sh" if program.suffix == ".sh" else sys.executable, program.name], desk)
    assert found.returncode == 0, found.stderr
    for words in TOLD[program.name]:
        assert words in found.stdout


ODD = """
turns = iter(range(1000))
def odd(database):
    database.append(0)
    turn = next(turns) // 2
    if turn == 2:
        raise ValueError("not today")
    if turn == 3:
        raise SystemExit("no more")
    return [len(database), {"b": 2**53, "a": [-0.0, "a, b\\n"]}][turn]
"""


def test_outputs_are_recorded_without_any_package(desk: Path) -> None:
    """On copies of the databases, in turn. What was recorded before the program ended stays; no file is replaced."""
    record = [sys.executable, "-I", "-S", "record_outputs.py", "odd:odd", "x.json", "y.json", "9"]
    (desk / "odd.py").write_text(ODD)
    found = run(record, desk)
    assert (found.returncode, found.stderr) == (1, "no more\n")
    assert list(csv.reader((desk / "x.csv").read_text("utf-8").splitlines())) == [
        ["form", "entry", "entry b", "entry a 0", "entry a 1"],
        ["int", "4", "", "", ""],
        ["dict", "", "'9007199254740992'", "-0.0", "'a, b\\n'"],
        ["ValueError", "", "", "", ""],
    ]
    again = run(record, desk)
    assert (again.returncode, again.stderr) == (1, "two new files must be written, got x.csv and y.csv\n")
    ast.parse((desk / "record_outputs.py").read_text("utf-8"), feature_version=(3, 8))


@pytest.mark.slow
def test_the_program_in_r_writes_the_outputs_that_are_kept(desk: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("Debian's package r-base-core is not installed")
    kept = [(desk / name).read_text() for name in ("a.csv", "b.csv")]
    for name in ("a.csv", "b.csv"):
        (desk / name).unlink()
    found = run(["Rscript", "noisy_count.R"], desk)
    assert found.returncode == 0, found.stderr
    assert [(desk / name).read_text() for name in ("a.csv", "b.csv")] == kept


@pytest.mark.slow
def test_the_package_is_audited_by_its_tests(desk: Path) -> None:
    """As it is, in `test_core_alone.py`; here with half of its noise."""
    folder = desk / "privacy_test"
    noise = folder / "src" / "noisy_counts.py"
    noise.write_text(noise.read_text().replace("np.exp(-EPSILON)", "np.exp(-2 * EPSILON)"))
    asked = ["-m", "pytest", "-p", "no:cacheprovider", "--audit-report", "audits.json"]
    broken = run([sys.executable, *asked], folder, PYTHONPATH="src")
    assert broken.returncode == 1
    assert "violated: promised epsilon 1" in broken.stdout
    for command in ("check", "report", "verify"):
        assert run(["plaudit", command, "audits.json"], folder).returncode == 1


def test_the_failure_in_the_tutorial_is_what_pytest_prints(tmp_path: Path) -> None:  # a session of pytest, 2 s
    """Of the page's own tests, the first with the promise that the page names; an ellipsis leaves lines out."""
    page = ROOT / "docs/tutorials/audit_in_ci.md"
    sources = [example.source for example in interactive(page)]
    defined = [source for source in sources if not source.startswith("test_")]
    assert len(sources) - len(defined) == 2  # calls
    module = "".join(defined)
    assert module.count("PureDP(1.0)") == 1
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_privacy.py").write_text(module.replace("PureDP(1.0)", "PureDP(0.5)"))
    (tmp_path / "pyproject.toml").touch()
    printed = run([sys.executable, "-m", "pytest"], tmp_path, PYTEST_ADDOPTS="").stdout
    (shown,) = blocks(page, "text")
    assert shown.startswith("E ")
    for part in shown.split("...\n"):
        assert part in printed


def test_the_settings_of_a_page_are_in_their_file_and_spend_what_it_says() -> None:
    page = ROOT / "docs/how-to/topdown.md"
    settings = settings_of(spec=EXAMPLES / "survey.json")
    shown = json.loads(blocks(page, "json")[0])
    assert {"about": settings.about, **shown} == json.loads((EXAMPLES / "survey.json").read_text("utf-8"))
    codes = [(region, str(place)) for region, places in (("N", 3), ("M", 5), ("S", 4)) for place in range(places)]
    tree = Hierarchy.from_codes(*zip(*codes, strict=True))
    ledger = f"{Ledger(preset(settings, tree))}\n"
    assert all(part in ledger for part in blocks(page, "text")[0].split("...\n"))
    cells = [line.split("|")[1] for line in page.read_text().splitlines() if line[:3] == "| `"]
    keys = re.findall(r"`(\w+)`", "".join(cells))
    assert {*keys, "about", "attributes"} == FORMS.keys()


@pytest.mark.slow
def test_the_demo_gives_the_table_of_the_readme(tmp_path: Path) -> None:
    (demo,) = re.findall(r"\$\(BIN\)/(plaudit audit .*) --out results", (ROOT / "Makefile").read_text("utf-8"))
    found = run([*demo.split(), "--json"], tmp_path)
    assert found.returncode == 0, found.stderr
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = re.findall(r"^\| ([a-z-]+) \| ([\d.]+) \| (\S+) \| (.*) \|$", readme, re.MULTILINE)
    told = [
        (name, at_least(audit["measured"]["epsilon"]), at_most(audit["detectable"]), audit["verdict"])
        for name, audit in json.loads(found.stdout).items()
    ]
    assert shown == told


def commands(page: Path) -> list[tuple[str, int, str]]:
    """Return the commands that a page shows after ``$``, the exit code that it says they have, and what they print."""
    found = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            words, expected = EXPECTED.sub("", line), EXPECTED.search(line)
            found.append((words, int(expected[1]) if expected else 0, shown.rstrip()))
    return found


SHOWN = [page for page in PAGES if commands(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_pages_run(page: Path, desk: Path) -> None:
    """One after the other, in a folder like examples/, with a seed: at 95% a sound system is accused now and then."""
    for words, expected, shown in commands(page):
        if shlex.split(words)[0] in ("git", "make", "pip", "cd"):
            continue  # of a checkout: `make dist` installs in a fresh environment
        if words.startswith(("plaudit audit ", "plaudit search ")) and "--seed" not in words:
            words = f"{words} --seed 1"
        found = run(["sh", "-c", words], desk)
        assert found.returncode == expected, f"{words}\n{found.stderr}{found.stdout}"
        assert shown in found.stdout
