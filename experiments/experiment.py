"""Define experiments: their texts and functions, their saved numbers, and checks of their expectations."""

from __future__ import annotations

import importlib
import json
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from audit.results.files import read_json, write_json
from audit.results.formatting import at_least, at_most
from audit.results.plots import PAGE
from audit.results.provenance import provenance
from experiments.drawing import entitle

CONFIDENCE = 1 - 1e-6  # of published verdicts; 95% would mean a false alarm for 1 correct algorithm in 20
FALSE_ALARM = 1e-4  # probability that valid bounds have more misses than `most_misses`
HERE = Path(__file__).parent
Numbers = dict[str, Any]


def load_data(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


QUESTIONS, DATA = load_data("questions.toml"), load_data("data.toml")
NAMES = tuple(QUESTIONS)
SUBJECTS: dict[str, str] = DATA["subjects"]


@dataclass(frozen=True)
class Check:
    """A stated expectation, and whether the saved numbers meet it."""

    words: str
    holds: bool


Checks = Iterator[Check]


@dataclass(frozen=True)
class MarkdownTable:
    """A table of numbers: headings of columns, rows of cells, and a note for the reader."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __str__(self) -> str:
        heads, *rows = (f"| {' | '.join(cells)} |" for cells in (self.heads, *self.rows))
        written = "\n".join([heads, "|---" * len(self.heads) + "|", *rows])
        return f"{written}\n\n{self.note}" if self.note else written


def down(value: float, digits: int = 3) -> str:
    return at_least(float(value), digits)


def up(value: float, digits: int = 3) -> str:
    return at_most(float(value), digits)


def violations(audits: Iterable[dict[str, Any]]) -> int:
    return sum(audit["verdict"] == "violated" for audit in audits)


WORDING: dict[str, Callable[[Any], Any]] = {
    **{"len": len, "min": min, "max": max, "sum": sum, "median": np.median, "mean": np.mean},
    **{"down": down, "up": up, "violations": violations},
}


class _Wording(Formatter):
    """Formatter for templates whose fields may apply functions, such as "{bounds|min|down}"."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        path, *functions = field_name.split("|")
        value, used = super().get_field(path, args, kwargs)
        for function in functions:
            value = WORDING[function](value)
        return value, used


def worded(template: str, named: Mapping[str, Any]) -> str:
    return _Wording().vformat(template, (), named)


@dataclass(frozen=True)
class Experiment:
    """A question, its expectation, and a module of four functions; all but `run` use only the saved numbers."""

    name: str
    module: str
    headline: str  # a template, like `answer`, `heads` and `note`
    question: str
    expectation: str
    answer: str
    heads: str  # separated by " | "
    title: str
    note: str = ""
    first: bool = False  # whether the page lists it first, for all readers

    @cached_property
    def functions(self) -> Any:
        """The module: `run(*, quick, seed, jobs)` returns numbers for JSON, from a small version if quick."""
        # Each other function takes these numbers: `check` yields the outcome of every expectation, `draw` returns the
        # figure, and `facts` the values that templates name, including the table's `rows`. It may return `locals()`.
        return importlib.import_module(f"experiments.{self.module}")

    def finding(self, numbers: Numbers) -> str:
        """Return the finding in 75 words: first the title of the figure, then for whom and at which confidence."""
        return f"{self.figure_title(numbers)}. {worded(self.answer, self._named(numbers))}"

    def figure_title(self, numbers: Numbers) -> str:
        """Return the finding in 125 characters: the title of the figure, which also stands for it in text."""
        return worded(self.headline, self._named(numbers))

    def table(self, numbers: Numbers) -> MarkdownTable:
        named = self._named(numbers)
        return MarkdownTable(worded(self.heads, named).split(" | "), named["rows"], worded(self.note, named))

    def figure(self, numbers: Numbers, width: float = PAGE) -> Figure:
        with matplotlib.rc_context({"figure.figsize": (width, width)}):
            figure: Figure = self.functions.draw(numbers)
            entitle(figure, self.figure_title(numbers))
        return figure

    @property
    def subject(self) -> str:
        """The subject of the experiment, its heading on the page of findings."""
        return SUBJECTS[next(key for key in SUBJECTS if self.module.startswith(key))]

    def _named(self, numbers: Numbers) -> dict[str, Any]:
        return {**vars(self.functions), "numbers": numbers, **self.functions.facts(numbers)}


def find(name: str) -> Experiment:
    if name not in QUESTIONS:
        raise ValueError(f"no experiment is called {name!r}; there are {', '.join(NAMES)}")
    return Experiment(name, **QUESTIONS[name])


def by_subject(names: Iterable[str]) -> dict[str, list[Experiment]]:
    found: dict[str, list[Experiment]] = {subject: [] for subject in SUBJECTS.values()}
    for experiment in map(find, names):
        found[experiment.subject].append(experiment)
    return {subject: experiments for subject, experiments in found.items() if experiments}


def published(name: str) -> Any:
    """Return numbers from the literature; `published.json` has them with their sources."""
    return json.loads((HERE / "published.json").read_text(encoding="utf-8"))[name]["rows"]


def run_experiment(name: str, folder: Path, *, quick: bool, seed: int, jobs: int) -> Path:
    experiment, begun = find(name), time.perf_counter()
    numbers = experiment.functions.run(quick=quick, seed=seed, jobs=jobs)
    path = folder / f"{name}.json"
    saved = {"kind": "experiment", "name": name, "question": experiment.question, "expectation": experiment.expectation}
    about = {"seconds": time.perf_counter() - begun, "provenance": provenance(quick=quick, seed=seed)}
    write_json(path, {**saved, "numbers": numbers, **about})
    return path


def load_numbers(name: str, folder: Path) -> Numbers:
    """Return the saved numbers of an experiment; a file of another one, or a modified file, is an error."""
    path = folder / f"{name}.json"
    if path.is_fifo():  # several steps read it
        raise ValueError(f"{path} must be a file, got a pipe")
    saved = read_json(path)
    if saved.get("kind") != "experiment" or saved.get("name") != name or not isinstance(saved.get("numbers"), dict):
        raise ValueError(f"{path} must hold the experiment {name}, got {saved.get('name')!r}")
    return dict(saved["numbers"])


def near(what: str, value: float, target: float, tolerance: float) -> Check:
    return Check(f"{what}: {value:.4g}, expected {target:.4g} +- {tolerance:.2g}", abs(value - target) <= tolerance)


def between(what: str, value: float, low: float, high: float) -> Check:
    """Expect a value between two limits; the text rounds it down, since it may be a lower bound."""
    return Check(f"{what}: {at_least(float(value))}, expected {low:.4g} to {high:.4g}", low <= value <= high)


def most_misses(audits: int, confidence: float) -> int:
    """Return the largest plausible number of misses; valid bounds exceed it with probability at most 1e-4."""
    return int(stats.binom.isf(FALSE_ALARM, audits, 1 - confidence))


def few_misses(what: str, misses: int, audits: int, confidence: float) -> Check:
    most = most_misses(audits, confidence)
    words = f"{what}: {misses} of {audits} lower bounds above the true loss, expected at most {most}"
    return Check(words, misses <= most)
