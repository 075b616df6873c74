"""What an experiment is, how its numbers are saved, and how they are held against what was expected."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from matplotlib.figure import Figure
from scipy import stats

from audit.results.files import read_json, write_json
from audit.results.formatting import at_least
from audit.results.provenance import provenance

CONFIDENCE = 1 - 1e-6  # of published verdicts: at 95% one correct algorithm in twenty would be called violated
FALSE_ALARM = 1e-4  # probability that valid bounds miss more often than `most_misses`
NAMES = (
    "flaxman_figure1",
    "flaxman_direct",
    "flaxman_sweep",
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
    "phsafe_published",
    "topdown_1940",
    "topdown_audit",
    "published_tables",
    "topdown_vs_rdpc",
    "topdown_bugs",
    "topdown_real",
    "ons_unchanged",
    "ons_pilot",
    "ons_bias",
    "ons_matrices",
    "ons_orders",
    "ons_illustrated",
    "ons_zeros",
    "bottom_up_curve",
    "nist_synthesis",
    "nist_cut",
    "planning",
    "replayed",
    "seeds_audited",
    "ways_of_asking",
    "libraries",
    "peers",
)


@dataclass(frozen=True)
class Check:
    """A stated expectation, and whether the saved numbers meet it."""

    words: str
    holds: bool


@dataclass(frozen=True)
class MarkdownTable:
    """The numbers behind an answer: a heading a column, rows of cells, and what a reader needs to know of them."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __str__(self) -> str:
        """Return it, and the note below it."""
        heads, *rows = (f"| {' | '.join(cells)} |" for cells in (self.heads, *self.rows))
        written = "\n".join([heads, "|---" * len(self.heads) + "|", *rows])
        return f"{written}\n\n{self.note}" if self.note else written


class Experiment(Protocol):
    """A module with a question, an expectation, and five functions; only `run` sees more than the saved numbers."""

    QUESTION: str
    EXPECTATION: str

    def run(self, *, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
        """Return numbers for JSON; the quick form is small enough for a test."""
        ...

    def check(self, numbers: dict[str, Any]) -> Iterator[Check]:
        """Yield every expectation with its outcome."""
        ...

    def finding(self, numbers: dict[str, Any]) -> str:
        """Return what was found, in 60 words: the answer first, for whom, and at which confidence."""
        ...

    def table(self, numbers: dict[str, Any]) -> MarkdownTable:
        """Return the numbers behind the finding."""
        ...

    def draw(self, numbers: dict[str, Any]) -> Figure:
        """Return the figure."""
        ...


def find(name: str) -> Experiment:
    """Return an experiment by name."""
    if name not in NAMES:
        raise ValueError(f"no experiment is called {name!r}; there are {', '.join(NAMES)}")
    return cast(Experiment, importlib.import_module(f"experiments.{name}"))


def published(name: str) -> Any:
    """Return numbers that others published: `published.json` has them with their sources."""
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))[name]["rows"]


def run_experiment(name: str, folder: Path, *, quick: bool, seed: int, jobs: int) -> Path:
    """Run an experiment and save its numbers; return the file."""
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
    """Return the saved numbers of an experiment; refuse a file of another one, and one that was changed."""
    path = folder / f"{name}.json"
    if path.is_fifo():  # it is read more than once
        raise ValueError(f"{path} must be a file, got a pipe")
    saved = read_json(path)
    if saved.get("kind") != "experiment" or saved.get("name") != name or not isinstance(saved.get("numbers"), dict):
        raise ValueError(f"{folder / f'{name}.json'} must hold the experiment {name}, got {saved.get('name')!r}")
    return dict(saved["numbers"])


def near(what: str, value: float, target: float, tolerance: float) -> Check:
    """Expect a value within a tolerance of a target."""
    return Check(f"{what}: {value:.4g}, expected {target:.4g} +- {tolerance:.2g}", abs(value - target) <= tolerance)


def between(what: str, value: float, low: float, high: float) -> Check:
    """Expect a value, which may be a lower bound and is rounded down in words, between two limits."""
    return Check(f"{what}: {at_least(float(value))}, expected {low:.4g} to {high:.4g}", low <= value <= high)


def most_misses(audits: int, confidence: float) -> int:
    """Return how often bounds may miss: valid ones miss more often with probability 1e-4."""
    return int(stats.binom.isf(FALSE_ALARM, audits, 1 - confidence))


def few_misses(what: str, misses: int, audits: int, confidence: float) -> Check:
    """Expect no more lower bounds above the true loss than their confidence allows."""
    most = most_misses(audits, confidence)
    words = f"{what}: {misses} of {audits} lower bounds above the true loss, expected at most {most}"
    return Check(words, misses <= most)
