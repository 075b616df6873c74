"""What an audit is of: mechanisms of one's own and registered systems, each on its pairs of neighboring databases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

import typer

from audit.claims import Claim, parse_claim
from audit.cli.inputs.databases import Asked, Named, bundled, pairs_of
from audit.cli.inputs.mechanisms import blaming, own_mechanism
from audit.cli.inputs.options import OF_PERSONS, refuse
from audit.installed import offered
from audit.neighbors import NeighborPair

__all__ = ["Target", "Wanted", "promise_of", "targets_asked"]

RUNS = 200_000
OF_CELLS = "cell cells people move_to add_row replace_row"  # options
OF_SYSTEMS = f"epsilon rho preset stage pair {OF_PERSONS}"


class Wanted(NamedTuple):
    """What the options say of registered systems."""

    preset: str
    stage: str
    pair: str
    settings: dict[str, Any]  # budgets, as far as they are given


class Target(NamedTuple):
    """A mechanism by its name, the pairs on which it runs, and the system that it is if it has pairs of its own."""

    name: str
    mechanism: Any
    pairs: list[Named]
    system: Any = None

    @property
    def runs(self) -> int:
        """Of an audit by default."""
        return int(self.system.runs) if self.system else RUNS


def targets_asked(context: typer.Context, names: list[str]) -> list[Target]:
    """Return what is named, built as the options of a command say; databases of counts are read once.

    Options that do not go with what is named are refused.
    """
    given = {name: value for name, value in context.params.items() if value is not None}
    _check_names(context, names)
    systems = {name: _system(name, given.get("preset", "")) for name in names if ":" not in name}
    persons = {name: given[name] for name in OF_PERSONS.split() if name in given}
    if persons or ("data" in given and any(not one.of_counts and one.own for one in systems.values())):
        systems = {name: _on_persons(system, given, persons) for name, system in systems.items()}
        refuse(context, OF_CELLS, "is for counts: persons have pairs of their own, give --pair")
    elif all(system.of_counts for system in systems.values()):
        refuse(context, "pair", "is for systems that are not for counts: give --data and --cell")
    else:
        refuse(context, f"data {OF_CELLS} public_data", "is for counts: give --pair, as `plaudit list` names them")
    asked = Asked(**{name: given[name] for name in Asked._fields if name in given})
    budgets: dict[str, Any] = {name: given[name] for name in ("epsilon", "rho") if name in given}
    wanted = Wanted(given.get("preset", ""), given.get("stage", ""), given.get("pair", ""), budgets)
    for system in systems.values():
        _check_settings(system, wanted)
    counted = [name for name in names if name not in systems or systems[name].of_counts]
    pairs = pairs_of(asked) if counted else []
    return [
        Target(name, _built(systems[name], asked, wanted) if name in systems else own_mechanism(name), pairs)
        if name in counted
        else _on_its_own_pair(systems[name], asked.relation, wanted, secret="data" in given and not asked.public_data)
        for name in names
    ]


def promise_of(target: Target, claim: str, notes: list[str]) -> Claim:
    """Return what a mechanism promises on its pairs, or what `claim` says; `notes` tells of conversions."""
    relation = target.pairs[0].pair.relation
    with blaming(target.name):
        promised = parse_claim(claim, relation) if claim else getattr(target.mechanism, "claim", None)
    if not isinstance(promised, Claim):
        raise ValueError(f"{target.name} has no claim of its own: give --claim, such as pure:1 or zcdp:0.5")
    if promised.relation == relation:
        return promised
    notes.append(f"{target.name} promises {promised}, which is {promised.under(relation)}.")
    return promised.under(relation)


def _check_names(context: typer.Context, names: list[str]) -> None:
    """Refuse names that do not go together, with each other or with options."""
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise ValueError(f"every mechanism must be named once, got {', '.join(twice)} twice")
    if context.params.get("add_row") is not None or context.params.get("replace_row") is not None:
        refuse(context, "cell cells people move_to", "is for counts, and --add-row and --replace-row for records")
    if own := [name for name in names if ":" in name]:
        if context.params["data"] is None:
            raise ValueError(f"{own[0]} needs --data: a file of counts or records, or the name of bundled counts")
        if len(own) == len(names):
            refuse(context, OF_SYSTEMS, "is for the systems of `plaudit list`: give --claim")
    if len(own) < len(names):
        refuse(context, "add_row replace_row", "is for mechanisms of your own, module:object")


def _on_persons(system: Any, given: dict[str, Any], persons: dict[str, Any]) -> Any:
    """Return a system on a file of persons."""
    if "data" not in given:
        raise ValueError(f"--{min(persons)} goes with --data: a file of persons")
    try:
        return system.on(given["data"], **persons)
    except ImportError as error:
        raise ValueError(str(error)) from error


def _system(name: str, preset: str) -> Any:
    """Return a registered system with the settings of a name, or say what is called nearly so."""
    known = offered("systems").systems()
    if name not in known:
        near = " or ".join(get_close_matches(name, known))
        raise ValueError(f"no system is called {name!r}: {f'did you mean {near}?' if near else 'see `plaudit list`'}")
    return known[name].preset(preset) if preset else known[name]


def _built(system: Any, asked: Asked, wanted: Wanted) -> Any:
    """Return the mechanism of a system of counts, on the tree of the data that are asked for."""
    return _mechanism(system, wanted, {"data": asked.data} if asked.data in bundled() else {})


def _on_its_own_pair(system: Any, relation: str, wanted: Wanted, *, secret: bool) -> Target:
    """Return a system on the pair of a name, or on its first of a relation."""
    names = [wanted.pair] if wanted.pair else system.pairs
    try:
        made: Iterator[NeighborPair] = (system.pair(name) for name in names)
        found = next((pair for pair in made if pair.relation == (relation or pair.relation)), None)
    except ImportError as error:
        raise ValueError(str(error)) from error
    if found is None:
        raise ValueError(f"{system.name} has no pair of {relation} neighbors, got --pair {', '.join(names)}")
    pair = found.as_confidential() if secret else found
    mechanism = _mechanism(system, wanted, {"relation": pair.relation} if "relation" in system.settings else {})
    words = " ".join(filter(None, (wanted.preset, wanted.stage, wanted.pair)))
    return Target(system.name, mechanism, [Named(words, pair, {})], system)


def _check_settings(system: Any, wanted: Wanted) -> None:
    """Refuse a budget that a system does not have."""
    if unknown := wanted.settings.keys() - set(system.settings):
        there = [f"--{name}" for name in ("epsilon", "rho") if name in system.settings]
        raise ValueError(f"{system.name} takes {' or '.join(there) or 'no budget'}, got --{min(unknown)}")
    if system.below <= wanted.settings.get("epsilon", 0.0) < math.inf:  # what is no budget at all it refuses itself
        raise ValueError(f"{system.name} needs an epsilon below {system.below:g}, got {wanted.settings['epsilon']:g}")


def _mechanism(system: Any, wanted: Wanted, settings: dict[str, Any]) -> Any:
    """Return the mechanism of a system with the budget that is asked for, or one of its stages."""
    try:
        return system.mechanism(stage=wanted.stage, **wanted.settings, **settings)
    except ImportError as error:
        raise ValueError(str(error)) from error
