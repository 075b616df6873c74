"""`plaudit estimate`: systems, mechanisms and errors of one's own; it is never a verdict, and bad input is one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.results import LossEstimate
from audit.results.folder import read_results
from tests.audit.cli.desk import EXACT, WITHIN, Command, strict
from tests.helpers import geometric

DIRECT = ("--method", "direct", "--runs", "4000")


@pytest.fixture
def workspace(workspace: Path) -> Path:
    (workspace / "mine.py").write_text(EXACT)
    return workspace


def estimated(plaudit: Command, *arguments: str) -> tuple[str, LossEstimate]:
    outcome = plaudit("estimate", *arguments, "--seed", "1", "--json")
    assert (outcome.code, outcome.err) == (WITHIN, "")
    ((name, values),) = strict(outcome.out).items()
    return name, LossEstimate.from_dict(values)


@pytest.mark.parametrize(
    ("arguments", "name", "low", "high", "promise"),
    [
        # The true loss is 2: an estimate beyond the promise is no violation.
        (("gdpc-half-noise", "--percentile", "90"), "gdpc-half-noise kde", 1.5, 2.5, "epsilon 1 (add/remove)"),
        (("gdpc", "--method", "histogram", "--multiplier", "1"), "gdpc histogram", 0.8, 1.2, "epsilon 1 (add/remove)"),
        (("topdown", "--stage", "rounded", "--set", "rho=0.5"), "topdown rounded slope", 0, 1, "rho 0.5 (replace one)"),
        (("gdpc", "--change", "2"), "gdpc slope", 0.5, 3, "epsilon 1 (add/remove)"),
        (("phsafe",), "phsafe slope", 0.24, 0.28, "rho 1.257 (add/remove)"),
        (("mine:promising", "--data", "morocco"), "mine:promising lag_tail", 0.8, 1.2, "epsilon 1 (add/remove)"),
        (("mine:noisy", "--data", "counts.csv"), "mine:noisy lag_tail", 0.8, 1.2, ""),
        (("mine:noisy", "--data", "counts.csv", "--claim", "pure:2"), "mine:noisy lag_tail", 0.8, 1.2, "epsilon 2 (ad"),
        (("gdpc", *DIRECT, "--cell", "7"), "gdpc cell 7 direct", 0.7, 5, "epsilon 1 (add/remove)"),
        (("adpc", *DIRECT, "--event", "equal"), "adpc direct", 0.3, 5, "epsilon 1 (add/remove)"),
        (("gdpc", *DIRECT, "--move-to", "9"), "gdpc cell 0 to 9 direct", 0.7, 5, "epsilon 2 (replace"),
        (("adpc", "--set", "parts=2"), "adpc parts=2 lag_tail", 0.3, 1, "epsilon 1 (add/remove)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_system_is_estimated(plaudit: Command, arguments: Any, name: str, low: float, high: float, promise: str):
    called, found = estimated(plaudit, *arguments)
    assert called == name
    assert low < found.value < high
    assert found.settings["promise"].startswith(promise)
    assert bool(promise) == bool(found.settings["promise"])
    assert found.settings["command"].endswith("--seed 1")


def test_the_words_say_what_is_taken_for_granted_and_that_it_is_no_bound(plaudit: Command) -> None:
    outcome = plaudit("estimate", "rdpc-all", "--method", "direct", "--runs", "2000", "--seed", "1")
    first, promise, changed, entry, *assumed = outcome.out.splitlines()
    assert first.endswith("(95%, of chance alone), for one person. An estimate, not a bound.")
    assert (promise, changed) == ("Promise: epsilon 1 (add/remove).", "Entries that the pair changes: 4.")
    assert entry.startswith("From 2,000 x 1 outputs, by entry [0]")
    assert {line[:2] for line in assumed} == {"- "}
    several = plaudit("estimate", "nist", "--runs", "30").out
    assert "The sum of 18 components that the pair changes, each of one law of noise." in several


def test_errors_of_ones_own(plaudit: Command) -> None:
    """Within 0.1, 5 standard errors."""
    errors = geometric(0.5, 9_000, np.random.default_rng(2))
    Path("my errors.csv").write_text("error\n" + "".join(f"{error}\n" for error in errors))
    name, found = estimated(plaudit, "--residuals", "my errors.csv", "--claim", "pure:0.5")
    assert name == "my errors.csv lag_tail"
    assert found.value == pytest.approx(0.5, abs=0.1)
    assert found.settings["command"] == "plaudit estimate --residuals 'my errors.csv' --claim pure:0.5 --seed 1"


# Three estimates and figures.
def test_an_estimate_and_its_figure_are_saved_and_nothing_is_overwritten(plaudit: Command) -> None:
    command = ("estimate", "gdpc", "--out", "kept", "--seed")
    for seed in ("1", "2", "1"):
        outcome = plaudit(*command, seed)
        assert outcome.code == WITHIN
    kept = sorted(path.name for path in Path("kept").iterdir())
    assert kept == [f"gdpc-lag_tail{number}.{kind}" for number in ("-2", "") for kind in ("json", "png")]
    _, ((_, first), (_, second)), *_ = read_results(Path("kept"))
    assert first.settings["seed"] + second.settings["seed"] == 3
    assert "kept/: gdpc-lag_tail.json and gdpc-lag_tail.png." in outcome.out
