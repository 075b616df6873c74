"""What an experiment is, and how its numbers are kept."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from matplotlib.figure import Figure

from audit.results.files import read_json, write_json
from audit.results.provenance import provenance

__all__ = ["CONFIDENCE", "NAMES", "Check", "Experiment", "between", "find", "load_numbers", "near", "run_experiment"]

CONFIDENCE = 1 - 1e-6  # of verdicts that are published: at 95% one sound algorithm in twenty would be accused
NAMES = (
    "flaxman_figure1",
    "flaxman_direct",
    "neighbor_relation",
    "real_tree",
    "joint_witness",
    "one_run",
    "claims_compared",
    "known_bugs",
    "scoreboard",
    "coverage",
    "power",
    "phsafe_table10",
    "phsafe_slack",
    "phsafe_truncation",
    "phsafe_audit",
    "topdown_1940",
    "topdown_audit",
    "topdown_vs_rdpc",
    "topdown_bugs",
    "topdown_real",
    "ons_unchanged",
    "ons_pilot",
    "ons_bias",
    "ons_zeros",
    "bottom_up_curve",
    "nist_synthesis",
    "planning",
    "replayed",
    "seeds_audited",
)


@dataclass(frozen=True)
class Check:
    """A stated expectation, and whether the saved numbers meet it."""

    words: str
    holds: bool


class Experiment(Protocol):
    """A module with a question, an expectation, and four functions.

    `run` makes plain numbers, `check` holds them against the expectation, `finding` tells and `draw` shows them;
    all three see nothing but the saved numbers.
    """

    QUESTION: str
    EXPECTATION: str

    def run(self, *, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
        """Return numbers for JSON; the quick form is small enough for a test."""
        ...

    def check(self, numbers: dict[str, Any]) -> list[Check]:
        """Return every expectation with its outcome."""
        ...

    def finding(self, numbers: dict[str, Any]) -> str:
        """Return what was found, in a sentence or two."""
        ...

    def draw(self, numbers: dict[str, Any]) -> Figure:
        """Return the figure."""
        ...


def find(name: str) -> Experiment:
    """Return an experiment by name.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in NAMES:
        raise ValueError(f"no experiment is called {name!r}; there are {', '.join(NAMES)}")
    return cast(Experiment, importlib.import_module(f"experiments.{name}"))


def run_experiment(name: str, folder: Path, *, quick: bool, seed: int, jobs: int) -> Path:
    """Run an experiment and save its numbers; return the file.

    Raises
    ------
    ValueError
        If there is no such experiment.
    OSError
        If the numbers cannot be saved.
    """
    experiment = find(name)
    begun = time.perf_counter()
    numbers = experiment.run(quick=quick, seed=seed, jobs=jobs)
    path = folder / f"{name}.json"
    write_json(
        path,
        {
            "kind": "experiment",
            "name": name,
            "question": experiment.QUESTION,
            "expectation": experiment.EXPECTATION,
            "numbers": numbers,
            "seconds": time.perf_counter() - begun,
            "provenance": provenance(quick=quick, seed=seed),
        },
    )
    return path


def load_numbers(name: str, folder: Path) -> dict[str, Any]:
    """Return the saved numbers of an experiment.

    Raises
    ------
    ValueError
        If the file is not of this experiment, or was changed.
    OSError
        If it cannot be read.
    """
    saved = read_json(folder / f"{name}.json")
    if saved.get("kind") != "experiment" or saved.get("name") != name or not isinstance(saved.get("numbers"), dict):
        raise ValueError(f"{folder / f'{name}.json'} must hold the experiment {name}, got {saved.get('name')!r}")
    return dict(saved["numbers"])


def near(what: str, value: float, target: float, tolerance: float) -> Check:
    """Expect a value within a tolerance of a target."""
    return Check(f"{what}: {value:.4g}, expected {target:.4g} +- {tolerance:.2g}", abs(value - target) <= tolerance)


def between(what: str, value: float, low: float, high: float) -> Check:
    """Expect a value between two limits."""
    return Check(f"{what}: {value:.4g}, expected {low:.4g} to {high:.4g}", low <= value <= high)
