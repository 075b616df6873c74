"""Would the tests notice a change of the code? ``python -m tests.reliability.mutation [--size N] [--seed S]``.

Each mutant is one small change, by the operators of cosmic-ray, of what proves a bound: claims, bounds, methods, exact
losses, neighbors. The quick tests of its room that enter the changed function run on it, and kill it if one of them
fails. (cosmic-ray's own runner has no random samples, and runs all tests for each; mutmut passes over module constants
and whatever is decorated, such as every claim.)
"""

import ast
import itertools
import json
import os
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import coverage
import numpy as np
import typer
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from scipy.stats import binomtest

from tests.reliability.checkout import ROOT, copied, run_tests, with_text

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
NOT_FOUND = (4, 5)  # exit codes of pytest where a test that is named does not exist, or none does
BITWISE, IDENTITY = {"RShift", "LShift", "BitOr", "BitAnd", "BitXor"}, {"Is", "IsNot"}


@dataclass(frozen=True)
class Room:
    """Sources that are changed and the tests that should notice, as paths from the root."""

    sources: str
    tests: tuple[str, ...]
    root: Path = ROOT

    def modules(self) -> list[Path]:
        return sorted((self.root / self.sources).rglob("*.py"))


METHODS = ("tests/audit/methods", "tests/audit/planning", "tests/audit/test_one_run.py", "tests/audit/test_stopping.py")
ROOMS = [
    Room("audit/claims", ("tests/audit/claims", "audit/claims")),
    Room("audit/bounds", ("tests/audit/bounds", "audit/bounds")),
    Room("audit/methods", (*METHODS, "audit/methods")),
    Room("audit/exact", ("tests/audit/test_exact.py", "audit/exact")),
    Room("audit/neighbors", ("tests/audit/neighbors", "audit/neighbors")),
]


@dataclass(frozen=True)
class Mutant:
    """One change of one module: by which operator of cosmic-ray, and at which of its places."""

    room: Room
    path: Path
    operator: str
    occurrence: int

    @cached_property
    def text(self) -> str:
        return mutate_code(self.path.read_text("utf-8"), get_operator(self.operator)(), self.occurrence)

    @property
    def file(self) -> str:
        """Return the path from the root."""
        return str(self.path.relative_to(self.room.root))

    @cached_property
    def change(self) -> tuple[int, str]:
        """Return the first line that is changed, by its number, and what it was and is, without comments."""
        old, new = self.path.read_text("utf-8").splitlines(), self.text.splitlines()
        first = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
        rest = zip(reversed(old[first:]), reversed(new[first:]), strict=False)
        last = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], rest))
        lines = [side[first : len(side) - last] for side in (old, new)]
        before, after = (" ".join(line.partition("  # ")[0].strip() for line in part) for part in lines)
        return first + 1, f"{before} -> {after}"

    @property
    def body(self) -> range | None:
        """The lines of the function in whose body the change stands, or None where it runs on import."""
        for node in ast.walk(ast.parse(self.path.read_text("utf-8"))):  # from the outside in
            if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= self.change[0] <= (node.end_lineno or 0):
                return range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        return None


def sample(rooms: list[Room], size: int | None, seed: int) -> Iterator[Mutant]:
    """Yield so many mutants in random order, or all of them, without those that change nothing that runs."""
    population, left = list(_mutants(rooms)), size
    for at in np.random.default_rng(seed).permutation(len(population)):
        if left == 0:
            return
        mutant = population[at]
        if _program(mutant.text) not in (None, _program(mutant.path.read_text("utf-8"))):
            left = None if left is None else left - 1
            yield mutant


def _mutants(rooms: list[Room]) -> Iterator[Mutant]:
    operators = {name: get_operator(name) for name in sorted(operator_names()) if _worth_a_try(name)}
    operators = {name: operator() for name, operator in operators.items() if not operator.arguments()}
    for room in rooms:
        for path in room.modules():
            nodes = list(ast_nodes(get_ast(path.read_text("utf-8"))))
            for name, operator in operators.items():
                places = sum(1 for node in nodes for _ in operator.mutation_positions(node))
                yield from (Mutant(room, path, name, occurrence) for occurrence in range(places))


def _worth_a_try(operator: str) -> bool:
    """Whether a change may survive: shifting the bits of floats always fails, and words are what they equal."""
    _, *kinds = operator.split("_")
    return len(kinds) != 2 or not any(len(set(kinds) & these) == 1 for these in (BITWISE, IDENTITY))


class _Bare(ast.NodeTransformer):
    """What runs of a source: without annotations, and without the marks among arguments, taken for arithmetic."""

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        node.defaults = [*node.defaults, *filter(None, node.kw_defaults)]
        node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


@cache
def _program(text: str) -> str | None:
    """Return what runs of a source: mutants of the same program change nothing. None where it is no program."""
    try:
        return ast.dump(_Bare().visit(ast.parse(text)))
    except SyntaxError:  # cosmic-ray takes the stars of ``{**one}`` for a power
        return None


def _unchanged(room: Room, folder: Path) -> tuple[float, coverage.CoverageData]:
    """Return how long tests take on the source as it is, where all must pass, and which lines each of them runs."""
    began = time.monotonic()
    words = [f"--cov={room.sources}", f"--cov-config={os.devnull}", "--cov-context=test", "--cov-report="]
    code, printed = run_tests(folder, *words, *room.tests)
    if code != 0:
        raise RuntimeError(f"tests must pass on the source as it is, got exit code {code} of {room.tests}: {printed}")
    reached = coverage.CoverageData(str(folder / ".coverage"))
    reached.read()
    return time.monotonic() - began, reached


def _tests_of(mutant: Mutant, reached: coverage.CoverageData, folder: Path) -> list[str]:
    """Return the tests that enter the changed function: all of the room, if it runs on import."""
    contexts = reached.contexts_by_lineno(str(folder / mutant.file))
    names = {name for line in mutant.body or () for name in contexts.get(line, [])}
    if mutant.body is None or "" in names:
        return list(mutant.room.tests)
    return sorted({name.rpartition("|")[0] for name in names})


def score(rooms=ROOMS, *, size: int | None = 400, seed: int = 1, jobs: int = 2) -> dict[str, Any]:
    """Return how many mutants of a random sample were tried and killed, its interval at 95%, and those that survived.

    A mutant that hangs for a minute longer than all tests take is killed. One that no test can kill counts as a
    survivor, with the reason why.
    """
    why = {(one["file"], one["change"]): one["why"] for one in tomllib.loads(EQUIVALENT.read_text("utf-8"))["mutant"]}
    drawn = list(sample(rooms, size, seed))
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        first, *others = (copied(Path(place) / str(number), rooms[0].root) for number in range(jobs))
        known = {room: _unchanged(room, first) for room in rooms}
        folders: SimpleQueue[Path] = SimpleQueue()
        for folder in (first, *others):
            folders.put(folder)

        def outcome(mutant: Mutant) -> str:
            seconds, reached = known[mutant.room]
            tests, folder = _tests_of(mutant, reached, first), folders.get()
            with with_text(folder / mutant.file, mutant.text):
                code = run_tests(folder, *tests, limit=60 + seconds)[0] if tests else 0
                if code in NOT_FOUND:  # it may have renamed the tests, which is no failure
                    code = run_tests(folder, *mutant.room.tests, limit=60 + seconds)[0]
            folders.put(folder)
            return {None: "timed out", 0: "survived"}.get(code, "killed")

        found = list(pool.map(outcome, drawn))
    survivors = [mutant for mutant, name in zip(drawn, found, strict=True) if name == "survived"]
    killed = len(drawn) - len(survivors)
    interval = binomtest(killed, len(drawn)).proportion_ci(0.95, "exact")
    return {
        "tried": len(drawn),
        "killed": killed,
        "timed out": found.count("timed out"),
        "interval": [interval.low, interval.high],
        "survivors": [
            {
                "place": f"{one.file}:{one.change[0]}",
                "change": one.change[1],
                "why": why.get((one.file, one.change[1]), ""),
            }
            for one in sorted(survivors, key=lambda one: (one.file, one.change[0]))
        ],
    }


def main(size: int = 400, seed: int = 1, jobs: int = 2) -> None:
    """Print what the tests notice of so many random changes."""
    print(json.dumps(score(size=size, seed=seed, jobs=jobs), indent=1))


if __name__ == "__main__":
    typer.run(main)
