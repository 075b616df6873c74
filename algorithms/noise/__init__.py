"""Noise laws: two-tailed geometric, Laplace, Gaussian and discrete Gaussian, each with its sampler and its exact law.

All four have ``sample(size, rng)``, ``cdf(x)``, ``sf(x)`` and ``variance``, and ``logpmf(k)`` or ``logpdf(x)``; they
are symmetric about 0. The functions are vectorized, take scalars too, and keep their relative precision far out: use
``cdf`` in the left tail and ``sf`` in the right one.

``sample`` returns int64 for the integer laws and float64 for the others, in the shape `size` (an integer or a tuple).
It follows the law exactly up to float64 arithmetic, and works in chunks that stay in the processor's cache. Two
shortcuts are not taken, since they draw from other laws: rounding a Laplace draw to get the two-tailed geometric, and
rounding a normal draw to get the discrete Gaussian.

`rng` is a numpy Generator, or ``"secure"``: exact draws of the integer laws on operating-system entropy, for a real
release. That needs OpenDP and is about a thousand times slower. The continuous laws refuse it, since their
floating-point output itself leaks (Mironov, "On Significance of the Least Significant Bits for Differential Privacy",
2012).

A mechanism draws through `add_noise`, which sees the exact values beside the noise: `watched` hands both to whoever
wants to compare them between two databases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Real
from operator import index
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from algorithms.noise import secure

__all__ = [
    "DiscreteGaussian",
    "Gaussian",
    "Laplace",
    "Law",
    "Rng",
    "TwoTailedGeometric",
    "Watcher",
    "add_noise",
    "source_of_noise",
    "watched",
]

Rng = np.random.Generator | Literal["secure"]
Size = int | tuple[int, ...]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Drawn = TypeVar("Drawn", np.int64, np.float64)
Sensitivity = float | tuple[float, float] | None

_CHUNK = 1 << 15  # draws at a time: 256 KiB a buffer
_LARGEST_TABLE = 1000  # the sigma up to which the tails of a discrete Gaussian are summed term by term


class Law(Protocol):
    """What noise is drawn from: one of the four laws, or one made of them."""

    def sample(self, size: tuple[int, ...], rng: Rng, /) -> NDArray[Any]:
        """Draw independent values, in that shape."""
        ...


class Watcher(Protocol):
    """Who is asked for every draw while `watched` lasts: calls `draw`, and returns what that gives or another answer.

    `value` is what noise is added to, None for a draw by itself; `law`, `shape` and `rng` are those of the draw.
    """

    def __call__(
        self,
        draw: Callable[[], NDArray[Any]],
        *,
        law: Law,
        shape: tuple[int, ...],
        rng: Rng,
        value: NDArray[Any] | None = None,
        query: str = "",
        sensitivity: Sensitivity = None,
    ) -> NDArray[Any]:
        """Return the answer, of that shape."""
        ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@dataclass(frozen=True)
class TwoTailedGeometric:
    r"""Two-tailed geometric law (two-sided geometric, discrete Laplace): P(k) = tanh(epsilon/2) exp(-epsilon |k|).

    Parameters
    ----------
    epsilon : float
        Privacy loss in nats per unit of sensitivity, at least 1e-12 and finite.

    Raises
    ------
    ValueError
        If `epsilon` is not positive and finite, or below its limit.
    TypeError
        If `epsilon` is not a number.

    Notes
    -----
    With :math:`q = e^{-\varepsilon}`, :math:`P(|K| \ge m) = 2q^m/(1+q)` for :math:`m \ge 1`. Let E be a standard
    exponential and :math:`c = \log(2/(1+q)) = \log(1 + \tanh(\varepsilon/2))`. Since :math:`c \le \varepsilon`,

    .. math:: P(\lfloor (E+c)/\varepsilon \rfloor \ge m) = P(E \ge m\varepsilon - c) = e^c q^m = 2q^m/(1+q),

    so one exponential and one fair sign make a draw.

    In float64 an exponential ends near 44.4 and lies on a grid of about 1e-15: magnitudes beyond 45.2 / epsilon never
    occur (their true probability is below 1e-19), and single probabilities have a relative error of about
    1e-15 / epsilon. The lower limit of `epsilon` keeps that error below 1 %, and every draw below 2^46.
    ``rng="secure"`` has neither flaw.

    References
    ----------
    .. [1] Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2009.

    Examples
    --------
    >>> noise = TwoTailedGeometric(0.5)
    >>> noise.sample((2, 3), np.random.default_rng(1)).shape
    (2, 3)
    >>> round(float(noise.logpmf(3) - noise.logpmf(4)), 12)
    0.5
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _parameter("epsilon", self.epsilon, at_least=1e-12))

    @property
    def variance(self) -> float:
        """Variance, 2 q / (1 - q)^2 with q = exp(-epsilon)."""
        return 2 * math.exp(-self.epsilon) / math.expm1(-self.epsilon) ** 2

    def sample(self, size: Size, rng: Rng) -> Integers:
        """Draw independent values."""
        return _draw(self, np.int64, size, rng, self._seeded, exact=lambda: secure.two_tailed_geometric(self.epsilon))

    def logpmf(self, k: ArrayLike) -> Floats:
        """Return the log probability of `k`; minus infinity off the integers."""
        k = np.asarray(k, dtype=np.float64)
        with np.errstate(over="ignore"):
            return _on_integers(k, math.log(math.tanh(self.epsilon / 2)) - self.epsilon * np.abs(k))

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""
        return _integer_cdf(x, self._tail)

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        return _integer_sf(x, self._tail)

    def _tail(self, m: Floats) -> Floats:
        with np.errstate(over="ignore"):
            tail: Floats = np.exp(-self.epsilon * m - math.log1p(math.exp(-self.epsilon)))
        return tail

    def _seeded(self, rng: np.random.Generator) -> Callable[[Integers], None]:
        buffer = np.empty(_CHUNK)

        def fill(out: Integers) -> None:
            magnitude = buffer[: out.size]
            _geometric_magnitudes(rng, magnitude, self.epsilon)
            np.multiply(magnitude, _signs(rng, out.size), out=out, casting="unsafe")

        return fill


@dataclass(frozen=True)
class Laplace:
    """Laplace law on the real line, with density exp(-|x| / scale) / (2 scale).

    Parameters
    ----------
    scale : float
        In units of the noise, from 1e-150 to 1e150.

    Raises
    ------
    ValueError
        If `scale` is not positive and finite, or outside its limits.
    TypeError
        If `scale` is not a number.

    Examples
    --------
    >>> Laplace(2.0).variance
    8.0
    >>> round(float(Laplace(2.0).logpdf(1) - Laplace(2.0).logpdf(3)), 12)
    1.0
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _parameter("scale", self.scale, at_least=1e-150, at_most=1e150))

    @property
    def variance(self) -> float:
        """Variance, twice the square of the scale."""
        return 2 * self.scale * self.scale

    def sample(self, size: Size, rng: Rng) -> Floats:
        """Draw independent values."""
        return _draw(self, np.float64, size, rng, self._seeded)

    def logpdf(self, x: ArrayLike) -> Floats:
        """Return the log density at `x`."""
        return -np.abs(_standardize(x, self.scale)) - math.log(2 * self.scale)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""
        z = _standardize(x, self.scale)
        tail = np.exp(-np.abs(z)) / 2
        return _pick(z < 0, tail, 1 - tail)

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        return self.cdf(-np.asarray(x, dtype=np.float64))

    def _seeded(self, rng: np.random.Generator) -> Callable[[Floats], None]:
        def fill(out: Floats) -> None:
            rng.standard_exponential(out=out)
            out *= self.scale
            out *= _signs(rng, out.size)

        return fill


@dataclass(frozen=True)
class Gaussian:
    """Normal law with mean 0.

    Parameters
    ----------
    scale : float
        Standard deviation, in units of the noise, from 1e-150 to 1e150.

    Raises
    ------
    ValueError
        If `scale` is not positive and finite, or outside its limits.
    TypeError
        If `scale` is not a number.

    Examples
    --------
    >>> Gaussian(3.0).variance
    9.0
    >>> round(float(Gaussian(3.0).sf(30)) * 1e24, 3)
    7.62
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _parameter("scale", self.scale, at_least=1e-150, at_most=1e150))

    @property
    def variance(self) -> float:
        """Variance, the square of the scale."""
        return self.scale * self.scale

    def sample(self, size: Size, rng: Rng) -> Floats:
        """Draw independent values."""
        return _draw(self, np.float64, size, rng, self._seeded)

    def logpdf(self, x: ArrayLike) -> Floats:
        """Return the log density at `x`."""
        return _minus_half_square(_standardize(x, self.scale)) - math.log(math.sqrt(2 * math.pi) * self.scale)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""
        cdf: Floats = special.ndtr(_standardize(x, self.scale))
        return cdf

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        return self.cdf(-np.asarray(x, dtype=np.float64))

    def _seeded(self, rng: np.random.Generator) -> Callable[[Floats], None]:
        def fill(out: Floats) -> None:
            rng.standard_normal(out=out)
            out *= self.scale

        return fill


@dataclass(frozen=True)
class DiscreteGaussian:
    r"""Discrete Gaussian law on the integers: P(k) proportional to exp(-k^2 / (2 scale^2)).

    Parameters
    ----------
    scale : float
        The parameter sigma, from 1e-12 to 1e12. Its square exceeds the variance, visibly so below about 0.6.

    Raises
    ------
    ValueError
        If `scale` is not positive and finite, or outside its limits.
    TypeError
        If `scale` is not a number.

    Notes
    -----
    Sampled by rejection [1]_: with :math:`t = \lfloor\sigma\rfloor + 1`, a two-tailed geometric y of epsilon 1/t is
    kept with probability :math:`\exp(-(|y| - \sigma^2/t)^2/(2\sigma^2))`, as the two exponents add up to
    :math:`-y^2/(2\sigma^2)` and a constant. A second standard exponential, compared with the exponent, decides it.
    The float64 limits are those of `TwoTailedGeometric`.

    The normalizer and the variance are theta functions, summed directly or after Poisson summation, where a few terms
    give all digits. Tails are summed term by term up to sigma 1000, and beyond it by the Euler-Maclaurin midpoint rule
    with two corrections, whose relative error stays below 1e-12.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, algorithm 3.

    Examples
    --------
    >>> noise = DiscreteGaussian(15.5)
    >>> round(float(noise.logpmf(0) - noise.logpmf(31)), 12)
    2.0
    >>> round(noise.variance, 6), round(DiscreteGaussian(0.4).variance, 6)
    (240.25, 0.080803)
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _parameter("scale", self.scale, at_least=1e-12, at_most=1e12))

    @property
    def variance(self) -> float:
        """Variance, to float64 precision at every scale."""
        return _theta(self.scale)[1]

    def sample(self, size: Size, rng: Rng) -> Integers:
        """Draw independent values."""
        return _draw(self, np.int64, size, rng, self._seeded, exact=lambda: secure.discrete_gaussian(self.scale))

    def logpmf(self, k: ArrayLike) -> Floats:
        """Return the log probability of `k`; minus infinity off the integers."""
        k = np.asarray(k, dtype=np.float64)
        return _on_integers(k, _minus_half_square(_standardize(k, self.scale)) - _theta(self.scale)[0])

    def cdf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise <= x``."""
        return _integer_cdf(x, self._tail)

    def sf(self, x: ArrayLike) -> Floats:
        """Return the probability of ``noise > x``."""
        return _integer_sf(x, self._tail)

    def _tail(self, m: Floats) -> Floats:
        end = 40 * math.ceil(self.scale)  # float64 knows no probability this small
        near = np.fmin(m, end)
        if self.scale <= _LARGEST_TABLE:
            table = np.exp(self.logpmf(np.arange(end, -1, -1))).cumsum()[::-1]
            return _pick(np.isnan(m), m, table[near.astype(np.int64)])
        x = near - 0.5
        slope = x / self.scale**2  # f' = -slope f and f''' = slope (3 / scale^2 - slope^2) f
        integral = math.sqrt(math.pi / 2) * self.scale * special.erfcx(x / (math.sqrt(2) * self.scale))  # over f
        corrections = -slope / 24 - 7 / 5760 * slope * (3 / self.scale**2 - slope**2)
        return _pick(np.isnan(m), m, np.exp(Gaussian(self.scale).logpdf(x)) * (integral + corrections))

    def _seeded(self, rng: np.random.Generator) -> Callable[[Integers], None]:
        t = math.floor(self.scale) + 1
        center, root = self.scale * self.scale / t, math.sqrt(0.5) / self.scale
        buffers = np.empty((3, _CHUNK))

        def fill(out: Integers) -> None:
            done = 0
            while done < out.size:
                proposals = min(int(1.35 * (out.size - done)) + 32, _CHUNK)  # three of four are kept from sigma 10 on
                magnitude, exponent, dice = buffers[:, :proposals]
                _geometric_magnitudes(rng, magnitude, 1 / t)
                np.subtract(magnitude, center, out=exponent)
                exponent *= root
                exponent *= exponent
                rng.standard_exponential(out=dice)
                kept = magnitude[dice >= exponent][: out.size - done]
                kept *= _signs(rng, kept.size)
                out[done : done + kept.size] = kept
                done += kept.size

        return fill


def add_noise(
    exact: ArrayLike, law: Law, size: int | None, rng: Rng, *, query: str = "", sensitivity: Sensitivity = None
) -> NDArray[Any]:
    """Add independent noise to every entry, so many times over: the door through which exact values leave a mechanism.

    Parameters
    ----------
    exact : array_like
        The values.
    law : Law
        Of the noise.
    size : int or None
        Independent runs; with None there is one, without an axis of its own.
    rng : numpy Generator or "secure"
        Source of the noise.
    query : str
        What the values are, for whoever watches.
    sensitivity : float or (float, float), optional
        By how much one step between neighbors changes the values at most, as the mechanism has it: in L1, and in L2
        too; or in each. The noise does not depend on it.

    Returns
    -------
    ndarray, shape (size, *exact.shape)
        Noise of ``law.sample`` in that shape, and the values.

    Examples
    --------
    >>> noisy = add_noise([10, 0, 3], TwoTailedGeometric(2.0), 2, np.random.default_rng(7), query="people")
    >>> noisy.shape, noisy.dtype.name
    ((2, 3), 'int64')
    """
    value = np.asarray(exact)
    shape = value.shape if size is None else (size, *value.shape)

    def draw() -> NDArray[Any]:
        noise = law.sample(shape, rng)
        in_place = np.result_type(noise, value) == noise.dtype and noise.ndim > 0
        return np.add(noise, value, out=noise) if in_place else np.asarray(noise + value)

    watcher = _watcher.get()
    if watcher is None:
        return draw()
    return watcher(draw, law=law, shape=shape, rng=rng, value=value, query=query, sensitivity=sensitivity)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Hand every draw of this context to someone: of the four laws, and of `add_noise`.

    Threads that a mechanism starts do not belong to it.

    Parameters
    ----------
    watcher : Watcher
        Called instead of each draw.

    Yields
    ------
    None
        While it lasts.

    Examples
    --------
    >>> def told(draw, *, law, **_):
    ...     print(law)
    ...     return draw()
    >>> with watched(told):
    ...     _ = Laplace(2.0).sample(3, np.random.default_rng(0))
    Laplace(scale=2.0)
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def source_of_noise(secure: bool) -> str:
    """Return where the noise of a release came from, in words for its record.

    Parameters
    ----------
    secure : bool
        Whether it was drawn with ``rng="secure"``.

    Returns
    -------
    str
        One of two sentences.
    """
    if secure:
        return "secure: exact, on the operating system's entropy"
    return "from a seeded generator: a simulation, not to be published"


def _parameter(name: str, value: Any, *, at_least: float, at_most: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number}")
    if not at_least <= number <= at_most:
        raise ValueError(f"{name} must be from {at_least} to {at_most}, got {number}")
    return number


def _shape(size: Any) -> tuple[int, ...]:
    sides = size if isinstance(size, tuple) else (size,)
    if any(isinstance(side, bool) or not isinstance(side, (int, np.integer)) for side in sides):
        raise TypeError(f"size must be an integer or a tuple of integers, got {size!r}")
    if any(side < 0 for side in sides):
        raise ValueError(f"size must not be negative, got {size!r}")
    return tuple(index(side) for side in sides)


def _draw(
    law: Law,
    dtype: type[Drawn],
    size: Size,
    rng: Rng,
    seeded: Callable[[np.random.Generator], Callable[[NDArray[Drawn]], None]],
    *,
    exact: Callable[[], Callable[[NDArray[Drawn]], None]] | None = None,
) -> NDArray[Drawn]:
    shape = _shape(size)
    watcher = _watcher.get()
    if watcher is None:
        return _drawn(dtype, shape, rng, seeded, exact)
    return watcher(lambda: _drawn(dtype, shape, rng, seeded, exact), law=law, shape=shape, rng=rng)


def _drawn(
    dtype: type[Drawn],
    shape: tuple[int, ...],
    rng: Rng,
    seeded: Callable[[np.random.Generator], Callable[[NDArray[Drawn]], None]],
    exact: Callable[[], Callable[[NDArray[Drawn]], None]] | None,
) -> NDArray[Drawn]:
    out = np.empty(shape, dtype)
    if isinstance(rng, np.random.Generator):
        fill = seeded(rng)
    elif not (isinstance(rng, str) and rng == "secure"):
        raise TypeError(f'rng must be a numpy Generator or "secure", got {rng!r}')
    elif exact is None:
        raise ValueError(
            'rng="secure" needs an integer law: no exact sampler exists for a continuous one in floating point'
        )
    else:
        fill = exact()
    flat = out.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        fill(flat[start : start + _CHUNK])
    return out


def _geometric_magnitudes(rng: np.random.Generator, out: Floats, epsilon: float) -> None:
    """Draw magnitudes of two-tailed geometric noise; the notes of that law derive the formula."""
    rng.standard_exponential(out=out)
    out += math.log1p(math.tanh(epsilon / 2))
    out /= epsilon
    np.floor(out, out=out)


def _signs(rng: np.random.Generator, size: int) -> NDArray[np.int8]:
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8), count=size).view(np.int8)
    return 1 - 2 * bits


def _standardize(x: ArrayLike, scale: float) -> Floats:
    with np.errstate(over="ignore"):  # to infinity, the right limit
        return np.asarray(x, dtype=np.float64) / scale


def _minus_half_square(z: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return -0.5 * np.square(z)


def _pick(condition: Any, yes: Floats, no: Any) -> Floats:
    picked: Floats = np.where(condition, yes, no)[()]  # a scalar for a scalar
    return picked


def _on_integers(k: Floats, log_mass: Floats) -> Floats:
    # NaN stays NaN: minus infinity would read as an observation that cannot happen.
    return _pick((k == np.floor(k)) | np.isnan(k), log_mass, -np.inf)


def _integer_cdf(x: ArrayLike, tail: Callable[[Floats], Floats]) -> Floats:
    return _integer_sf(-np.floor(np.asarray(x, dtype=np.float64)) - 1, tail)


def _integer_sf(x: ArrayLike, tail: Callable[[Floats], Floats]) -> Floats:
    """Return P(K > x) of a symmetric integer law; `tail` gives P(K >= m) for m >= 1."""
    k = np.floor(np.asarray(x, dtype=np.float64))
    beyond = tail(np.where(k >= 0, k + 1, -k))
    return _pick(k >= 0, beyond, 1 - beyond)


def _theta(scale: float) -> tuple[float, float]:
    """Return the log normalizer and the variance of the discrete Gaussian law."""
    if scale < 1:
        k = np.arange(1, 40)
        weight = 2 * np.exp(_minus_half_square(k / scale))
        return math.log1p(weight.sum()), float((k**2 * weight).sum() / (1 + weight.sum()))
    m = np.arange(1, 7)
    weight = 2 * np.exp(-2 * np.square(math.pi * scale * m))
    excess = float((np.square(2 * math.pi * scale * scale * m) * weight).sum() / (1 + weight.sum()))
    return math.log(math.sqrt(2 * math.pi) * scale) + math.log1p(weight.sum()), scale * scale - excess
