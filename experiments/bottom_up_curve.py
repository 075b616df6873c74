"""The authors' curve to choose epsilon by, on a real table of counties, and what 53 bits leave of their noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.bottom_up import BottomUp, PublishedTotals, WeightedBottomUp
from algorithms.bottom_up.accuracy import Accuracy, curve, smallest_epsilon
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.bugs.systems.bottom_up import FractionalCounts, UndeclaredTotals, WeightsIgnored
from algorithms.hierarchy import Hierarchy
from algorithms.population import load
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import GRAY, GREEN, PROMISE, SERIES
from experiments.audits import all_or_none, down, kept, median, none_above, run_all, violations
from experiments.drawing import bar_key, head, line_key, page, spread
from experiments.experiment import CONFIDENCE, Check, MarkdownTable, between, near

QUESTION = "How does the bottom-up mechanism's accuracy grow with epsilon, and does its noise keep the promise?"
EXPECTATION = (
    "Without calibration both accuracies rise to one at every level, as the exact expectation says; for county by race "
    "L2 rises first. In a weighted sample about as many times more is missing to one as its largest weight says. "
    "Calibrated, both end at one too, and state totals are exact throughout; where noise exceeds a state nothing is "
    "expected. The exact sampler is never called violated. The inverse distribution function at 53 "
    "bits is bounded: it has a witness at every epsilon from 0.001 on. Ignored weights, fractional counts and "
    "undeclared totals are found in all audits. A pair that changes a published total is refused."
)

EPSILONS = (*(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 2, 5)), 10.0)
TABULATED = tuple(epsilon for epsilon in EPSILONS if epsilon >= 0.001)  # the authors' kind of range
TAILS = (0.01, 0.1, 1.0)
FINEST, DRAWN, SAMPLE = "county x race", "as drawn", "weighted sample"
LEVELS = {"state": 1, "county": 2, FINEST: 3}
REPLICATES, AUDITS, TARGET = 200, 20, 0.99
SHARE, LIGHTEST, HEAVIEST = 0.25, 2.0, 6.0  # a long form of one person in four, adjusted for those who did not answer
EXACT, INVERSE = "exact sampler", "inverse distribution function"
IGNORED, FRACTIONS, UNDECLARED = "weights ignored", "fractions left in", "totals undeclared"
SIZES = {EXACT: 50_000, INVERSE: 2_000, IGNORED: 2_000, FRACTIONS: 500, UNDECLARED: 500}


def cases(tree: Hierarchy, counts: Any) -> dict[str, tuple[BottomUp | WeightedBottomUp, NeighborPair]]:
    """Return what is audited and on which pair: a county of five races, a sample of it, and two states of counties."""
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
    """Return one record in four of people counted, cell and weight: weights are even from 2 to 6."""
    cells = np.repeat(np.arange(counts.size), rng.binomial(counts, SHARE))
    return np.column_stack([cells, np.round(rng.uniform(LIGHTEST, HEAVIEST, cells.size), 2)])


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
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
    told = states.astype(float)
    told[1], told[2] = np.nan, told[2] + 1  # the second state's total is not published, the third's is another
    shown = replace(held, published=PublishedTotals(1, told))(counts, 1, rng)[0]
    known = cases(tree, counts)
    refused = ""
    silent, pair = known[UNDECLARED]
    try:
        BottomUp(1.0, silent.tree, published=silent.published).exact_loss(pair)
    except ValueError as error:
        refused = str(error)
    chosen: dict[str, dict[str, float | None]] = {DRAWN: {}, SAMPLE: {}}
    for words, found in chosen.items():
        for norm in ("l1", "l2"):
            try:
                found[norm] = smallest_epsilon(curves[f"{FINEST}, {words}"], TARGET, norm=norm)
            except ValueError:  # no epsilon of the quick form
                found[norm] = None
    return {
        "people": int(counts.sum()),
        "records": len(records),
        "tree": repr(tree),
        "mean": float(counts.mean()),
        "median": float(np.median(counts)),
        "mean_square": float(np.square(counts.astype(float)).mean()),
        "replicates": options["replicates"],
        "epsilons": list(epsilons),
        "curves": {name: [_plain(one) for one in found] for name, found in curves.items()},
        "chosen": chosen,
        "reported": {
            tree.name(node): float(np.mean(~np.isnan(shown[tree.ancestors(1) == node])))
            for node in range(*tree.level(1).indices(tree.n_nodes))
        },
        "refused": refused,
        "inverse": [_inverse(epsilon) for epsilon in (TABULATED[::6] if quick else TABULATED)],
        "tails": {f"{epsilon:g}": _tail(epsilon) for epsilon in TAILS},
        "audits": _audited(known, streams, 1 if quick else AUDITS, jobs),
    }


def _plain(found: Accuracy) -> dict[str, Any]:
    norms = {
        name: {
            "error": norm.error,
            "deviation": float(norm.errors.std(ddof=1)) / norm.scale,
            "accuracy": norm.accuracy,
            "interval": list(norm.interval),
            "expected": norm.expected_accuracy,
        }
        for name, norm in (("l1", found.l1), ("l2", found.l2))
    }
    return {"epsilon": found.epsilon, **norms}


def _inverse(epsilon: float) -> dict[str, Any]:
    """Return what 53 bits leave of the noise: how far it reaches, and what one person more or less makes certain."""
    noise = InverseCdf(epsilon)
    law = noise.exact_loss(1)
    return {
        "epsilon": epsilon,
        "reach": noise.reach,
        "holes": int((noise.counts == 0).sum()),
        "witness": law.infinite_mass,
        "delta": law.delta_at(epsilon),
        "largest_finite": float(law.loss[-1]),
    }


def _tail(epsilon: float) -> list[list[Any]]:
    """Return distance from 0 in units of 1/epsilon, and the largest loss there in epsilons: one row a unit."""
    noise = InverseCdf(epsilon)
    mass = noise.logpmf(np.arange(noise.reach + 2))
    with np.errstate(invalid="ignore"):
        loss = np.abs(np.diff(mass)) / epsilon
    loss[np.isnan(loss)] = 0.0  # neither of two numbers occurs
    unit = np.floor(np.arange(loss.size) * epsilon).astype(int)
    return [[int(at), plain_number(float(loss[unit == at].max()))] for at in np.unique(unit)]


def _audited(
    known: dict[str, Any], streams: list[np.random.SeedSequence], times: int, jobs: int
) -> dict[str, dict[str, Any]]:
    tasks = [
        delayed(_audit)(*known[name], SIZES[name], stream)
        for name, own in zip(SIZES, streams, strict=False)
        for stream in own.spawn(times)
    ]
    found = run_all(tasks, jobs, "audits of bottom-up")
    rows = {}
    for place, (name, (mechanism, pair)) in enumerate(known.items()):
        law = mechanism.exact_loss(pair)
        assert law is not None  # one count changes
        rows[name] = {
            "pair": pair.label,
            "size": SIZES[name],
            "promise": mechanism.claim.epsilon,
            "loss": plain_number(max(law.maximum, law.reverse().maximum)),
            "runs": found[place * times : (place + 1) * times],
        }
    return rows


def _audit(mechanism: Any, pair: NeighborPair, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    return kept(measure_loss(mechanism, pair, mechanism.claim, size=size, confidence=CONFIDENCE, rng=stream))


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold curves against expectations, the inverse against its ends, and audits against the known bugs."""
    for name, rows in numbers["curves"].items():
        for norm in ("l1", "l2"):
            accuracies = [row[norm]["accuracy"] for row in rows]
            drawn = "calibrated" not in name
            words = f"{name}, {norm}: accuracy {'rises to' if drawn else 'ends at'} {accuracies[-1]:.6f}, expected 1"
            rises = accuracies == sorted(accuracies) or not drawn  # where noise exceeds a state, raking multiplies it
            yield Check(words, accuracies[-1] > 0.999 and rises)
            scores = [_score(row[norm], numbers["replicates"]) for row in rows if row[norm]["expected"] is not None]
            if scores:  # 114 scores in all, near normal: beyond 5 by chance in fewer than one run of 10,000
                yield between(f"{name}, {norm}: largest deviation from theory", max(scores), 0, 5)
    for words in (DRAWN, SAMPLE):
        high = [row for row in numbers["curves"][f"{FINEST}, {words}"] if row["l1"]["accuracy"] > 0]
        above = all(row["l2"]["accuracy"] > row["l1"]["accuracy"] for row in high)
        yield Check(f"{FINEST}, {words}: L2 accuracy is above L1 accuracy wherever the latter is above 0", above)
    whole, sample = (_missing(numbers, words) for words in (DRAWN, SAMPLE))
    factor = np.median(sample / whole)
    yield between("L1 accuracy missing to one, weighted sample / whole count", float(factor), 5.5, 6.5)
    exact = [row["l1"]["error"] for row in numbers["curves"]["state, calibrated"]]
    yield between("error of calibrated state totals (people)", max(exact), 0, 1e-6)
    shares = list(numbers["reported"].values())
    yield Check("only the state whose published total is another one is not reported", shares == [1, 1, 0, 1, 1])
    yield Check("a pair that changes a published total is refused", "not covered" in numbers["refused"])
    for row in numbers["inverse"]:
        target = 54 * np.log(2) - np.log1p(np.exp(-row["epsilon"]))
        yield near(f"epsilon {row['epsilon']:g}: reach", row["reach"], np.floor(target / row["epsilon"]), 0.5)
        yield Check(f"epsilon {row['epsilon']:g}: a witness of {row['witness']:.1e}", row["witness"] >= 2**-53)
    for name, row in numbers["audits"].items():
        yield all_or_none(name, row["runs"], violated=name != EXACT)
        yield none_above(name, row["runs"], float(row["loss"]))
    exact_loss = float(numbers["audits"][EXACT]["loss"])
    yield near("exact sampler, exact loss", exact_loss, numbers["audits"][EXACT]["promise"], 1e-9)


def _missing(numbers: dict[str, Any], words: str) -> NDArray[np.float64]:
    """Return what is missing of L1 accuracy to one, at each epsilon."""
    return np.array([1 - row["l1"]["accuracy"] for row in numbers["curves"][f"{FINEST}, {words}"]])


def _score(norm: dict[str, Any], replicates: int) -> float:
    return float(abs(norm["accuracy"] - norm["expected"]) / (norm["deviation"] / np.sqrt(replicates)))


def finding(numbers: dict[str, Any]) -> str:
    """Return where the curves reach their target, and whether the noise keeps the promise."""
    takes = _takes(numbers, DRAWN)
    exact, last = numbers["audits"][EXACT], numbers["inverse"][-1]
    return (
        f"{TARGET:.0%} of L1 accuracy takes {takes['l1']}, of L2 {takes['l2']} (one person added or removed). The "
        f"exact sampler keeps its promise: {violations(exact['runs'])} of {len(exact['runs'])} audits report a "
        "violation, at confidence 1 - 1e-6. The authors' inverse distribution function breaks it if its uniforms have "
        f"53 bits, which they do not say: noise ends at {last['reach']} at epsilon {last['epsilon']:g}."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return what audits of the samplers and of known bugs find."""
    rows = []
    for name, row in numbers["audits"].items():
        times = f"{violations(row['runs'])} of {len(row['runs'])}"
        times += ", by a witness" if row["runs"][0]["witness"] else ""
        loss = "infinite" if np.isinf(float(row["loss"])) else f"{float(row['loss']):g}"
        rows.append((name, f"{row['size']:,}", loss, down(median(row["runs"])), times))
    sample, factor = _takes(numbers, SAMPLE), np.median(_missing(numbers, SAMPLE) / _missing(numbers, DRAWN))
    return MarkdownTable(
        ("of epsilon 1", "runs", "exact loss", "lower bound", "audits that report a violation"),
        rows,
        f"In a weighted sample of {numbers['records']:,} records noise leaves {factor:.2f} times as much missing to "
        f"one, and {TARGET:.0%} takes {sample['l1']} (L1) and {sample['l2']} (L2). A few large counts decide L2: the "
        f"mean is {numbers['mean']:,.0f}, the median {numbers['median']:,.0f}.",
    )


def _takes(numbers: dict[str, Any], words: str) -> dict[str, str]:
    """Return the epsilon that the target takes, by norm."""
    found = numbers["chosen"][words]
    return {name: "more than was tried" if one is None else f"epsilon {one:g}" for name, one in found.items()}


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw the curves to choose epsilon by, what is missing to one by level, and the ends of the inverse."""
    figure, axes = page(10.2, 3, 2)
    for part, ax in zip(
        (_draw_curves, _draw_missing, _draw_reach, _draw_witness, _draw_tails), spread(axes), strict=True
    ):
        part(ax, numbers)
    for ax in axes[:4]:
        ax.set_xscale("log")
        ax.set_xlabel("$\\varepsilon$, one person added or removed (log scale)")
    return figure


def _draw_curves(ax: Axes, numbers: dict[str, Any]) -> None:
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
    ax.set_ylim(0, 1.04)
    ax.set_xlim(1e-5, 1e-1)
    ax.set_ylabel("accuracy: 1 - error / error of zeros")
    handles = [
        *ax.get_legend_handles_labels()[0],
        bar_key("band: 95% of releases", GRAY),
        line_key("exact expectation", color=GRAY),
    ]
    head(ax, "(a) to choose $\\varepsilon$ by: county x race", handles, ncols=2, x=-0.15)


def _draw_missing(ax: Axes, numbers: dict[str, Any]) -> None:
    for name, (color, _, marker) in zip(("county x race", "county", "state"), SERIES, strict=False):
        for words, line, face, size in (("as drawn", "-", color, 3), ("calibrated", ":", "none", 6)):
            rows = numbers["curves"][f"{name}, {words}"]
            gap = np.array([1 - row["l1"]["accuracy"] for row in rows])
            if (gap < 1e-9).all():  # state totals that are published
                continue
            style: dict[str, Any] = {"color": color, "linestyle": line, "markersize": size, "markerfacecolor": face}
            label = name if words == "as drawn" else None
            ax.plot([row["epsilon"] for row in rows], gap, marker=marker, label=label, **style)
    ax.set_yscale("log")
    ax.set_ylabel("1 - L1 accuracy (log scale)")
    gray: dict[str, Any] = {"color": GRAY, "marker": "o"}
    handles = [
        *ax.get_legend_handles_labels()[0],
        line_key("as drawn", **gray, markersize=3),
        line_key("calibrated", **gray, linestyle=":", markersize=6, markerfacecolor="none"),
    ]
    head(ax, "(b) by level (calibrated states: exact)", handles, ncols=2)


def _draw_reach(ax: Axes, numbers: dict[str, Any]) -> None:
    rows = numbers["inverse"]
    ax.plot([row["epsilon"] for row in rows], [row["reach"] for row in rows], color=GREEN, marker="o", markersize=4)
    ax.set_yscale("log")
    ax.set_ylabel("largest noise from 53 bits\n(people, log scale)")
    ax.set_title("(c) inverse CDF: where the noise ends")


def _draw_witness(ax: Axes, numbers: dict[str, Any]) -> None:
    rows = numbers["inverse"]
    ax.plot([row["epsilon"] for row in rows], [row["witness"] for row in rows], color=GREEN, marker="o", markersize=4)
    ax.set_yscale("log")
    ax.set_ylabel("probability of an impossible\noutput (log scale)")
    ax.set_title("(d) inverse CDF: chance of a proof")


def _draw_tails(ax: Axes, numbers: dict[str, Any]) -> None:
    top = max(float(loss) for rows in numbers["tails"].values() for _, loss in rows if np.isfinite(float(loss))) * 3
    for row, ((epsilon, rows), (color, dashes, marker)) in enumerate(
        zip(numbers["tails"].items(), SERIES, strict=False)
    ):
        at, loss = np.array([(place, float(value)) for place, value in rows]).T
        finite = np.isfinite(loss)
        style: dict[str, Any] = {"color": color, "marker": marker, "markersize": 3.5}
        ax.plot(at[finite], loss[finite], linestyle=dashes, label=f"$\\varepsilon$ = {epsilon}", **style)
        ax.plot(at[~finite], np.full((~finite).sum(), top * 1.6**row), linestyle="none", **style)
    ax.axhspan(top / 1.5, top * 5, color=GRAY, alpha=0.15, linewidth=0, zorder=0)
    ax.axhline(1, **PROMISE, zorder=0)
    ax.set_yscale("log")
    ax.set_ylim(0.6, top * 5)
    ax.set_xlabel("distance of the output from the count, $|k|\\,\\varepsilon$")
    ax.set_ylabel("largest exact loss there,\nin $\\varepsilon$ (log scale)")
    handles = [
        *ax.get_legend_handles_labels()[0],
        line_key("promise", **PROMISE),
        bar_key("gray band: infinite", "#DDDDDD"),
    ]
    head(ax, "(e) inverse distribution function (CDF): loss in the tails", handles, ncols=5)
