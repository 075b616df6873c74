"""The budget of a run of PHSafe: checks of the Bureau's configuration file, and the noise that follows from it.

The file format is that of the production release; a budget of 0 switches a level off. Unlike production, contradictory
settings are refused, and so is ``"cef"``, the Bureau's internal format; ``"csv"`` reads Parquet too. Source: Sexton et
al., "PHSafe: Disclosure Avoidance for the 2020 Census Supplemental Demographic and Housing Characteristics File
(S-DHC)", 2024, table 10.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from types import MappingProxyType
from typing import Any

import numpy as np

from algorithms.noise import DiscreteGaussian, TwoTailedGeometric
from algorithms.phsafe.schema import PUERTO_RICO, STATES
from algorithms.phsafe.tables import QUERIES, TAU
from algorithms.release.frames import Frame
from algorithms.schema import read_named
from audit.arguments import whole_number
from audit.claims import ZCDP, PureDP

__all__ = ["CLAIMS", "PRESETS", "Config", "Settings", "noise_law", "noise_parameters", "read_config"]

PRESETS = ("us", "pr")
"""Names of the production settings of the 2020 Census: the fifty states with the District of Columbia, Puerto Rico."""

KEYS = ("privacy_budget", "tau", "state_filter", "reader", "privacy_defn")
LARGEST_TAU = 99_999  # no household holds more people
CLAIMS: Mapping[str, type[ZCDP] | type[PureDP]] = {"zcdp": ZCDP, "puredp": PureDP}
PRODUCTION = Path(__file__).parent / "configs"
NOISE = {"zcdp": "Discrete Gaussian", "puredp": "Two-Sided Geometric"}


@dataclass(frozen=True)
class Config:
    """Settings of a run: rho, or epsilon in nats, by query and level; threshold tau by query; states."""

    privacy_budget: Mapping[str, Mapping[str, float]]
    tau: Mapping[str, int]
    state_filter: tuple[str, ...]
    reader: str = "csv"
    privacy_definition: str = "zcdp"

    def __post_init__(self) -> None:
        if self.privacy_definition not in tuple(CLAIMS):
            raise ValueError(f'privacy_defn must be "zcdp" or "puredp", got {shortened(self.privacy_definition)}')
        if self.reader != "csv":
            raise ValueError(f'reader must be "csv": there is no other here, got {shortened(self.reader)}')
        _check_keys("tau", self.tau, tuple(TAU))
        tau = {name: whole_number(f"tau of {name}", self.tau[name], least=1) for name in TAU}
        if too_many := [name for name in TAU if tau[name] > LARGEST_TAU]:
            raise ValueError(f"tau of {too_many[0]} must be at most {LARGEST_TAU}, got {tau[too_many[0]]}")
        object.__setattr__(self, "tau", MappingProxyType(tau))
        object.__setattr__(self, "state_filter", _states(self.state_filter))
        _check_keys("privacy_budget", self.privacy_budget, tuple(QUERIES))
        budgets = {name: self._levels(name, self.privacy_budget[name]) for name in QUERIES}
        object.__setattr__(self, "privacy_budget", MappingProxyType(budgets))
        spent = sum((budget for _, _, budget in self.budgets()), 0.0)
        if not 0 < 2 * spent < math.inf:
            raise ValueError(f"privacy_budget must add up to a positive finite number, got {spent}")

    def __reduce__(self) -> tuple[Any, ...]:
        return read_config, (self.to_dict(),)  # because read-only mappings cannot be pickled or copied

    @property
    def states(self) -> tuple[str, ...]:
        """FIPS codes of the states in the data."""
        return self.state_filter

    @property
    def total(self) -> float:
        """Sum of all budgets: rho, or epsilon in nats, when one person is added or removed."""
        return math.fsum(budget for _, _, budget in self.budgets())

    def budgets(self) -> Iterator[tuple[str, str, float]]:
        """Iterate over query, level and budget of every released query and level."""
        for table, levels in self.privacy_budget.items():
            yield from ((table, level, budget) for level, budget in levels.items() if budget > 0)

    def budget(self, table: str, level: str) -> float:
        """Return the budget of a query at a level; 0 means that it is not released."""
        _check_table(table)
        if level not in self.privacy_budget[table]:
            levels = ", ".join(self.privacy_budget[table])
            raise ValueError(f"level of {table} must be one of {levels}, got {shortened(level)}")
        return self.privacy_budget[table][level]

    def stability(self, table: str) -> int:
        """Return the sensitivity to which a query's noise is scaled: 2 tau + 2 for persons, 2 for households."""
        _check_table(table)
        return QUERIES[table].stability(self.tau.get(table))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings in the format of the Bureau's file, which `read_config` reads."""
        return {
            "privacy_budget": {table: dict(levels) for table, levels in self.privacy_budget.items()},
            "tau": dict(self.tau),
            "state_filter": list(self.state_filter),
            "reader": self.reader,
            "privacy_defn": self.privacy_definition,
        }

    def _levels(self, table: str, levels: Mapping[str, float]) -> Mapping[str, float]:
        _check_keys(f"privacy_budget of {table}", levels, QUERIES[table].levels)
        budgets = {}
        for level in QUERIES[table].levels:
            where = f"privacy_budget of {table} {level}"
            budget = budgets[level] = _budget(where, levels[level])
            if budget and level.startswith("usa_") and PUERTO_RICO in self.state_filter:
                raise ValueError(f"{where} must be 0 where state_filter is Puerto Rico alone, got {budget}")
            try:
                if budget:
                    _law(self.privacy_definition, self.stability(table), budget)
            except ValueError as error:
                raise ValueError(f"{where} is out of reach of the noise, got {budget}") from error
        return MappingProxyType(budgets)


Settings = Config | Mapping[str, Any] | str | os.PathLike[str]
"""Types that `read_config` accepts."""


def read_config(source: Settings) -> Config:
    """Read and check a .json file in the Bureau's format, its content, a preset of `PRESETS`, or a `Config`."""
    if isinstance(source, Config):
        return source
    if isinstance(source, Mapping):
        _check_keys("config", source, KEYS)
        renamed = {"privacy_definition" if key == "privacy_defn" else key: value for key, value in source.items()}
        return Config(**renamed)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"config must be a path, the name of a preset, a mapping or a Config, got {shortened(source)}")
    path = PRODUCTION / f"{source}.json" if source in PRESETS else source
    values = read_named(path, "config (us, pr or a file)")
    try:
        _check_keys("config", values, KEYS)
        return read_config(values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{os.fspath(source)}: {error}") from None


def noise_law(config: Config, table: str, level: str) -> DiscreteGaussian | TwoTailedGeometric:
    """Return the law of the noise on every count of a query at a level (algorithm 5 and lemma 3).

    Discrete Gaussian noise has ``sigma**2 = stability**2 / (2 rho)``, two-sided geometric ``epsilon / stability``.
    """
    budget = config.budget(table, level)
    if not budget:
        raise ValueError(f"budget of {table} {level} must be positive for there to be noise, got {budget}")
    return _law(config.privacy_definition, config.stability(table), budget)


def noise_parameters(config: Settings) -> Frame:
    """Tabulate the noise of every released query and level; `read_config` reads the settings.

    One row for each query and level with a budget: ``TABLE``, ``LEVEL``, ``BUDGET`` (rho, or epsilon in nats),
    ``STABILITY``, ``VARIANCE`` (squared persons or households) and ``NOISE_DISTRIBUTION``. ``VARIANCE`` is as in
    production: sigma squared for the discrete Gaussian, the variance itself for the two-sided geometric.
    """
    config = read_config(config)
    rows = []
    for table, level, budget in config.budgets():
        law, stability = noise_law(config, table, level), config.stability(table)
        variance = law.variance if isinstance(law, TwoTailedGeometric) else stability**2 / (2 * budget)
        rows.append((table, level, budget, stability, variance, NOISE[config.privacy_definition]))
    return Frame.from_rows(("TABLE", "LEVEL", "BUDGET", "STABILITY", "VARIANCE", "NOISE_DISTRIBUTION"), rows)


def _law(definition: str, stability: int, budget: float) -> DiscreteGaussian | TwoTailedGeometric:
    # One step of float64 towards more noise, so that rounding never spends more than the budget.
    if definition == "puredp":
        return TwoTailedGeometric(math.nextafter(budget / stability, 0))
    return DiscreteGaussian(math.nextafter(stability / math.sqrt(2 * budget), math.inf))


def _check_keys(what: str, values: Any, names: Sequence[str]) -> None:
    if not isinstance(values, Mapping):
        raise TypeError(f"{what} must be an object with the keys {', '.join(names)}, got {shortened(values)}")
    missing = [name for name in names if name not in values]
    unknown = [shortened(key) for key in values if key not in names]
    if missing or unknown:
        parts = [f"no {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown[:5])}"] * bool(unknown)
        raise ValueError(f"{what} must have the keys {', '.join(names)}, got {' and '.join(parts)}")


def _check_table(table: str) -> None:
    if table not in QUERIES:
        raise ValueError(f"table must be one of {', '.join(QUERIES)}, got {shortened(table)}")


def _budget(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{where} must be a number, got {shortened(value)}")
    number = value if isinstance(value, int) else float(value)  # an integer may be too large for a float
    if not 0 <= number <= sys.float_info.max:
        raise ValueError(f"{where} must be 0 or more and finite, got {shortened(value)}")
    return float(number)


def _states(codes: Any) -> tuple[str, ...]:
    listed = tuple(codes) if isinstance(codes, list | tuple) else ()
    if listed == (PUERTO_RICO,):
        return listed
    wrong = [code for place, code in enumerate(listed) if code not in STATES or code in listed[:place]]
    if wrong or not listed:
        rule = "a list of distinct codes of states in quotes (01 to 56, without 03, 07, 14, 43, 52), or 72 alone"
        raise ValueError(f"state_filter must be {rule}, got {shortened(wrong or codes)}")
    return listed
