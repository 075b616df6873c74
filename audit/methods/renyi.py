"""Zero-concentrated privacy: a Renyi divergence, from a held-out likelihood ratio or one registered region."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from audit.attacks import novelty
from audit.attacks.selection import Family, Guessing, rate_candidates, select_events, select_weights, tabulated
from audit.attacks.selection.weights import CLIPS, ORDERS, chosen_weights
from audit.bounds.renyi import BLOCKS, TINY, moments, renyi_event_lower, renyi_variational_lower, usual_lower
from audit.claims import ZCDP, Claim
from audit.events import Event, Side, Statistic
from audit.methods.method import (
    CLOSE,
    LEAST_EXCESS,
    POWER,
    Basis,
    Counts,
    Floats,
    IntArray,
    apart,
    crossing,
    register_method,
)
from audit.methods.regions import NORMAL, SEED, RegionMethod, counting_ratio, nearby

__all__ = ["Renyi"]

LARGEST_RATIOS = (0.5, *CLIPS)  # log-likelihood ratios that the largest possible bound may use
WEIGHTS, FEWER = 1000, 400  # times that a choice is simulated for a plan, and for a minimum detectable loss
LEAST_RHO = 1e-12  # smaller ones are rounding errors of a bound
LARGEST = 30.0**2 / 2  # rho of a pair beyond which guesses are never wrong
TOGETHER = 100  # choices of weights at once: few enough for the cache of a processor
STEPS = (1.02, 1.1)  # grid ratios of shifts and of selection runs: near ones share a simulation
MANY = 100_000  # selection runs that stand for a known likelihood ratio
TAIL, MIDDLE = 16, 64  # bins of a score in either tail and between


@register_method(ZCDP)
class Renyi(RegionMethod):
    """A score in bins, or a region, gives a lower bound on a divergence between the laws on the two databases."""

    bound = "variational Renyi divergence"
    theorem = (
        "A Renyi divergence between the laws of the release on the two databases is bounded from below by a score that "
        "was fixed before counting, or by the two probabilities of a region."
    )
    counted = "a score in bins, or a region of outputs"
    sources = ("birrell", "waudby", "bun", "clopper")
    rules = ("threshold", "cell", "weights")
    simulated = True
    largest = LARGEST
    planned = NORMAL

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Return the likelihood-ratio estimate with the largest expected bound, and the best one-sided event."""
        game = Guessing(counting, self.confidence)
        one_sided = select_events(rate_candidates(tabulated(statistics, x, y, families), game), game)[1:2]
        return [select_weights(statistics, x, y, counting=counting, confidence=self.confidence), *one_sided]

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the rho of one step that the counts of bins, or of regions, prove."""
        if "weights" not in basis:
            return super().lower(counts, basis)
        weights, confidence = np.asarray(basis["weights"], float), self.confidence_at(basis)
        on_x, on_y = (np.array([counts[side].get(f"bin {k}", 0) for k in range(weights.size)]) for side in "xy")
        likely, other = (on_y, on_x) if basis["toward"] == "y" else (on_x, on_y)
        order, lots = basis["order"], basis.get("lots", 0)
        pair = renyi_variational_lower(weights, likely, other, order=order, confidence=confidence, lots=lots)
        return pair / self.distance**2

    def region_lower(self, hits: int, runs: int, hits_other: int, runs_other: int, *, confidence: float) -> float:
        """Return the rho of one step that a region proves."""
        return renyi_event_lower(hits, runs, hits_other, runs_other, confidence=confidence) / self.distance**2

    def ceiling(self, counts: Counts, basis: Basis) -> float:
        """Return the largest bound that as many runs could prove, by this event or a better one."""
        better: list[Basis] = [
            basis | {"weights": [-ratio, ratio], "order": 1.0, "toward": toward}
            for ratio in LARGEST_RATIOS
            for toward in get_args(Side)
        ]
        most = max(super(Renyi, self).ceiling(counts, event) for event in (basis, *better))
        return max(most, self.lower(counts, basis))  # of few runs lots may be lucky

    def never_confused(self, counts: Counts, basis: Basis) -> Counts:
        """Return the counts of as many runs, if each is in the bin that most favors its own database."""
        if "weights" not in basis:
            return super().never_confused(counts, basis)
        extremes = {"x": np.argmin, "y": np.argmax} if basis["toward"] == "y" else {"x": np.argmax, "y": np.argmin}
        return {
            side: {"runs": counts[side]["runs"], f"bin {extreme(basis['weights'])}": counts[side]["runs"]}
            for side, extreme in extremes.items()
        }

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest rho of normal laws that as many runs detect with power 0.8."""
        if "weights" not in basis:
            return super().detectable(counts, basis, choosing=choosing)
        promise, (runs_x, runs_y) = self.claim.group(self.distance).budget, (counts[side]["runs"] for side in "xy")
        pair = detectable_divergence(promise, choosing, runs_x, runs_y, self.confidence_at(basis))
        return pair / self.distance**2

    def power(self, truth: Claim, choosing: IntArray, counting: IntArray, *, share: float = 1.0) -> Floats:
        """Return the probability that a likelihood ratio shows a larger divergence of two normal laws than promised."""
        promise, shift = self.claim.group(self.distance).budget, truth.group(self.distance).shift
        sizes = zip(choosing.tolist(), counting.tolist(), strict=True)
        confidence = self.main_confidence(choosing)
        return np.array([divergence_power(promise, shift, chose, (n // 2,) * 2, confidence) for chose, n in sizes])

    def searched(self, families: tuple[Family, ...]) -> str:
        """Return the kinds of rules that are searched, in words."""
        return "likelihood ratios"

    def check(self, counts: Counts, basis: Basis) -> None:
        """Refuse counts where a run is in no bin, or regions have other counts than the rule allows."""
        if "weights" not in basis:
            super().check(counts, basis)
            return
        bins = {f"bin {k}" for k in range(len(basis["weights"]))}
        beyond = [key for side in counts.values() for key in side if key.startswith("bin ") and key not in bins]
        if beyond or any(sum(side.values()) != 2 * side["runs"] for side in counts.values()):
            raise ValueError(f"every run must be in one of {len(bins)} bins, got {beyond[:3] or counts}")


def divergence_power(
    rho: float, shift: float, choosing: int, runs: tuple[int, int], confidence: float, *, times: int = WEIGHTS
) -> float:
    """Return the power of a likelihood ratio that selection runs have chosen to show a divergence of more than rho."""
    # `select_weights` is simulated on many sets (`times`) of runs at once. Bounds on fresh `runs` are taken as normal.
    if min(runs) < 2:
        return 0.0
    if choosing := choosing - min(int(novelty.SHARE * choosing), novelty.MOST):  # those teach attacks
        near, many = nearby(shift, choosing, STEPS)
        ratio = counting_ratio(2 * min(runs), choosing)
        edges, weights, order, toward_y = _weights(near, many, ratio, confidence, times)
    else:
        edges, center = _bins(shift, MANY)
        exact = np.stack([np.clip(center * shift, -clip, clip) for clip in CLIPS])
        weights, order = np.tile(exact, (len(ORDERS), 1)), np.repeat(ORDERS, len(CLIPS))[:, None]
        toward_y = np.ones(order.shape, bool)
    law_x, law_y = _laws(edges, shift)
    likely, other = np.where(toward_y, law_y, law_x), np.where(toward_y, law_x, law_y)
    runs_likely, runs_other = (np.where(toward_y[:, 0], *sides) for sides in (runs[::-1], runs))
    powers = _weights_power(rho, weights, order, likely, other, runs_likely, runs_other, confidence)
    return float(powers.mean() if choosing else powers.max())


@lru_cache(maxsize=256)
def detectable_divergence(rho: float, choosing: int, runs_x: int, runs_y: int, confidence: float) -> float:
    """Return the least rho of two normal laws that is shown to exceed `rho` with power 0.8; infinite if none is."""

    def excess(log_excess: float, choosing: int) -> float:
        shift = math.sqrt(2 * (rho + math.exp(log_excess)))
        return apart(divergence_power(rho, shift, choosing, (runs_x, runs_y), confidence, times=FEWER), POWER)

    least = max(LEAST_EXCESS * rho, LEAST_RHO)
    bottom, top = math.log(least), math.log(max(LARGEST - rho, least))
    log_excess = crossing(lambda at: excess(at, 0), min(math.log(max(rho, least)), top), bottom, top, CLOSE)
    if choosing and log_excess < math.inf:
        log_excess = crossing(lambda at: excess(at, choosing), log_excess, bottom, top, CLOSE)
    return rho + math.exp(log_excess)


def _laws(edges: Floats, shift: float) -> tuple[Floats, Floats]:
    """Return the probabilities of bins on `x` and on `y`; scores are about the middle between the two laws."""
    on_x, on_y = (np.diff(special.ndtr(edges + side * shift / 2)) for side in (1, -1))
    return on_x, on_y


@lru_cache(maxsize=16)
def _weights(
    shift: float, choosing: int, ratio: float, confidence: float, times: int
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return edges of bins and, for each simulated choice, weights of the bins, their order, and whether toward `y`."""
    edges, center = _bins(shift, choosing)
    laws = _laws(edges, shift)
    rng = np.random.default_rng(SEED)
    fit, held = ([rng.multinomial(max(1, choosing // 4), law, times) for law in laws] for _ in range(2))
    counting, parts = max(2, round(ratio * choosing / 2)), []
    for start in range(0, times, TOGETHER):
        (fit_x, fit_y), (held_x, held_y) = ([one[start : start + TOGETHER] for one in two] for two in (fit, held))
        parts.append(chosen_weights(center, (fit_x, fit_y), (held_x, held_y), counting, confidence)[:3])
    weights, order, toward_y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return edges, weights, order, toward_y


def _bins(shift: float, runs: int) -> tuple[Floats, Floats]:
    """Return edges that cut the mixture of both laws, finer in both tails, and the mean score of each bin."""
    tail = np.geomspace(1 / runs, 1 / MIDDLE, TAIL)
    levels = np.unique(np.concatenate([tail, np.linspace(0, 1, MIDDLE + 1)[1:-1], 1 - tail]))
    reach = 8 + shift / 2
    scores = np.linspace(-reach, reach, 8001)
    mixture = (special.ndtr(scores - shift / 2) + special.ndtr(scores + shift / 2)) / 2
    inner = np.unique(np.interp(levels, mixture, scores).round(6))  # between laws far apart there is nothing to cut
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    mass, moment = np.zeros(inner.size + 1), np.zeros(inner.size + 1)
    for mean in (-shift / 2, shift / 2):
        share = np.diff(special.ndtr(edges - mean))
        mass += share
        moment += mean * share - np.diff(np.exp(-np.square(edges - mean) / 2) / math.sqrt(2 * math.pi))
    return edges, np.divide(moment, mass, out=np.zeros_like(mass), where=mass > 0)  # any value for an empty bin


def _weights_power(
    rho: float,
    weights: Floats,
    order: Floats,
    likely: Floats,
    other: Floats,
    runs_likely: ArrayLike,
    runs_other: ArrayLike,
    confidence: float,
) -> Floats:
    """Return the power of each row of weights, at its order, to show more than `rho`; laws have a last axis of bins."""
    order, centered = order.reshape(-1, 1), weights - weights.max(axis=1, keepdims=True)
    tilted = np.where(order == 1, centered, np.exp((order - 1) * centered))
    sides = moments(likely, tilted), moments(other, np.exp(order * centered))
    # As many runs as blocks are left out: of few runs, the first blocks teach little.
    runs = [np.maximum(np.subtract(side, BLOCKS), TINY) for side in (runs_likely, runs_other)]
    middle, deviation = usual_lower(order[:, 0], *sides, tilted.min(axis=1), (runs[0], runs[1]), 1 - confidence)
    with np.errstate(over="ignore"):  # if the promise is far above the bound
        return np.asarray(special.ndtr((middle - rho) / np.maximum(deviation, 1e-150)))
