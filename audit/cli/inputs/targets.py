"""The mechanisms to run, the user's own or registered systems, each on its pairs of neighboring databases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from inspect import signature
from typing import Any, NamedTuple

import typer

from audit.claims import Claim, parse_claim
from audit.cli.inputs.databases import Named, pairs_of, population_of
from audit.cli.inputs.mechanisms import blaming, own_mechanism
from audit.cli.inputs.options import (
    PERSONS,
    SETTINGS,
    DatabaseOptions,
    TargetOptions,
    WorkerOptions,
    option_of,
    refuse,
    suggestion,
)
from audit.cli.inputs.parameters import read_parameters, writable
from audit.installed import plugin

__all__ = ["Target", "promise_of", "select_targets"]

RUNS = 200_000
OF_CELLS = "cell cells people move_to add_row replace_row"  # options
OF_SYSTEMS = f"epsilon rho preset stage pair {PERSONS}"
WITH_OPTION = {*SETTINGS, *(field.name for field in fields(TargetOptions))}  # parameters that --set does not take


class Target(NamedTuple):
    """A mechanism with its name, its pairs, and its system if that has pairs of its own."""

    name: str
    mechanism: Any
    pairs: list[Named]
    system: Any = None
    parameters: tuple[str, ...] = ()  # that are set, as they are written

    @property
    def label(self) -> str:
        """The name of its results."""
        return " ".join((self.name, *self.parameters))

    @property
    def runs(self) -> int:
        """Runs of an audit by default."""
        return int(self.system.runs) if self.system else RUNS


def select_targets(
    context: typer.Context,
    names: list[str],
    options: TargetOptions,
    databases: DatabaseOptions | None = None,
    workers: WorkerOptions | None = None,
) -> list[Target]:
    """Return the named mechanisms, built as the options say, and start the workers; refuse options of other targets."""
    databases = databases or DatabaseOptions()
    _check_names(context, names, options, databases)
    preset = options.settings.get("preset", "")
    systems = {name: _system(name, preset) for name in names if ":" not in name}
    counts = all(system.of_counts for system in systems.values())
    if counts and options.areas is not None and options.spec is None:
        refuse(context, "pair geo public groups units config derive", "is for persons: counts have --areas and --count")
    elif options.persons or (options.data and any(not one.of_counts and one.own for one in systems.values())):
        with _extras_needed():
            systems = {name: system.on(options.data, **options.persons) for name, system in systems.items()}
        refuse(context, OF_CELLS, "is for counts: persons have pairs of their own, give --pair")
    elif counts:
        refuse(context, "pair", "is for systems that are not for counts: give --data and --cell")
    else:
        refuse(context, f"data {OF_CELLS} public_data", "is for counts: give --pair, as `plaudit list NAME` names them")
    for system in systems.values():
        _check_budgets(system, options.budgets)
    draw = plugin("systems").DRAWN.get(options.data)
    of_data = {} if draw is None else writable(signature(draw, eval_str=True).parameters)
    values = {name: _parameters(name, systems.get(name), options, of_data) for name in names}
    counted = [name for name in names if name not in systems or systems[name].of_counts]
    records = databases.add_row or databases.replace_row
    data_values = {name: value for name, value in values[names[0]].items() if name in of_data}
    population = population_of(options, data_values) if counted and not records else None
    pairs = pairs_of(options, databases, population) if counted else []
    targets = []
    for name in names:
        own = {key: value for key, value in values[name].items() if key not in of_data}
        if name not in systems:
            target = Target(name, own_mechanism(name), pairs)
        elif name not in counted:
            target = _on_its_own_pair(systems[name], options, own)
        else:
            tree = {} if population is None or population.tree is None else {"tree": population.tree}
            target = Target(name, _mechanism(systems[name], options, own | tree), pairs)
        targets.append(target._replace(parameters=tuple(options.parameters)))
    if workers is not None:  # they find what was imported
        context.with_resource(workers.started())
    return targets


def promise_of(target: Target, claim: str, notes: list[str]) -> Claim:
    """Return what a mechanism promises on its pairs, or what `claim` says; a conversion is added to `notes`."""
    relation = target.pairs[0].pair.relation
    with blaming(target.name):
        promised = parse_claim(claim, relation) if claim else getattr(target.mechanism, "claim", None)
    if not isinstance(promised, Claim):
        raise ValueError(f"{target.name} has no claim of its own: give --claim, such as pure:1 or zcdp:0.5")
    if promised.relation == relation:
        return promised
    notes.append(f"{target.name} promises {promised}, which is {promised.under(relation)}.")
    return promised.under(relation)


def _check_names(context: typer.Context, names: list[str], options: TargetOptions, databases: DatabaseOptions) -> None:
    if several := [name for name in names if "," in name]:
        raise ValueError(f"separate names by spaces, got {several[0]!r}")
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise ValueError(f"every mechanism must be named once, got {', '.join(twice)} twice")
    if databases.add_row or databases.replace_row:
        refuse(context, "cell cells people move_to", "is for counts, and --add-row and --replace-row for records")
    if not databases.add_row:
        refuse(context, "at", "goes with --add-row")
    if own := [name for name in names if ":" in name]:
        if options.data is None:
            raise ValueError(f"{own[0]} needs --data: a file of counts or records, or the name of bundled counts")
        if len(own) == len(names):
            refuse(context, OF_SYSTEMS, "is for the systems of `plaudit list`: give --claim")
    if options.persons and options.data is None:
        raise ValueError(f"{option_of(min(options.persons))} goes with --data: a file of persons")
    if len(own) < len(names):
        refuse(context, "add_row replace_row", "is for mechanisms of your own, module:object")


def _parameters(name: str, system: Any, options: TargetOptions, of_data: dict[str, Any]) -> dict[str, Any]:
    own = {} if system is None else {key: one for key, one in system.settings.items() if key not in WITH_OPTION}
    of = name if of_data or system is None or not system.of_counts else f"{name} without --data uniform"
    return read_parameters(options.parameters, writable(own) | of_data, of)


def _system(name: str, preset: str) -> Any:
    """Return a registered system with a preset, or refuse the name with a suggestion."""
    known = plugin("systems").systems()
    if name not in known:
        raise ValueError(f"no system is called {name!r}{suggestion(name, known, ': see `plaudit list`')}")
    return known[name].preset(preset) if preset else known[name]


def _on_its_own_pair(system: Any, options: TargetOptions, values: dict[str, Any]) -> Target:
    """Return a system with these parameters on the named pair, or on its first pair of the relation."""
    names = [options.pair] if options.pair else system.pairs
    with _extras_needed():
        pairs = ((name, system.pair(name)) for name in names)
        of_relation = (one for one in pairs if one[1].relation == (options.relation or one[1].relation))
        chosen, pair = next(of_relation, ("", None))
    if pair is None:
        raise ValueError(f"{system.name} has no pair of {options.relation} neighbors, got --pair {', '.join(names)}")
    if options.data is not None and not options.public_data:
        pair = pair.as_confidential()
    relation = {"relation": pair.relation} if "relation" in system.settings else {}
    mechanism = _mechanism(system, options, values | relation)
    words = " ".join(filter(None, (options.settings.get("preset", ""), options.stage, options.pair)))
    commands: list[tuple[str, dict[str, Any]]] = [("search", {})]
    if not (pair.adjacency == "verified" and pair.unit == "person"):  # the next pair of those it has
        later = [*system.pairs][[*system.pairs].index(chosen) + 1 :]
        commands = [("audit", {"pair": later[0], "relation": None})] if later else []
    return Target(system.name, mechanism, [Named(words, pair, {}, commands)], system)


def _check_budgets(system: Any, budgets: dict[str, float]) -> None:
    if unknown := budgets.keys() - set(system.settings):
        options = [option_of(name) for name in ("epsilon", "rho") if name in system.settings]
        takes = " or ".join(options) or "no budget"
        how = f": {system.no_budget}" if system.no_budget else ""
        raise ValueError(f"{system.name} takes {takes}, got {option_of(min(unknown))}{how}")
    if system.below <= budgets.get("epsilon", 0.0) < math.inf:  # what is no budget at all it refuses itself
        raise ValueError(f"{system.name} needs an epsilon below {system.below:g}, got {budgets['epsilon']:g}")


def _mechanism(system: Any, options: TargetOptions, settings: dict[str, Any]) -> Any:
    with _extras_needed():
        return system.mechanism(stage=options.stage, **options.budgets, **settings)


@contextmanager
def _extras_needed() -> Iterator[None]:
    """Refuse in one line what needs an extra that is not installed."""
    try:
        yield
    except ImportError as error:
        raise ValueError(str(error)) from error
