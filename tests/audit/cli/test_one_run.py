"""`plaudit audit --one-run`: one release, with people in or out of every cell by secret coins."""

from __future__ import annotations

import pytest

from tests.audit.cli.desk import NO_POWER, VIOLATION, WITHIN, Command, refused, results


@pytest.mark.parametrize(
    ("arguments", "name", "code"),
    [
        (("gdpc",), "gdpc one run", WITHIN),
        (("bottom-up", "--people", "2", "--data", "midwest"), "bottom-up one run", WITHIN),
        (("topdown", "--pair", "added", "--epsilon", "3"), "topdown added one run", NO_POWER),
        (("adpc", "--share", "0.2", "--claim", "zcdp:0.5"), "adpc one run", NO_POWER),
        (("gdpc-half-noise", "--name", "half"), "half one run", VIOLATION),
        (("mine:noisy", "--data", "morocco", "--claim", "pure:0.3"), "mine:noisy one run", VIOLATION),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_one_run_is_audited(plaudit: Command, arguments: tuple[str, ...], name: str, code: int) -> None:
    """False alarm: 1e-3. Noise for twice, or three times, the promise on 1,503 areas is far beyond it."""
    outcome = plaudit("audit", "--one-run", *arguments, "--seed", "1", "--confidence", "0.999", "--json")
    assert (outcome.code, outcome.err) == (code, "")
    ((called, result),) = results(outcome).items()
    assert (called, result.size, result.selection) == (name, 1, 0)
    assert result.provenance["command"].startswith(f"plaudit audit {arguments[0]} ")
    assert " --one-run " in result.provenance["command"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("phsafe",), "phsafe: an audit of one run needs counts of people, and its databases are 'VAL: "),
        (("nist",), "nist: an audit of one run needs counts of people, and its databases are 'one person added'"),
        (("bug-half-noise",), "an audit of one run needs counts of people, and its databases are 'the first count"),
        (("rdpc-all",), "rdpc-all: an output that is not of the shape of counts needs a score: (1591,), (1503,)"),
        (("topdown",), "topdown: canaries are added or removed: the claim must be under add_remove, got replace_one"),
        (("gdpc", "--size", "3"), "--size is for many runs, and --one-run is one"),
        (("gdpc", "--cell", "3"), "--cell is for many runs, and --one-run is one"),
        (("gdpc", "--share", "2"), "gdpc: share must be in (0, 1], got 2"),
        (("gdpc", "--people", "0"), "people must be at least 1, got 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_audited_in_one_run_is_refused(plaudit: Command, arguments: tuple[str, ...], words: str) -> None:
    assert refused(plaudit("audit", "--one-run", *arguments), words)


def test_options_of_one_run_go_with_it(plaudit: Command) -> None:
    assert refused(plaudit("audit", "gdpc", "--share", "0.2"), "--share goes with --one-run")
    given = ("--outputs-x", "x.csv", "--outputs-y", "y.csv", "--one-run")
    assert refused(plaudit("audit", *given), "--one-run has no effect on outputs from elsewhere")
