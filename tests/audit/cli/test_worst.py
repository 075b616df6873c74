"""Of several pairs, results or folders the worst decides the exit code, wherever it stands."""

from importlib import import_module
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from audit.claims import PureDP
from tests.audit.cli.desk import NO_POWER, VIOLATION, WITHIN, Command
from tests.helpers import audited, replayed

CODES = {"violated": VIOLATION, "no power": NO_POWER, "not refuted": WITHIN}  # the worst first
CHANGES: dict[str, dict[str, Any]] = {"violated": {"measured": PureDP(1.5)}, "no power": {"detectable": 2.5}}
COMMANDS = """
check a.json b.json
check both
verify a.json b.json
verify both
report both
report a.json b.json
compare before both
audit mine:promising --data counts.csv --cell 0 --cell 1 --json
search mine:promising --data counts.csv --json
replay mine:promising --data counts.csv --cell 0 --cell 1 --json
"""


@pytest.mark.parametrize("kinds", [*permutations(CODES, 2)], ids=" ".join)
@pytest.mark.parametrize("command", COMMANDS.split("\n")[1:-1])
def test_the_worst_decides(plaudit: Command, monkeypatch: pytest.MonkeyPatch, command: str, kinds: tuple[str, str]):
    results = [audited(verdict=kind, **CHANGES.get(kind, {})) for kind in kinds]
    for name, result in zip("ab", results, strict=True):
        result.to_json(f"{name}.json")
        result.to_json(f"both/{name}.json")
        audited().to_json(f"before/{name}.json")
    Path("both/.part.json").write_text("half of a file that somebody else is writing")
    violations = {"violated": ({"kind": "output", "sentence": "they differ"},)}
    replays = [replayed(violations=violations.get(kind, ()), evaluated=kind != "no power") for kind in kinds]
    left, again = iter(results), iter(replays)
    found = SimpleNamespace(results=results, screening=0, screened=2, confidence=0.95)
    monkeypatch.setattr("audit.measure.search.search_loss", lambda *_, **__: found)  # which imports the one below
    monkeypatch.setattr("audit.measure.loss.measure_loss", lambda *_, **__: next(left))
    monkeypatch.setattr(import_module("audit.replay"), "replay", lambda *_, **__: next(again))
    monkeypatch.setattr("audit.review.verify.verify_result", lambda result: result)
    outcome = plaudit(*command.split())
    assert (outcome.code, Path("a.json").exists()) == (next(CODES[kind] for kind in CODES if kind in kinds), True)
