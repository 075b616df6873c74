"""The code of the README and of every page of the site runs and says what the page says; links lead somewhere."""

import csv
import doctest
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from algorithms.phsafe.schema import RECODED, Codes, Digits, Whole
from audit.estimates.residuals import residual_loss
from audit.report.page import LIMITS, build_report
from experiments import __main__
from experiments.bounds import early
from experiments.experiment import NAMES, load_numbers
from tests.docs.pages import PAGES, ROOT, blocks, interactive


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


LONG = ("promises.md", "search.md", "neighbors.md", "libraries.md", "phsafe.md")  # 1 to 3 s
SHOWN = [
    pytest.param(page, marks=pytest.mark.slow if page.name in LONG else (), id=name_of(page))
    for page in PAGES
    if interactive(page)
]


@pytest.mark.parametrize("page", SHOWN)
def test_examples_print_what_the_page_shows(page: Path) -> None:  # whole audits on some pages, half a second
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0


NOTEBOOKS = [page for page in PAGES if blocks(page, "{code-cell}")]


@pytest.mark.parametrize("page", NOTEBOOKS, ids=name_of)
def test_notebooks_run(page: Path) -> None:
    """Cell by cell, the hidden ones with what the text states; tutorials make whole audits, half a second."""
    cells, space = blocks(page, "{code-cell}"), {"__name__": "__main__"}
    assert len(cells) > 2
    for place, cell in enumerate(cells):
        exec(compile(cell, f"{page.name}, cell {place}", "exec"), space)


def executed() -> str:
    """Return all code that is run for a reader: examples of docstrings and pages, programs, what CONTRIBUTING shows."""
    documented = [path for folder in ("audit", "algorithms") for path in (ROOT / folder).rglob("*.py")]
    shown = [example.source for path in [*documented, *PAGES] for example in interactive(path)]
    shown += [cell for page in PAGES for cell in blocks(page, "{code-cell}")]
    programs = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "tests").rglob("test_own_*.py")]
    return "\n".join([*shown, *(path.read_text("utf-8") for path in programs)])


# Run where its library is installed, by tests/audit/adapters.
ELSEWHERE = {"audit.adapters.diffprivlib.tool"}


def test_every_public_name_is_in_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    words = set(re.findall(r"\w+", executed()))
    modules = [name for names in importlib.import_module("written").MODULES.values() for name in names]
    loaded = {name: importlib.import_module(name) for name in modules}
    named = {
        f"{module}.{name}"
        for module, thing in loaded.items()
        for name in getattr(thing, "__all__", ())
        if inspect.isclass(getattr(thing, name)) or inspect.isfunction(getattr(thing, name))
    }
    assert len(named) > 100
    assert {name for name in named if name.rpartition(".")[2] not in words} == ELSEWHERE


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^):\s]+)\)", page.read_text(encoding="utf-8"))
    for target in (target for target in targets if not target.startswith("/generated/")):  # those the build checks
        path, _, place = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), f"{page.name} links to {target}"
        assert not place or f'<a id="{place}"></a>' in there.read_text(encoding="utf-8"), f"{page.name}: {target}"


def test_limitations_are_those_of_every_report() -> None:
    assert {limit.experiment for limit in LIMITS if not limit.test} <= set(NAMES)
    assert all((ROOT / limit.test).is_file() and not limit.experiment for limit in LIMITS if limit.test)
    assert __main__.LIMITATIONS.read_text(encoding="utf-8") == __main__.limitations()
    page = build_report([], [("estimate", residual_loss(np.arange(-20, 21), rng=1))], [], title="t")
    assert all(limit.what in page for limit in LIMITS)


def test_the_table_for_phsafe_has_every_column_and_code() -> None:
    with (ROOT / "examples/phsafe_columns.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["column"], row["codes"]) for row in csv.DictReader(file)]
    expected = [(name, domain) for columns in RECODED.values() for name, domain in columns.items()]
    assert [name for name, _ in rows] == [name for name, _ in expected]
    for (_, text), (_, domain) in zip(rows, expected, strict=True):
        ends = re.findall(r"(?:^|; )(\d{1,5})(?: to (\d+))?(?= |;|$)", text)  # not of MAFID, of nine digits
        shown = [f"{code:0{len(low)}}" for low, high in ends for code in range(int(low), int(high or low) + 1)]
        match domain:
            case Codes(codes):
                assert shown == list(codes), text
            case Whole(least, most, without) if shown:
                assert shown == [str(code) for code in range(least, most + 1) if code not in without], text
            case Whole(least, most):
                assert text == f"{least} to {most}"
            case Digits():
                assert text == "digits"


def test_the_cost_of_asking_is_what_the_saved_numbers_say() -> None:
    page = (ROOT / "docs/how-to/expensive_runs.md").read_text(encoding="utf-8")
    assert f"\n\n{early.cost_of_asking(load_numbers('runs', ROOT / 'figures'))}\n\n" in page
