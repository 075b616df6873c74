"""Post-processing of a noisy release to eight published tables: nonnegative counts, possible averages, intervals.

Only the released counts and variances are read, never the persons, so by the post-processing property of differential
privacy this spends no budget. Results are Bayesian **estimates** under a flat prior on possible values. The intervals
cover errors of the noise only, not of truncation to `tau` persons or of census coverage. They have 90% posterior
probability, so their coverage is 90% only on average over that prior. If the noise is large, they hardly ever cover the
count of a cell without people, or a total of many small cells. `interval_coverage` is the exact coverage for a cell. An
interval around a noisy count, or a sum of them, from its variance has no such bias.

**Counts** (PH2, PH3, PH4, PH6, PH7). Given a noisy ``y`` with variance parameter ``v``, the true count is ``k`` with
probability proportional to ``exp(-(k - y)**2 / (2 v))``, ``k = 0, 1, 2, ...``: the exact posterior under discrete
Gaussian noise, a normal law truncated at 0 on whole numbers. The law of a total is the convolution of those of its
cells. If more than 65,536 whole numbers are possible, the law is computed on a coarser lattice of about that size.

**Averages** (PH1, PH5, PH8). Numerators and denominator ``D`` are independent and normal (the noise of the presets has
a standard deviation of at least 41, so its discreteness does not matter), restricted to ``D >= 1``, nonnegative parts,
and a total from ``D`` (PH5: ``2 D``) to ``cap D``; see `ratios`. In PH1 and PH5 the two parts share a denominator and
have a joint law, so the averages of the parts add up to that of the total. In PH8 each of the three averages has its
own numerator and denominator; those of the total are the sums over owners and renters.

Source: Sexton et al., 2024, section 6.4.2.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from algorithms.noise import DiscreteGaussian
from algorithms.phsafe.postprocessing.ratios import ratio_law, shared_ratio_laws
from algorithms.phsafe.tables import DERIVED, PUBLISHED, QUERIES
from algorithms.release.frames import Frame

__all__ = ["COUNTS", "Z_MARGIN", "caps", "interval_coverage", "postprocess", "totals_outside"]

Floats = NDArray[np.float64]
Key = tuple[str, ...]
Cells = Mapping[str, tuple[float, float]]  # noisy count and variance of every cell
Law = tuple[int, int, float, Floats]  # first value and step of a lattice, mean, and cdf there

COUNTS = {name: QUERIES[name] for name in ("PH2", "PH3", "PH4", "PH6", "PH7")}
AVERAGES = {"PH1": 1, "PH5": 2, "PH8": 1}  # fewest persons that a household or family can have
MEASURED = {name: tuple(DERIVED[name][1] if name in DERIVED else QUERIES[name].cells) for name in PUBLISHED}
GROUP = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
NOISE = "Discrete Gaussian"

LEAST_VARIANCE = 1e-10  # used in place of a variance of 0
LARGEST = 2**53  # float64 represents whole numbers up to this exactly
DEPTH = 37.0  # a law on whole numbers is cut off this many nats below its mode, at 1e-16 of it
SUPPORT = 2**16  # largest number of lattice points of a law
LEVEL = 0.9  # posterior probability of a published interval
Z_MARGIN = 1.645  # 90% of the noise is within this many standard deviations


def caps(tau: Mapping[str, int]) -> dict[str, float]:
    """Return the largest possible averages: the truncation threshold of each numerator."""
    return {table: tau[query] for table, query in (("PH1", "PH1_num"), ("PH5", "PH4"), ("PH8", "PH7"))}


def postprocess(
    tables: Mapping[str, Frame], *, level: float = LEVEL, cap: Mapping[str, float] | float = 10
) -> dict[str, Frame]:
    """Turn the noisy tables of a release into PH1 to PH8, with intervals of posterior probability `level`.

    `cap` is the largest possible average: the truncation threshold of its numerator. Columns are REGION_ID,
    REGION_TYPE, ITERATION_CODE (not in PH2 and PH6), <TABLE>_DATA_CELL, ESTIMATE, LOWER and UPPER, totals included.
    Counts are posterior means, rounded. A total is the sum of its cells; its interval is from the law of the sum.
    Averages are persons per household or family, not rounded; averages without numerator or denominator are omitted.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    caps = dict(cap) if isinstance(cap, Mapping) else dict.fromkeys(AVERAGES, cap)
    for name, least in AVERAGES.items():
        if not least < caps.get(name, math.nan) < math.inf:
            raise ValueError(f"cap of {name} must be above {least} and finite, got {caps.get(name)}")
    for name in tables:
        if name not in MEASURED:
            raise ValueError(f"tables must be among {', '.join(MEASURED)}, got {name}")
    noisy = {name: _read(name, frame) for name, frame in tables.items()}
    tail = (1 - level) / 2
    published = {name: _counts(name, noisy[name], tail) for name in COUNTS if name in noisy}
    for name, least in AVERAGES.items():
        if {f"{name}_num", f"{name}_denom"} <= noisy.keys():
            published[name] = _averages(name, noisy[f"{name}_num"], noisy[f"{name}_denom"], (least, caps[name]), tail)
    return {name: published[name] for name in sorted(published)}


def _read(name: str, frame: Frame) -> dict[Key, dict[str, tuple[float, float]]]:
    keys, cell_column = _columns(name)
    if lacking := {*keys, cell_column, "COUNT", "NOISE_DISTRIBUTION", "VARIANCE"} - set(frame.columns):
        raise ValueError(f"{name} must have the columns of a release, got none called {', '.join(sorted(lacking))}")
    try:
        counts, variances = (np.asarray(frame[column], np.float64) for column in ("COUNT", "VARIANCE"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"COUNT and VARIANCE of {name} must be numbers, got a value that is none: {error}") from None
    noise: NDArray[Any] = np.asarray(frame["NOISE_DISTRIBUTION"], object)
    for rule, values, allowed in (
        ("COUNT of {} must be whole and below 2**53", counts, (np.abs(counts) < LARGEST) & (counts == counts.round())),
        ("VARIANCE of {} must be finite and not negative", variances, (variances >= 0) & (variances < np.inf)),
        (f"NOISE_DISTRIBUTION of {{}} must be {NOISE} to be post-processed", noise, noise == NOISE),
    ):
        if not allowed.all():
            raise ValueError(f"{rule.format(name)}, got {values[~allowed][0]}")
    rows: dict[Key, list[tuple[str, tuple[float, float]]]] = {}
    noisy = zip(counts.tolist(), np.maximum(variances, LEAST_VARIANCE).tolist(), strict=True)
    texts = zip(*([str(value) for value in frame[column]] for column in (cell_column, *keys)), strict=True)
    for (cell, *key), row in zip(texts, noisy, strict=True):
        rows.setdefault(tuple(key), []).append((cell, row))
    for place, group in rows.items():
        if sorted(cells := [cell for cell, _ in group]) != sorted(MEASURED[name]):
            known = ", ".join(MEASURED[name])
            raise ValueError(
                f"{name} must have each of the cells {known} once, got {', '.join(cells)} for {' '.join(place)}"
            )
    return {place: dict(group) for place, group in rows.items()}


def _columns(name: str) -> tuple[tuple[str, ...], str]:
    iterated = name not in COUNTS or COUNTS[name].race is not None
    return GROUP if iterated else GROUP[:2], f"{name}_DATA_CELL"


def _publish(name: str, rows: Sequence[tuple[Any, ...]]) -> Frame:
    keys, cell_column = _columns(name)
    return Frame.from_rows((*keys, cell_column, "ESTIMATE", "LOWER", "UPPER"), rows)


# Counts: laws on whole numbers


def _counts(name: str, groups: Mapping[Key, Cells], tail: float) -> Frame:
    leaves = {cell: (cell,) for cell in MEASURED[name]} | dict(COUNTS[name].totals)
    rows: list[tuple[Any, ...]] = []
    for key, noisy in groups.items():
        laws = {cell: _sum_law([noisy[leaf] for leaf in leaves[cell]]) for cell in sorted(leaves, key=int)}
        for cell, law in laws.items():
            rows.append((*key, cell, sum(round(laws[leaf][2]) for leaf in leaves[cell]), *_ends(law, tail)))
    return _publish(name, rows)


def _ends(law: Law, tail: float) -> tuple[int, int]:
    first, step, _, cdf = law
    low, high = (first + np.searchsorted(cdf, (tail, 1 - tail))) * step
    return int(low), int(high)


@lru_cache(maxsize=1024)
def interval_coverage(truth: int, variance: float) -> float:
    """Return the exact coverage of a cell's interval at a true count; its ends increase with the noisy count."""
    law, tail = DiscreteGaussian(math.sqrt(variance)), (1 - LEVEL) / 2
    reach = math.ceil(12 * law.scale)
    noise = range(-reach, reach + 1)

    def ends(added: int) -> tuple[int, int]:
        return _ends(_sum_law([(float(truth + added), variance)]), tail)

    first = bisect_left(noise, True, key=lambda added: ends(added)[1] >= truth)
    stop = bisect_left(noise, True, key=lambda added: ends(added)[0] > truth)
    return float(np.subtract(*law.sf([first - reach - 1, stop - reach - 1])))


def totals_outside(tables: Mapping[str, Frame], published: Mapping[str, Frame]) -> tuple[int, int]:
    """Return the number of published totals outside the 90% interval of their noisy sum, and the number of totals."""
    outside = []
    for name in COUNTS.keys() & published.keys():
        noisy, totals, (keys, cell_column) = _read(name, tables[name]), COUNTS[name].totals, _columns(name)
        columns = (published[name][column] for column in (*keys, cell_column, "ESTIMATE"))
        for *key, cell, estimate in zip(*columns, strict=True):
            if cell in totals:
                y, v = np.sum([noisy[tuple(key)][leaf] for leaf in totals[cell]], axis=0)
                outside.append(abs(estimate - y) > math.ceil(Z_MARGIN * math.sqrt(v)))
    return sum(outside), len(outside)


def _sum_law(cells: Sequence[tuple[float, float]]) -> Law:
    """Return the posterior law of a sum of counts; truncated normals are sub-Gaussian (Chernoff limits the width)."""
    low, high = np.sum([_range(y, v) for y, v in cells], axis=0)
    width = min(high - low, 2 * math.sqrt(2 * DEPTH * sum(v for _, v in cells)))
    step = max(1, math.ceil(width / SUPPORT))
    laws = [_cell_law(y, v, step) for y, v in cells]
    start, mean = sum(law[0] for law in laws), sum(law[1] for law in laws)
    size = next_fast_len(max(math.ceil(width / step) + 2, *(law[2].size for law in laws)), real=True)
    pmf = irfft(np.prod([rfft(law[2], size) for law in laws], axis=0), size)
    first = max(start, int(mean / step) - size // 2)  # the transform is circular: center it on the mean
    cdf = np.cumsum(np.maximum(np.roll(pmf, start - first), 0))
    return first, step, mean, cdf / cdf[-1]


def _range(y: float, v: float) -> tuple[float, float]:
    """Return the interval in which the posterior law of a count is above exp(-DEPTH) times its mode."""
    mode, reach = max(y, 0), 2 * DEPTH * v
    return max(y - math.sqrt(reach), 0), mode + reach / (mode - y + math.sqrt((mode - y) ** 2 + reach))


@lru_cache(maxsize=64)  # a cell is in up to three sums
def _cell_law(y: float, v: float, step: int) -> tuple[int, float, Floats]:
    """Return the posterior law of a count on multiples of `step`: first multiple, mean, and probabilities."""
    low, high = _range(y, v)
    start = math.floor(low / step)
    x = np.arange(start, math.ceil(high / step) + 1) * step
    near = round(max(y, 0) / step) * step
    pmf = np.exp((near - x) * ((x - y) + (near - y)) / (2 * v))
    if start == 0:
        pmf[0] *= (1 + 1 / step) / 2  # represents (step + 1) / 2 whole numbers, the others step
    pmf /= pmf.sum()
    return start, float(pmf @ x), pmf


# Averages: laws of ratios


def _averages(
    name: str,
    numerators: Mapping[Key, Cells],
    denominators: Mapping[Key, Cells],
    bounds: tuple[float, float],
    tail: float,
) -> Frame:
    """Return estimates and intervals of the averages of the groups that have a numerator and a denominator."""
    keys = [key for key in numerators if key in denominators]
    if not keys:
        return _publish(name, [])

    def column(groups: Mapping[Key, Cells], cell: str) -> Floats:
        return np.array([groups[key][cell] for key in keys]).T  # noisy counts, and their variances

    first, second = column(numerators, "2"), column(numerators, "3")
    if name == "PH8":
        owners, renters = column(denominators, "2"), column(denominators, "3")
        tops, bottoms = (first + second, first, second), (owners + renters, owners, renters)
        laws = np.array([ratio_law(bottom, top, bounds, tail) for bottom, top in zip(bottoms, tops, strict=True)])
    else:
        laws = shared_ratio_laws(column(denominators, "1"), (first, second), bounds, tail)
    rows = [(*key, str(cell), *laws[cell - 1, :, row].tolist()) for row, key in enumerate(keys) for cell in (1, 2, 3)]
    return _publish(name, rows)
