"""All known bugs, each with a pair of databases that shows it, what it loses there, and how an audit finds it."""

from __future__ import annotations

import math

import numpy as np

from algorithms.bugs.arithmetic import LaplaceHoles, OverflowingTotal, ReorderedSum, RoundedFirst
from algorithms.bugs.budget import (
    ForgottenLevelRDPC,
    HalfNoiseGDPC,
    MovedPersonGDPC,
    NotebookGDPC,
    PublishedTwice,
    SquareRootShares,
)
from algorithms.bugs.bug import KnownBug
from algorithms.bugs.census import EditedToTruth, PoissonScale, PublicSize, RetriedNegatives, SilentInvariant
from algorithms.bugs.errors import QualityGate, TalkativeError
from algorithms.bugs.randomness import CachedNoise, ForkedAreas, OneStream, SeededByData, SeededByTime
from algorithms.bugs.sums import BoundsFromData, NaNSurvivesClipping, RawDataSummed
from algorithms.bugs.zeros import EmptyAreaExit, ObservedDomain, SkippedZeros, UnperturbedZeros
from algorithms.hierarchy import Hierarchy

__all__ = [
    "BoundsFromData",
    "CachedNoise",
    "EditedToTruth",
    "EmptyAreaExit",
    "ForgottenLevelRDPC",
    "ForkedAreas",
    "HalfNoiseGDPC",
    "KnownBug",
    "LaplaceHoles",
    "MovedPersonGDPC",
    "NaNSurvivesClipping",
    "NotebookGDPC",
    "ObservedDomain",
    "OneStream",
    "OverflowingTotal",
    "PoissonScale",
    "PublicSize",
    "PublishedTwice",
    "QualityGate",
    "RawDataSummed",
    "ReorderedSum",
    "RetriedNegatives",
    "RoundedFirst",
    "SeededByData",
    "SeededByTime",
    "SilentInvariant",
    "SkippedZeros",
    "SquareRootShares",
    "TalkativeError",
    "UnperturbedZeros",
    "known_bugs",
]


def known_bugs() -> dict[str, KnownBug]:
    """Return all known bugs by name.

    Returns
    -------
    dict
        From the bugs of the noise and the budget to those of what else comes out.

    Examples
    --------
    >>> bug = known_bugs()["rounded-first"]
    >>> bug.x, bug.y, bug.mechanism.claim.epsilon, bug.loss
    (array([2, 8]), array([3, 8]), 0.5, 2.5)
    >>> round(bug.mechanism.exact_loss(bug).maximum, 12)
    2.5
    """
    return {
        "notebook": KnownBug(
            NotebookGDPC(0.9),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=-math.log(0.1),
            size=1_000,
            event="the first count is 50 or less",
            source="Flaxman 2019, replication notebook",
        ),
        "half-noise": KnownBug(
            HalfNoiseGDPC(1.0),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=2.0,
            size=2_000,
            event="the first count is 50 or less",
            source="Ding et al. 2018",
        ),
        "moved-person": KnownBug(
            MovedPersonGDPC(1.0),
            np.array([50, 3]),
            np.array([49, 4]),
            relation="replace_one",
            loss=2.0,
            size=4_000,
            event="the first count is 50 or more and the second 3 or less",
            source="Flaxman 2019, section 2.2",
        ),
        "published-twice": KnownBug(
            PublishedTwice(1.0),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=2.0,
            size=4_000,
            event="the first count is 50 or less in both tables",
            source="our own",
        ),
        "square-root-shares": KnownBug(
            SquareRootShares(1.0, Hierarchy.regular(2, 3)),
            np.array([6, 3, 2, 0, 5, 4, 1, 1]),
            np.array([7, 3, 2, 0, 5, 4, 1, 1]),
            loss=2.0,
            size=20_000,
            event="the counts of all areas of the person are high, or all are low",
            source="our own",
        ),
        "forgotten-level": KnownBug(
            ForgottenLevelRDPC(1.0, Hierarchy.regular(2, 1), output="all"),
            np.array([50, 30]),
            np.array([51, 30]),
            loss=2.0,
            size=20_000,
            event="the total is high and so is the share of the first area",
            source="Flaxman 2019, section 2.2",
        ),
        "unperturbed-zeros": KnownBug(
            UnperturbedZeros(1.0),
            np.array([5, 0]),
            np.array([5, 1]),
            loss=math.inf,
            size=1_000,
            event="the second count is not 0",
            source="our own",
        ),
        "observed-domain": KnownBug(
            ObservedDomain(1.0),
            np.array([5, 0]),
            np.array([5, 1]),
            loss=math.inf,
            size=500,
            event="the second row is there",
            source="Korolova et al. 2009; opendp/smartnoise-sdk#309",
        ),
        "skipped-zeros": KnownBug(
            SkippedZeros(1.0),
            np.array([5, 0]),
            np.array([5, 1]),
            loss=math.inf,
            size=50_000,
            event="the total is far from 5",
            source="our own",
        ),
        "empty-area-exit": KnownBug(
            EmptyAreaExit(1.0),
            np.array([0, 0]),
            np.array([1, 0]),
            loss=math.inf,
            size=1_000,
            event="a count is not 0",
            source="google/differential-privacy#5",
        ),
        "silent-invariant": KnownBug(
            SilentInvariant(1.0),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=math.inf,
            size=10_000,
            event="the sum of both counts is 53",
            source="our own",
        ),
        "edited-to-truth": KnownBug(
            EditedToTruth(1.0, slack=2),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=math.inf,
            size=4_000,
            event="the first count is 48, or it is 53",
            source="our own",
        ),
        "retried-negatives": KnownBug(
            RetriedNegatives(0.5),
            np.array([0, 3]),
            np.array([1, 3]),
            loss=0.5 + math.log(1 + math.exp(-0.5) - math.exp(-1.0)),
            size=100_000,
            event="the first count is 0",
            source="Holohan et al. 2020",
        ),
        "public-size": KnownBug(
            PublicSize(1.0),
            np.array([3, 4]),
            np.array([3, 5]),
            loss=math.inf,
            size=500,
            event="a share is not a multiple of 1/8",
            source="our own",
        ),
        "poisson-scale": KnownBug(
            PoissonScale(1.0),
            np.array([5, 0]),
            np.array([5, 1]),
            loss=math.inf,
            size=1_000,
            event="the second count is not 0",
            source="Nissim et al. 2007",
        ),
        "raw-data-summed": KnownBug(
            RawDataSummed(1.0, bound=10),
            np.array([3, 1, 6]),
            np.array([3, 1, 6, 40]),
            loss=4.0,
            size=1_000,
            event="the sum is 10 or less",
            source="Cebere et al. 2026; opendp/smartnoise-sdk#622",
        ),
        "bounds-from-data": KnownBug(
            BoundsFromData(1.0),
            np.array([3, 1, 6]),
            np.array([3, 1, 6, 40]),
            loss=math.inf,
            size=1_000,
            event="the sum is far from 10",
            source="Holohan et al. 2019; IBM/differential-privacy-library#90",
        ),
        "nan-survives-clipping": KnownBug(
            NaNSurvivesClipping(1.0, bound=10),
            np.array([30.0, 1.0, 6.0]),
            np.array([30.0, 1.0, 6.0, math.nan]),
            loss=math.inf,
            size=500,
            event="the sum is 0",
            source="google/differential-privacy#405; opendp/opendp#2935",
        ),
        "reordered-sum": KnownBug(
            ReorderedSum(0.5),
            np.array([0.5] * 16 + [1.0] * 2040),
            np.array([1.0] * 2040 + [0.5] * 15),
            loss=4.0,
            size=500,
            event="the sum is 2048 or more",
            source="Casacuberta et al. 2022",
        ),
        "overflowing-total": KnownBug(
            OverflowingTotal(1.0),
            np.array([20000, 12767]),
            np.array([20000, 12768]),
            loss=65535.0,
            size=500,
            event="the total is negative",
            source="Casacuberta et al. 2022",
        ),
        "rounded-first": KnownBug(
            RoundedFirst(0.5),
            np.array([2, 8]),
            np.array([3, 8]),
            loss=2.5,
            size=1_000,
            event="the first count is 0 or less",
            source="our own; Casacuberta et al. 2022",
        ),
        "laplace-holes": KnownBug(
            LaplaceHoles(1.0, bits=16),
            np.array([10]),
            np.array([11]),
            loss=math.inf,
            size=2_000,
            event="the last bits are those of a sum with 10",
            found="witness",
            source="Mironov 2012",
        ),
        "seeded-by-data": KnownBug(
            SeededByData(1.0),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=math.inf,
            size=500,
            event="the one table of this database",
            source="Thompson et al. 2013",
        ),
        "seeded-by-time": KnownBug(
            SeededByTime(1.0),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=math.inf,
            size=2_000,
            event="the table that this second gives",
            found="refused",
            source="CWE-337",
        ),
        "one-stream": KnownBug(
            OneStream(1.0),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=math.inf,
            size=2_000,
            event="the table that this seed gives",
            found="refused",
            source="CWE-336",
        ),
        "forked-areas": KnownBug(
            ForkedAreas(1.0),
            np.array([50, 3]),
            np.array([51, 3]),
            loss=math.inf,
            size=10_000,
            event="the two counts differ by 47",
            source="numpy/numpy#9650",
        ),
        "cached-noise": KnownBug(
            CachedNoise(1.0),
            np.array([7, 7]),
            np.array([7, 8]),
            loss=math.inf,
            size=10_000,
            event="the two counts are equal",
            source="our own; Gadotti et al. 2019",
        ),
        "talkative-error": KnownBug(
            TalkativeError(1.0),
            np.array([1]),
            np.array([2]),
            loss=math.inf,
            size=20_000,
            event="the message that names a count of 1",
            source="our own; CWE-209",
        ),
        "quality-gate": KnownBug(
            QualityGate(1.0, tolerance=2),
            np.array([50]),
            np.array([51]),
            loss=math.inf,
            size=10_000,
            event="the count is 48, or it is 53",
            source="our own",
        ),
    }
