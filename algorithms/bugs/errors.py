"""Known bugs of what comes out besides the release: errors and their messages.

**Claim.** They promise pure DP with `epsilon` when one person is added or removed, and add two-tailed geometric noise
for a sensitivity of 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.bugs.bug import KnownBug, UnboundedBug, whole
from algorithms.bugs.output_laws import NO_LOSS, changed_counts, table_reach, two_tables
from algorithms.flaxman import GDPC
from algorithms.noise import Rng
from algorithms.noise.counts import ATOMS, Pair, leaf_counts
from audit.exact import LossDistribution, loss_from_logs

__all__ = ["KNOWN", "QualityGate", "TalkativeError"]

KNOWN: dict[str, KnownBug] = {}  # by name


@dataclass(frozen=True)
class TalkativeError(UnboundedBug):
    """Counts released as text; where one becomes negative, an error message takes its place that quotes the true one.

    **Bug.** The message of an error is an output.
    **True loss.** Infinite: a message that names a count is impossible for any other.
    **Source.** Our own; MITRE, CWE-209: Generation of Error Message Containing Sensitive Information.

    Examples
    --------
    >>> release = TalkativeError(0.5)([1], 1000, np.random.default_rng(0))
    >>> str(max(release[:, 0]))
    'error: the count 1 became negative'
    """

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.str_]:
        """Release `counts`, shape (cells,), `size` times over: text, shape (size, cells)."""
        exact = leaf_counts(counts)
        released = GDPC(self.epsilon)(exact, size, rng)
        messages = np.array([f"error: the count {count} became negative" for count in exact])
        return np.where(released < 0, messages, released.astype(np.str_))

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`."""
        law, reach = NO_LOSS, table_reach(self.epsilon)
        for first, second in changed_counts(pair):
            if reach is None or law.loss.size * (max(first, second) + reach) > ATOMS:
                return None
            numbers = np.arange(max(first, second) + reach + 1)
            message_x, message_y = (
                -self.epsilon * (count + 1) - math.log1p(math.exp(-self.epsilon)) for count in (first, second)
            )
            log_p = np.append(self.noise.logpmf(numbers - first), [message_x, -np.inf])
            log_q = np.append(self.noise.logpmf(numbers - second), [-np.inf, message_y])
            law = law.compose(loss_from_logs(log_p, log_q))
        return law


KNOWN["talkative-error"] = KnownBug(
    TalkativeError(1.0), [1], [2], size=20_000, event="the message that names a count of 1", source="our own; CWE-209"
)


@dataclass(frozen=True)
class QualityGate(UnboundedBug):
    """Noise on every count, and a gate that stops the release where one is too far off the truth.

    **Bug.** What passes the gate is within `tolerance` of the truth. A run that it stops raises an error, which is an
    output as any other.
    **True loss.** Infinite: the far end of what passes on one database would be stopped on the other.
    **Source.** Our own. The rule that it breaks: Dwork and Roth, 2014, proposition 2.1 (post-processing).

    Attributes
    ----------
    epsilon : float
        Budget in nats as promised, positive and finite.
    tolerance : int
        Largest error in people that passes, at least 1.

    Examples
    --------
    >>> QualityGate(9.0)([10, 0, 3], 1, np.random.default_rng(0))
    array([[10,  0,  3]])
    """

    tolerance: int = whole(5, least=1)

    def __call__(self, counts: ArrayLike, size: int, rng: Rng) -> NDArray[np.int64]:
        """Release `counts`, shape (cells,), `size` times over, shape (size, cells), or stop if one run fails.

        Raises
        ------
        RuntimeError
            If a run fails at the gate: ask for one run at a time to have the others.
        """
        exact = leaf_counts(counts)
        released = GDPC(self.epsilon)(exact, size, rng)
        if (np.abs(released - exact) > self.tolerance).any():
            raise RuntimeError("the release failed at the quality gate")
        return released

    def exact_loss(self, pair: Pair) -> LossDistribution | None:
        """Return the law of the privacy loss of `pair`, or None where more than one cell changes."""
        x, y = two_tables(pair)
        changed = np.flatnonzero(x != y)
        if changed.size == 0:
            return NO_LOSS
        if changed.size > 1:
            return None
        within = math.log1p(-2 * float(self.noise.sf(self.tolerance)))  # one cell passes
        first, second = int(x[changed[0]]), int(y[changed[0]])
        outputs = np.concatenate([count + np.arange(-self.tolerance, self.tolerance + 1) for count in (first, second)])
        errors = (np.unique(outputs) - count for count in (first, second))
        log_p, log_q = (
            np.append(
                np.where(np.abs(error) <= self.tolerance, self.noise.logpmf(error) + (x.size - 1) * within, -np.inf),
                math.log(-math.expm1(x.size * within)),
            )
            for error in errors
        )
        return loss_from_logs(log_p, log_q)


KNOWN["quality-gate"] = KnownBug(
    QualityGate(1.0, tolerance=2), [50], [51], size=10_000, event="the count is 48, or it is 53", source="our own"
)
