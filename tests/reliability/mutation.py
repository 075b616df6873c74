"""Would the tests notice a change of the code? ``python -m tests.reliability.mutation [--size N] [--seed S]``.

Each mutant is one small change, by the operators of cosmic-ray, of what proves a bound: claims, bounds, methods, exact
losses, neighbors. The quick tests of its room that enter the changed function run on it, and kill it if one of them
fails. Mutants are not written to disk but imported from memory, by processes forked from one that has the libraries
loaded: a new interpreter for each would cost more than the tests. (mutmut forks as well, but passes over module
constants and whatever is decorated, such as every claim.)
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import contextlib
import importlib.abc
import importlib.util
import itertools
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import coverage
import numpy as np
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from hypothesis import Phase, settings
from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
LIBRARIES = ["joblib", "pandas", "polars", "scipy.signal", "sklearn.linear_model"]
BITWISE, IDENTITY = {"RShift", "LShift", "BitOr", "BitAnd", "BitXor"}, {"Is", "IsNot"}
MOST_MEMORY = 8 << 30  # bytes that a mutant may ask for: one with a changed exponent asks for all there is
UNSHRUNK = "unshrunk"
NOT_IMPORTED = 99  # exit code of tests that ran without the module that is changed


@dataclass(frozen=True)
class Room:
    """Sources that are changed and the tests that should notice, as paths from the root."""

    sources: str
    tests: tuple[str, ...]
    root: Path = ROOT

    def modules(self) -> list[Path]:
        path = self.root / self.sources
        return sorted(path.rglob("*.py")) if path.is_dir() else [path]


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
        """Return the number of the first line that is changed, and what was there before and is after."""
        old, new = self.path.read_text("utf-8").splitlines(), self.text.splitlines()
        first = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
        rest = zip(reversed(old[first:]), reversed(new[first:]), strict=False)
        last = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], rest))
        before, after = (" ".join(line.strip() for line in lines[first : len(lines) - last]) for lines in (old, new))
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


class _FromMemory(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports the changed module from its text, whatever its file says."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.used = mutant, False
        self.module = mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def find_spec(self, name, path=None, target=None):
        return (
            importlib.util.spec_from_file_location(name, self.mutant.path, loader=self) if name == self.module else None
        )

    def get_filename(self, name):
        return str(self.mutant.path)

    def get_data(self, path):
        self.used = True
        return self.mutant.text.encode()


def _run_tests(root: Path, words: list[str], mutant: Mutant | None, reached: str) -> None:
    """Run tests until one fails, on a mutant or the source as it is, and end the process with their code."""
    os.environ["COVERAGE_FILE"] = reached
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.chdir(root)
    sys.path.insert(0, str(root))
    finder = _FromMemory(mutant) if mutant else None
    if finder:
        sys.meta_path.insert(0, finder)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        # One failure will do, and nobody looks at the simplest one.
        settings.register_profile(
            UNSHRUNK, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
        )
        words = [f"--hypothesis-profile={UNSHRUNK}", *words]
    # Plain: pytest's own way to import, for better messages, comes before the mutant's.
    code = int(pytest.main(["-q", "-x", "--assert=plain", "--rootdir", str(root), *words]))
    os._exit(NOT_IMPORTED if finder and not finder.used else code)


def _forked(root: Path, words: list[str], mutant: Mutant | None, limit: float | None, reached: str = "") -> int | None:
    """Return the exit code of tests in a process of their own, or None where they took longer than the limit."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.reliability.mutation", *LIBRARIES])
    process = context.Process(target=_run_tests, args=(root, words, mutant, reached))
    process.start()
    process.join(limit)
    code = process.exitcode
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # with whatever its tests have left running
    process.kill()  # which may not lead a group yet
    process.join()
    return code


def _unchanged(room: Room) -> tuple[float, coverage.CoverageData]:
    """Return how long tests take on the source as it is, where all must pass, and which lines each of them runs."""
    with tempfile.TemporaryDirectory() as folder:
        reached = str(Path(folder) / "reached.coverage")
        words = [f"--cov={room.sources}", f"--cov-config={os.devnull}", "--cov-context=test", "--cov-report="]
        began = time.monotonic()
        code = _forked(room.root, [*words, *room.tests], None, None, reached)
        if code != 0:
            raise RuntimeError(f"tests must pass on the source as it is, got exit code {code} of {room.tests}")
        seconds, data = time.monotonic() - began, coverage.CoverageData(no_disk=True)
        saved = coverage.CoverageData(reached)
        saved.read()
        data.update(saved)
        return seconds, data


def _outcome(mutant: Mutant, seconds: float, reached: coverage.CoverageData) -> str:
    """Return whether a mutant was ``killed``, ``survived``, or ``timed out``: as good as killed."""
    words = _tests_of(mutant, reached)
    code = _forked(mutant.room.root, words, mutant, 60 + seconds) if words else 0
    if code not in (None, 0, 1, 2, 3):
        raise RuntimeError(f"tests must import what is changed, got exit code {code} of {words} with {mutant}")
    return {None: "timed out", 0: "survived"}.get(code, "killed")


def _tests_of(mutant: Mutant, reached: coverage.CoverageData) -> list[str]:
    """Return the tests that enter the changed function: all of the room, if it runs on import."""
    contexts = reached.contexts_by_lineno(str(mutant.path))
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
    known = {room: _unchanged(room) for room in rooms}
    drawn = list(sample(rooms, size, seed))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda mutant: _outcome(mutant, *known[mutant.room]), drawn))
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


def main() -> int:
    parser = argparse.ArgumentParser(description="Would the tests notice a change of the code?")
    parser.add_argument("--size", type=int, default=400, help="mutants to draw at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(json.dumps(score(size=options.size, seed=options.seed, jobs=options.jobs), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
