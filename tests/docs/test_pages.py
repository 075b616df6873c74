"""The code of the README and of every page of the site runs and says what the page says; links lead somewhere."""

import doctest
import importlib
import inspect
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from algorithms.phsafe.schema import RECODED, Codes, Digits, Whole
from algorithms.systems import systems
from audit.estimates.residuals import residual_loss
from audit.report.page import LIMITS, build_report
from experiments import __main__
from experiments.bounds import early
from experiments.experiment import NAMES, find, load_numbers
from tests.docs.pages import PAGES, ROOT, blocks, interactive


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if interactive(page)], ids=name_of)
def test_examples_print_what_the_page_shows(page: Path) -> None:  # whole audits on some pages, .5 to 1.5 s
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


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of whole numbers, those that touch as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low == found[-1][1] + 1:
            low = found.pop()[0]
        found.append((low, high))
    return found


def test_the_page_on_phsafe_has_every_column_and_code() -> None:
    page = ROOT / "docs/how-to/phsafe.md"
    rows = re.findall(r"^\| `([A-Z0-9_]+)` \| [^|]+ \| ([^|]+) \|$", page.read_text("utf-8"), re.MULTILINE)
    expected = [(name, domain) for columns in RECODED.values() for name, domain in columns.items()]
    assert [name for name, _ in rows] == [name for name, _ in expected]
    for (_, text), (_, domain) in zip(rows, expected, strict=True):
        shown = re.findall(r"`(\d+)`(?: to `(\d+)`)?", text)
        match domain:
            case Codes(codes):
                assert {len(code) for pair in shown for code in pair if code} == {len(codes[0])}
                wanted = [(int(code), int(code)) for code in codes]
            case Whole(least, most, without):
                ends = [least - 1, *without, most + 1]
                wanted = [(low + 1, high - 1) for low, high in pairwise(ends) if low + 1 < high]
            case Digits():
                assert text == "digits"
                wanted = []
        assert merged((int(low), int(high or low)) for low, high in shown) == merged(wanted), text
    assert blocks(page, "json") == [(ROOT / "examples/recode.json").read_text("utf-8")]


@pytest.mark.parametrize("name", ["bottom-up", "ons", "nist"])
def test_the_page_of_a_system_has_every_option_of_its_release(name: str) -> None:
    page = ROOT / f"docs/how-to/{name.replace('-', '_')}.md"
    rows = "".join(re.findall(r"^\| `--.*$", page.read_text("utf-8"), re.MULTILINE))
    shared = {"out", "data", "memory", "seed"}
    options = {option.replace("_", "-") for option in inspect.signature(systems()[name].commands["release"]).parameters}
    assert set(re.findall(r"`--([a-z-]+)`", rows)) - shared == options - shared


def test_the_cost_of_asking_is_what_the_saved_numbers_say() -> None:
    page = (ROOT / "docs/how-to/expensive_runs.md").read_text(encoding="utf-8")
    assert f"\n\n{early.cost_of_asking(load_numbers('runs', ROOT / 'figures'))}\n\n" in page


def test_the_table_of_systems_is_what_the_saved_numbers_say() -> None:
    text = __main__.SYSTEMS.read_text(encoding="utf-8")
    shown = text.partition(__main__.TABLE_BEGINS)[2].partition(__main__.TABLE_ENDS)[0].strip()
    assert shown == str(find("all_systems").table(load_numbers("all_systems", ROOT / "figures")))
