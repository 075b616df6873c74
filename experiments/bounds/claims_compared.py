"""Four kinds of promise, each measured by its own bound; and a bound of one kind read as if it were of another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit import ApproxDP, Event, GaussianDP, LossDistribution, NeighborPair, measure_loss
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_event_lower
from audit.claims import Claim
from audit.results.plots import BLACK, ESTIMATE, EXACT, GRAY
from experiments.audits import exact_law
from experiments.drawing import CIRCLE, beside, foot, line_key, name_rows, page, strip
from experiments.experiment import Checks, Numbers, between, down, few_misses, near

COUNT = 100
EPSILON, RHO, DELTA = 1.0, 0.5, 1e-3
SIZE, CONFIDENCE = 200_000, 0.95  # of each bound: how often it misses is a part of the answer
CLAIMS = {  # the words for each, and the least median of bound / truth
    "pure": ("$\\epsilon$ of geometric noise", 0.98),
    "gaussian": ("$\\mu$ of discrete Gaussian noise", 0.97),
    "zcdp": ("$\\rho$ of the same noise", 0.9),
    "approx": (f"$\\epsilon$ at $\\delta$ = {DELTA:g} of the same noise", 0.75),
}
READINGS = {
    "converted": "$\\mu^2 / 2$, from the lower bound on $\\mu$",
    "variational": "Renyi divergence of the outputs,\nby its variational form",
    "event": "Renyi divergence of one event",
}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit geometric and discrete Gaussian noise, each in 100 seeds (quick: 20) of 200,000 runs."""
    pair = NeighborPair.add_people([COUNT], 0)
    geometric, gaussian = GDPC(EPSILON), GaussianCounts(RHO)
    law = exact_law(gaussian, pair)
    mu = _exact_mu(law)
    questions: dict[str, tuple[GDPC | GaussianCounts, Claim, float]] = {
        "pure": (geometric, geometric.claim, EPSILON),
        "zcdp": (gaussian, gaussian.claim, RHO),
        "gaussian": (gaussian, GaussianDP(mu), mu),
        "approx": (gaussian, ApproxDP(gaussian.claim.epsilon_at(DELTA), DELTA), law.epsilon_at(DELTA)),
    }
    streams = np.random.SeedSequence(seed).spawn(len(questions) + 1)
    seeds = 20 if quick else 100
    rows = {}
    for stream, (case, (mechanism, claim, exact)) in zip(streams, questions.items(), strict=False):
        bounds = [
            measure_loss(mechanism, pair, claim, size=SIZE, confidence=CONFIDENCE, rng=rng, n_jobs=jobs).measured.budget
            for rng in stream.spawn(seeds)
        ]
        rows[case] = {"claim": claim.to_dict(), "exact": exact, "bounds": bounds}
    return {"rows": rows, "rho": _rho_of_one_event(gaussian, pair, streams[-1].spawn(seeds), jobs)}


def _exact_mu(law: LossDistribution) -> float:
    """Return the least mu of Gaussian privacy of a pair whose losses are symmetric: some upper tail reaches it."""
    order = np.argsort(-law.loss)
    tail_p, tail_q = (np.logaddexp.accumulate(mass[order]) for mass in (law.log_p, law.log_p - law.loss))
    half = tail_q <= math.log(0.5)  # the other half mirrors it
    return float(np.max(special.ndtri_exp(tail_p[half]) - special.ndtri_exp(tail_q[half])))


def _rho_of_one_event(
    mechanism: GaussianCounts, pair: NeighborPair, streams: list[np.random.SeedSequence], jobs: int
) -> dict[str, list[float]]:
    """Return what may be read off the same counts of one event, registered beforehand: 100,000 runs a database."""
    options: dict[str, Any] = {"event": Event.at_least(0, COUNT + 1), "size": SIZE, "confidence": CONFIDENCE}
    readings: dict[str, list[float]] = {"converted": [], "event": []}
    for rng in streams:
        result = measure_loss(mechanism, pair, mechanism.claim, rng=rng, n_jobs=jobs, **options)
        counts = [result.counts[side][key] for side in "yx" for key in ("guessed_y", "runs")]
        readings["converted"].append(float(gaussian_lower(*counts, confidence=CONFIDENCE)) ** 2 / 2)
        readings["event"].append(renyi_event_lower(*counts, confidence=CONFIDENCE))
    return readings


def check(numbers: Numbers) -> Checks:
    for case, (_, least) in CLAIMS.items():
        shares = np.array(numbers["rows"][case]["bounds"]) / numbers["rows"][case]["exact"]
        yield between(f"{case}: median bound / truth", float(np.median(shares)), least, 1.0)
        yield few_misses(case, int(np.sum(shares > 1)), shares.size, CONFIDENCE)
    yield near("gaussian: exact mu of noise with rho 0.5", numbers["rows"]["gaussian"]["exact"], 1.04576, 1e-4)
    rho = {name: np.array(bounds) for name, bounds in numbers["rho"].items()}
    # The median of an earlier simulation of the same size, and 4 standard errors of the median of 20.
    yield near("converted: median", float(np.median(rho["converted"])), 0.530, 0.007)
    yield few_misses("event", int(np.sum(rho["event"] > RHO)), rho["event"].size, CONFIDENCE)
    wrong = float(np.mean(rho["converted"] > RHO))
    yield between("converted: share of audits that call correct noise violated", wrong, 0.9, 1.0)


def facts(numbers: Numbers) -> dict[str, Any]:
    shares = {case: down(np.median(row["bounds"]) / row["exact"]) for case, row in numbers["rows"].items()}
    wrong = np.mean(np.array(numbers["rho"]["converted"]) > RHO)
    words = {"pure": "epsilon", "gaussian": "mu", "zcdp": "rho", "approx": f"epsilon at delta {DELTA:g}"}
    bounds = [(words[case], row["exact"], row["bounds"]) for case, row in numbers["rows"].items()]
    bounds += [
        ("rho, by the divergence of one event", RHO, numbers["rho"]["event"]),
        ("rho, as half the square of mu: no bound", RHO, numbers["rho"]["converted"]),
    ]
    rows = [
        (what, f"{truth:.4g}", down(np.median(own)), f"{np.mean(np.array(own) > truth):.0%}")
        for what, truth, own in bounds
    ]
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (top, below) = page(5.2, 2, 1)
    rows = numbers["rows"]
    shares = {words: np.array(rows[case]["bounds"]) / rows[case]["exact"] for case, (words, _) in CLAIMS.items()}
    _strips(top, shares, 1.0, wrong=())
    top.set_xlabel("lower bound / exact loss of one person added")
    rho = numbers["rho"] | {"variational": rows["zcdp"]["bounds"]}
    readings = {words: np.array(rho[name]) for name, words in READINGS.items()}
    _strips(below, readings, RHO, wrong=(READINGS["converted"],))
    below.set_xlabel("$\\rho$ of one person added")
    audits = len(next(iter(shares.values())))
    handles = [
        line_key(f"lower bounds of {audits} audits at 95%", **CIRCLE, markersize=3),
        line_key("not a bound: above the truth", **ESTIMATE, marker="x", markersize=4, linestyle="none"),
        line_key("median, written beside", color=BLACK, linewidth=1.8),
        line_key("exact loss", **EXACT),
    ]
    top.set_title("(a) the four kinds of promise, each by its own method", x=-0.3)
    below.set_title(f"(b) three readings of one $\\rho$, exactly {RHO:g}: the first is not valid", x=-0.3)
    foot(figure, handles)
    return figure


def _strips(ax: Axes, rows: dict[str, NDArray[np.float64]], truth: float, *, wrong: tuple[str, ...]) -> None:
    ax.axvline(truth, color=GRAY, linewidth=0.8, zorder=0)
    for place, (words, bounds) in enumerate(rows.items()):
        style = ESTIMATE | {"marker": "x"} if words in wrong else {}
        middle = strip(ax, bounds.tolist(), place, 0.26, alpha=0.7, **style)
        ax.plot(truth, place, **EXACT, zorder=5)
        beside(ax, place, f"{middle:.3f}" if words in wrong else down(middle), x=1.01, size=8)
    name_rows(ax, list(rows))
