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
from tests.docs.pages import PAGES, ROOT, blocks

EXAMPLES = ROOT / "examples"
OTHERS = {"mymodule.py", "counting.py", "record_outputs.py"}  # which need a command or arguments
PROGRAMS = sorted(path for kind in ("*.py", "*.sh") for path in EXAMPLES.glob(kind) if path.name not in OTHERS)
EXPECTED = re.compile(r"\s*# exit code (\d)$")

# What programs print that tells that they did what they say.
PRINTED = {
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
    "systems.py": ["loss 1.0", "beyond 37", "up to 21", "[5, 0, 1]", "0.3935", "13 deaths become 1", "1.55", "18 g"],
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
    assert {program.name for program in PROGRAMS} == PRINTED.keys()
    assert len(PROGRAMS) >= 10
    assert all(10 <= len(program.read_text("utf-8").splitlines()) <= 40 for program in PROGRAMS)


FIRST = "own_mechanism.py"  # a process and two audits, 1 s; the others take minutes together
ALL = [pytest.param(one, marks=() if one.name == FIRST else pytest.mark.slow, id=one.name) for one in PROGRAMS]


@pytest.mark.parametrize("program", ALL)
def test_programs_run(program: Path, desk: Path) -> None:  # each in a process of its own, with whole audits
    found = run(["sh" if program.suffix == ".sh" else sys.executable, program.name], desk)
    assert found.returncode == 0, found.stderr
    for words in PRINTED[program.name]:
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
    kept = {file: file.read_text() for file in (desk / "a.csv", desk / "b.csv")}
    for file in kept:
        file.unlink()
    found = run(["Rscript", "noisy_count.R"], desk)
    assert found.returncode == 0, found.stderr
    assert {file: file.read_text() for file in kept} == kept


@pytest.mark.slow
def test_the_package_is_audited_by_its_tests(desk: Path) -> None:
    """As it is, in `test_core_alone.py`; here with half of its noise, as the tutorial: an ellipsis leaves lines out."""
    folder = desk / "privacy_test"
    noise = folder / "src" / "noisy_counts.py"
    noise.write_text(noise.read_text().replace("np.exp(-EPSILON)", "np.exp(-2 * EPSILON)"))
    arguments = ["-m", "pytest", "-p", "no:cacheprovider", "--audit-report", "audits.json"]
    broken = run([sys.executable, *arguments], folder, PYTHONPATH="src", PYTEST_ADDOPTS="")
    assert broken.returncode == 1
    (shown,) = blocks(ROOT / "docs/tutorials/audit_in_ci.md", "text")
    assert all(part in broken.stdout for part in shown.rstrip().split("...\n"))
    for command in ("check", "report", "verify"):
        assert run(["plaudit", command, "audits.json"], folder).returncode == 1


def test_the_settings_of_a_page_are_in_their_file_and_spend_what_it_says() -> None:
    page = ROOT / "docs/how-to/topdown.md"
    settings = settings_of(spec=EXAMPLES / "survey.json")
    shown = {"about": settings.about, **json.loads(blocks(page, "json")[0])}
    assert shown == json.loads((EXAMPLES / "survey.json").read_text("utf-8"))
    tree = Hierarchy.from_codes([*"NNNMMMMMSSSS"], [str(place) for place in range(12)])
    ledger = f"{Ledger(preset(settings, tree))}\n"
    assert all(part in ledger for part in blocks(page, "text")[0].split("...\n"))
    keys = re.findall(r"^- `(\w+)`(?:, `(\w+)`)?:", page.read_text("utf-8"), re.MULTILINE)
    assert {*sum(keys, ()), "about", "attributes"} - {""} == FORMS.keys()


@pytest.mark.slow
def test_the_demo_gives_the_table_of_the_readme(tmp_path: Path) -> None:
    (demo,) = re.findall(r"\$\(BIN\)/(plaudit audit .*) --out results", (ROOT / "Makefile").read_text("utf-8"))
    found = run([*demo.split(), "--json"], tmp_path)
    assert found.returncode == 0, found.stderr
    outputs = [
        f"| {name} | {at_least(one['measured']['epsilon'])} | {at_most(one['detectable'])} | {one['verdict']} |\n"
        for name, one in json.loads(found.stdout).items()
    ]
    assert f"|---|---|---|---|\n{''.join(outputs)}\n" in (ROOT / "README.md").read_text("utf-8")


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
