"""Margins of error of PHSafe's noise, the paper's and the exact: what a budget gives, and what an accuracy needs.

The margin of error is the half width of the 90% interval: the least k with ``P(|noise| <= k) >= 0.9``. The paper takes
it off the normal law, as the whole part of ``z * sigma``, and has three values of z:

* its text and corollary 2 print `Z_PRINTED`, 1.64 (1.3448 = 1.64**2 / 2). That is too small: 0.8990 of a normal law
  lies within 1.64 sigma, and above a sigma of 104 the whole part of 1.64 sigma never covers 90% of the discrete
  Gaussian, contrary to what section 7.1 says;
* its table 10, the production budgets, was computed with `Z_PRODUCTION`, 1.645;
* the quantile itself is `Z_EXACT`, 1.64485...

Truncation adds an error of its own that depends on the data; it is no part of a margin.

References
----------
.. [1] Sexton et al., "PHSafe: Disclosure Avoidance for the 2020 Census Supplemental Demographic and Housing
   Characteristics File (S-DHC)", 2024, sections 7.1 and 7.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import Any, cast

from scipy.optimize import brentq

from algorithms.noise import DiscreteGaussian, TwoTailedGeometric
from algorithms.noise.margins import beyond, checked_margin, coverage, exact_margin_of_error, inside
from algorithms.phsafe.budget import Config, Settings, noise_law, noise_parameters, read_config
from algorithms.phsafe.tables import QUERIES
from algorithms.tables.frames import Frame
from audit.arguments import positive_number

__all__ = [
    "Z_EXACT",
    "Z_PRINTED",
    "Z_PRODUCTION",
    "choose",
    "exact_budget_for",
    "explore",
    "margin_of_error",
    "rho_for",
]

Z_PRINTED, Z_PRODUCTION, Z_EXACT = 1.64, 1.645, NormalDist().inv_cdf(0.95)


def margin_of_error(rho: float, stability: int, *, z: float = Z_PRODUCTION) -> int:
    """Return the paper's margin of error of a count, the whole part of ``z * sigma``.

    Parameters
    ----------
    rho : float
        Budget of the count, positive.
    stability : int
        Sensitivity to which the noise is scaled, 2 tau + 2 or 2.
    z : float
        Standard deviations; production took 1.645, the paper's text says 1.64.

    Returns
    -------
    int
        Persons or households. It is no guarantee: `coverage` tells the share of the noise that it holds.

    Raises
    ------
    ValueError
        If a number is not positive and finite.
    TypeError
        If one is not a number.

    Notes
    -----
    A product that rounding has left a hair below a whole number counts as that number, so that this and `rho_for` are
    each other's inverse.

    References
    ----------
    .. [1] Sexton et al., 2024, section 7.1, after corollary 2.

    Examples
    --------
    >>> margin_of_error(0.002619, 22), margin_of_error(0.002619, 22, z=Z_PRINTED)
    (500, 498)
    """
    rho, sensitivity = positive_number("rho", rho), positive_number("stability", stability)
    return _whole_part(positive_number("z", z) * sensitivity / math.sqrt(2 * rho))


def rho_for(margin: float, stability: int, *, z: float = Z_PRODUCTION) -> float:
    """Return the budget with which `margin_of_error` is a given one, by the paper's formula.

    Parameters
    ----------
    margin : float
        Persons or households, at least 1; its whole part counts.
    stability : int
        Sensitivity to which the noise is scaled, 2 tau + 2 or 2.
    z : float
        Standard deviations; production took 1.645, the paper's text says 1.64.

    Returns
    -------
    float
        rho = (z^2 / 2) stability^2 / margin^2.

    Raises
    ------
    ValueError
        If `margin` is below 1, or a number is not positive and finite.
    TypeError
        If one is not a number.

    References
    ----------
    .. [1] Sexton et al., 2024, corollary 2, with 1.3448 for ``z**2 / 2``.

    Examples
    --------
    >>> round(rho_for(500, 22), 6), round(rho_for(500, 22, z=Z_PRINTED), 6)  # table 10 has 0.002619
    (0.002619, 0.002604)
    """
    sensitivity, z = positive_number("stability", stability), positive_number("z", z)
    return (z * sensitivity / math.floor(checked_margin(margin, least=1))) ** 2 / 2


def exact_budget_for(
    margin: float, stability: int, *, confidence: float = 0.9, privacy_definition: str = "zcdp"
) -> float:
    """Return the least budget whose exact margin of error is no larger than a given one.

    Parameters
    ----------
    margin : float
        Persons or households, 0 or more; its whole part counts.
    stability : int
        Sensitivity to which the noise is scaled, 2 tau + 2 or 2.
    confidence : float
        Probability to be covered, between 0 and 1.
    privacy_definition : {"zcdp", "puredp"}
        Whether rho of discrete Gaussian, or epsilon of two-sided geometric noise is wanted.

    Returns
    -------
    float
        rho, or epsilon in nats, rounded up in the ninth digit.

    Raises
    ------
    ValueError
        If a number is out of range, or there is no such kind of privacy.
    TypeError
        If one is not a number.

    Examples
    --------
    Table 10 spends 0.662976 on a margin of 20, of which a twentieth could have been saved:

    >>> round(exact_budget_for(20, 14), 6)
    0.63058
    """
    if privacy_definition not in ("zcdp", "puredp"):
        raise ValueError(f'privacy_definition must be "zcdp" or "puredp", got {privacy_definition!r}')
    sensitivity = positive_number("stability", stability)
    missed, reach = 1 - inside(confidence), math.floor(checked_margin(margin)) + 0.5

    def excess(log_scale: float) -> float:  # noise of about this size misses more, the larger it is
        scale = reach * math.exp(log_scale)
        law = DiscreteGaussian(scale) if privacy_definition == "zcdp" else TwoTailedGeometric(1 / scale)
        return math.log(beyond(law, margin) or 1e-300) - math.log(missed)

    log_scale = cast(float, brentq(excess, math.log(0.01), math.log(100 / confidence), xtol=1e-13))
    scale = reach * math.exp(log_scale) * (1 - 1e-10)
    return (sensitivity / scale) ** 2 / 2 if privacy_definition == "zcdp" else sensitivity / scale


def choose(
    config: Settings,
    *,
    margins: Mapping[str, Mapping[str, float]] | None = None,
    budgets: Mapping[str, Mapping[str, float]] | None = None,
    tau: Mapping[str, int] | None = None,
    z: float | None = Z_PRODUCTION,
    confidence: float = 0.9,
) -> Config:
    """Change the settings of a run: other thresholds, and only the levels for which a margin or a budget is given.

    Parameters
    ----------
    config : path-like, str, mapping or Config
        Settings to start from, as `read_config` takes them.
    margins : mapping of str to mapping of str to float, optional
        Margin of error wanted, for any queries and levels: the others are left out.
    budgets : mapping of str to mapping of str to float, optional
        Or the budgets, for any queries and levels. Without either, all budgets stay.
    tau : mapping of str to int, optional
        Thresholds that change.
    z : float or None
        For margins: standard deviations of `rho_for`, or None for `exact_budget_for`.
    confidence : float
        For exact margins: probability to be covered, between 0 and 1.

    Returns
    -------
    Config
        The new settings.

    Raises
    ------
    ValueError
        If both margins and budgets are given, there is no such query or level, a number is out of range, or `z` is
        given for epsilon: the formula is that of rho.
    TypeError
        If a value is of the wrong type.

    Examples
    --------
    >>> config = choose("us", margins={"PH3": {"state_A-G": 20}}, tau={"PH3": 4})
    >>> list(config.budgets())[0][:2], round(config.total, 6)
    (('PH3', 'state_A-G'), 0.338253)
    """
    config = read_config(config)
    config = replace(config, tau={**config.tau, **(tau or {})})
    if margins is not None and budgets is not None:
        raise ValueError("margins and budgets must not be given together, got both")
    if margins is not None and z is not None and config.privacy_definition != "zcdp":
        raise ValueError(f"z must be None for epsilon, because the formula is that of rho, got {z}")

    def budget(table: str, wanted: float) -> float:
        stability, definition = config.stability(table), config.privacy_definition
        if margins is None:
            return wanted
        if z is not None:
            return rho_for(wanted, stability, z=z)
        return exact_budget_for(wanted, stability, confidence=confidence, privacy_definition=definition)

    given: Any = budgets if margins is None else margins
    if given is None:
        return config
    if not isinstance(given, Mapping) or not all(isinstance(levels, Mapping) for levels in given.values()):
        raise TypeError(f"margins and budgets must map queries to levels to numbers, got {given!r}")
    chosen = {table: dict.fromkeys(query.levels, 0.0) for table, query in QUERIES.items()}
    for table, levels in given.items():
        for level, wanted in levels.items():
            config.budget(table, level)  # refuses what does not exist
            chosen[table][level] = budget(table, wanted)
    return replace(config, privacy_budget=chosen)


def explore(config: Settings, *, z: float = Z_PRODUCTION, confidence: float = 0.9) -> Frame:
    """Tabulate how accurate the counts of a run are, noise alone.

    Parameters
    ----------
    config : path-like, str, mapping or Config
        What `read_config` takes; `choose` makes settings for any set of levels.
    z : float
        Standard deviations of the formula's margin.
    confidence : float
        Probability that the exact margin covers, between 0 and 1.

    Returns
    -------
    Frame
        One row for each query and level with a budget: ``TABLE``, ``LEVEL``, ``BUDGET`` (rho, or epsilon in nats),
        ``STABILITY``, ``SIGMA``, ``MARGIN`` (the whole part of ``z * SIGMA``), ``COVERAGE`` (the exact probability that
        it covers) and ``EXACT_MARGIN``; sigma and margins in persons or households.

    Raises
    ------
    ValueError
        If `z` is not positive and finite, or `confidence` not between 0 and 1.
    TypeError
        If `z` is not a number.

    Examples
    --------
    >>> frame = explore("us", z=Z_PRINTED)
    >>> [name for name in frame.columns if name != "BUDGET"]
    ['TABLE', 'LEVEL', 'STABILITY', 'SIGMA', 'MARGIN', 'COVERAGE', 'EXACT_MARGIN']
    >>> frame["MARGIN"].max(), frame["EXACT_MARGIN"].max()
    (np.int64(498), np.int64(500))
    """
    z = positive_number("z", z)
    config = read_config(config)
    noise = noise_parameters(config)
    laws = [noise_law(config, table, level) for table, level, _ in config.budgets()]
    sigmas = [math.sqrt(variance) for variance in noise["VARIANCE"]]
    margins = [_whole_part(z * sigma) for sigma in sigmas]
    return Frame(
        {
            **{name: noise[name] for name in ("TABLE", "LEVEL", "BUDGET", "STABILITY")},
            "SIGMA": sigmas,
            "MARGIN": margins,
            "COVERAGE": [coverage(law, margin) for law, margin in zip(laws, margins, strict=True)],
            "EXACT_MARGIN": [exact_margin_of_error(law, confidence) for law in laws],
        }
    )


def _whole_part(margin: float) -> int:
    return math.floor(margin * (1 + 1e-12))  # a whole number that rounding has left a hair short stays what it is
