"""Zero-concentrated privacy: a Renyi divergence, from a held-out likelihood ratio or one registered region."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

from audit.attacks.selection import CLIPS, Family, select_weights
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ZCDP, Claim
from audit.events import Event, Statistic
from audit.methods.method import POWER, Basis, Counts, Floats, Whole, register_method
from audit.methods.regions import NORMAL, RegionMethod
from audit.methods.renyi_power import divergence_power

__all__ = ["Renyi"]

LARGEST_RATIOS = (0.5, *CLIPS)  # log-likelihood ratios that are told apart where nothing is confused
BINS = 64  # into which the likelihood ratio of normal laws is cut


@register_method(ZCDP)
class Renyi(RegionMethod):
    """A divergence between the laws on the two databases is at least what a score in bins, or a region, shows of it."""

    bound = "variational Renyi divergence"
    theorem = (
        "A Renyi divergence between the laws of the release on the two databases is bounded from below by a score that "
        "was fixed before counting, or by the two probabilities of a region."
    )
    counted = "a score in bins, or a region of outputs"
    sources = ("birrell", "maurer", "bun", "clopper")
    rules = ("threshold", "cell", "weights")
    simulated = True
    largest = 30.0**2 / 2

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> Event:
        """Return the likelihood-ratio estimate that promises the largest bound, from scores on selection runs."""
        return select_weights(statistics, x, y, counting=counting, confidence=self.confidence)

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the rho of one step that the counts of bins, or of regions, prove."""
        if "weights" not in basis:
            return super().lower(counts, basis)
        weights, confidence = np.asarray(basis["weights"], float), self.confidence_at(basis)
        on_x, on_y = (np.array([counts[side].get(f"bin {k}", 0) for k in range(weights.size)]) for side in "xy")
        likely, other = (on_y, on_x) if basis["toward"] == "y" else (on_x, on_y)
        pair = renyi_variational_lower(weights, likely, other, order=basis["order"], confidence=confidence)
        return pair / self.distance**2

    def region_lower(self, met: int, runs: int, met_other: int, runs_other: int, *, confidence: float) -> float:
        """Return the rho of one step that a region proves."""
        return renyi_event_lower(met, runs, met_other, runs_other, confidence=confidence) / self.distance**2

    def ceiling(self, counts: Counts, basis: Basis) -> float:
        """Return the largest bound that as many runs could prove, by this event or a better one."""
        better = [
            {"weights": [-ratio, ratio], "order": 1.0, "toward": "y", "look": basis["look"]} for ratio in LARGEST_RATIOS
        ]
        return max(super(Renyi, self).ceiling(counts, event) for event in (basis, *better))

    def never_confused(self, counts: Counts, basis: Basis) -> Counts:
        """Return the counts of as many runs, each of which speaks as strongly as can be for its own database."""
        if "weights" not in basis:
            return super().never_confused(counts, basis)
        extremes = {"x": np.argmin, "y": np.argmax} if basis["toward"] == "y" else {"x": np.argmax, "y": np.argmin}
        return {
            side: {"runs": counts[side]["runs"], f"bin {extreme(basis['weights'])}": counts[side]["runs"]}
            for side, extreme in extremes.items()
        }

    def detectable(self, counts: Counts, basis: Basis) -> float:
        """Return the smallest rho of normal laws that as many runs call a violation with power 0.8."""
        if "weights" not in basis:
            return super().detectable(counts, basis)
        runs_x, runs_y = counts["x"]["runs"], counts["y"]["runs"]
        if min(runs_x, runs_y) < 2:
            return math.inf
        rho, confidence = self.claim.budget, self.confidence_at(basis)

        def surplus(log_rho: float) -> float:
            shift = self.distance * math.sqrt(2 * math.exp(log_rho))
            best = max(_shown(shift, ratio, runs_x, runs_y, confidence) for ratio in LARGEST_RATIOS)
            return best / self.distance**2 - rho

        low, high = math.log(rho), math.log(rho) + 0.1
        while surplus(high) <= 0:
            low, high = high, high + 0.5
            if high > math.log(rho) + 12:
                return math.inf
        return math.exp(float(optimize.brentq(surplus, low, high, xtol=1e-4)) if surplus(low) < 0 else low)

    def power(self, truth: Claim, choosing: Whole, counting: Whole, *, share: float = 1.0) -> Floats:
        """Return how often a likelihood ratio shows that two normal laws diverge more than promised."""
        promise, shift = self.claim.group(self.distance).budget, truth.group(self.distance).shift
        sizes = zip(choosing.tolist(), counting.tolist(), strict=True)
        return np.array([divergence_power(promise, shift, *size, self.confidence) for size in sizes])

    def assumed(self, share: float) -> str:
        """Return the mechanism whose power `power` returns, in words."""
        return NORMAL

    def searched(self, families: tuple[Family, ...]) -> str:
        """Return the kinds of rules that are searched, in words."""
        return "likelihood ratios"

    def check(self, counts: Counts, basis: Basis) -> None:
        """Refuse counts that no event with this basis can have.

        Raises
        ------
        ValueError
            If a run is in no bin, or regions have other counts than the rule allows.
        """
        if "weights" not in basis:
            super().check(counts, basis)
            return
        bins = {f"bin {k}" for k in range(len(basis["weights"]))}
        beyond = [key for side in counts.values() for key in side if key.startswith("bin ") and key not in bins]
        if beyond or any(sum(side.values()) != 2 * side["runs"] for side in counts.values()):
            raise ValueError(f"every run must be in one of {len(bins)} bins, got {beyond[:3] or counts}")


def _shown(shift: float, ratio: float, runs_x: int, runs_y: int, confidence: float) -> float:
    """Bound on the divergence of two normal laws that chance leaves with power 0.8, of their expected counts."""
    edges = np.linspace(-ratio, ratio, BINS - 1)
    values = np.concatenate([[-ratio], (edges[:-1] + edges[1:]) / 2, [ratio]])
    laws = [
        np.diff(special.ndtr((edges - mean) / shift), prepend=0.0, append=1.0)
        for mean in (shift**2 / 2, -(shift**2) / 2)
    ]
    counts = [np.rint(law * runs).astype(np.int64) for law, runs in zip(laws, (runs_y, runs_x), strict=True)]
    shown = renyi_variational_lower(values, *counts, order=1.0, confidence=confidence)
    means = [float(values @ laws[0]), float(np.exp(values) @ laws[1])]
    errors = [
        math.sqrt(max(0.0, float(values**2 @ laws[0]) - means[0] ** 2) / runs_y),
        math.sqrt(max(0.0, float(np.exp(2 * values) @ laws[1]) - means[1] ** 2) / runs_x) / means[1],
    ]
    return shown - float(special.ndtri(POWER)) * math.hypot(*errors)
