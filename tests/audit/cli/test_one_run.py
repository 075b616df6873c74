"""`plaudit audit --one-run`: one release, with people in or out of every cell by secret coins."""

from __future__ import annotations

import pytest

from tests.audit.cli.desk import NO_POWER, VIOLATION, WITHIN, Command, results


@pytest.mark.parametrize(
    ("arguments", "name", "code"),
    [
        (("gdpc",), "gdpc one run", WITHIN),
        (("topdown", "--pair", "added", "--epsilon", "3"), "topdown added one run", NO_POWER),
        (("adpc", "--claim", "zcdp:0.5"), "adpc one run", NO_POWER),
        (("gdpc-half-noise",), "gdpc-half-noise one run", VIOLATION),
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
