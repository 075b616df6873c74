"""Select the mechanisms to run (the user's own, or registered systems), with pairs of neighboring databases."""

from __future__ import annotations

import hashlib
import importlib
import math
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib.machinery import PathFinder
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import typer

from audit.claims import Claim, parse_claim
from audit.cli.exits import words_of
from audit.cli.inputs.databases import Named, pairs_of, population_of
from audit.cli.inputs.groups import DatabaseOptions, TargetOptions, WorkerOptions
from audit.cli.inputs.options import PERSONS, SETTINGS, option_of, refuse, suggestion
from audit.cli.inputs.parameters import read_parameters, writable
from audit.installed import plugin
from audit.io.files import recorded
from audit.mechanism import in_this_process
from audit.sampling.anew import import_anew

__all__ = ["Target", "blaming", "own_mechanism", "promise_of", "select_targets", "source_of"]

RUNS = 200_000
BUDGETS = "epsilon rho"
OF_CELLS = "cell cells people move_to add_row replace_row"  # options
OF_SYSTEMS = f"{BUDGETS} preset stage pair {PERSONS}"
WITH_OPTION = {*SETTINGS, *(field.name for field in fields(TargetOptions))}  # parameters that --set does not take


class Target(NamedTuple):
    """A mechanism, its name and pairs, and its registered system if the system defines the pairs."""

    name: str
    mechanism: Any
    pairs: list[Named]
    system: Any = None
    parameters: tuple[str, ...] = ()  # of --set, as the user wrote them

    def named(self, *words: str) -> str:
        """Return the name of a result, with words for the pair."""
        return " ".join(filter(None, (self.name, *self.parameters, *words)))

    @property
    def runs(self) -> int:
        """The default number of runs of an audit."""
        return int(self.system.runs) if self.system else RUNS


def select_targets(
    context: typer.Context,
    names: list[str],
    options: TargetOptions,
    databases: DatabaseOptions,
    workers: WorkerOptions | None = None,
) -> list[Target]:
    """Build the named mechanisms from the options and start the workers; options of other targets are an error."""
    _check_names(context, names, options, databases)
    preset = options.settings.get("preset", "")
    systems = {name: _system(name, preset) for name in names if ":" not in name}
    counts = all(system.of_counts for system in systems.values())
    if counts and options.areas is not None and options.spec is None:
        refuse(context, "pair geo public groups units config derive", "is for persons: counts have --areas and --count")
    elif options.given(PERSONS) or (options.data and any(not one.of_counts and one.own for one in systems.values())):
        systems = {name: system.on(options.data, **options.given(PERSONS)) for name, system in systems.items()}
        refuse(context, OF_CELLS, "is for counts: persons have pairs of their own, give --pair")
    elif counts:
        refuse(context, "pair", "is for systems that are not for counts: give --data and --cell")
    else:
        refuse(context, f"data {OF_CELLS} public_data", "is for counts: give --pair, as `plaudit list NAME` names them")
    for system in systems.values():
        _check_budgets(system, options.given(BUDGETS))
    draw = plugin("systems").DRAWN.get(options.data)
    of_data = {} if draw is None else writable(signature(draw, eval_str=True).parameters)
    targets: list[Target] = []
    pairs: list[Named] = []
    tree: dict[str, Any] = {}
    for name in names:
        system = systems.get(name)
        own = {} if system is None else {key: one for key, one in system.settings.items() if key not in WITH_OPTION}
        of = name if of_data or system is None or not system.of_counts else f"{name} without --data uniform"
        values = read_parameters(options.parameters, writable(own) | of_data, of)
        own = {key: value for key, value in values.items() if key not in of_data}
        if system is not None and not system.of_counts:
            target = _on_its_own_pair(system, options, own)
        else:
            if not pairs:  # all mechanisms of counts or records share them
                records = databases.add_row or databases.replace_row
                drawn = {key: value for key, value in values.items() if key in of_data}
                population = None if records else population_of(options, drawn)
                pairs = pairs_of(options, databases, population)
                tree = {} if population is None or population[1] is None else {"tree": population[1]}
            mechanism = own_mechanism(name) if system is None else _mechanism(system, options, own | tree)
            target = Target(name, mechanism, pairs)
        targets.append(target._replace(parameters=tuple(options.parameters)))
    if workers is not None:  # after the imports, so that workers can import the same modules
        context.with_resource(workers.started())
    return targets


def promise_of(target: Target, claim: str, notes: list[str] | None = None) -> Claim:
    """Return the promise of a mechanism, or of `claim`, under the relation of its pairs; note a conversion."""
    relation = target.pairs[0].pair.relation
    with blaming(target.name):
        promised = parse_claim(claim, relation) if claim else getattr(target.mechanism, "claim", None)
    if not isinstance(promised, Claim):
        raise ValueError(f"{target.name} has no promise of its own: give --claim, such as pure:1 or zcdp:0.5")
    if promised.relation == relation:
        return promised
    if notes is not None:
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
    if options.given(PERSONS) and options.data is None:
        raise ValueError(f"{option_of(min(options.given(PERSONS)))} goes with --data: a file of persons")
    if len(own) < len(names):
        refuse(context, "add_row replace_row", "is for mechanisms of your own, module:object")


def _system(name: str, preset: str) -> Any:
    """Return a registered system with a preset; the error for an unknown name suggests similar names."""
    known = plugin("systems").systems(name)
    if name not in known:
        raise ValueError(f"no system is called {name!r}{suggestion(name, known, ': see `plaudit list`')}")
    return known[name].preset(preset) if preset else known[name]


def _on_its_own_pair(system: Any, options: TargetOptions, values: dict[str, Any]) -> Target:
    """Return a system with these parameters, on the named pair or on its first pair under the relation."""
    names = [options.pair] if options.pair else system.pairs
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
    command: tuple[str, dict[str, Any]] | None = ("search", {})
    if not (pair.adjacency == "verified" and pair.unit == "person"):  # suggest the next pair of the system
        later = [*system.pairs][[*system.pairs].index(chosen) + 1 :]
        command = ("audit", {"pair": later[0], "relation": None}) if later else None
    return Target(system.name, mechanism, [Named(words, pair, {}, command)], system)


def _check_budgets(system: Any, budgets: dict[str, float]) -> None:
    if unknown := budgets.keys() - set(system.settings):
        options = [option_of(name) for name in BUDGETS.split() if name in system.settings]
        takes = " or ".join(options) or "no budget"
        how = f": {system.no_budget}" if system.no_budget else ""
        raise ValueError(f"{system.name} takes {takes}, got {option_of(min(unknown))}{how}")
    if system.below <= budgets.get("epsilon", 0.0) < math.inf:  # the system itself checks that a budget is positive
        raise ValueError(f"{system.name} needs an epsilon below {system.below:g}, got {budgets['epsilon']:g}")


def _mechanism(system: Any, options: TargetOptions, settings: dict[str, Any]) -> Any:
    return system.mechanism(stage=options.stage, **options.given(BUDGETS), **settings)


def own_mechanism(name: str) -> Any:
    """Import a mechanism that the user wrote."""
    module, _, path = name.partition(":")
    if "" in (*module.split("."), *path.split(".")):
        raise ValueError(f"a mechanism of your own is written module:object, got {name!r}")
    if "" not in sys.path:  # find modules of the current folder, after libraries
        sys.path.append("")
    try:
        with in_this_process():
            value: Any = importlib.import_module(module)
    except ImportError as error:
        file = f"; a file is named without .py, {module[:-3]}:{path}" if module.endswith(".py") else ""
        raise ValueError(f"{module!r} cannot be imported: {error}{file}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's code may raise any type
        raise ValueError(f"{module!r} cannot be imported: {_described(error)}") from error
    _check_not_hidden(module)
    for part in path.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{module!r} has no {path!r}{suggestion(part, dir(value))}")
        value = getattr(value, part)
    if not callable(value) or isinstance(value, type):
        raise ValueError(f"{name} must be a mechanism, callable as (data, size, rng), got {type(value).__name__}")
    import_anew(value, name)
    return value


def source_of(name: str) -> dict[str, Any]:
    """Return the file of an imported mechanism and its hash; an empty dict for a registered system."""
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None) if ":" in name else None
    if file is None:
        return {}
    return {"imported": {"file": recorded(file), "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()}}


def _check_not_hidden(module: str) -> None:
    """Raise an error if a library of the same name was imported instead of the user's module."""
    top = module.partition(".")[0]
    beside = PathFinder.find_spec(top, [str(Path.cwd())])
    origin = beside.origin if beside is not None else None
    imported = getattr(sys.modules[top], "__file__", None)
    if origin is not None and (imported is None or Path(imported).resolve() != Path(origin).resolve()):
        library = imported or "in Python itself"
        raise ValueError(f"a module of your own must not have the name of a library, got {top!r}, which is {library}")


def _described(error: BaseException) -> str:
    """Describe an error of the user's code in one line."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {words_of(error)} ({Path(place.filename).name}, line {place.lineno})"


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Turn any exception of a mechanism into one line with its name."""
    try:
        yield
    except (ValueError, TypeError, ConnectionError) as error:  # bad input, or a lost cluster
        raise ValueError(f"{name}: {words_of(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a mechanism may raise any type
        raise ValueError(f"{name} failed: {_described(error)}") from error
