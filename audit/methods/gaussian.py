"""Gaussian privacy: exact limits for the two probabilities of a region, on the trade-off curve of normal laws."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from audit.attacks.selection import Shifts, rate_candidates, select_events, tabulated
from audit.bounds.binomial import binomial_pmf, binomial_quantile, binomial_sf
from audit.bounds.gaussian import gaussian_lower
from audit.bounds.limits import clopper_pearson_upper
from audit.claims import Claim, GaussianDP
from audit.events import cell
from audit.methods.method import Floats, IntArray, register_method
from audit.methods.regions import NORMAL, SEED, RegionMethod, counting_ratio, nearby

__all__ = ["Gaussian"]

REGIONS = 64  # times that a choice is simulated
FEW = 512  # selection runs above which the distribution of thresholds no longer changes
STEPS = (1.1, 2.0)  # grid ratios of shifts and of selection runs: near ones share a simulation
NODES = 65  # quantiles that represent the counts on one database, if there are more counts


@register_method(GaussianDP)
class Gaussian(RegionMethod):
    """The two probabilities of a region are placed on the trade-off curve of two normal laws."""

    bound = "Gaussian trade-off of a Clopper-Pearson rectangle"
    theorem = (
        "The probability of a region is bounded from below on one database and from above on the other, both exactly; "
        "the two are placed on the trade-off curve of two normal laws."
    )
    sources = ("dong", "nasr", "clopper")
    simulated = True
    largest = 30.0
    planned = NORMAL

    def region_lower(self, hits: int, runs: int, hits_other: int, runs_other: int, *, confidence: float) -> float:
        """Return the mu of one step that a region proves."""
        return float(gaussian_lower(hits, runs, hits_other, runs_other, confidence=confidence)) / self.distance

    def power(self, truth: Claim, choosing: IntArray, counting: IntArray, *, share: float = 1.0) -> Floats:
        """Return the probability that one region shows a larger shift between two normal laws than promised."""
        mu, shift = (claim.group(self.distance).shift for claim in (self.claim, truth))
        sizes = zip(choosing.tolist(), counting.tolist(), strict=True)
        return np.array([region_power(mu, shift, *size, self.main_confidence(choosing)) for size in sizes])


def region_power(mu: float, shift: float, choosing: int, counting: int, confidence: float) -> float:
    """Return the power of a region, chosen on `choosing` runs, to show a shift above `mu` on `counting` others."""
    # Regions are chosen as in an audit, on simulated runs. As runs grow, the random error of a rating and the margin
    # taken off in the tail shrink at the same rate: thresholds scatter as widely after a million runs.
    chosen: tuple[tuple[float, bool, bool], ...] = ((0.0, True, True),)
    if choosing:
        near, runs = nearby(shift, choosing, STEPS)
        chosen = _chosen_regions(near, min(FEW, runs), counting_ratio(counting, choosing), confidence)
    threshold, upward, for_y = (np.array(column)[:, None] for column in zip(*chosen, strict=True))
    above_x, above_y = (special.ndtr(side * shift / 2 - threshold) for side in (-1, 1))
    on_x, on_y = (np.where(upward, above, 1 - above) for above in (above_x, above_y))
    likely, rare = np.where(for_y, on_y, on_x), np.where(for_y, on_x, on_y)
    runs_x, runs_y = counting - counting // 2, counting // 2
    runs_likely, runs_rare = np.where(for_y, runs_y, runs_x), np.where(for_y, runs_x, runs_y)

    if max(runs_x, runs_y) < NODES:
        hits = np.arange(max(runs_x, runs_y) + 1.0)[None]
        chance = binomial_pmf(hits, runs_rare, rare)
    else:
        hits = binomial_quantile(1 - (np.arange(NODES) + 0.5) / NODES, runs_rare, rare)
        chance = np.full(hits.shape, 1 / NODES)
    hits = np.minimum(hits, runs_rare)
    highest = clopper_pearson_upper(hits, runs_rare, confidence=1 - (1 - confidence) / 2)
    promised = special.ndtr(special.ndtri(highest) + mu)
    needed = binomial_quantile((1 - confidence) / 2, runs_likely, promised) + 1
    return float(np.mean(np.sum(chance * binomial_sf(needed - 1, runs_likely, likely), axis=1)))


@lru_cache(maxsize=64)
def _chosen_regions(shift: float, runs: int, ratio: float, confidence: float) -> tuple[tuple[float, bool, bool], ...]:
    """Return thresholds of regions, whether they are above, and likelier on `y`; `ratio` times `runs` will count."""
    rng = np.random.default_rng(SEED)
    chosen = []
    for noise in rng.standard_normal((REGIONS, 2, FEW // 2)):
        x, y = noise[:, : runs // 2] + np.array([-shift / 2, shift / 2])[:, None]
        shifts = Shifts(max(1, round(ratio * runs)), confidence)
        tables = tabulated((cell(),), x[:, None], y[:, None], ("threshold",))
        rule: Any = select_events(rate_candidates(tables, shifts), shifts)[0].rule
        upward = bool(np.isfinite(rule.high))
        chosen.append((rule.high if upward else rule.low, upward, upward == (rule.above == "y")))
    return tuple(chosen)
