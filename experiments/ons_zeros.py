"""How much of the promise each table and level of the pilot spends, and what zeros without noise reveal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, Literal, get_args

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.deaths import few_deaths, synthetic_deaths
from audit.attacks import Attack
from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import BLUE, EXACT, PALE, PROMISE, SERIES
from experiments.audits import all_or_none, bounds, down, event_class, kept, median, run_all, violations
from experiments.drawing import bar, bar_key, extent, head, line_key, name_rows, page, promise
from experiments.experiment import CONFIDENCE, Check, MarkdownTable, between, near

QUESTION = "What does each table and level of the pilot spend, and what do zeros without noise reveal?"
EXPECTATION = (
    "Audits prove at least 0.9 of its own share for each table of method 1 and each level of method 2 (median of 20 "
    "audits of one person or a group), and by exact composition all together spend the promise. Lower bounds fall from "
    "levels to adjusted counts, people and tables. Without noise on zeros the loss is unbounded: there is a witness in "
    "the counts of levels, 20 of 20 audits of synthetic people report a violation, and everyone who appears in a cell "
    "is really there. In the pilot's tables, where nobody is alone, fewer audits find it. With noise on zeros no audit "
    "reports a violation."
)

FEW = few_deaths()
ALONE, AMONG = (0, 0), (0, 1)  # an empty cell, and one with people
TABLES_EPSILON, LEVELS_EPSILON, EPSILON = 7.0, 6.0, 1.0
Stage = Literal["measurements", "adjusted", "rounded", "tables"]
STAGES: tuple[Stage, ...] = get_args(Stage)
BUDGETS = (10.0, 2.0, 0.1)
_WANTED = {"violated": "all", "fewer": "fewer than all", "": "none"}
SEEDS, AUDITS, CUSTOMARY = 20, 50, 0.95
SHARE_SIZE, JOINT_SIZE, SIZE = 40_000, 400_000, 20_000
LAWS = Attack.without("precision")  # audited are the algorithms of the pilot, not the floats of their noise


@dataclass(frozen=True, eq=False)
class Task:
    """An audit, or several of the same: what is released, who is added to which cell, how many runs."""

    name: str
    mechanism: Any
    promise: float
    cell: tuple[int, int] = AMONG
    people: int = 1
    size: int = SIZE
    confidence: float = CONFIDENCE
    times: int = 1
    expected: str = ""  # of the audits, "violated": all report a violation, "fewer": fewer than all, "": none


def method_1(epsilon: float) -> IndependentNoise:
    """Return the fourteen tables with equal shares of a budget."""
    return IndependentNoise(FEW.tree, FEW.schema, epsilon)


def method_2(epsilon: float, *, perturb_zeros: bool = True) -> OnsTopDown:
    """Return the top-down method with the pilot's levels and shares."""
    return OnsTopDown(FEW.tree, FEW.schema, epsilon, perturb_zeros=perturb_zeros)


def tasks(quick: bool) -> dict[str, list[Task]]:
    """Return all audits: of single shares, of stages, of what is published, and with zeros kept or not."""
    tables, levels = method_1(TABLES_EPSILON), method_2(LEVELS_EPSILON)
    parts: list[Any] = [*tables.components(), *levels.stage("measurements").components()]  # type: ignore[union-attr]
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
    # One audit each: at 95% confidence one in 20 may exceed the loss.
    return {
        key: [replace(task, size=task.size // 4, times=1, confidence=CONFIDENCE) for task in part]
        for key, part in some.items()
    }


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
    found = iter(run_all(work, jobs, "loss of the pilot"))
    rows = {
        key: [{**_about(task), "audits": list(islice(found, task.times))} for task in part]
        for key, part in asked.items()
    }
    return {**rows, "deaths": _deaths(30_000 if quick else None, np.random.default_rng(last)), "quick": quick}


def _about(task: Task) -> dict[str, Any]:
    """Return what is known of an audit before any run: also the exact loss of a person, where it is known."""
    pair = NeighborPair.add_people(FEW.histogram, task.cell, task.people)
    law = task.mechanism.exact_loss(pair) if hasattr(task.mechanism, "exact_loss") else None
    exact = None if law is None else plain_number(max(law.maximum, law.reverse().maximum) / task.people)
    given = {name: getattr(task, name) for name in ("name", "promise", "people", "size", "expected")}
    return {**given, "exact": exact}


def _audit(task: Task, stream: np.random.SeedSequence) -> dict[str, Any]:
    pair, claim = NeighborPair.add_people(FEW.histogram, task.cell, task.people), PureDP(task.promise)
    size, confidence = task.size, task.confidence
    result = measure_loss(task.mechanism, pair, claim, size=size, confidence=confidence, attack=LAWS, rng=stream)
    return {**kept(result), "class": event_class(result.event)}


def _deaths(people: int | None, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Release synthetic deaths once at each budget: who was alone in her cell, and what appears in released cells."""
    deaths = synthetic_deaths(0, people=people)
    alone, there = deaths.histogram == 1, deaths.histogram > 0
    rows = []
    for epsilon, perturb_zeros in product(BUDGETS, (True, False)):
        mechanism = OnsTopDown(deaths.tree, deaths.schema, epsilon, perturb_zeros=perturb_zeros)
        shown = mechanism(deaths.histogram, 1, rng)[0] > 0
        appear, true = float((shown & alone).sum() / alone.sum()), float((shown & there).sum() / shown.sum())
        row = {"epsilon": epsilon, "perturb_zeros": perturb_zeros, "alone": int(alone.sum())}
        rows.append({**row, "shown": appear, "true": true})
    return rows


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold parts against their shares, the whole against its composition, and verdicts against the zeros."""
    least = 0.5 if numbers["quick"] else 0.9
    for row in numbers["shares"]:
        yield near(f"{row['name']}: exact loss / own share", row["exact"] / row["promise"], 1, 1e-6)
        yield between(f"{row['name']}: median lower bound / own share", _share(row), least, 1)
    for row in numbers["joint"]:
        if row["exact"] is not None:
            yield near(f"{row['name']}: exact loss / promise", row["exact"] / row["promise"], 1, 1e-6)
        yield between(f"{row['name']}: lower bound / promise", _share(row), 0.05, 1)
    measured, *hidden = [_share(row) for row in numbers["joint"][1:]]
    for other in hidden:
        yield Check(f"lower bounds: later stage {down(other)}, levels {down(measured)}", other <= measured)
    audits = [audit for row in numbers["published"] for audit in row["audits"]]
    yield all_or_none("both methods, published", audits, violated=False)
    for row in numbers["zeros"]:
        times, most = violations(row["audits"]), len(row["audits"])
        words = f"{row['name']}: {times} of {most} audits report a violation, expected {_WANTED[row['expected']]}"
        holds = {"violated": times == most, "fewer": times < most, "": times == 0}[row["expected"]]
        proof = row["name"] != "zeros kept: counts of levels" or all(audit["witness"] == 1 for audit in row["audits"])
        yield Check(words + (", with a witness" if row["exact"] == "inf" else ""), holds and proof)
    for row in numbers["deaths"]:
        zeros, expected = ("with noise", "not all") if row["perturb_zeros"] else ("kept", "all")
        words = f"epsilon {row['epsilon']:g}, zeros {zeros}: {row['true']:.4f} of cells shown are inhabited"
        yield Check(f"{words}, expected {expected}", (row["true"] == 1) != row["perturb_zeros"])


def _share(row: dict[str, Any]) -> float:
    """Return the median lower bound over the promise."""
    return median(row["audits"]) / float(row["promise"])


def _sure(numbers: dict[str, Any]) -> str:
    return "1 - 1e-6" if numbers["quick"] else f"{CUSTOMARY:.0%}"


def finding(numbers: dict[str, Any]) -> str:
    """Return what parts spend, and who is seen where zeros are kept."""
    seen = next(row for row in numbers["deaths"] if not row["perturb_zeros"])
    zeros, least = numbers["zeros"][0]["audits"], down(min(map(_share, numbers["shares"])))
    return (
        f"Each table and level spends its own share, of which audits prove {least} or more "
        f"(medians at {_sure(numbers)}, people added), and all together spend the promise. Zeros without noise reveal "
        f"who is there: {violations(zeros)} of {len(zeros)} audits of levels show a witness, and at epsilon "
        f"{seen['epsilon']:g} {seen['shown']:.0%} of {seen['alone']:,} people alone in their cell appear."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return what stages show of one person, and how often zeros without noise are found."""
    rows = [
        (row["name"], "noise", f"{row['audits'][0]['class']}, {row['size']:,} runs", down(_share(row)), "")
        for row in numbers["joint"]
    ]
    for row in (row for row in numbers["zeros"] if row["name"].startswith("zeros kept") and row["expected"]):
        times = f"{violations(row['audits'])} of {len(row['audits'])}"
        what = row["name"].removeprefix("zeros kept: ")
        rows.append((what, "kept", f"{row['audits'][0]['class']}, {row['size']:,} runs", down(_share(row)), times))
    published = [audit for row in numbers["published"] for audit in row["audits"]]
    return MarkdownTable(
        ("one person", "zeros", "audited by", "lower bound / promise", "violations reported"),
        rows,
        "Lower bounds are what these attacks find, and no proof that the rest is hidden. Whoever appears where zeros "
        f"are kept is really there; with noise on zeros {violations(published)} of {len(published)} audits of releases "
        "report a violation.",
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw shares and stages, and who is seen."""
    figure, (top, middle, below) = page(10.6, 3, 1, heights=[1.8, 0.8, 1.2])
    _draw_parts(top, numbers["shares"])
    top.set_xlabel(f"lower bound ({_sure(numbers)}) / own share")
    looks = [
        bar_key("method 1: tables with independent noise"),
        bar_key("method 2: levels from the top down", PALE),
        line_key("promise", **PROMISE),
        line_key("exact loss", **EXACT),
    ]
    head(top, "(a) each part by itself (line: range of audits)", looks, x=-0.3)
    _draw_parts(middle, numbers["joint"])
    middle.set_xlabel(f"lower bound ({_sure(numbers)}) / promise")
    head(middle, "(b) all parts together, and after post-processing", looks, x=-0.3)
    _draw_deaths(below, numbers["deaths"])
    return figure


def _draw_parts(ax: Axes, rows: list[dict[str, Any]]) -> None:
    names = []
    for at, row in enumerate(rows):
        values = np.array(bounds(row["audits"])) / row["promise"]
        bar(ax, at, float(np.median(values)), color=BLUE if row["name"].startswith("method 1") else PALE)
        extent(ax, values, at)
        if row.get("exact") is not None:
            ax.plot(row["exact"] / row["promise"], at, **EXACT, clip_on=False, zorder=5)
        people = "1 person" if row["people"] == 1 else f"{row['people']} people"
        names.append(f"{row['name'].partition(', ')[2]} ({people})")
    promise(ax)
    name_rows(ax, names, size=8)
    ax.set_xlim(0, 1.05)


def _draw_deaths(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for perturb_zeros, words, (color, _, marker) in zip(
        (False, True), ("zeros kept", "noise on zeros"), SERIES, strict=False
    ):
        own = [row for row in rows if row["perturb_zeros"] == perturb_zeros]
        epsilons = [row["epsilon"] for row in own]
        style = {"color": color, "marker": marker}
        ax.semilogx(epsilons, [row["true"] for row in own], **style, label=f"{words}: shown cells with people")
        dotted = {"linestyle": ":", "markerfacecolor": "white", "label": f"{words}: lone people who appear"}
        ax.semilogx(epsilons, [row["shown"] for row in own], **style, **dotted)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("epsilon, one person added or removed (log scale)")
    ax.set_ylabel("share")
    head(ax, "(c) what tables of synthetic deaths reveal", ax.get_legend_handles_labels()[0], ncols=2, x=-0.1)
