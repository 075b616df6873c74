"""What an audit is of: mechanisms of one's own and registered systems, each on its pairs of neighboring databases."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, NamedTuple

from audit.cli.inputs.databases import Asked, Named, bundled, pairs_of
from audit.cli.inputs.mechanisms import own_mechanism
from audit.installed import offered
from audit.neighbors import NeighborPair

__all__ = ["Target", "Wanted", "of_no_counts", "targets_of"]


class Wanted(NamedTuple):
    """What the options say of registered systems."""

    stage: str
    pair: str
    settings: dict[str, Any]  # budgets, as far as they are given


class Target(NamedTuple):
    """A mechanism by its name, and the pairs on which it runs."""

    name: str
    mechanism: Any
    pairs: list[Named]


def of_no_counts(names: list[str]) -> bool:
    """Tell whether a system that is named has pairs of its own, and takes no counts: nothing runs."""
    return any(":" not in name and not _system(name).of_counts for name in names)


def targets_of(names: list[str], asked: Asked, wanted: Wanted) -> list[Target]:
    """Return what is named, built; databases of counts are read once."""
    systems = {name: _system(name) for name in names if ":" not in name}
    for system in systems.values():
        _check_settings(system, wanted)
    counted = [name for name in names if name not in systems or systems[name].of_counts]
    pairs = pairs_of(asked) if counted else []
    return [
        Target(name, _built(systems[name], asked, wanted) if name in systems else own_mechanism(name), pairs)
        if name in counted
        else _on_its_own_pair(systems[name], asked.relation, wanted)
        for name in names
    ]


def _system(name: str) -> Any:
    """Return a registered system, or say what is called nearly so."""
    known = offered("systems").systems()
    if name not in known:
        near = ", ".join(get_close_matches(name, known)) or "all are in `plaudit list`"
        raise ValueError(f"no system is called {name!r}: {near}")
    return known[name]


def _built(system: Any, asked: Asked, wanted: Wanted) -> Any:
    """Return the mechanism of a system of counts, on the tree of the data that are asked for."""
    return _mechanism(system, wanted, {"data": asked.data} if asked.data in bundled() else {})


def _on_its_own_pair(system: Any, relation: str, wanted: Wanted) -> Target:
    """Return a system on the pair of a name, or on its first of a relation."""
    try:
        pairs: dict[str, NeighborPair] = {
            name: system.pair(name) for name in ([wanted.pair] if wanted.pair else system.pairs)
        }
    except ImportError as error:
        raise ValueError(str(error)) from error
    found = [name for name, pair in pairs.items() if pair.relation == (relation or pair.relation)]
    if not found:
        raise ValueError(f"{system.name} has no pair of {relation} neighbors, got --pair {', '.join(pairs)}")
    pair = pairs[found[0]]
    mechanism = _mechanism(system, wanted, {"relation": pair.relation} if "relation" in system.settings else {})
    words = " ".join(filter(None, (wanted.stage, wanted.pair)))
    return Target(system.name, mechanism, [Named(words, pair, {})])


def _check_settings(system: Any, wanted: Wanted) -> None:
    """Refuse a budget that a system does not have."""
    if unknown := wanted.settings.keys() - set(system.settings):
        there = [f"--{name}" for name in ("epsilon", "rho") if name in system.settings]
        raise ValueError(f"{system.name} takes {' or '.join(there) or 'no budget'}, got --{min(unknown)}")
    if not wanted.settings.get("epsilon", 0.0) < system.below:
        raise ValueError(f"{system.name} needs an epsilon below {system.below:g}, got {wanted.settings['epsilon']:g}")


def _mechanism(system: Any, wanted: Wanted, settings: dict[str, Any]) -> Any:
    """Return the mechanism of a system with the budget that is asked for, or one of its stages."""
    try:
        return system.mechanism(stage=wanted.stage, **wanted.settings, **settings)
    except ImportError as error:
        raise ValueError(str(error)) from error
