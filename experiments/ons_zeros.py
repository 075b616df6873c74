"""What the pilot's methods spend table by table and level by level, and what zeros without noise give away."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.deaths import synthetic_deaths
from algorithms.schema import Schema
from audit.claims import PureDP
from audit.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import BLACK, BLUE, GREEN, ORANGE, RED, new_figure
from audit.sampling.progress import progress_bar
from experiments.experiment import CONFIDENCE, Check, between, near
from experiments.topdown_bugs import event_class

QUESTION = "What does each table and level of the pilot spend, and what do zeros without noise give away?"
EXPECTATION = (
    "Each table of method 1 and each level of method 2 is forced to at least 0.9 of its own share (median of 20 "
    "audits of one person or a group), and all together spend the promise by their exact law. What attacks force falls "
    "from levels to adjusted counts, people and tables. Without noise on zeros the loss is unbounded: a witness in the "
    "counts of levels, and synthetic people that 20 of 20 audits refute; everyone who appears in a cell is really "
    "there. In the pilot's tables, where nobody is alone, fewer audits see it. With noise on zeros no audit accuses."
)

TREE = Hierarchy.from_codes(["north", "north", "south", "south"], ["1", "2", "3", "4"])
SCHEMA = Schema({name: ("a", "b") for name in ("sex", "age", "marital", "month", "cause")})
PEOPLE = np.maximum(np.arange(TREE.n_leaves * SCHEMA.cells).reshape(TREE.n_leaves, -1) * 7 % 12 - 3, 0)
ALONE, AMONG = (0, 0), (0, 1)  # an empty cell, and one with people
TABLES_EPSILON, LEVELS_EPSILON, EPSILON = 7.0, 6.0, 1.0
STAGES: tuple[Literal["measurements", "adjusted", "rounded", "tables"], ...] = (
    "measurements",
    "adjusted",
    "rounded",
    "tables",
)
BUDGETS = (10.0, 2.0, 0.1)
_WANTED = {"violated": "all", "fewer": "fewer than all", "": "none"}
SEEDS, AUDITS, CUSTOMARY = 20, 50, 0.95
SHARE_SIZE, JOINT_SIZE, SIZE = 40_000, 400_000, 20_000


@dataclass(frozen=True, eq=False)
class Task:
    """An audit, or several of the same: what is released, who is added to which cell, how many runs.

    Attributes
    ----------
    expected : str
        Of the verdicts: all ``"violated"``, fewer than all (``"fewer"``), or none (``""``).
    """

    name: str
    mechanism: Any
    promise: float
    cell: tuple[int, int] = AMONG
    people: int = 1
    size: int = SIZE
    confidence: float = CONFIDENCE
    times: int = 1
    expected: str = ""


def method_1(epsilon: float) -> IndependentNoise:
    """Return the fourteen tables with equal shares of a budget."""
    return IndependentNoise(TREE, SCHEMA, epsilon)


def method_2(epsilon: float, *, perturb_zeros: bool = True) -> OnsTopDown:
    """Return the top-down method with the pilot's levels and shares."""
    return OnsTopDown(TREE, SCHEMA, epsilon, perturb_zeros=perturb_zeros)


def tasks(quick: bool) -> dict[str, list[Task]]:
    """Return all audits: of single shares, of stages, of what is published, and with zeros kept or not."""
    tables, levels = method_1(TABLES_EPSILON), method_2(LEVELS_EPSILON)
    parts = [tables.only([place]) for place in range(len(tables.tables))]
    parts += [levels.stage("measurements", only=[place]) for place in range(len(levels.levels))]  # type: ignore[misc]
    names = [f"method 1, {table}" for table in tables.tables] + [f"method 2, {level}" for level in levels.levels]
    shares = [
        # A small share shows little of one person; a group shows the more of it the larger it is.
        Task(name, part, own, AMONG, max(1, round(2 / own)), SHARE_SIZE, CUSTOMARY, SEEDS)
        for name, part, own in zip(names, parts, [part.claim.epsilon for part in parts], strict=True)
    ]
    stages = [Task(f"method 2, {name}", levels.stage(name), LEVELS_EPSILON) for name in STAGES]
    joint = [Task("method 1, all tables", tables, TABLES_EPSILON), *stages]
    joint = [replace(task, size=JOINT_SIZE, confidence=CUSTOMARY) for task in joint]
    published = [
        Task("method 1", method_1(EPSILON), EPSILON, times=AUDITS),
        Task("method 2", method_2(EPSILON), EPSILON, times=AUDITS),
    ]
    kept, noisy = method_2(EPSILON, perturb_zeros=False), method_2(EPSILON)
    zeros = [
        Task("zeros kept: counts of levels", kept.stage("measurements"), EPSILON, ALONE, expected="violated"),
        Task("zeros kept: synthetic people", kept, EPSILON, ALONE, expected="violated"),
        Task("zeros kept: tables of these", kept.stage("tables"), EPSILON, ALONE, expected="fewer"),
        Task("zeros kept: counts of levels, among others", kept.stage("measurements"), EPSILON),
        Task("noise on zeros: counts of levels", noisy.stage("measurements"), EPSILON, ALONE),
        Task("noise on zeros: synthetic people", noisy, EPSILON, ALONE),
    ]
    found = {
        "shares": shares,
        "joint": joint,
        "published": published,
        "zeros": [replace(task, times=SEEDS) for task in zeros],
    }
    if not quick:
        return found
    some = {"shares": shares[-2:], "joint": joint[:2], "published": published, "zeros": found["zeros"][:1]}
    return {key: [replace(task, size=task.size // 4, times=1) for task in part] for key, part in some.items()}


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit tables and levels 20 times with 40,000 runs each, and more; count who is shown (quick: a few, once)."""
    asked = tasks(quick)
    listed = [task for part in asked.values() for task in part]
    *streams, last = np.random.SeedSequence(seed).spawn(len(listed) + 1)
    work = [
        delayed(_audit)(task, stream)
        for task, own in zip(listed, streams, strict=True)
        for stream in own.spawn(task.times)
    ]
    with progress_bar("loss of the pilot", len(work), unit="audits") as advance:
        audits = []
        for audit in Parallel(n_jobs=jobs, return_as="generator")(work):
            audits.append(audit)
            advance(1)
    found = iter(audits)
    rows = {
        key: [{**_about(task), "audits": list(islice(found, task.times))} for task in part]
        for key, part in asked.items()
    }
    return {**rows, "deaths": _deaths(30_000 if quick else None, np.random.default_rng(last)), "quick": quick}


def _about(task: Task) -> dict[str, Any]:
    """Return what is known of an audit before any run: also the exact loss of a person, where it is known."""
    pair = NeighborPair.add_people(PEOPLE, task.cell, task.people)
    law = task.mechanism.exact_loss(pair) if hasattr(task.mechanism, "exact_loss") else None
    exact = None if law is None else plain_number(max(law.maximum, law.reverse().maximum) / task.people)
    given = {name: getattr(task, name) for name in ("name", "promise", "people", "size", "expected")}
    return {**given, "exact": exact}


def _audit(task: Task, stream: np.random.SeedSequence) -> dict[str, Any]:
    pair = NeighborPair.add_people(PEOPLE, task.cell, task.people)
    result = measure_loss(
        task.mechanism, pair, PureDP(task.promise), size=task.size, confidence=task.confidence, rng=stream
    )
    return {
        "forced": plain_number(result.measured.budget),
        "verdict": result.verdict,
        "witness": None if result.support is None else result.support["probability"],
        "class": event_class(result.event),
    }


def _deaths(people: int | None, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Release synthetic deaths once at each budget: who was alone in her cell, and what appears in released cells."""
    deaths = synthetic_deaths(0, people=people)
    alone, there = deaths.histogram == 1, deaths.histogram > 0
    rows = []
    for epsilon in BUDGETS:
        for perturb_zeros in (True, False):
            mechanism = OnsTopDown(deaths.tree, deaths.schema, epsilon, perturb_zeros=perturb_zeros)
            shown = mechanism(deaths.histogram, 1, rng)[0] > 0
            rows.append(
                {
                    "epsilon": epsilon,
                    "perturb_zeros": perturb_zeros,
                    "alone": int(alone.sum()),
                    "shown": float((shown & alone).sum() / alone.sum()),
                    "true": float((shown & there).sum() / shown.sum()),
                }
            )
    return rows


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold parts against their shares, the whole against its composition, and verdicts against the zeros."""
    found = []
    least = 0.5 if numbers["quick"] else 0.9
    for row in numbers["shares"]:
        found.append(near(f"{row['name']}: exact loss / own share", row["exact"] / row["promise"], 1, 1e-6))
        found.append(between(f"{row['name']}: median forced / own share", _median(row), least, 1))
    for row in numbers["joint"]:
        if row["exact"] is not None:
            found.append(near(f"{row['name']}: exact loss / promise", row["exact"] / row["promise"], 1, 1e-6))
        found.append(between(f"{row['name']}: forced / promise", _median(row), 0.05, 1))
    measured, *hidden = [_median(row) for row in numbers["joint"][1:]]
    found += [Check(f"later stages force {other:.2f}, levels {measured:.2f}", other <= measured) for other in hidden]
    audits = [audit for row in numbers["published"] for audit in row["audits"]]
    accused = sum(audit["verdict"] == "violated" for audit in audits)
    found.append(Check(f"both methods, published: {accused} of {len(audits)} audits accuse", accused == 0))
    for row in numbers["zeros"]:
        times, most = sum(audit["verdict"] == "violated" for audit in row["audits"]), len(row["audits"])
        words = f"{row['name']}: {times} of {most} audits accuse, expected {_WANTED[row['expected']]}"
        holds = {"violated": times == most, "fewer": times < most, "": times == 0}[row["expected"]]
        proof = row["name"] != "zeros kept: counts of levels" or all(audit["witness"] == 1 for audit in row["audits"])
        found.append(Check(words + (", with a witness" if row["exact"] == "inf" else ""), holds and proof))
    for row in numbers["deaths"]:
        kept = not row["perturb_zeros"]
        words = (
            f"epsilon {row['epsilon']:g}, zeros {'kept' if kept else 'with noise'}: {row['true']:.4f} of cells shown"
        )
        found.append(
            Check(f"{words} are inhabited, expected {'all' if kept else 'not all'}", (row["true"] == 1) == kept)
        )
    return found


def _median(row: dict[str, Any]) -> float:
    return float(np.median([float(audit["forced"]) for audit in row["audits"]]) / row["promise"])


def finding(numbers: dict[str, Any]) -> str:
    """Return what parts and stages show, and who is seen where zeros are kept."""
    worst = min(_median(row) for row in numbers["shares"])
    stages = ", ".join(
        f"{_median(row):.2f} from {row['name']} ({row['audits'][0]['class']})" for row in numbers["joint"]
    )
    accused = {row["name"]: sum(audit["verdict"] == "violated" for audit in row["audits"]) for row in numbers["zeros"]}
    seen = "; ".join(
        f"at epsilon {row['epsilon']:g} {row['shown']:.0%} of the {row['alone']:,} who are alone in their cell appear"
        for row in numbers["deaths"]
        if not row["perturb_zeros"]
    )
    audits = sum(len(row["audits"]) for row in numbers["published"])
    people = sorted({row["people"] for row in numbers["shares"]})
    kinds = Counter(audit["class"] for row in numbers["shares"] for audit in row["audits"])
    return (
        f"Every table and level is forced to {worst:.2f} of its own share or more (medians of bounds at 95%, pairs of "
        f"{people[0]} to {people[-1]} people added, by {kinds.most_common(1)[0][0]}), and all together spend the "
        f"promise by their exact law. Of one person runs force: {stages}; that is what these attacks find, and no "
        f"proof that the rest is hidden. Without noise on zeros {accused['zeros kept: counts of levels']} of "
        f"{len(numbers['zeros'][0]['audits'])} audits of the levels' counts show a witness of probability 1, and "
        f"whoever appears is really there: {seen}, all of them rightly; in the pilot's tables, where "
        f"nobody is alone, {accused.get('zeros kept: tables of these', 0)} audits see it. With noise on zeros no audit "
        f"of {audits} of both methods' releases accuses."
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw shares and stages, and who is seen."""
    figure, (left, middle, right) = new_figure(12.0, 4.6, 1, 3)
    _draw_shares(left, numbers["shares"])
    _draw_joint(middle, numbers["joint"])
    _draw_deaths(right, numbers["deaths"])
    return figure


def _draw_shares(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for at, row in enumerate(rows):
        values = np.array([float(audit["forced"]) for audit in row["audits"]]) / row["promise"]
        color = BLUE if row["name"].startswith("method 1") else ORANGE
        ax.barh(at, np.median(values), color=color, height=0.65)
        ax.plot([values.min(), values.max()], [at, at], color=BLACK, linewidth=1)
    people = ["1 person" if row["people"] == 1 else f"{row['people']} people" for row in rows]
    names = [row["name"].partition(", ")[2] for row in rows]
    ax.set_yticks(range(len(rows)), [f"{name} ({who})" for name, who in zip(names, people, strict=True)], fontsize=7.5)
    colors = {"tables of method 1": BLUE, "levels of method 2": ORANGE}
    ax.legend(handles=[Patch(color=color, label=words) for words, color in colors.items()], loc="upper left")
    ax.set_ylim(-3.2, len(rows) - 0.4)
    ax.axvline(1, color=BLACK, linewidth=1, linestyle="--")
    ax.set_xlim(0, 1.05)
    ax.invert_yaxis()
    ax.set_xlabel("forced / own share (95% bounds)")
    ax.set_title("(a) each part by itself")


def _draw_joint(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for at, row in enumerate(rows):
        ax.barh(at, _median(row), color=BLUE if at == 0 else ORANGE, height=0.65)
        if row["exact"] is not None:
            ax.plot(row["exact"] / row["promise"], at, marker="D", color=GREEN, linestyle="none")
    ax.plot([], [], marker="D", color=GREEN, linestyle="none", label="exact loss")
    ax.axvline(1, color=BLACK, linewidth=1, linestyle="--")
    ax.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.05)
    ax.set_xlabel("forced / promise (95% bounds)")
    ax.set_title("(b) all parts together, and after")
    ax.legend(loc="lower right", fontsize=8)


def _draw_deaths(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for perturb_zeros, color, marker, words in ((False, RED, "s", "zeros kept"), (True, BLUE, "o", "noise on zeros")):
        own = [row for row in rows if row["perturb_zeros"] == perturb_zeros]
        epsilons = [row["epsilon"] for row in own]
        true = [row["true"] for row in own]
        ax.semilogx(epsilons, true, color=color, marker=marker, label=f"{words}: shown cells with people")
        shown = {"color": color, "marker": marker, "linestyle": ":", "markerfacecolor": "white"}
        ax.semilogx(epsilons, [row["shown"] for row in own], label=f"{words}: lone people who appear", **shown)
    ax.set_ylim(0, 1.45)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set_xlabel("epsilon, one person added or removed")
    ax.set_ylabel("share")
    ax.set_title("(c) synthetic deaths")
    ax.legend(loc="upper left", fontsize=7)
