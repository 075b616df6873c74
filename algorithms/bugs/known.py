"""The known bugs of small mechanisms, each on databases that show it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from algorithms.bugs import budget, census, randomness, records, sums
from algorithms.bugs.bug import KnownBug
from algorithms.hierarchy import Hierarchy

__all__ = ["KNOWN"]

ONE_MORE, INHABITED = ([50, 3], [51, 3]), ([5, 0], [5, 1])  # counts on either database
MOVED, FEW, AREAS = ([50, 3], [49, 4]), ([0, 3], [1, 3]), [3, 2, 0, 5, 4, 1, 1]
DEEPER, FULL = ([6, *AREAS], [7, *AREAS]), ([20000, 12767], [20000, 12768])
SPENDER, MISSING = ([3, 1, 6], [3, 1, 6, 40]), ([30.0, 1.0, 6.0], [30.0, 1.0, 6.0, math.nan])  # values of people
HALVES, ONES = [0.5] * 16, [1.0] * 2040
CODES, PAGES = [0, 0, 1, 3, 3, 3], list(range(2 * records.PAGE))  # of records
NOBODY = np.zeros((0, 2), np.int64)
DEEP, FLAT = Hierarchy.regular(2, 3), Hierarchy.regular(2, 1)

# By name: the mechanism, two databases, what to look for, and with how many runs.
_CASES: dict[str, tuple[Any, tuple[Any, Any], str, int]] = {
    "notebook": (budget.NotebookGDPC(0.9), ONE_MORE, "the first count is 50 or less", 1_000),
    "half-noise": (budget.HalfNoiseGDPC(1.0), ONE_MORE, "the first count is 50 or less", 2_000),
    "moved-person": (
        budget.MovedPersonGDPC(1.0),
        MOVED,
        "the first count is 50 or more and the second 3 or less",
        4_000,
    ),
    "published-twice": (budget.PublishedTwice(1.0), ONE_MORE, "the first count is 50 or less in both tables", 4_000),
    "square-root-shares": (
        budget.SquareRootShares(1.0, DEEP),
        DEEPER,
        "the counts of all areas of the person are high, or all are low",
        20_000,
    ),
    "forgotten-level": (
        budget.ForgottenLevelRDPC(1.0, FLAT, output="all"),
        ([50, 30], [51, 30]),
        "the total is high and so is the share of the first area",
        20_000,
    ),
    "unperturbed-zeros": (census.UnperturbedZeros(1.0), INHABITED, "the second count is not 0", 1_000),
    "observed-domain": (census.ObservedDomain(1.0), INHABITED, "the second row is there", 500),
    "skipped-zeros": (census.SkippedZeros(1.0), INHABITED, "the total is far from 5", 50_000),
    "empty-area-exit": (census.EmptyAreaExit(1.0), ([0, 0], [1, 0]), "a count is not 0", 1_000),
    "silent-invariant": (census.SilentInvariant(1.0), ONE_MORE, "the sum of both counts is 53", 10_000),
    "edited-to-truth": (census.EditedToTruth(1.0, slack=2), ONE_MORE, "the first count is 48, or it is 53", 4_000),
    "retried-negatives": (census.RetriedNegatives(0.5), FEW, "the first count is 0", 100_000),
    "public-size": (census.PublicSize(1.0), ([3, 4], [3, 5]), "a share is not a multiple of 1/8", 500),
    "poisson-scale": (census.PoissonScale(1.0), INHABITED, "the second count is not 0", 1_000),
    "raw-data-summed": (sums.RawDataSummed(1.0), SPENDER, "the sum is 10 or less", 1_000),
    "bounds-from-data": (sums.BoundsFromData(1.0), SPENDER, "the sum is far from 10", 1_000),
    "nan-survives-clipping": (sums.NaNSurvivesClipping(1.0), MISSING, "the sum is 0", 500),
    "reordered-sum": (sums.ReorderedSum(0.5), (HALVES + ONES, ONES + HALVES[:-1]), "the sum is 2048 or more", 500),
    "overflowing-total": (sums.OverflowingTotal(1.0), FULL, "the total is negative", 500),
    "rounded-first": (sums.RoundedFirst(0.5), ([2, 8], [3, 8]), "the first count is 0 or less", 1_000),
    "laplace-holes": (sums.LaplaceHoles(1.0, bits=16), ([10], [11]), "the last bits are those of a sum with 10", 2_000),
    "seeded-by-data": (randomness.SeededByData(1.0), ONE_MORE, "the one table of this database", 500),
    "seeded-by-time": (randomness.SeededByTime(1.0), ONE_MORE, "the table that this second gives", 2_000),
    "one-stream": (randomness.OneStream(1.0), ONE_MORE, "the table that this seed gives", 2_000),
    "forked-areas": (randomness.ForkedAreas(1.0), ONE_MORE, "the two counts differ by 47", 10_000),
    "cached-noise": (randomness.CachedNoise(1.0), ([7, 7], [7, 8]), "the two counts are equal", 10_000),
    "talkative-error": (census.TalkativeError(1.0), ([1], [2]), "the message that names a count of 1", 20_000),
    "quality-gate": (census.QualityGate(1.0), ([50], [51]), "the count is 48, or it is 53", 10_000),
    "page-by-page": (records.PageByPage(1.0), (PAGES, [*PAGES, 3]), "the number of pages", 500),
    "raises-on-empty": (records.RaisesOnEmpty(1.0), (NOBODY, [[1, 4]]), "there is no exception", 500),
    "imputes-on-demand": (records.ImputesOnDemand(1.0), (CODES, [*CODES, -1]), "the running time", 500),
    "no-limit-no-noise": (records.NoLimitNoNoise(1.0), (CODES, [*CODES, 4]), "the sum", 500),
}
LOSSES = {  # those that are finite, with the bugs that lose so much
    -math.log(0.1): "notebook",
    2.0: "half-noise moved-person published-twice square-root-shares forgotten-level",
    0.5 + math.log(1 + math.exp(-0.5) - math.exp(-1.0)): "retried-negatives",
    4.0: "raw-data-summed reordered-sum",
    65535.0: "overflowing-total",
    2.5: "rounded-first",
}
FOUND = {  # not by counts
    "witness": "laplace-holes",
    "refused": "seeded-by-time one-stream",
    "replay": "page-by-page raises-on-empty imputes-on-demand no-limit-no-noise",
}
REPLAYED = {  # kinds of violation that a replay shows, with the bugs that it shows so
    "loss": "notebook half-noise published-twice forgotten-level",
    "sensitivity": "moved-person square-root-shares rounded-first raw-data-summed reordered-sum overflowing-total",
    "output": "unperturbed-zeros observed-domain silent-invariant edited-to-truth public-size talkative-error "
    "no-limit-no-noise",
    "shape": "skipped-zeros cached-noise",
    "number": "empty-area-exit poisson-scale page-by-page",
    "law": "bounds-from-data",
    "nan": "nan-survives-clipping",
    "seed": "seeded-by-data seeded-by-time one-stream",
    "exception": "quality-gate raises-on-empty",
    "time": "imputes-on-demand",
}
SOURCES = {  # of those that are not our own; the package has them in full
    "Flaxman 2019, replication notebook": "notebook",
    "Ding et al. 2018": "half-noise",
    "Flaxman 2019, section 2.2": "moved-person forgotten-level",
    "Korolova et al. 2009; opendp/smartnoise-sdk#309": "observed-domain",
    "google/differential-privacy#5": "empty-area-exit",
    "Holohan et al. 2020": "retried-negatives",
    "Nissim et al. 2007": "poisson-scale",
    "Cebere et al. 2026; opendp/smartnoise-sdk#622": "raw-data-summed",
    "Holohan et al. 2019; IBM/differential-privacy-library#90": "bounds-from-data",
    "google/differential-privacy#405; opendp/opendp#2935": "nan-survives-clipping",
    "Casacuberta et al. 2022": "reordered-sum overflowing-total",
    "our own; Casacuberta et al. 2022": "rounded-first",
    "Mironov 2012": "laplace-holes",
    "Thompson et al. 2013": "seeded-by-data",
    "CWE-337": "seeded-by-time",
    "CWE-336": "one-stream",
    "numpy/numpy#9650": "forked-areas",
    "our own; Gadotti et al. 2019": "cached-noise",
    "our own; CWE-209": "talkative-error",
    "Cebere et al. 2026": "page-by-page no-limit-no-noise",
    "our own; Cebere et al. 2026": "raises-on-empty",
    "Haeberlen et al. 2011": "imputes-on-demand",
}


def _value(name: str, groups: dict[Any, str], default: Any) -> Any:
    return next((value for value, names in groups.items() if name in names.split()), default)


KNOWN = {
    name: KnownBug(
        mechanism,
        *databases,
        relation=mechanism.claim.relation,
        loss=_value(name, LOSSES, math.inf),
        event=event,
        size=size,
        found=_value(name, FOUND, "counts"),
        replayed=_value(name, REPLAYED, ""),
        source=_value(name, SOURCES, "our own"),
    )
    for name, (mechanism, databases, event, size) in _CASES.items()
}
