"""Mutants of some modules: small changes of their source, by the operators of cosmic-ray.

Those that change nothing that runs are left out, and those of which any test would tell, or none.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

BITWISE, IDENTITY = {"RShift", "LShift", "BitOr", "BitAnd", "BitXor"}, {"Is", "IsNot"}


@dataclass(frozen=True)
class Room:
    """Sources that are changed and the tests that should notice, as paths from the root."""

    sources: str
    tests: tuple[str, ...]
    root: Path

    def files(self, *places: str) -> list[Path]:
        """Return the modules in some places, each a module or a folder."""
        found = (sorted(path.rglob("*.py")) if path.is_dir() else [path] for path in map(self.root.joinpath, places))
        return [one for files in found for one in files]

    @property
    def digest(self) -> str:
        """Return a digest of sources and tests: what was found of others is not taken over."""
        texts = [path.read_bytes() for path in self.files(self.sources, *self.tests)]
        return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


@dataclass(frozen=True)
class Mutant:
    """One change of one module: by which operator of cosmic-ray, and at which of its places."""

    room: Room
    path: Path
    operator: str
    occurrence: int
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        text = mutate_code(self.path.read_text("utf-8"), get_operator(self.operator)(), self.occurrence)
        object.__setattr__(self, "text", text)

    @property
    def module(self) -> str:
        """Return the name by which the module is imported."""
        return self.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def file(self) -> str:
        """Return the path from the root."""
        return str(self.path.relative_to(self.room.root))

    @property
    def place(self) -> str:
        """Return path and line of the change."""
        return f"{self.file}:{self.lines()[0]}"

    @property
    def change(self) -> str:
        """Return what stood there and what stands there now."""
        return self.lines()[1]

    def lines(self) -> tuple[int, str]:
        """Return the number of the first line that is changed, and what was there before and is after."""
        old, new = self.path.read_text("utf-8").splitlines(), self.text.splitlines()
        first = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
        rest = zip(reversed(old[first:]), reversed(new[first:]), strict=False)
        last = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], rest))
        before, after = (" ".join(line.strip() for line in lines[first : len(lines) - last]) for lines in (old, new))
        return first + 1, f"{before} -> {after}"


def telling(operator: str) -> bool:
    """Whether a change is worth a try: shifting the bits of floats always fails, and words are what they equal."""
    _, *kinds = operator.split("_")
    return len(kinds) != 2 or not any(len(set(kinds) & these) == 1 for these in (BITWISE, IDENTITY))


def mutants(rooms: list[Room]) -> list[tuple[Room, Path, str, int]]:
    """Return every change of every module, always in the same order."""
    operators = {name: get_operator(name) for name in sorted(operator_names()) if telling(name)}
    operators = {name: operator() for name, operator in operators.items() if not operator.arguments()}
    found = []
    for room in rooms:
        for path in room.files(room.sources):
            nodes = list(ast_nodes(get_ast(path.read_text("utf-8"))))
            for name, operator in operators.items():
                places = sum(1 for node in nodes for _ in operator.mutation_positions(node))
                found += [(room, path, name, occurrence) for occurrence in range(places)]
    return found


class Bare(ast.NodeTransformer):
    """What runs of a source: without annotations, which only tools read.

    Nor with the marks ``*`` and ``/`` among arguments, which cosmic-ray takes for arithmetic: they say how calls are
    written.
    """

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
def program(text: str) -> str | None:
    """Return what runs of a source: mutants of the same program change nothing. None where it is no program."""
    try:
        return ast.dump(Bare().visit(ast.parse(text)))
    except SyntaxError:  # cosmic-ray takes the stars of ``{**one}`` for a power
        return None


def sample(rooms: list[Room], size: int | None, seed: int) -> Iterator[Mutant]:
    """Yield so many mutants in random order, or all of them, without those that change nothing that runs."""
    population, left = mutants(rooms), size
    for at in np.random.default_rng(seed).permutation(len(population)):
        if left == 0:
            return
        mutant = Mutant(*population[at])
        if program(mutant.text) not in (None, program(mutant.path.read_text("utf-8"))):
            left = None if left is None else left - 1
            yield mutant


def body(mutant: Mutant) -> range | None:
    """Return the lines of the function in whose body a change stands, or None where it runs on import."""
    line, found = mutant.lines()[0], None
    for node in ast.walk(ast.parse(mutant.path.read_text("utf-8"))):  # from the outside in
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line <= node.end_lineno:
            found = found or range(node.body[0].lineno, node.end_lineno + 1)
    return found
