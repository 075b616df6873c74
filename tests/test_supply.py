"""What comes with plaudit: under licenses that go with its own, and nothing that calls anybody."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from audit.cli.app import FUNCTIONS
from tests.hostile.test_commands import COMMANDS
from tests.test_house import IMPORTABLE, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name not in ("dev", "docs")}

# Licenses: permissive ones, and the MPL, which asks for the sources of its own files

ALLOWED = re.compile(r"\b(?:0BSD|Apache|BSD|CC0-1\.0|ISC|MIT|PSF-2\.0|Python Software Foundation|Zlib|MPL[ -]2\.0)\b")


def allowed(expression: str, field: str, classifiers: list[str]) -> bool:
    """Whether all that a package says of its license is allowed, and it says something."""
    named = [name for name in classifiers if name.startswith("License :: OSI Approved :: ")]
    first = field.strip().partition("\n")[0]  # the field may hold the whole text
    words = expression or " AND ".join([*named, *re.findall(r"\b[AL]?GPL", first)]) or first
    parts = [part.split(" OR ") for part in words.split(" AND ")]
    return all(any(ALLOWED.search(one) and not re.search("GPL|General Public", one) for one in part) for part in parts)


def license_of(package: metadata.Distribution) -> tuple[str, str, list[str]]:
    about = package.metadata
    return about.get("License-Expression") or "", about.get("License") or "", about.get_all("Classifier") or []


def installed(lines: list[str]) -> dict[str, metadata.Distribution]:
    """What requirements bring, and what that brings, as far as it is here."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [Requirement(line) for line in lines]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name == "plaudit":
            waiting += [Requirement(line) for extra in one.extras for line in EXTRAS[extra]]
            continue
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if f"{name}{sorted(one.extras)}" not in found:
            found[f"{name}{sorted(one.extras)}"] = package
            inner = map(Requirement, package.requires or [])
            extras = one.extras or {""}
            waiting += [r for r in inner if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)]
    return found


def test_licenses_of_what_is_needed_go_with_ours():
    assert PROJECT["license"] == "Apache-2.0"
    found = installed([*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)])
    assert {"numpy[]", "scipy[]", "markupsafe[]", "typer[]"} <= found.keys()
    assert {name for name, package in found.items() if not allowed(*license_of(package))} == set()


@pytest.mark.parametrize(
    ("expression", "field", "classifiers"),
    [
        ("GPL-3.0-or-later", "", []),
        ("MIT AND LGPL-2.1", "", []),
        ("", "GPL", ["License :: OSI Approved :: MIT License"]),
        ("", "MIT", ["License :: OSI Approved :: GNU Affero General Public License v3"]),
        ("", "see LICENSE", ["Programming Language :: Python"]),
    ],
)
def test_a_license_that_does_not_go_with_ours_is_seen(expression, field, classifiers):
    assert not allowed(expression, field, classifiers)
    assert allowed("(GPL-2.0 OR MIT) AND BSD-3-Clause", field, classifiers)


# The network

# Every process of the command begins with this: what it looks up or calls is written down, and refused.
HOOK = """
import os, sys
def refuse(event, about):
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = about[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(about[1], tuple):
        host = about[1][0]
    else:  # such as a socket of this machine
        return
    if host not in ("127.0.0.1", "::1", "localhost", None):
        with open(os.environ["CALLS"], "a") as file:
            print(event, host, file=file)
        raise PermissionError("no network")
sys.addaudithook(refuse)
"""
ALL = """
import importlib, json, shlex, sys
modules, commands = json.load(sys.stdin)
for name in modules:
    importlib.import_module(name)
from audit import cli
codes = {}
for command in commands:
    try:
        cli.main(shlex.split(command)[1:])
    except SystemExit as left:
        codes[command] = left.code
print(json.dumps(codes))
"""
CALL = "import urllib.request\ntry:\n    urllib.request.urlopen('http://192.0.2.1')\nexcept OSError:\n    pass"


def calls_of(code: str, folder: Path, given: object = None) -> tuple[str, list[str]]:
    """Return what a program prints, and whom it or any process of its calls."""
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(HOOK)
    paths = os.pathsep.join([str(folder / "hook"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "CALLS": str(folder / "calls"), "OMP_NUM_THREADS": "1"}
    command, text = [sys.executable, "-c", code], json.dumps(given)
    done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    return done.stdout, calls


@pytest.mark.slow  # all modules and commands, 6 s
def test_nothing_that_is_imported_and_no_command_calls_anybody(good_files, tmp_path):
    shutil.copytree(good_files, tmp_path / "desk", symlinks=True)
    desk = tmp_path / "desk"
    first = {line.split()[0]: line for line in reversed(COMMANDS)}  # one of each
    commands = [f"plaudit {line}" for line in (*first.values(), "doctor")]
    assert {command.split()[1] for command in commands} == {*FUNCTIONS, "release", "explore"}
    modules = [name for name in IMPORTABLE if not name.startswith("experiments")]
    out, calls = calls_of(ALL, desk, (modules, commands))
    codes = json.loads(out.splitlines()[-1])
    assert {command: code for command, code in codes.items() if code not in (0, 1, 3)} == {}
    assert (len(codes), calls) == (len(commands), [])


def test_a_call_is_seen_even_where_its_failure_is_not_told(tmp_path):
    assert calls_of(CALL, tmp_path) == ("", ["socket.getaddrinfo 192.0.2.1"])


def locked(name: str) -> dict[str, tuple[str, int]]:
    """Return the version, and the number of hashes, of every package of a file."""
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    packages: dict[str, tuple[str, int]] = {}
    for line in lines:
        pinned = re.match(r"([a-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)", line)
        assert pinned, line
        packages[canonicalize_name(pinned[1])] = pinned[2], len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line))
    return packages


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_what_make_installs_has_a_hash_and_the_version_of_the_constraints(name):
    extras = PROJECT["optional-dependencies"]
    lines = PROJECT["dependencies"] + (extras["dev"] + EXTRAS["census"] if "dev" in name else [])
    needed = {canonicalize_name(Requirement(line).name) for line in lines} - {"plaudit"}
    packages = locked(name)
    assert needed | {"setuptools"} <= packages.keys()
    assert [package for package, (_, hashes) in packages.items() if not hashes] == []
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").split())
    versions = {canonicalize_name(package): version for package, version in pins.items()}
    assert {one: v for one, (v, _) in packages.items() if versions.get(one, v) != v} == {}
    assert packages.keys() - versions.keys() <= {"setuptools", "colorama", "pywin32"}  # of the build, and of Windows
