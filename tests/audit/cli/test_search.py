"""`plaudit search`: the worst of many pairs of databases, under one confidence."""

import os
import shlex
from pathlib import Path

import pytest

from audit.results.folder import read_audits
from tests.audit.cli.desk import NO_POWER, WITHIN, Command, results

FEW = ("--size", "6000", "--seed", "1", "--confidence", "0.999", "--attack", "entries")


@pytest.mark.parametrize(
    ("arguments", "looked", "pair"),
    [
        pytest.param(
            ("ons", "--pairs", "2", "--keep", "1"),
            "2 pairs of databases, looked at in 1,800 runs, 1 measured",
            "cell (",
            marks=pytest.mark.slow,
        ),
        (("mine:noisy", "--data", "counts.csv", "--claim", "pure:1"), "3 pairs of databases, all measured", "to cell "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_pairs_are_looked_at_and_the_worst_are_measured(plaudit, arguments, looked, pair):
    """False alarm: 1e-3 each."""
    outcome = plaudit("search", *FEW, *arguments, "--verbose")
    assert (outcome.code in (WITHIN, NO_POWER), outcome.err) == (True, "")
    assert outcome.out.startswith(f"{looked}, each at ")
    assert "99.9% together.\n" in outcome.out
    assert pair in outcome.out


# A search, and two audits again.
def test_what_was_measured_is_kept_with_the_command_of_the_search(plaudit: Command) -> None:
    """False alarm: 1e-3 each."""
    outcome = plaudit("search", "gdpc", "--cell", "3", "--cell", "8", "--size", "1200", *FEW[2:], "--out", "kept")
    assert outcome.out.startswith("2 pairs of databases, all measured, each at 99.95% confidence: 99.9% together.\n")
    assert outcome.out.endswith("Saved in kept/: one JSON file an audit.\n")
    names = ["gdpc-pair-1", "gdpc-pair-2"]
    assert sorted(os.listdir("kept")) == [f"{name}.json" for name in names]
    for name, result in read_audits(Path("kept")):
        assert result.provenance["together"] == {"pairs": 2, "confidence": 0.999}
        again = results(plaudit(*shlex.split(result.provenance["command"])[1:], "--json"))
        assert again[name.replace("-", " ")].counts == result.counts
    assert plaudit("check", "kept").code == outcome.code
