"""Noise of a release: exact samplers on operating-system entropy, through OpenDP, and a count of draws by their source.

The samplers of `algorithms.noise` are fast and seeded. Audits need that, but a release must not use them: anyone who
learns the seed can subtract the noise. The draws here come from OpenDP's exact-arithmetic samplers (Canonne, Kamath and
Steinke, "The Discrete Gaussian for Differential Privacy", 2020, algorithms 2 and 3), fed by OpenSSL's generator, which
the operating system seeds. There is no fallback: without OpenDP these functions fail.

Draws are counted in the function that makes them, and only these counts decide whether noise is secure. Every law is
tested at its first secure draw, and in every block that a worker draws, so that a broken sampler is found before noise
is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from algorithms.extras import needing
from algorithms.noise.margins import Tail, beyond, least_margin

__all__ = [
    "ALARM",
    "Draws",
    "IntegerLaw",
    "block",
    "check_law",
    "count",
    "counted",
    "discrete_gaussian",
    "drawn_by",
    "two_tailed_geometric",
]

ALARM = 1e-9
"""Error probability of the tests of one release, over all its laws: they stop it although the sampler is right."""
TESTED = 1000  # test draws of a law: 20 milliseconds

Fill = Callable[[NDArray[np.int64]], None]
Finished = Callable[[Sequence[Any]], Iterator[tuple[int, Any]]]  # as in `audit.io.workers.Workers`


def two_tailed_geometric(epsilon: float) -> Fill:
    """Return ``fill(out)``. OpenDP gets a float64 just above ``1 / epsilon``, so rounding never spends more."""
    domains, metrics, measurements = _opendp()
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l1_distance(T="i64")
    return _filler(measurements.make_laplace(*space, scale=math.nextafter(1 / epsilon, math.inf)))


def discrete_gaussian(scale: float) -> Fill:
    """Return ``fill(out)``, which overwrites a flat int64 array with discrete Gaussian draws of parameter sigma."""
    domains, metrics, measurements = _opendp()
    space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l2_distance(T="f64")
    return _filler(measurements.make_gaussian(*space, scale=scale))


def _opendp() -> tuple[Any, Any, Any]:
    # A large, optional dependency, without its prelude, which also imports scikit-learn, pandas and polars.
    with needing("release", "secure noise"):
        from opendp import domains, measurements, metrics, mod
    mod.enable_features("contrib")  # OpenDP requires this for samplers that were not externally vetted
    return domains, metrics, measurements


def _filler(measurement: Any) -> Fill:
    def fill(out: NDArray[np.int64]) -> None:
        out[:] = measurement([0] * out.size)

    return fill


class IntegerLaw(Tail, Protocol):
    """The methods of a law on the integers, symmetric about 0, that its test uses."""

    def logpmf(self, k: ArrayLike, /) -> NDArray[np.float64]:
        """Return the log probability."""
        ...


class Draws:
    """Number of values drawn inside `counted`, from the operating system's entropy and from seeded generators."""

    def __init__(self) -> None:
        self._secure = self._seeded = self._shares = 0
        self._tested: set[Any] = set()
        self._alarm = ALARM

    @property
    def secure(self) -> bool:
        """Whether there were draws, all from the operating system's entropy and from laws that passed the test."""
        return self._secure > 0 and self._seeded == 0

    @property
    def source(self) -> str:
        """Source of the noise, in words for the record of a release."""
        if self.secure:
            return "secure: exact, on the operating system's entropy"
        if self._seeded:
            return "from a seeded generator: a simulation, not to be published"
        return "unknown: drawn elsewhere, not to be published"

    def _add(self, values: int, law: Any, fill: Callable[[NDArray[Any]], None] | None) -> None:
        if fill is None:
            self._seeded += values
            return
        if law not in self._tested:
            self._tested.add(law)
            check_law(law, fill, alarm=self._share())
        self._secure += values

    def _share(self) -> float:
        """Return the error probability of the next test or block of tests; all of them add up to at most the alarm."""
        self._shares += 1
        return self._alarm / (self._shares * (self._shares + 1))


_counting: ContextVar[tuple[Draws, ...]] = ContextVar("counting", default=())


@contextmanager
def counted() -> Iterator[Draws]:
    """Count the draws in this context, and test each law when secure noise is first drawn from it.

    Draws of the workers of `add_noise` are counted. Draws in threads that a mechanism starts are not counted, so they
    do not count as secure. Yields `Draws`, which can be read in the context and after it.
    """
    draws = Draws()
    token = _counting.set((*_counting.get(), draws))
    try:
        yield draws
    finally:
        _counting.reset(token)


def count(values: int, law: Any, fill: Callable[[NDArray[Any]], None] | None) -> None:
    """Add values that are about to be drawn to all counts; `fill` is the secure sampler, None for a seeded one."""
    for draws in _counting.get():
        draws._add(values, law, fill)


def block(law: Any, task: tuple[int, float]) -> tuple[NDArray[Any], Draws]:
    """Draw and count values on a worker; a task is the number of values and the error probability of their tests."""
    size, alarm = task
    with counted() as draws:
        draws._alarm = alarm
        return law.sample((size,), "secure"), draws


def drawn_by(finished: Finished, sizes: Sequence[int]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the index and the values of each `block` that workers draw, and add the workers' counts to those here."""
    counting = _counting.get()
    tasks = [(size, min((draws._share() for draws in counting), default=ALARM)) for size in sizes]
    for place, (values, there) in finished(tasks):
        for draws in counting:
            draws._secure += there._secure
            draws._seeded += there._seeded
        yield place, values


def check_law(law: IntegerLaw, fill: Callable[[NDArray[np.int64]], None], *, alarm: float) -> None:
    """Refuse a sampler whose draws do not fit its law, or are repeated; `fill` overwrites an array with draws.

    Four two-sided exact binomial tests count draws that are 0, above 0, and beyond the median and the 0.9 quantile of
    the magnitude. They detect a scale that is half or twice the right one. A fifth test compares two halves: they agree
    at an index with at most the probability of a 0. Each test has a fifth of `alarm`, the largest probability of
    refusing a correct sampler. The tests have little power if nearly all draws of a law are 0.
    """
    halves = np.empty((2, TESTED // 2), np.int64)
    for half in halves:
        fill(half)
    zero = float(np.exp(law.logpmf(0)))
    events = {"0": (halves == 0, zero), "above 0": (halves > 0, float(law.sf(0)))}
    for share in (0.5, 0.1):
        mark = least_margin(law, share)
        events[f"beyond {mark} in magnitude"] = (np.abs(halves) > mark, beyond(law, mark))
    for words, (matches, chance) in events.items():
        successes = int(matches.sum())
        tails = _at_least(successes, TESTED, chance), _at_least(TESTED - successes, TESTED, 1 - chance)
        if 2 * min(tails) < alarm / 5:
            wrong = f"{successes} of {TESTED} test draws were {words}, where {TESTED * chance:.4g} are expected"
            raise ValueError(f"secure noise must follow its law, {law}, and {wrong}: nothing may be released")
    same = int((halves[0] == halves[1]).sum())
    if _at_least(same, TESTED // 2, zero) < alarm / 5:
        wrong = f"{same} of {TESTED // 2} came again in the same places"
        raise ValueError(f"secure noise must be new in every draw, and {wrong}: nothing may be released")


def _at_least(successes: int, trials: int, chance: float) -> float:
    """Return the binomial probability of at least `successes` in independent trials."""
    return float(betainc(successes, trials - successes + 1, chance)) if successes else 1.0
