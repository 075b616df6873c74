"""Privacy as a test of one's own: assertions for pytest or any other runner."""

from __future__ import annotations

from typing import Any

from audit.claims import Claim
from audit.loss import measure_loss
from audit.mechanism import Mechanism, mechanism_name
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.sampling import Seed

__all__ = ["assert_loss_detected", "assert_loss_within"]

CONFIDENCE = 1 - 1e-6  # a suite that runs every day must not accuse the innocent


def assert_loss_within(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: Claim | None = None,
    *,
    confidence: float = CONFIDENCE,
    rng: Seed = 0,
    **options: Any,
) -> AuditResult:
    """Fail if runs force a larger loss than promised, or could not have seen twice the promise.

    Parameters
    ----------
    mechanism : Mechanism
        Called as ``mechanism(data, size, rng)``.
    pair : NeighborPair
        The two databases.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP, optional
        The promise. Default: ``mechanism.claim``.
    confidence : float
        One-sided, in (0, 1). A sound mechanism fails with probability 1 - confidence at most.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        Fixed by default, so that a test that passes today passes tomorrow; None searches anew each time.
    **options
        As `measure_loss` takes them, such as ``size`` and ``stop="early"``.

    Returns
    -------
    AuditResult
        With the verdict ``"not refuted"``.

    Raises
    ------
    AssertionError
        If the promise is violated, or the runs had no power to tell: more runs, or a group pair, would.
    TypeError
        If there is no claim.

    Examples
    --------
    >>> from audit.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=(size, data.size))
    >>> assert_loss_within(noisy, NeighborPair.add_people([120], 0), PureDP(1.0), size=20_000).verdict
    'not refuted'
    """
    __tracebackhide__ = True
    result = measure_loss(mechanism, pair, _promise(mechanism, claim), confidence=confidence, rng=rng, **options)
    if result.verdict == "no power":
        raise AssertionError(
            f"no power: violations would have been seen from {result.claim.parameter} {result.detectable:.4g} on, "
            f"more than twice the promise; more runs or a group pair would help. {result}"
        )
    if result.verdict == "violated":
        raise AssertionError(str(result))
    return result


def assert_loss_detected(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: Claim | None = None,
    *,
    confidence: float = CONFIDENCE,
    rng: Seed = 0,
    **options: Any,
) -> AuditResult:
    """Fail unless runs force a larger loss than promised: for a bug that must be seen, and so for the test itself.

    Parameters
    ----------
    mechanism, pair, claim, confidence, rng, **options
        As in `assert_loss_within`.

    Returns
    -------
    AuditResult
        With the verdict ``"violated"``.

    Raises
    ------
    AssertionError
        If no violation was shown.
    TypeError
        If there is no claim.

    Examples
    --------
    >>> from audit.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=(size, data.size)) / 2
    >>> assert_loss_detected(noisy, NeighborPair.add_people([120], 0), PureDP(1.0), size=20_000).verdict
    'violated'
    """
    __tracebackhide__ = True
    result = measure_loss(mechanism, pair, _promise(mechanism, claim), confidence=confidence, rng=rng, **options)
    if result.verdict != "violated":
        raise AssertionError(f"no violation shown: {result}")
    return result


def _promise(mechanism: Mechanism, claim: Claim | None) -> Claim:
    promised: Claim | None = claim if claim is not None else getattr(mechanism, "claim", None)
    if promised is None:
        raise TypeError(f"{mechanism_name(mechanism)} has no claim of its own: state one")
    return promised
