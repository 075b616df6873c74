"""Zero-concentrated privacy: a Renyi divergence, from a held-out likelihood ratio or one registered region."""

from __future__ import annotations

import numpy as np

from audit.attacks.movement import glancing_runs
from audit.attacks.selection import Family, Guessing, proposals, select_events, select_weights, tabulated
from audit.attacks.selection.weights import CLIPS, ORDERS
from audit.bounds.renyi import renyi_event_lower, renyi_variational_lower
from audit.claims import ZCDP, Claim
from audit.events import Event, Statistic
from audit.methods.method import Basis, Counts, Floats, Whole, register_method
from audit.methods.regions import NORMAL, RegionMethod
from audit.methods.renyi_power import LARGEST, detectable_divergence, divergence_power

__all__ = ["Renyi"]

LARGEST_RATIOS = (0.5, *CLIPS)  # log-likelihood ratios that are told apart where nothing is confused


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
    largest = LARGEST

    def choose(
        self, statistics: tuple[Statistic, ...], x: Floats, y: Floats, *, families: tuple[Family, ...], counting: int
    ) -> list[Event]:
        """Return the likelihood-ratio estimate that promises the largest bound, and the best one-sided event."""
        game = Guessing(counting, self.confidence)
        one_sided = select_events(proposals(tabulated(statistics, x, y, families), game), game)[1:2]
        return [select_weights(statistics, x, y, counting=counting, confidence=self.confidence), *one_sided]

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
            {**basis, "weights": [-ratio, ratio], "order": order, "toward": toward}
            for ratio in LARGEST_RATIOS
            for order in ORDERS
            for toward in "xy"
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

    def detectable(self, counts: Counts, basis: Basis, *, choosing: int = 0) -> float:
        """Return the smallest rho of normal laws that as many runs call a violation with power 0.8."""
        if "weights" not in basis:
            return super().detectable(counts, basis, choosing=choosing)
        promise, (runs_x, runs_y) = self.claim.group(self.distance).budget, (counts[side]["runs"] for side in "xy")
        pair = detectable_divergence(promise, choosing, runs_x, runs_y, self.confidence_at(basis))
        return pair / self.distance**2

    def power(self, truth: Claim, choosing: Whole, counting: Whole, *, share: float = 1.0) -> Floats:
        """Return how often a likelihood ratio shows that two normal laws diverge more than promised."""
        promise, shift = self.claim.group(self.distance).budget, truth.group(self.distance).shift
        learning = [chose - min(chose, glancing_runs(chose)) for chose in choosing.tolist()]
        return np.array(
            [
                divergence_power(promise, shift, runs, (counted // 2,) * 2, self.confidence)
                for runs, counted in zip(learning, counting.tolist(), strict=True)
            ]
        )

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
