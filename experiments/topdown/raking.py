"""Flaxman's idealized TopDown (RDPC) beside TopDown itself, on the same tree with the same budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.flaxman import RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from audit import Attack, Mechanism, NeighborPair, PureDP
from audit.events import cell
from audit.results.plots import BLACK, BLUE, PALE, PROMISE
from experiments.audits import audited, opened, share
from experiments.drawing import bar, bar_key, beside, head, line_key, name_rows, own_keys, page, promise, spread, styles
from experiments.experiment import Check, Checks, Numbers, between, down

EPSILON, FANOUT, DEPTH, TYPICAL = 1.0, 4, 3, 40
EMPTY = 0.2  # of the leaves
SIZE, ERRORS = 400_000, 20_000
SYSTEMS, WAYS = ("RDPC", "TopDown"), ("one area", "all areas")


def population(rng: np.random.Generator) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Return a regular tree with lognormal counts, a fifth of them zero."""
    tree = Hierarchy.regular(FANOUT, DEPTH)
    counts = np.rint(TYPICAL * rng.lognormal(sigma=1, size=tree.n_leaves)).astype(np.int64)
    counts[rng.permutation(tree.n_leaves)[: int(EMPTY * tree.n_leaves)]] = 0
    return tree, counts


def systems(tree: Hierarchy) -> dict[str, Any]:
    """Return both, by name: a count per area is a schema of one cell."""
    schema = Schema({"person": ("person",)})
    levels = [f"1/{tree.depth + 1}"] * (tree.depth + 1)
    budget = Budget(PureDP(EPSILON), levels, [{"total": 1}] * len(levels))
    return {"RDPC": RDPC(EPSILON, tree, output="all"), "TopDown": TopDown(schema, tree, budget, solver="batched")}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Release 20,000 times (quick: 500), and audit with 400,000 runs (quick: 20,000)."""
    streams = np.random.SeedSequence(seed).spawn(4)
    tree, counts = population(np.random.default_rng(streams[0]))
    exact = tree.totals(counts)
    leaf = int(np.argsort(counts)[counts.size // 2])
    pair = NeighborPair.add_people(counts, leaf, label=f"1 person added to an area of {counts[leaf]}")
    attacks = {"one area": Attack(statistics=(cell(int(tree.leaves[leaf])),)), "all areas": Attack()}
    found: dict[str, Any] = {"epsilon": EPSILON, "tree": repr(tree), "people": int(counts.sum()), "systems": {}}
    for name, stream in zip(SYSTEMS, streams[2:], strict=True):
        mechanism, rng = _areas(name, systems(tree)[name], counts), np.random.default_rng(streams[1])
        released = mechanism(counts, 500 if quick else ERRORS, rng)
        error = released - exact
        row: dict[str, Any] = {
            "rmse": [float(np.sqrt(np.mean(error[:, tree.level(j)] ** 2))) for j in range(tree.depth + 1)],
            "bias": [float(error[:, area].mean()) for area in tree.leaves],
            "negative": float(np.mean(released[:, tree.leaves] < 0)),
            "fractional": float(np.mean(released != np.floor(released))),
        }
        size = 20_000 if quick else SIZE
        for (words, attack), own in zip(attacks.items(), stream.spawn(2), strict=True):
            row[words] = audited(mechanism, pair, PureDP(EPSILON), attack=attack, size=size, rng=own, jobs=jobs)
        found["systems"][name] = row
    return {**found, "counts": counts.tolist()}


def _areas(name: str, mechanism: Any, counts: NDArray[np.int64]) -> Mechanism:
    """Return the release of all areas as a mechanism on the counts of the leaves."""
    if name == "RDPC":
        release: Mechanism = mechanism
        return release
    tables = mechanism.stage("rounded")
    return lambda data, size, rng: tables(np.asarray(data)[:, np.newaxis], size, rng)[:, :, 0]


def check(numbers: Numbers) -> Checks:
    rdpc, topdown = (numbers["systems"][name] for name in SYSTEMS)
    counts = np.array(numbers["counts"])
    words = f"RDPC: {rdpc['negative']:.1%} of the leaves negative, TopDown: none"
    yield Check(words, rdpc["negative"] > topdown["negative"] == 0)
    words = f"RDPC: {rdpc['fractional']:.1%} of the counts fractional, TopDown: none"
    yield Check(words, topdown["fractional"] == 0)
    ratio = topdown["rmse"][-1] / rdpc["rmse"][-1]
    yield between("root mean squared error of the leaves, TopDown / RDPC", ratio, 0, 0.9)
    empty, large = _bias(topdown, counts == 0), _bias(topdown, _large(counts))
    yield Check(f"TopDown lifts empty areas, by {empty:.2f}", empty > 0.5)
    yield Check(f"and lowers the largest, by {-large:.2f}", large < -0.1)
    for name in SYSTEMS:
        one, every = (opened(numbers["systems"][name][words]) for words in WAYS)
        for words, audit in zip(WAYS, (one, every), strict=True):
            yield Check(f"{name}, {words}: {audit.verdict}", audit.verdict != "violated")
        if one.size >= SIZE:
            yield between(f"{name}: lower bound from one area / promise", one.measured.budget / EPSILON, 0.15, 0.35)
            ratio = every.measured.budget / max(one.measured.budget, 1e-9)
            yield between(f"{name}: lower bound from all areas / from one", ratio, 1.2, 4)


def _bias(row: dict[str, Any], which: NDArray[np.bool_]) -> float:
    return float(np.array(row["bias"])[which].mean())


def _large(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(counts >= np.quantile(counts, 0.75))


def facts(numbers: Numbers) -> dict[str, Any]:
    systems, counts = [numbers["systems"][name] for name in SYSTEMS], np.array(numbers["counts"])
    rdpc, topdown = systems
    one, every = ([down(share(system[words])) for system in systems] for words in WAYS)
    rows = [
        ("areas below zero", *(f"{row['negative']:.0%}" for row in systems)),
        ("root mean squared error", *(f"{row['rmse'][-1]:.1f}" for row in systems)),
        ("bias of empty areas", *(f"{_bias(row, counts == 0):+.1f}" for row in systems)),
        ("bias of the largest quarter", *(f"{_bias(row, _large(counts)):+.1f}" for row in systems)),
        *((f"lower bound from {words}", *(down(share(row[words])) for row in systems)) for words in WAYS),
    ]
    size = opened(systems[0]["one area"]).size
    words = f"The tree has {counts.size} areas, a fifth of them empty. Bounds are from {size:,} runs."
    rdpc_error, topdown_error = rdpc["rmse"][-1], topdown["rmse"][-1]
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(5.6, 2, 2)
    left, right, below = spread(axes)
    counts = np.array(numbers["counts"])
    for name, look in styles(numbers["systems"], markersize=6).items():
        row = numbers["systems"][name]
        left.plot(range(len(row["rmse"])), row["rmse"], **look, label=name)
        right.plot(counts, row["bias"], **look | {"markersize": 3.5, "linestyle": "none"}, label=name, alpha=0.8)
    left.set_xticks(range(DEPTH + 1), ["root", *(f"level {j}" for j in range(1, DEPTH)), "leaves"], fontsize=8)
    left.set_ylim(0)
    left.set_ylabel("root mean squared error (people)")
    head(left, "(a) error by level", own_keys(left))
    right.axhline(0, color=BLACK, linewidth=0.8)
    right.set_xscale("symlog", linthresh=10)
    right.set_xlim(-3, 1.5 * counts.max())
    right.set_xlabel("people in the area (linear to 10, then log)")
    right.set_ylabel("mean error (people)")
    head(right, "(b) bias of the leaves", own_keys(right))
    for place, name in enumerate(SYSTEMS):
        for shift, words, color in zip((-0.18, 0.18), WAYS, (BLUE, PALE), strict=True):
            loss = opened(numbers["systems"][name][words]).measured.budget
            bar(below, place + shift, loss, height=0.32, color=color)
            beside(below, place + shift, down(loss, 2), x=1.01, size=8)
    promise(below, numbers["epsilon"])
    name_rows(below, SYSTEMS)
    below.set(xlim=(0, 1.05 * numbers["epsilon"]), xlabel="loss of one person added (nats)")
    handles = [
        *(bar_key(f"lower bound from {words}", color) for words, color in zip(WAYS, (BLUE, PALE), strict=True)),
        line_key("promise", **PROMISE),
    ]
    head(below, "(c) what the areas show", handles)
    return figure
