"""The authors' accuracy curve for choosing epsilon, on a real table of counties, and the limits of 53-bit noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.bottom_up import BottomUp, PublishedTotals, WeightedBottomUp
from algorithms.bottom_up.accuracy import Accuracy, accuracy
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.bugs.systems.bottom_up import FractionalCounts, UndeclaredTotals, WeightsIgnored
from algorithms.hierarchy import Hierarchy
from algorithms.population import load
from audit import NeighborPair, measure_loss
from audit.results import plain_number
from audit.results.plots import GRAY, GREEN, SERIES
from experiments.audits import all_or_none, kept, largest_loss, median, none_above, repeat
from experiments.drawing import bar_key, head, line_key, own_keys, page
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, near, violations

EPSILONS = (*(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 2, 5)), 10.0)
TABULATED = tuple(epsilon for epsilon in EPSILONS if epsilon >= 0.001)  # a range like that of the authors
FINEST, DRAWN, SAMPLE = "county x race", "as drawn", "weighted sample"
LEVELS, NORMS = {"state": 1, "county": 2, FINEST: 3}, ("l1", "l2")
REPLICATES, AUDITS, TARGET = 200, 20, 0.99
SHARE, LIGHTEST, HEAVIEST = 0.25, 2.0, 6.0  # a 25% sample, with weights that adjust for nonresponse
EXACT, INVERSE = "exact sampler", "inverse distribution function"
IGNORED, FRACTIONS, UNDECLARED = "weights ignored", "fractions left in", "totals undeclared"
SIZES = {EXACT: 50_000, INVERSE: 2_000, IGNORED: 2_000, FRACTIONS: 500, UNDECLARED: 500}


def cases(tree: Hierarchy, counts: Any) -> dict[str, tuple[BottomUp | WeightedBottomUp, NeighborPair]]:
    """Return mechanisms and pairs to audit: a county with five races, a sample of it, and counties of two states."""
    county = counts[:5]
    rng = np.random.default_rng(1960)
    cells = np.repeat(np.arange(5), 1 + county // 400)
    weights = np.round(rng.uniform(LIGHTEST, HEAVIEST, cells.size), 2)
    records = np.column_stack([cells, weights])
    heavy = NeighborPair.add_record(records, [1, HEAVIEST], label="a record of the largest weight added")
    light = NeighborPair.add_record(records, [1, 4.25], label="a record of weight 4.25 added")
    person = NeighborPair.add_people(county, 1, label="a person added to a county and race")
    small = Hierarchy.from_codes(["a", "a", "b"], ["1", "2", "1"])
    published = PublishedTotals(1, [county[:2].sum(), np.nan])
    total = NeighborPair.add_people(county[:3], 0, label="a person added where a total is published")
    return {
        EXACT: (BottomUp(1.0), person),
        INVERSE: (BottomUp(1.0, noise="inverse_cdf"), person),
        IGNORED: (WeightsIgnored(1.0, HEAVIEST, (5,)), heavy),
        FRACTIONS: (FractionalCounts(1.0, HEAVIEST, (5,)), light),
        UNDECLARED: (
            UndeclaredTotals(1.0, small, published=published),
            NeighborPair.declared(total.x, total.y, "add_remove", label=total.label),
        ),
    }


def long_form(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the cells and weights of a 25% sample of the people; weights are uniform from 2 to 6."""
    cells = np.repeat(np.arange(counts.size), rng.binomial(counts, SHARE))
    return np.column_stack([cells, np.round(rng.uniform(LIGHTEST, HEAVIEST, cells.size), 2)])


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Replicate 200 times at 19 epsilons (quick: 20 times at 4), and audit five cases 20 times (quick: once)."""
    tree, counts = load("midwest")
    *streams, sampling = np.random.SeedSequence(seed).spawn(len(SIZES) + 2)
    rng = np.random.default_rng(streams[-1])
    epsilons = EPSILONS[::6] if quick else EPSILONS
    states = tree.totals(counts)[tree.level(1)]
    free, held = BottomUp(1.0, tree), BottomUp(1.0, tree, published=PublishedTotals(1, states))
    options: dict[str, Any] = {"epsilons": epsilons, "replicates": 20 if quick else REPLICATES}
    curves = {
        f"{name}, {words}": curve(mechanism, counts, rng, level=level, **options)
        for words, mechanism in ((DRAWN, free), ("calibrated", held))
        for name, level in LEVELS.items()
    }
    own = np.random.default_rng(sampling)
    records, sample = long_form(counts, own), WeightedBottomUp(1.0, HEAVIEST, counts.shape, tree)
    curves[f"{FINEST}, {SAMPLE}"] = curve(sample, records, own, level=LEVELS[FINEST], **options)
    totals = states.astype(float)
    totals[1], totals[2] = np.nan, totals[2] + 1  # the second state's total is not published, the third's is wrong
    released = replace(held, published=PublishedTotals(1, totals))(counts, 1, rng)[0]
    known = cases(tree, counts)
    return {
        "people": int(counts.sum()),
        "records": len(records),
        "tree": repr(tree),
        "mean": float(counts.mean()),
        "median": float(np.median(counts)),
        "replicates": options["replicates"],
        "epsilons": list(epsilons),
        "curves": {name: [_plain(point) for point in own] for name, own in curves.items()},
        "chosen": {
            words: {norm: smallest_epsilon(curves[f"{FINEST}, {words}"], norm) for norm in NORMS}
            for words in (DRAWN, SAMPLE)
        },
        "reported": {
            tree.name(node): float(np.mean(~np.isnan(released[tree.ancestors(1) == node])))
            for node in range(*tree.level(1).indices(tree.n_nodes))
        },
        "inverse": [_inverse(epsilon) for epsilon in (TABULATED[::6] if quick else TABULATED)],
        "audits": _audited(known, streams, 1 if quick else AUDITS, jobs),
    }


def curve(
    mechanism: BottomUp | WeightedBottomUp,
    data: Any,
    rng: np.random.Generator,
    *,
    epsilons: Sequence[float],
    **how: Any,
) -> list[Accuracy]:
    """Return the accuracies at several budgets in nats, in increasing order of epsilon."""
    return [accuracy(replace(mechanism, epsilon=epsilon), data, rng, **how) for epsilon in sorted(epsilons)]


def smallest_epsilon(accuracies: list[Accuracy], norm: str, target: float = TARGET) -> float | None:
    """Return the smallest epsilon from which on all lower ends of intervals reach the target, or None."""
    best = None
    for one in reversed(accuracies):
        if getattr(one, norm).interval[0] < target:
            break
        best = one.epsilon
    return best


def _plain(point: Accuracy) -> dict[str, Any]:
    row: dict[str, Any] = {"epsilon": point.epsilon}
    for name in NORMS:
        norm = getattr(point, name)
        row[name] = {"error": norm.error, "deviation": float(norm.errors.std(ddof=1)) / norm.scale}
        row[name] |= {"accuracy": norm.accuracy, "interval": list(norm.interval), "expected": norm.expected_accuracy}
    return row


def _inverse(epsilon: float) -> dict[str, Any]:
    """Return limits of 53-bit noise: its largest value, and the probability of outputs possible on one side only."""
    noise = InverseCdf(epsilon)
    law = noise.exact_loss(1)
    return {"epsilon": epsilon, "reach": noise.reach, "witness": law.infinite_mass, "delta": law.delta_at(epsilon)}


def _audited(
    known: dict[str, Any], streams: list[np.random.SeedSequence], times: int, jobs: int
) -> dict[str, dict[str, Any]]:
    settings = [(*known[name], SIZES[name]) for name in SIZES]
    audits = repeat(_audit, settings, streams[: len(SIZES)], times, jobs=jobs, words="audits of bottom-up")
    rows = {}
    for (name, (mechanism, pair)), runs in zip(known.items(), audits, strict=True):
        about = {"pair": pair.label, "size": SIZES[name], "promise": mechanism.claim.epsilon}
        rows[name] = {**about, "loss": plain_number(largest_loss(mechanism, pair)), "runs": runs}
    return rows


def _audit(mechanism: Any, pair: NeighborPair, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    return kept(measure_loss(mechanism, pair, mechanism.claim, size=size, confidence=CONFIDENCE, rng=stream))


def check(numbers: Numbers) -> Checks:
    for name, rows in numbers["curves"].items():
        for norm in NORMS:
            accuracies = [row[norm]["accuracy"] for row in rows]
            drawn = "calibrated" not in name
            words = f"{name}, {norm}: accuracy {'rises to' if drawn else 'ends at'} {accuracies[-1]:.6f}, expected 1"
            rises = accuracies == sorted(accuracies) or not drawn  # raking multiplies noise larger than the state
            yield Check(words, accuracies[-1] > 0.999 and rises)
            known, root = (
                [row[norm] for row in rows if row[norm]["expected"] is not None],
                np.sqrt(numbers["replicates"]),
            )
            scores = [root * abs(one["accuracy"] - one["expected"]) / one["deviation"] for one in known]
            if scores:  # 114 nearly normal scores: one exceeds 5 with probability below 1e-4
                yield between(f"{name}, {norm}: largest deviation from theory", max(scores), 0, 5)
    for words in (DRAWN, SAMPLE):
        high = [row for row in numbers["curves"][f"{FINEST}, {words}"] if row["l1"]["accuracy"] > 0]
        above = all(row["l2"]["accuracy"] > row["l1"]["accuracy"] for row in high)
        yield Check(f"{FINEST}, {words}: L2 accuracy is above L1 accuracy wherever the latter is above 0", above)
    yield between("L1 accuracy missing to one, weighted sample / whole count", _factor(numbers), 5.5, 6.5)
    exact = [row["l1"]["error"] for row in numbers["curves"]["state, calibrated"]]
    yield between("error of calibrated state totals (people)", max(exact), 0, 1e-6)
    shares = list(numbers["reported"].values())
    yield Check("only the state whose published total is another one is not reported", shares == [1, 1, 0, 1, 1])
    for row in numbers["inverse"]:
        target = 54 * np.log(2) - np.log1p(np.exp(-row["epsilon"]))
        yield near(f"epsilon {row['epsilon']:g}: reach", row["reach"], np.floor(target / row["epsilon"]), 0.5)
        yield Check(f"epsilon {row['epsilon']:g}: a witness of {row['witness']:.1e}", row["witness"] >= 2**-53)
    for name, row in numbers["audits"].items():
        yield all_or_none(name, row["runs"], violated=name != EXACT)
        yield none_above(name, row["runs"], float(row["loss"]))
    exact_loss = float(numbers["audits"][EXACT]["loss"])
    yield near("exact sampler, exact loss", exact_loss, numbers["audits"][EXACT]["promise"], 1e-9)


def _factor(numbers: Numbers) -> float:
    """Return the ratio of 1 - L1 accuracy of the weighted sample to that of the full count; median over epsilons."""
    full, sample = (numbers["curves"][f"{FINEST}, {words}"] for words in (DRAWN, SAMPLE))
    missing = [np.array([1 - row["l1"]["accuracy"] for row in rows]) for rows in (sample, full)]
    return float(np.median(np.divide(*missing)))


def facts(numbers: Numbers) -> dict[str, Any]:
    takes = _takes(numbers, DRAWN)
    exact, last = numbers["audits"][EXACT], numbers["inverse"][-1]
    rows = []
    for name, row in numbers["audits"].items():
        times = f"{violations(row['runs'])} of {len(row['runs'])}"
        times += ", by a witness" if row["runs"][0]["witness"] else ""
        loss = "infinite" if np.isinf(float(row["loss"])) else f"{float(row['loss']):g}"
        rows.append((name, f"{row['size']:,}", loss, down(median(row["runs"])), times))
    sample, factor = _takes(numbers, SAMPLE), _factor(numbers)
    return locals()


def _takes(numbers: Numbers, words: str) -> dict[str, str]:
    return {
        norm: "more than was tried" if epsilon is None else f"epsilon {epsilon:g}"
        for norm, epsilon in numbers["chosen"][words].items()
    }


def draw(numbers: Numbers) -> Figure:
    figure, (curves, reach) = page(4.2, 1, 2, stacked=True)
    _draw_curves(curves, numbers)
    rows = numbers["inverse"]
    reach.plot([row["epsilon"] for row in rows], [row["reach"] for row in rows], color=GREEN, marker="o", markersize=4)
    words = "largest noise from 53 bits\n(people, log scale)"
    reach.set(yscale="log", ylabel=words, title="(b) inverse CDF: where the noise ends")
    for ax in (curves, reach):
        ax.set(xscale="log", xlabel="$\\varepsilon$, one person added or removed (log scale)")
    return figure


def _draw_curves(ax: Axes, numbers: Numbers) -> None:
    looks = {"l2": ("L2: squared", SERIES[0]), "l1": ("L1: absolute", SERIES[1])}
    for norm, (words, (color, _, marker)) in looks.items():
        for data, face, line in ((DRAWN, color, "-"), (SAMPLE, "white", ":")):
            rows = numbers["curves"][f"{FINEST}, {data}"]
            epsilons = [row["epsilon"] for row in rows]
            low, high = np.array([row[norm]["interval"] for row in rows]).T
            ax.fill_between(epsilons, low, high, color=color, alpha=0.35, linewidth=0)
            ax.plot(epsilons, [row[norm]["expected"] for row in rows], color=color, linewidth=1, linestyle=line)
            accuracies = [row[norm]["accuracy"] for row in rows]
            points: dict[str, Any] = {"marker": marker, "markersize": 4, "markerfacecolor": face, "linestyle": "none"}
            label = words if data == DRAWN else f"{words.split(':')[0]}, weighted sample"
            ax.plot(epsilons, accuracies, label=label, color=color, **points)
    ax.axhline(1, color=GRAY, linewidth=0.8, zorder=0)
    ax.set(ylim=(0, 1.04), xlim=(1e-5, 1e-1), ylabel="accuracy: 1 - error / error of zeros")
    handles = [*own_keys(ax), bar_key("band: 95% of releases", GRAY), line_key("exact expectation", color=GRAY)]
    head(ax, "(a) to choose $\\varepsilon$ by: county x race", handles, ncols=2, x=-0.15)
