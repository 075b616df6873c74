"""The loss of each table and level of the pilot, and the violation caused by zeros without noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.deaths import few_deaths, synthetic_deaths
from audit import Attack, NeighborPair, PureDP, measure_loss
from audit.results import plain_number
from audit.results.plots import BLUE, PALE
from experiments.audits import bounds, event_class, kept, median, repeat
from experiments.drawing import head, keys, losses, name_rows, own_keys, page, promise, styles
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, near, violations

FEW = few_deaths()
ALONE, AMONG = (0, 0), (0, 1)  # an empty cell, and one with people
TABLES_EPSILON, LEVELS_EPSILON, EPSILON = 7.0, 6.0, 1.0
Stage = Literal["measurements", "adjusted", "rounded", "tables"]
STAGES: tuple[Stage, ...] = get_args(Stage)
BUDGETS = (10.0, 2.0, 0.1)
_WANTED = {"violated": "all", "fewer": "fewer than all", "": "none"}
SEEDS, CUSTOMARY = 20, 0.95
GONE = (23, 24)  # streams of removed audits are skipped, so that the others keep theirs
SHARE_SIZE, JOINT_SIZE, SIZE = 40_000, 400_000, 20_000
LAWS = Attack.without("precision")  # audit the algorithms of the pilot, not their float noise


@dataclass(frozen=True, eq=False)
class Task:
    """One or several equal audits: the mechanism, the people added to a cell, and the number of runs."""

    name: str
    mechanism: Any
    promise: float
    cell: tuple[int, int] = AMONG
    people: int = 1
    size: int = SIZE
    confidence: float = CONFIDENCE
    times: int = 1
    expected: str = ""  # "violated": all audits report a violation; "fewer": not all; "": none


def method_2(epsilon: float, *, perturb_zeros: bool = True) -> OnsTopDown:
    return OnsTopDown(FEW.tree, FEW.schema, epsilon, perturb_zeros=perturb_zeros)


def tasks(quick: bool) -> dict[str, list[Task]]:
    tables, levels = IndependentNoise(FEW.tree, FEW.schema, TABLES_EPSILON), method_2(LEVELS_EPSILON)
    parts: list[Any] = [*tables.components(), *levels.stage("measurements").components()]  # type: ignore[union-attr]
    names = [f"method 1, {table}" for table in tables.tables] + [f"method 2, {level}" for level in levels.levels]
    shares = []
    for name, part in zip(names, parts, strict=True):
        own = part.claim.epsilon
        people = max(1, round(2 / own))  # small shares need groups
        shares.append(Task(name, part, own, AMONG, people, SHARE_SIZE, CUSTOMARY, SEEDS))
    stages = [Task(f"method 2, {name}", levels.stage(name), LEVELS_EPSILON) for name in STAGES]
    joint = [Task("method 1, all tables", tables, TABLES_EPSILON), *stages]
    joint = [replace(task, size=JOINT_SIZE, confidence=CUSTOMARY) for task in joint]
    without_noise, noisy = method_2(EPSILON, perturb_zeros=False), method_2(EPSILON)
    zeros = [
        Task("zeros kept: counts of levels", without_noise.stage("measurements"), EPSILON, ALONE, expected="violated"),
        Task("zeros kept: synthetic people", without_noise, EPSILON, ALONE, expected="violated"),
        Task("zeros kept: tables of these", without_noise.stage("tables"), EPSILON, ALONE, expected="fewer"),
        Task("zeros kept: counts of levels, among others", without_noise.stage("measurements"), EPSILON),
        Task("noise on zeros: counts of levels", noisy.stage("measurements"), EPSILON, ALONE),
        Task("noise on zeros: synthetic people", noisy, EPSILON, ALONE),
    ]
    zeros = [replace(task, times=SEEDS) for task in zeros]
    if not quick:
        return {"shares": shares, "joint": joint, "zeros": zeros}
    some = {"shares": shares[-2:], "joint": joint[:2], "zeros": zeros[:1]}
    # One audit each, so at high confidence: at 95% one bound in 20 may exceed the loss.
    once: dict[str, Any] = {"times": 1, "confidence": CONFIDENCE}
    return {key: [replace(task, size=task.size // 4, **once) for task in part] for key, part in some.items()}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit tables and levels 20 times with 40,000 runs, and stages; count revealed people (quick: a few, once)."""
    by_kind = tasks(quick)
    listed = [task for kind in by_kind.values() for task in kind]
    gone = () if quick else GONE
    spawned = np.random.SeedSequence(seed).spawn(len(listed) + len(gone) + 1)
    *streams, last = (stream for place, stream in enumerate(spawned) if place not in gone)
    settings, times = [(task,) for task in listed], [task.times for task in listed]
    audits = iter(repeat(_audit, settings, streams, times, jobs=jobs, words="loss of the pilot"))
    rows = {key: [{**_about(task), "audits": next(audits)} for task in kind] for key, kind in by_kind.items()}
    return {**rows, "deaths": _deaths(30_000 if quick else None, np.random.default_rng(last)), "quick": quick}


def _about(task: Task) -> dict[str, Any]:
    pair = NeighborPair.add_people(FEW.histogram, task.cell, task.people)
    law = task.mechanism.exact_loss(pair) if hasattr(task.mechanism, "exact_loss") else None
    exact = None if law is None else plain_number(max(law.maximum, law.reverse().maximum) / task.people)
    return {name: getattr(task, name) for name in ("name", "promise", "people", "size", "expected")} | {"exact": exact}


def _audit(task: Task, stream: np.random.SeedSequence) -> dict[str, Any]:
    pair, claim = NeighborPair.add_people(FEW.histogram, task.cell, task.people), PureDP(task.promise)
    options: dict[str, Any] = {"size": task.size, "confidence": task.confidence, "attack": LAWS, "rng": stream}
    result = measure_loss(task.mechanism, pair, claim, **options)
    return {**kept(result), "class": event_class(result.event)}


def _deaths(people: int | None, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Release synthetic deaths at each budget; return shares of lone people shown, and of true cells among shown."""
    deaths = synthetic_deaths(0, people=people)
    alone, there = deaths.histogram == 1, deaths.histogram > 0
    rows = []
    for epsilon, perturb_zeros in product(BUDGETS, (True, False)):
        mechanism = OnsTopDown(deaths.tree, deaths.schema, epsilon, perturb_zeros=perturb_zeros)
        cells = mechanism(deaths.histogram, 1, rng)[0] > 0
        row = {"epsilon": epsilon, "perturb_zeros": perturb_zeros, "alone": int(alone.sum())}
        row |= {"shown": float((cells & alone).sum() / alone.sum()), "true": float((cells & there).sum() / cells.sum())}
        rows.append(row)
    return rows


def check(numbers: Numbers) -> Checks:
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
    return median(row["audits"]) / float(row["promise"])


def _sure(numbers: Numbers) -> str:
    return "1 - 1e-6" if numbers["quick"] else f"{CUSTOMARY:.0%}"


def facts(numbers: Numbers) -> dict[str, Any]:
    deaths = next(row for row in numbers["deaths"] if not row["perturb_zeros"])
    zeros, least = numbers["zeros"][0]["audits"], down(min(map(_share, numbers["shares"])))
    rows = []
    for row in (*numbers["joint"], *(row for row in numbers["zeros"] if row["expected"])):  # expected violations
        audits, name = row["audits"], row["name"].removeprefix("zeros kept: ")
        is_kept = name != row["name"]
        by, times = f"{audits[0]['class']}, {row['size']:,} runs", f"{violations(audits)} of {len(audits)}"
        rows.append((name, "kept" if is_kept else "noise", by, down(_share(row)), times if is_kept else ""))
    confidence = _sure(numbers)
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (top, middle, below) = page(10.6, 3, 1, heights=[1.8, 0.8, 1.2])
    _draw_parts(top, numbers["shares"])
    top.set_xlabel(f"lower bound ({_sure(numbers)}) / own share")
    looks = keys(
        bound="method 1: tables with independent noise",
        pale="method 2: levels from the top down",
        promise="promise",
        exact="exact loss",
    )
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
        exact = None if row.get("exact") is None else row["exact"] / row["promise"]
        losses(ax, at, values, exact, color=BLUE if row["name"].startswith("method 1") else PALE)
        people = "1 person" if row["people"] == 1 else f"{row['people']} people"
        names.append(f"{row['name'].partition(', ')[2]} ({people})")
    promise(ax)
    name_rows(ax, names)
    ax.set_xlim(0, 1.05)


def _draw_deaths(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for (perturb_zeros, words), look in styles(((False, "zeros kept"), (True, "noise on zeros")), markersize=6).items():
        own = [row for row in rows if row["perturb_zeros"] == perturb_zeros]
        for name, shown, line in (("true", "shown cells with people", "-"), ("shown", "lone people who appear", ":")):
            style = look | {"linestyle": line, "markerfacecolor": look["color"] if name == "true" else "white"}
            values = [row[name] for row in own]
            ax.semilogx([row["epsilon"] for row in own], values, **style, label=f"{words}: {shown}")
    ax.set(ylim=(0, 1.05), xlabel="epsilon, one person added or removed (log scale)", ylabel="share")
    head(ax, "(c) what tables of synthetic deaths reveal", own_keys(ax), ncols=2, x=-0.1)
