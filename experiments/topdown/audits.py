"""The loss of TopDown by stage: single noisy measurements, all of them, and the tables computed from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit import ZCDP, NeighborPair, PureDP, measure_loss
from audit.claims import Relation
from audit.results.plots import EXACT, PALE, PROMISE, SHADES
from experiments import drawing
from experiments.audits import lost, run_all
from experiments.experiment import Check, Checks, Numbers, between, down, near
from experiments.topdown.bugs import SCHEMA, TREE

LEVELS = ("1/4", "3/8", "3/8")
QUERIES = {"total": "1/4", "sex": "1/3", "detailed": "5/12"}
AREAS = ("root", "level 1", "leaves")
KEYS = tuple((level, query) for level in range(len(LEVELS)) for query in QUERIES)
LAST = TREE.n_leaves - 1
WHERE: dict[str, dict[str, Any]] = {area: {"level": level} for level, area in enumerate(AREAS)}
WHERE |= {"paths": {"paths": (0, LAST)}, "all": {}}
PROMISES: dict[str, PureDP | ZCDP] = {"geometric": PureDP(6.0), "Gaussian": ZCDP(10.0)}
RELATIONS: tuple[Relation, ...] = ("replace_one", "add_remove")
STAGES = ("measurements", "estimate", "rounded")
WORDS = ("measurements", "estimates", "rounded tables")

SEEDS = 20
SHARE_SIZE = {"geometric": 40_000, "Gaussian": 100_000}  # runs of an audit of one query
JOINT_SIZE = 50_000  # runs of an audit of several queries, at any stage
CUSTOMARY = 0.95  # confidence of bounds on losses


@dataclass(frozen=True)
class Task:
    """An audit: law of noise, neighbor relation, released stage and areas, and number of runs."""

    law: str
    relation: Relation
    stage: str
    where: str  # key of `WHERE`, or level and query as "1 sex"
    size: int


def release(promise: PureDP | ZCDP, relation: Relation) -> TopDown:
    budget = Budget(type(promise)(promise.budget, relation), LEVELS, [QUERIES] * len(LEVELS))
    return TopDown(SCHEMA, TREE, budget, solver="batched")


def neighbors(relation: Relation) -> NeighborPair:
    """Return a pair: a person is added, or replaced by one in another area and of another kind."""
    counts = 25 + np.arange(TREE.n_leaves * SCHEMA.cells).reshape(TREE.n_leaves, SCHEMA.cells) * 5 % 17
    if relation == "add_remove":
        return NeighborPair.add_people(counts, (0, 0))
    return NeighborPair.move_people(counts, (0, 0), (LAST, 3))


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit queries 20 times with 40,000 or 100,000 runs, and stages once with 50,000."""
    # If quick: only a replaced person; single queries and all areas together; measurements and rounded tables; at most
    # a tenth of the runs.
    relations, part, times = (RELATIONS[:1], 10, 1) if quick else (RELATIONS, 1, SEEDS)
    kinds = [(law, relation) for law in PROMISES for relation in relations]
    shares = [_share(law, relation, key) for law, relation in kinds for key in KEYS]
    tasks = [
        Task(share["law"], share["relation"], "measurements", share["where"], SHARE_SIZE[share["law"]] // part)
        for share in shares
        if share["exact"]
        for _ in range(times)
    ]
    tasks += [
        Task(law, relation, stage, where, JOINT_SIZE // part // (2 if quick else 1))
        for law, relation in kinds
        for where in (["all"] if quick else WHERE)
        for stage in (STAGES[::2] if quick else STAGES)
        if (stage, where) != ("measurements", "paths")  # other areas carry no information there
    ]
    streams = np.random.SeedSequence(seed).spawn(len(tasks))
    work = [delayed(_audit)(task, stream) for task, stream in zip(tasks, streams, strict=True)]
    audits = run_all(work, jobs, "loss of TopDown")
    for share in shares:
        own = [audit for audit in audits if all(audit[name] == share[name] for name in ("law", "relation", "where"))]
        share["lower_bound"] = [audit["lower_bound"] for audit in own]
    return {
        "shares": shares,
        "joint": [_exact(law, relation, shares) for law, relation in kinds],
        "stages": [audit for audit in audits if audit["where"] in WHERE and audit["stage"] in STAGES],
        "quick": quick,
    }


def _share(law: str, relation: Relation, key: tuple[int, str]) -> dict[str, Any]:
    stage = release(PROMISES[law], relation).stage("measurements", only=[key])
    where, exact = f"{key[0]} {key[1]}", lost(stage, neighbors(relation), stage.claim.parameter)
    return {"law": law, "relation": relation, "where": where, "own": stage.claim.budget, "exact": exact}


def _exact(law: str, relation: Relation, shares: list[dict[str, Any]]) -> dict[str, Any]:
    """Return exact losses of the measurements, by level and in total, in units of the promise."""
    # Largest losses and Renyi divergences of independent queries add up. The composed law has the same loss, or a
    # larger one if it is an upper bound on a grid.
    topdown = release(PROMISES[law], relation)
    composed = lost(topdown.stage("measurements"), neighbors(relation), topdown.claim.parameter)
    own = {share["where"]: share["exact"] for share in shares if (share["law"], share["relation"]) == (law, relation)}
    levels = {area: sum(own[f"{level} {query}"] for query in QUERIES) for level, area in enumerate(AREAS)}
    losses = {**levels, "paths": sum(own.values()), "all": sum(own.values()), "composed": composed}
    return {"law": law, "relation": relation} | {key: loss / topdown.claim.budget for key, loss in losses.items()}


def _audit(task: Task, stream: np.random.SeedSequence) -> dict[str, Any]:
    topdown = release(PROMISES[task.law], task.relation)
    if task.where in WHERE:
        mechanism: Any = topdown.stage(task.stage, **WHERE[task.where])  # type: ignore[arg-type]
    else:
        level, query = task.where.split()
        mechanism = topdown.stage("measurements", only=[(int(level), query)])
    pair, attack = neighbors(task.relation), "likelihood_ratio" if task.stage == "measurements" else "auto"
    options: dict[str, Any] = {"attack": attack, "size": task.size, "confidence": CUSTOMARY, "rng": stream}
    result = measure_loss(mechanism, pair, topdown.claim, **options)
    return {**asdict(task), "promise": topdown.claim.budget, "lower_bound": result.measured.budget}


def check(numbers: Numbers) -> Checks:
    least = 0.3 if numbers["quick"] else 0.9
    for share in numbers["shares"]:
        level, query = share["where"].split()
        what = f"{share['law']}, {share['relation']}, {AREAS[int(level)]}, {query}"
        if share["exact"]:
            yield near(f"{what}: exact loss / own share", share["exact"] / share["own"], 1.0, 1e-6)
            bound, top = float(np.median(share["lower_bound"])) / share["own"], 1.3 if numbers["quick"] else 1.0
            yield between(f"{what}: median lower bound / own share", bound, least, top)
        else:
            yield Check(f"{what}: no neighbor changes it", not share["lower_bound"] and share["where"] == "0 total")
    for joint in numbers["joint"]:
        fixed = 1 / 16 if joint["relation"] == "replace_one" else 0.0
        what = f"{joint['law']}, {joint['relation']}, all measurements: exact loss / promise"
        yield near(what, joint["all"], 1 - fixed, 1e-6)
        upper = 1 + 1e-6 if joint["law"] == "geometric" else 1.1
        yield between(f"{what}, composed / added", joint["composed"] / joint["all"], 1 - 1e-6, upper)
        bounds, what = _shown(numbers, joint), f"{joint['law']}, {joint['relation']}, all: lower bound from"
        yield between(f"{what} measurements / promise", bounds["measurements"], 0.2, joint["all"])
        for stage in sorted(bounds.keys() - {"measurements"}):
            yield between(f"{what} {stage} / from measurements", bounds[stage] / bounds["measurements"], 0, 1)


def facts(numbers: Numbers) -> dict[str, Any]:
    exact = [joint["all"] for joint in numbers["joint"]]
    by_joint = [_shown(numbers, joint) for joint in numbers["joint"]]
    measured, rounded = ([stages[stage] for stages in by_joint] for stage in ("measurements", "rounded"))
    rows = []
    for joint, stages in zip(numbers["joint"], by_joint, strict=True):
        who = {"replace_one": "one replaced", "add_remove": "one added"}[joint["relation"]]
        cells = (down(stages[stage]) if stage in stages else "" for stage in STAGES)  # only two if quick
        rows.append((f"{joint['law']}, {who}", f"{joint['all']:.2f}", *cells))
    worst = min(np.median(share["lower_bound"]) / share["own"] for share in numbers["shares"] if share["exact"])
    return locals()


def _shown(numbers: Numbers, joint: dict[str, Any]) -> dict[str, float]:
    setting = {"law": joint["law"], "relation": joint["relation"], "where": "all"}
    rows = (row for row in numbers["stages"] if setting.items() <= row.items())
    return {row["stage"]: row["lower_bound"] / row["promise"] for row in rows}


COLORS = dict(zip(STAGES, SHADES, strict=True))


def draw(numbers: Numbers) -> Figure:
    figure, axes = drawing.page(7.4, 2, 2, heights=(5, 6))
    *joint, alone = drawing.spread(axes)
    titles = {"geometric": "geometric noise, $\\varepsilon$ = 6", "Gaussian": "Gaussian noise, $\\rho$ = 10"}
    for ax, letter, (law, title) in zip(joint, "ab", titles.items(), strict=True):
        rows, joints = (
            [row for row in numbers[key] if (row["law"], row["relation"]) == (law, "replace_one")]
            for key in ("stages", "joint")
        )
        _draw_stages(ax, rows, joints, named=letter == "a")
        drawing.head(ax, f"({letter}) all queries: {title}")
    _draw_shares(alone, [share for share in numbers["shares"] if share["relation"] == "replace_one"])
    drawing.head(alone, "(c) each query by itself")
    handles: list[Any] = [
        *(drawing.bar_key(f"(a, b) lower bound from {what}", color) for what, color in zip(WORDS, SHADES, strict=True)),
        drawing.line_key("(a, b) exact loss of the measurements", **EXACT),
        drawing.line_key("promise", **PROMISE),
        *(drawing.line_key(f"(c) {law} noise: median, range of audits", **look) for law, (look, _) in LOOKS.items()),
    ]
    drawing.foot(figure, handles, ncols=2, words="one person replaced; both paths have the measurements of all areas")
    return figure


LOOKS: dict[str, tuple[dict[str, Any], float]] = {
    "geometric": (drawing.CIRCLE | {"markersize": 5}, -0.16),
    "Gaussian": (drawing.CIRCLE | {"markersize": 5, "marker": "^", "color": PALE}, 0.16),
}


def _draw_shares(ax: Axes, shares: list[dict[str, Any]]) -> None:
    drawing.promise(ax)
    for share in shares:
        at = [f"{level} {query}" for level, query in KEYS].index(share["where"])
        look, off = LOOKS[share["law"]]
        if share["lower_bound"]:
            values = np.array(share["lower_bound"]) / share["own"]
            drawing.extent(ax, values, at + off, look["color"])
            ax.plot(np.median(values), at + off, **look)
        elif share["law"] == "geometric":  # the same for both laws
            drawing.beside(ax, at, "no neighbor changes it", x=0.01, size=8)
    drawing.name_rows(ax, [f"{AREAS[level]}, {query}" for level, query in KEYS])
    ax.set(xlim=(0.4, 1.06), xlabel="lower bound (95%) / query's share")


def _draw_stages(ax: Axes, rows: list[dict[str, Any]], joints: list[dict[str, Any]], *, named: bool) -> None:
    drawing.promise(ax)
    places = [where for where in WHERE if any(row["where"] == where for row in rows)]
    for row in rows:
        at = places.index(row["where"]) + (STAGES.index(row["stage"]) - 1) * 0.26
        drawing.bar(ax, at, row["lower_bound"] / row["promise"], height=0.24, color=COLORS[row["stage"]])
    for joint in joints:
        for at, where in enumerate(places):
            ax.plot(joint[where], at - 0.26, **EXACT, clip_on=False)
    names = {"paths": "both paths", "all": "all areas"}
    drawing.name_rows(ax, [names.get(where, where) if named else "" for where in places], half=0.42)
    ax.set(xlim=(0, 1.03), xlabel="lower bound (95%) / promise")
