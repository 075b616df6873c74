"""All that determines the power of an audit, except the number of runs and the true loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audit.claims import Claim
from audit.methods.method import FEW, Method, method_for
from audit.methods.one_run import OneRun
from audit.sampling.probes import LEAST, probe_runs

__all__ = ["MOST", "MOST_CANARIES", "Design", "Plan"]

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]
Design = Literal["coins", "outputs", "one_run"]
MOST, MOST_CANARIES = 10**12, 10**6  # largest numbers of runs and of canaries that are planned


@dataclass(frozen=True)
class Plan:
    """The arguments of `plan_size`, checked; power is computed by the method that the audit will use."""

    claim: Claim
    confidence: float
    distance: int
    selection: float
    share: float
    design: Design

    @cached_property
    def method(self) -> Method:
        """How the promise is measured."""
        if self.design == "one_run":
            return OneRun(self.claim, self.distance, self.confidence)
        return method_for(self.claim, self.distance, self.confidence)

    @property
    def step(self) -> int:
        """Difference of consecutive sizes: given outputs come in pairs."""
        return 2 if self.design == "outputs" else 1

    @cached_property
    def least(self) -> int:
        """Fewest runs that choose and count an event."""
        if self.design == "one_run":
            return 1
        size = 2 * self.step if self.design == "outputs" else LEAST
        if self.selection > 0:  # shares are rounded: start where no smaller size is enough
            size = max(size, int(7.5 / self.selection), int((self.step + 0.5) / (1 - self.selection)))
            size = size // self.step * self.step
        while True:
            choosing, counting = (int(runs) for runs in self.split(np.array(size)))
            if (self.selection == 0 or choosing >= 8) and counting // 2 >= self.step:
                return size
            size += self.step

    @property
    def most(self) -> int:
        """Largest number of runs, or canaries, that is planned."""
        return MOST_CANARIES if self.design == "one_run" else MOST

    def split(self, sizes: IntArray) -> tuple[IntArray, IntArray]:
        """Return how many runs choose, and how many count, over both databases."""
        if self.design == "one_run":
            return np.zeros_like(sizes), sizes
        choosing = np.rint(sizes // self.step * self.step * self.selection).astype(np.int64)
        if self.design == "outputs":
            return choosing // 2 * 2, 2 * (sizes // 2 - choosing // 2)
        choosing = np.maximum(choosing, probes := probe_runs(sizes))
        return (choosing, sizes - choosing) if self.selection > 0 else (np.zeros_like(sizes), sizes - probes)

    def power(self, size: int, violation: float) -> float:
        """Return the probability to detect a loss of `violation` times the promise with `size` runs."""
        return float(self.powers(np.array([size]), violation)[0])

    def powers(self, sizes: IntArray, violation: float) -> Floats:
        """Return the probability to detect the violation at each of several sizes, shape (m,)."""
        truth = self.claim.at(violation * self.claim.budget)
        choosing, counting = self.split(sizes)
        if self.design != "outputs":
            powers = self.method.power(truth, choosing, counting, share=self.share)
        else:
            each = counting // 2
            powers = self.method.power(truth, choosing, self.method.given_counting(each))
            if np.any(few := each < FEW):
                method = method_for(self.claim, self.distance, self.confidence, fewest=0)
                powers[few] = method.power(truth, choosing[few], method.given_counting(each[few]))
        return np.minimum(powers, 1.0)  # sums may round above 1
