"""Four kinds of promise, each measured by its own bound; and a bound of one kind read as if it were of another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special, stats

from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from audit.bounds.discrete_gaussian import discrete_gaussian_lower
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.renyi import renyi_event_lower
from audit.claims import ApproxDP, Claim, GaussianDP
from audit.events import Event
from audit.exact import LossDistribution
from audit.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results.plots import BLACK, BLUE, ORANGE, new_figure
from experiments.experiment import Check, between, near

QUESTION = "How close to the truth are the bounds of the four kinds of promise, and may one be read as another?"
EXPECTATION = (
    "Pure and Gaussian privacy nearly all of the truth, zero-concentrated nine tenths, approximate three quarters at "
    "delta 0.001, and above the truth in a twentieth of the audits at most. Half the square of a Gaussian bound is no "
    "bound on rho: at rho 0.5 it accuses sound noise nearly always."
)

COUNT = 100
EPSILON, RHO, DELTA = 1.0, 0.5, 1e-3
SIZE, CONFIDENCE = 200_000, 0.95  # of each bound: how often it misses is a part of the answer
CLAIMS = {  # the words for each, and the least median of bound / truth
    "pure": ("pure: $\\epsilon$\n(geometric noise)", 0.98),
    "gaussian": ("Gaussian: $\\mu$\n(discrete Gaussian noise)", 0.97),
    "zcdp": ("zero-concentrated: $\\rho$\n(same noise)", 0.9),
    "approx": (f"approximate: $\\epsilon$ at $\\delta$ = {DELTA:g}\n(same noise)", 0.75),
}
MEDIANS = {"converted": 0.530, "family": 0.487}
READINGS = {
    "converted": "$\\mu^2 / 2$ of a Gaussian\nbound: no bound",
    "family": "least $\\rho$ of a discrete\nGaussian (one event)",
    "variational": "Renyi divergence,\nvariational",
    "event": "Renyi divergence\nof one event",
}


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit geometric and discrete Gaussian noise, each in 100 seeds (quick: 20) of 200,000 runs."""
    pair = NeighborPair.add_people([COUNT], 0)
    geometric, gaussian = GDPC(EPSILON), GaussianCounts(RHO)
    law = gaussian.exact_loss(pair)
    assert law is not None  # one person changes one count
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
    tail_p, tail_q = (
        np.logaddexp.accumulate(log_mass) for log_mass in (law.log_p[order], (law.log_p - law.loss)[order])
    )
    half = tail_q <= math.log(0.5)  # the other half mirrors it
    return float(np.max(special.ndtri_exp(tail_p[half]) - special.ndtri_exp(tail_q[half])))


def _rho_of_one_event(
    mechanism: GaussianCounts, pair: NeighborPair, streams: list[np.random.SeedSequence], jobs: int
) -> dict[str, list[float]]:
    """Return what may be read off the same counts of one event, registered beforehand: 100,000 runs a database."""
    event = Event.at_least(0, COUNT + 1)
    readings: dict[str, list[float]] = {"converted": [], "family": [], "event": []}
    for rng in streams:
        counts = measure_loss(
            mechanism, pair, mechanism.claim, event=event, size=SIZE, confidence=CONFIDENCE, rng=rng, n_jobs=jobs
        ).counts
        x, y = counts["x"], counts["y"]
        seen = (y["guessed_y"], y["runs"], x["guessed_y"], x["runs"])
        readings["converted"].append(float(gaussian_lower(*seen, confidence=CONFIDENCE)) ** 2 / 2)
        readings["family"].append(discrete_gaussian_lower(*seen, confidence=CONFIDENCE))
        readings["event"].append(renyi_event_lower(*seen, confidence=CONFIDENCE))
    return readings


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold medians against the truth, and count the bounds that are above it."""
    found = []
    for case, (_, least) in CLAIMS.items():
        shares = np.array(numbers["rows"][case]["bounds"]) / numbers["rows"][case]["exact"]
        found.append(between(f"{case}: median bound / truth", float(np.median(shares)), least, 1.0))
        found.append(_misses(case, shares > 1))
    found.append(near("gaussian: exact mu of noise with rho 0.5", numbers["rows"]["gaussian"]["exact"], 1.04576, 1e-4))
    rho = {name: np.array(bounds) for name, bounds in numbers["rho"].items()}
    # Medians of an earlier simulation of the same size, and 4 standard errors of the median of 20.
    found += [near(f"{name}: median", float(np.median(rho[name])), middle, 0.007) for name, middle in MEDIANS.items()]
    found += [_misses(name, rho[name] > RHO) for name in ("family", "event")]
    accused = float(np.mean(rho["converted"] > RHO))
    found.append(between("converted: share of audits that accuse sound noise", accused, 0.9, 1.0))
    return found


def _misses(what: str, above: NDArray[np.bool_]) -> Check:
    """Expect no more bounds above the truth than exact bounds have with a probability of 1 - 1e-4."""
    misses, most = int(np.sum(above)), int(stats.binom.ppf(1 - 1e-4, above.size, 1 - CONFIDENCE))
    return Check(f"{what}: {misses} of {above.size} bounds above the truth, expected at most {most}", misses <= most)


def finding(numbers: dict[str, Any]) -> str:
    """Return medians, and how often the wrong reading accuses."""
    shares = {case: np.median(row["bounds"]) / row["exact"] for case, row in numbers["rows"].items()}
    exact = {case: row["exact"] for case, row in numbers["rows"].items()}
    rho = {name: np.array(bounds) for name, bounds in numbers["rho"].items()}
    return (
        f"One person added to one count (add/remove), medians of {rho['event'].size} audits of {SIZE:,} runs at 95% "
        "over the truth, from events of the likelihood ratio: "
        f"epsilon of geometric noise {shares['pure']:.3f}; of discrete Gaussian noise with rho {RHO:g} mu "
        f"{shares['gaussian']:.3f} (of {exact['gaussian']:.3f}: on whole numbers a little more than the 1 of a normal "
        f"law), rho {shares['zcdp']:.3f}, and epsilon at delta {DELTA:g} {shares['approx']:.3f} (of "
        f"{exact['approx']:.2f}, where rho promises {numbers['rows']['approx']['claim']['epsilon']:.2f}). "
        "A bound of one kind is no bound of another: half the square of a Gaussian bound on the event of one more "
        f"person is {np.median(rho['converted']):.3f} in the median and exceeds a true rho of {RHO:g} in "
        f"{np.mean(rho['converted'] > RHO):.0%} of the audits. The same counts within the family of the discrete "
        f"Gaussian give {np.median(rho['family']):.3f}, the Renyi divergence of that event "
        f"{np.median(rho['event']):.3f}."
    )


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw every bound: of the four promises over their truth, and the readings of rho."""
    figure, (left, right) = new_figure(9.6, 3.6, 1, 2)
    rows = numbers["rows"]
    shares = {words: np.array(rows[case]["bounds"]) / rows[case]["exact"] for case, (words, _) in CLAIMS.items()}
    _strips(left, shares, 1.0, wrong=())
    left.set_xlim(0.7, 1.06)
    left.set_xlabel("bound / truth, one person added")
    left.set_title("(a) each promise by its own bound (95%)")
    rho = numbers["rho"] | {"variational": rows["zcdp"]["bounds"]}
    readings = {words: np.array(rho[name]) for name, words in READINGS.items()}
    _strips(right, readings, RHO, wrong=(READINGS["converted"],))
    right.set_xlim(0.3, 0.58)
    right.set_xlabel("$\\rho$, one person added")
    right.set_title("(b) discrete Gaussian: one is no bound on $\\rho$")
    return figure


def _strips(ax: Axes, rows: dict[str, NDArray[np.float64]], truth: float, *, wrong: tuple[str, ...]) -> None:
    """Draw a row of points for each set of bounds, with its median."""
    ax.axvline(truth, color=BLACK, linewidth=1.2, linestyle="--", zorder=0)
    ax.text(truth, -0.62, " truth", va="center", fontsize=8)
    for place, (words, bounds) in enumerate(rows.items()):
        heights = place + np.linspace(-0.26, 0.26, bounds.size)
        color, marker = (ORANGE, "x") if words in wrong else (BLUE, "o")
        ax.plot(bounds, heights, marker=marker, markersize=2.5, color=color, alpha=0.7, linestyle="none")
        middle = float(np.median(bounds))
        ax.plot([middle] * 2, [place - 0.34, place + 0.34], color=BLACK, linewidth=1.8)
        ax.text(
            middle,
            place + 0.37,
            f"{middle:.3f}",
            ha="center",
            va="top",
            fontsize=8,
            bbox={"facecolor": "white", "linewidth": 0, "pad": 0.5},
        )
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.3, -0.8)
