"""The cases on which sequential tests of others were published: means with noise whose scale depends on the data.

The databases are {0} and {0, 1}. The noise is for a mean of n values, 2 / (n epsilon), and n is their true number, or a
noisy one of at least 1e-12: then only the mean itself has the true number. `published.json` says where this is from.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

from audit import NeighborPair
from audit.bounds.betting import staked
from audit.claims import Claim, parse_claim
from experiments.bounds.early import BUDGETS, expected_runs, needed_runs, refuted_after
from experiments.experiment import Checks, Numbers, between, published

PAIR = NeighborPair.declared(np.zeros(1), np.array([0.0, 1.0]), "add_remove")
LEAST = 1e-12  # noisy number of values
NAMES = {"true": "noise by the true number", "noisy": "noise by a noisy number"}
MMD = "MMD (2025), printed"
LAWS: dict[str, Any] = {"Gaussian": stats.norm, "Laplace": stats.laplace}
EDGES = np.sinh(np.linspace(-37, 37, 4001))  # of bins; the largest noise is near 1e15
MIDDLES = (np.arange(1000) + 0.5) / 1000  # quantiles that stand for the noisy number


def on_printed_cases(audits: int, root: np.random.SeedSequence, parallel: Parallel) -> list[dict[str, Any]]:
    """Audit each case until its promise is refuted; `printed` has runs of others, over both databases."""
    rows = []
    cases = published("sequential tests")
    for case, stream in zip(cases, root.spawn(len(cases)), strict=True):
        law, size, epsilon = case["law"], case["size"], case["epsilon"]
        claim = parse_claim(f"approx:{epsilon},1e-5" if law == "Gaussian" else f"pure:{epsilon}")
        answer = partial(noisy_mean, LAWS[law], size, epsilon)
        results = parallel(delayed(refuted_after)(answer, PAIR, claim, rng) for rng in stream.spawn(audits))
        runs, violated = zip(*results, strict=True)
        printed = {source: 2 * each for source, each in case["printed"].items()}
        words = f"{law} {NAMES[size]}, epsilon {epsilon:g}"
        limit = _known_law(LAWS[law], size, epsilon, claim)
        rows.append({"law": words, "runs": runs, "violated": violated, "limit": limit, "printed": printed})
    return rows


def noisy_mean(
    law: Any, size: str, epsilon: float, values: NDArray[np.float64], runs: int, rng: np.random.Generator, /
) -> NDArray[np.float64]:
    """Return the mean of values with noise, `runs` times."""
    number: Any = len(values)
    if size == "noisy":
        number = np.maximum(LEAST, number + law.rvs(scale=2 / epsilon, size=runs, random_state=rng))
    noise = law.rvs(scale=1, size=runs, random_state=rng) * 2 / (number * epsilon)
    return np.asarray(np.round(values.mean() + noise, 6))


def _known_law(law: Any, size: str, epsilon: float, claim: Claim) -> float:
    """Return the fewest expected runs of a bet on the likelihood ratio that is repeated, as in `early`; on a grid."""
    masses = []
    for number, mean in ((1, 0.0), (2, 0.5)):
        counted = np.maximum(LEAST, number + law.ppf(MIDDLES, scale=2 / epsilon)) if size == "noisy" else [number]
        above = np.mean([law.cdf(EDGES - mean, scale=2 / (n * epsilon)) for n in counted], axis=0)
        masses.append(np.diff(above, prepend=0.0, append=1.0))
    x, y = masses
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(y / x)  # NaN where neither has mass
    ends = np.append(np.quantile(np.abs(ratio[x + y > 1e-6]), np.linspace(0, 0.99, 40)), 0.0)
    pairs = [(low, high) for low in ends for high in ends]
    shares = [
        ((y[ratio > b].sum() + x[ratio < -a].sum()) / 2, (x[ratio > b].sum() + y[ratio < -a].sum()) / 2)
        for a, b in pairs
    ]
    bets = np.array([(2.0, right, wrong, 0, 0, 0) for right, wrong in shares])
    return expected_runs(float(staked(bets, [claim.lines()])[-1].max()))


def check_printed(numbers: Numbers) -> Checks:
    if not numbers["quick"]:
        for row in numbers["published"]:
            most = row["printed"].get(MMD, math.inf) if NAMES["true"] in row["law"] else BUDGETS[-1]
            if row["printed"]:
                yield between(f"{row['law']}: median of runs", needed_runs(row, 0.5), 0, most)


def fewer_than_printed(numbers: Numbers) -> tuple[int, int]:
    """Return on how many cases half of our audits take fewer runs than MMD's printed mean, and how many there are."""
    rows = [row for row in numbers["published"] if MMD in row["printed"]]
    return sum(needed_runs(row, 0.5) < row["printed"][MMD] for row in rows), len(rows)
