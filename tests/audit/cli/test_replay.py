"""`plaudit replay`: systems with the same noise on both databases, and plain words where none is seen."""

import os
import shlex
from pathlib import Path

import pytest

from audit.results.folder import read_results
from tests.audit.cli.desk import NO_POWER, VIOLATION, WITHIN, Command, strict


@pytest.mark.parametrize(
    ("arguments", "code", "queries"),
    [
        (("gdpc",), WITHIN, 1),
        (("adpc", "--data", "midwest", "--cell", "7"), WITHIN, 4),
        (("topdown", "--set", "rho=0.5", "--relation", "add_remove"), WITHIN, 3),
        pytest.param(("phsafe",), WITHIN, 46, marks=pytest.mark.slow),
        (("gdpc-twice", "--released"), VIOLATION, 2),
        (("gdpc-half-noise", "--claim", "pure:2"), WITHIN, 1),
        (("SVT1",), NO_POWER, 2),
        (("mine:noisy", "--data", "counts.csv"), NO_POWER, 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_system_is_replayed(plaudit: Command, arguments: tuple[str, ...], code: int, queries: int) -> None:
    """No chance is in it: sound systems have no violation, whatever the seed."""
    outcome = plaudit("replay", *arguments, "--seed", "1", "--json")
    assert (outcome.code, outcome.err) == (code, "")
    (found,) = strict(outcome.out).values()
    assert len(found["queries"]) == queries
    assert found["verdict"] == {WITHIN: "not refuted", VIOLATION: "violated", NO_POWER: "no power"}[code]
    assert bool(found["violations"]) == (code == VIOLATION)
    assert found["seed"] == 1


def test_queries_and_violations_are_told_in_words(plaudit: Command) -> None:
    printed = plaudit("replay", "gdpc", "--epsilon", "0.5", "--seed", "1").out
    assert "counts 1,503 two tailed geometric, epsilon 0.5 1 1 1 0.5 0.11367" in " ".join(printed.split())
    assert "A pass is no proof." in printed
    both = plaudit("replay", "gdpc-half-noise", "--cell", "0", "--cell", "9").out
    assert both.count("violation: loss: all queries together lose epsilon 2 on this pair, and 1 is promised") == 2
    assert "gdpc-half-noise cell 9: " in both


def test_replays_are_kept_beside_audits_and_checked(plaudit: Command, workspace: Path) -> None:
    command = ("replay", "gdpc-twice", "--released", "--cell", "0", "--cell", "9", "--seed", "1", "--out", "kept")
    first = plaudit(*command)
    assert first.out.endswith("Saved in kept/: one JSON file a replay.\n")
    names = ["gdpc-twice-cell-0-replay.json", "gdpc-twice-cell-9-replay.json"]
    assert sorted(os.listdir("kept")) == names
    found = dict(read_results(Path("kept")).replays)
    for name in names:
        record = found[name.removesuffix(".json")]
        again = plaudit(*shlex.split(record.provenance["command"])[1:])
        assert again.out.partition(": ")[2].startswith(str(record))
    assert plaudit(*command).out == first.out  # the very same takes its own place
    other = plaudit(*command, "--claim", "pure:2")
    assert "gdpc-twice-cell-9-replay.json is there from another result, and stays: this one is " in other.out
    assert sorted(os.listdir("kept")) == sorted([*names, *(name.replace(".json", "-2.json") for name in names)])
    assert plaudit("check", "kept").code == VIOLATION
