"""The README's code runs and says what the README says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

from audit.estimates.residuals import residual_loss
from audit.report.limits import LIMITS
from audit.report.page import build_report
from experiments import __main__, ways_of_asking
from experiments.experiment import NAMES, load_numbers

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_code_runs() -> None:
    outcome = doctest.testfile(str(README), module_relative=False)
    assert outcome.attempted > 10
    assert outcome.failed == 0


PAGES = [
    ROOT / f"{name}.md"
    for name in ("README", "figures/README", "LIMITATIONS", "SECURITY", "THREAT_MODEL", "docs/scale")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^):]+)\)", page.read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        path, _, place = target.partition("#")
        there = page.parent / path
        assert there.exists(), f"{page.name} links to {target}"
        assert not place or f'<a id="{place}"></a>' in there.read_text(encoding="utf-8"), f"{page.name}: {target}"


def test_limitations_are_those_of_every_report() -> None:
    assert {limit.experiment for limit in LIMITS} <= set(NAMES)
    assert __main__.LIMITATIONS.read_text(encoding="utf-8") == __main__.limitations()
    page = build_report([], [("estimate", residual_loss(np.arange(-20, 21), rng=1))], [], title="t")
    assert all(limit.what in page for limit in LIMITS)


def test_the_table_of_systems_is_what_the_saved_numbers_say() -> None:
    begins, ends = __main__.TABLE_BEGINS, __main__.TABLE_ENDS
    shown = README.read_text(encoding="utf-8").partition(begins)[2].partition(ends)[0].strip()
    assert shown == ways_of_asking.table(load_numbers("ways_of_asking", ROOT / "figures"))
