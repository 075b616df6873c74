"""The known bugs of small mechanisms, each on databases that show it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from algorithms.bugs import budget, census, randomness, records, sums
from algorithms.bugs.bug import KnownBug
from algorithms.hierarchy import Hierarchy

__all__ = ["KNOWN"]

ONE_MORE, INHABITED = ([50, 3], [51, 3]), ([5, 0], [5, 1])  # counts on x, and on y
MOVED, FEW, AREAS = ([50, 3], [49, 4]), ([0, 3], [1, 3]), [3, 2, 0, 5, 4, 1, 1]
DEEPER, FULL = ([6, *AREAS], [7, *AREAS]), ([20000, 12767], [20000, 12768])
SPENDER, MISSING = ([3, 1, 6], [3, 1, 6, 40]), ([30.0, 1.0, 6.0], [30.0, 1.0, 6.0, math.nan])  # values, one a person
AREA_GROWS, ROUNDED, SINGLE = ([50, 30], [51, 30]), ([2, 8], [3, 8]), ([1], [2])
HALVES, ONES = [0.5] * 16, [1.0] * 2040
ORDERS = HALVES + ONES, ONES + HALVES[:-1]
CODES, PAGES = [0, 0, 1, 3, 3, 3], list(range(2 * records.PAGE))  # values, one a record
NOBODY = np.zeros((0, 2), np.int64)
DEEP, FLAT = Hierarchy.regular(2, 3), Hierarchy.regular(2, 1)
LOW, LEVELS = "the first count is 50 or less", "the counts of all areas of the person are high, or all are low"
MOVE_UNDONE, FAR_ENDS = "the first count is 50 or more and the second 3 or less", "the first count is 48, or it is 53"
SHARE, LAST_BITS = "the total is high and so is the share of the first area", "the last bits are those of a sum with 10"
Q = math.exp(-0.5)  # ratio of the geometric law's probabilities of successive values, at epsilon 0.5
RETRIED = 0.5 + math.log(1 + Q - Q**2)  # the loss of noise that is drawn again

# Mechanism, databases, event, runs, kind of the violation in a replay, and the loss if it is finite.
ROWS: dict[str, tuple[Any, ...]] = {
    "notebook": (budget.NotebookGDPC(0.9), ONE_MORE, LOW, 1_000, "loss", -math.log(0.1)),
    "half-noise": (budget.HalfNoiseGDPC(1.0), ONE_MORE, LOW, 2_000, "loss", 2.0),
    "moved-person": (budget.MovedPersonGDPC(1.0), MOVED, MOVE_UNDONE, 4_000, "sensitivity", 2.0),
    "published-twice": (budget.PublishedTwice(1.0), ONE_MORE, f"{LOW} in both tables", 4_000, "loss", 2.0),
    "square-root-shares": (budget.SquareRootShares(1.0, DEEP), DEEPER, LEVELS, 20_000, "sensitivity", 2.0),
    "forgotten-level": (budget.ForgottenLevelRDPC(1.0, FLAT, output="all"), AREA_GROWS, SHARE, 20_000, "loss", 2.0),
    "unperturbed-zeros": (census.UnperturbedZeros(1.0), INHABITED, "the second count is not 0", 1_000, "output"),
    "observed-domain": (census.ObservedDomain(1.0), INHABITED, "the second row is there", 500, "output"),
    "skipped-zeros": (census.SkippedZeros(1.0), INHABITED, "the total is far from 5", 50_000, "shape"),
    "empty-area-exit": (census.EmptyAreaExit(1.0), ([0, 0], [1, 0]), "a count is not 0", 1_000, "number"),
    "silent-invariant": (census.SilentInvariant(1.0), ONE_MORE, "the sum of both counts is 53", 10_000, "output"),
    "edited-to-truth": (census.EditedToTruth(1.0, slack=2), ONE_MORE, FAR_ENDS, 4_000, "output"),
    "retried-negatives": (census.RetriedNegatives(0.5), FEW, "the first count is 0", 100_000, "", RETRIED),
    "public-size": (census.PublicSize(1.0), ([3, 4], [3, 5]), "a share is not a multiple of 1/8", 500, "output"),
    "poisson-scale": (census.PoissonScale(1.0), INHABITED, "the second count is not 0", 1_000, "number"),
    "raw-data-summed": (sums.RawDataSummed(1.0), SPENDER, "the sum is 10 or less", 1_000, "sensitivity", 4.0),
    "bounds-from-data": (sums.BoundsFromData(1.0), SPENDER, "the sum is far from 10", 1_000, "law"),
    "nan-survives-clipping": (sums.NaNSurvivesClipping(1.0), MISSING, "the sum is 0", 500, "nan"),
    "reordered-sum": (sums.ReorderedSum(0.5), ORDERS, "the sum is 2048 or more", 500, "sensitivity", 4.0),
    "overflowing-total": (sums.OverflowingTotal(1.0), FULL, "the total is negative", 500, "sensitivity", 65535.0),
    "rounded-first": (sums.RoundedFirst(0.5), ROUNDED, "the first count is 0 or less", 1_000, "sensitivity", 2.5),
    "laplace-holes": (sums.LaplaceHoles(1.0, bits=16), ([10], [11]), LAST_BITS, 2_000, ""),
    "seeded-by-data": (randomness.SeededByData(1.0), ONE_MORE, "the one table of this database", 500, "seed"),
    "seeded-by-time": (randomness.SeededByTime(1.0), ONE_MORE, "the table that this second gives", 2_000, "seed"),
    "one-stream": (randomness.OneStream(1.0), ONE_MORE, "the table that this seed gives", 2_000, "seed"),
    "forked-areas": (randomness.ForkedAreas(1.0), ONE_MORE, "the two counts differ by 47", 10_000, ""),
    "cached-noise": (randomness.CachedNoise(1.0), ([7, 7], [7, 8]), "the two counts are equal", 10_000, "shape"),
    "talkative-error": (census.TalkativeError(1.0), SINGLE, "the message that names a count of 1", 20_000, "output"),
    "quality-gate": (census.QualityGate(1.0), ([50], [51]), "the count is 48, or it is 53", 10_000, "exception"),
    "page-by-page": (records.PageByPage(1.0), (PAGES, [*PAGES, 3]), "the number of pages", 500, "number"),
    "raises-on-empty": (records.RaisesOnEmpty(1.0), (NOBODY, [[1, 4]]), "there is no exception", 500, "exception"),
    "imputes-on-demand": (records.ImputesOnDemand(1.0), (CODES, [*CODES, -1]), "the running time", 500, "time"),
    "no-limit-no-noise": (records.NoLimitNoNoise(1.0), (CODES, [*CODES, 4]), "the sum", 500, "output"),
}
METHODS: dict[str, Any] = {  # that find a bug, if counting runs does not
    **{"laplace-holes": "witness", "seeded-by-time": "refused", "one-stream": "refused"},
    **dict.fromkeys(("page-by-page", "raises-on-empty", "imputes-on-demand", "no-limit-no-noise"), "replay"),
}
KNOWN = {
    name: KnownBug(mechanism, *pair, *rest, found=METHODS.get(name, "counts"))
    for name, (mechanism, pair, *rest) in ROWS.items()
}
