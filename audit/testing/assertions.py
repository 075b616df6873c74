"""Assertions on privacy loss, for pytest or any other runner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from audit.claims import Claim
from audit.io.text import printable
from audit.measure.loss import measure_loss
from audit.mechanism import Mechanism, mechanism_name
from audit.neighbors import NeighborPair
from audit.report.words import remedy
from audit.results import AuditResult, Verdict
from audit.results.formatting import row
from audit.sampling.streams import Seed
from audit.testing.session import running, seed_of

__all__ = ["assert_loss_detected", "assert_loss_within"]

CONFIDENCE = 1 - 1e-6  # so high that a suite that runs every day gives no false alarms


def assert_loss_within(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: Claim | None = None,
    *,
    confidence: float | None = None,
    rng: Seed | Literal["fixed"] = "fixed",
    **options: Any,
) -> AuditResult:
    """Fail if the lower bound exceeds the promise, or the runs could not have detected twice the promise.

    Parameters
    ----------
    mechanism, pair, **options
        As in `measure_loss`. Under pytest, ``pytest.mark.audit`` may set defaults for a whole test, and
        ``--audit-runs`` replaces every `size`.
    claim : PureDP, ApproxDP, ZCDP or GaussianDP, optional
        The promise. Default: ``mechanism.claim``.
    confidence : float, optional
        One-sided, in (0, 1). If the promise holds, a violation is reported with probability at most 1 - confidence.
        Default: the value in ``pytest.mark.audit``, or ``1 - 1e-6``.
    rng : "fixed", None, int, numpy.random.Generator or numpy.random.SeedSequence
        Fixed by default, so that a test is reproducible. Under pytest the seed depends on the node id of the test, the
        number of the call in it and ``--audit-seed``; elsewhere it is 0. None gives a new seed each time.

    Returns
    -------
    AuditResult
        With the verdict ``"not refuted"``.

    Examples
    --------
    >>> from audit.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=(size, data.size))
    >>> assert_loss_within(noisy, NeighborPair.add_people([120], 0), PureDP(1.0), size=20_000).verdict
    'not refuted'
    """
    __tracebackhide__ = True
    return _audit("not refuted", mechanism, pair, claim, options | {"confidence": confidence, "rng": rng})


def assert_loss_detected(
    mechanism: Mechanism,
    pair: NeighborPair,
    claim: Claim | None = None,
    *,
    confidence: float | None = None,
    rng: Seed | Literal["fixed"] = "fixed",
    **options: Any,
) -> AuditResult:
    """Fail unless the lower bound exceeds the promise. Use it with a known bug to check that audits detect it.

    The arguments are those of `assert_loss_within`; it returns the AuditResult, with the verdict ``"violated"``.

    >>> from audit.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=(size, data.size)) / 2
    >>> assert_loss_detected(noisy, NeighborPair.add_people([120], 0), PureDP(1.0), size=20_000).verdict
    'violated'
    """
    __tracebackhide__ = True
    return _audit("violated", mechanism, pair, claim, options | {"confidence": confidence, "rng": rng})


def _audit(
    expected: Verdict, mechanism: Mechanism, pair: NeighborPair, claim: Claim | None, arguments: dict[str, Any]
) -> AuditResult:
    """Run an audit, keep its result for the report of the test session, and return it if it is as expected."""
    __tracebackhide__ = True
    promised: Claim | None = claim if claim is not None else getattr(mechanism, "claim", None)
    if promised is None:
        raise TypeError(f"{mechanism_name(mechanism)} has no promise of its own: state one")
    test = running()
    call = 0 if test is None else next(test.calls)
    options: dict[str, Any] = {"confidence": CONFIDENCE, "rng": "fixed"} | ({} if test is None else test.options)
    confidence, rng = arguments.pop("confidence"), arguments.pop("rng")
    options |= arguments
    if confidence is not None:
        options["confidence"] = confidence
    if not (isinstance(rng, str) and rng == "fixed"):
        options["rng"] = rng
    if isinstance(options["rng"], str) and options["rng"] == "fixed":
        options["rng"] = 0 if test is None else seed_of(test.seed, test.name, call)
    if test is not None and test.runs is not None:
        options["size"] = test.runs
    result = measure_loss(mechanism, pair, promised, **options)
    if result.interrupted:
        raise KeyboardInterrupt  # an early audit returns what it has, but Ctrl-C must end the session
    command = None
    if test is not None:
        command = test.command()
        result = replace(result, provenance={**result.provenance, "command": command})
        test.keep(call=call, expected=expected, audit=result.to_dict())
    if result.verdict != expected:
        raise AssertionError(_in_words(expected, result, command, seeded=options["rng"] is not None))
    return result


def _in_words(expected: Verdict, result: AuditResult, command: str | None, *, seeded: bool) -> str:
    """Return the message of a failed assertion: the numbers, how they were measured, and how to repeat it."""
    claim, numbers = result.claim, row(result.summary())
    bound = f"{numbers['measured']} at {numbers['confidence']} confidence"
    detectable = f"at least {claim.parameter} {numbers['detectable']}, with power 0.8"
    seed = f"rng={result.seed_entropy}"
    lines = {
        "promised": f"{claim}",
        "bound": f"{claim.parameter} is at least {bound}, by {result.size} runs ({result.bound})",
        "detectable": "not announced" if result.far_below_claim else detectable,
        "event": f"{result.event}{result.witness}",
        **{f"on {name}": _counts_in_words(side) for name, side in result.counts.items()},
        "neighbors": f"{result.pair} ({result.relation}, {result.adjacency})",
        "unit": f"one {result.unit}; the databases are at distance {result.distance}",
        "searched": result.searched,
        "power": " ".join(result.power),
        "notes": "; ".join(result.notes),
        "seed": f"{result.seed_entropy}" if seeded else f"{result.seed_entropy}, drawn anew: {seed} would repeat it",
        "help": remedy(result, "size, or --audit-runs"),
        "reproduce": "" if command is None else command if seeded else f"with {seed} in the test, {command}",
    }
    marked = "CONFIDENTIAL: " if result.confidential else ""
    expectation = "no violation shown: " if expected == "violated" else ""
    evidence = f"promised {claim}, lower bound {bound} from {result.size} runs"
    headline = f"{marked}{expectation}{result.mechanism}: {result.verdict}: {evidence}"
    body = (f"  {name:<10} {printable(words)}" for name, words in lines.items() if words)
    return "\n".join([printable(headline), *body])


def _counts_in_words(side: dict[str, int]) -> str:
    parts = [f"{name.replace('_', ' ')} {count}" for name, count in side.items() if name != "runs"]
    return f"{side['runs']} runs: {', '.join(parts)}"
