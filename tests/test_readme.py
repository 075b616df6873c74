"""The README's code runs and says what the README says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from experiments import __main__, ways_of_asking
from experiments.experiment import load_numbers

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_code_runs() -> None:
    outcome = doctest.testfile(str(README), module_relative=False)
    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_links_lead_somewhere() -> None:
    for page in (README, ROOT / "figures" / "README.md"):
        targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        assert targets
        for target in targets:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_systems_is_what_the_saved_numbers_say() -> None:
    begins, ends = __main__.TABLE_BEGINS, __main__.TABLE_ENDS
    shown = README.read_text(encoding="utf-8").partition(begins)[2].partition(ends)[0].strip()
    assert shown == ways_of_asking.table(load_numbers("ways_of_asking", ROOT / "figures"))
