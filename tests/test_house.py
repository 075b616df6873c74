"""The rules of the house, read from the source: which way imports go, what is documented, what starting up costs."""

from __future__ import annotations

import ast
import importlib
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("audit", "algorithms", "experiments")
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
MODULES = sorted(SOURCES)
IMPORTABLE = [name for name in MODULES if not name.endswith(".__main__") and not name.startswith("algorithms.data.")]
ALLOWED = {
    "audit": {"audit"},
    "algorithms": {"algorithms", "audit.claims", "audit.exact"},
    "experiments": {"experiments", "algorithms", "audit"},
}
UNPICKLERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal"}
STORAGE = {"joblib.dump", "joblib.load"}  # pickles under another name


def imports(tree, module, is_package):
    """Every module that a source imports, wherever in it, type checking included; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parent = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parent, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            target = node.args[0]
            if isinstance(target, ast.Constant):
                yield str(target.value)
            elif isinstance(target, ast.JoinedStr) and isinstance(target.values[0], ast.Constant):
                yield str(target.values[0].value)


def wrong_imports(source, module, is_package=False):
    package = module.split(".")[0]
    return [
        name
        for name in imports(ast.parse(source), module, is_package)
        if name.split(".")[0] in PACKAGES
        and not any(f"{name}.".startswith(f"{allowed}.") for allowed in ALLOWED[package])
    ]


def unpickled(source):
    """Imports and arguments by which a file could run code when it is read."""
    tree = ast.parse(source)
    found = [name for name in imports(tree, "", False) if name.split(".")[0] in UNPICKLERS or name in STORAGE]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in STORAGE:
            found.append(ast.unparse(node))
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append("allow_pickle")
    return found


def own_nodes(function):
    """What belongs to a function itself, not to functions and classes defined in it."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def sections_of(function):
    lines = (ast.get_docstring(function) or "").splitlines()
    return {line for line, below in itertools.pairwise(lines) if line and set(below) == {"-"}}


def public_definitions(tree):
    """Functions and classes that a module lists in ``__all__``."""
    listed = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed = set(ast.literal_eval(node.value))
    return [node for node in tree.body if getattr(node, "name", None) in listed]


def undocumented(source):
    """Sections that docstrings lack: what public functions return, and that they or public methods raise."""
    for node in public_definitions(ast.parse(source)):
        methods = (
            [part for part in node.body if isinstance(part, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else []
        )
        named = {f"{node.name}.{method.name}": method for method in methods if not method.name.startswith("_")}
        if isinstance(node, ast.FunctionDef):
            named = {node.name: node}
        for name, function in named.items():
            own, sections = list(own_nodes(function)), sections_of(function)
            if any(isinstance(part, ast.Raise) for part in own) and "Raises" not in sections:
                yield f"{name} raises"
            if function is not node:
                continue
            if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own):
                if "Yields" not in sections:
                    yield f"{name} yields"
            elif (
                any(isinstance(part, ast.Return) and part.value is not None for part in own)
                and "Returns" not in sections
            ):
                yield f"{name} returns"


# The rules


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    assert wrong_imports(SOURCES[module].read_text("utf-8"), module, SOURCES[module].name == "__init__.py") == []


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_unpickled(module):
    assert unpickled(SOURCES[module].read_text("utf-8")) == []


@pytest.mark.parametrize("module", IMPORTABLE)
def test_every_public_name_exists(module):
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", None)
    if listed is None:
        bare = ast.get_docstring(ast.parse(SOURCES[module].read_text("utf-8")))  # a script, or a package of parts
        assert module.startswith("experiments") or (SOURCES[module].name == "__init__.py" and bare)
        return
    assert len(set(listed)) == len(listed)
    for name in listed:
        assert getattr(loaded, name) is not None
        assert not name.startswith("_")


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith("experiments")])
def test_docstrings_say_what_comes_back_and_what_goes_wrong(module):
    assert list(undocumented(SOURCES[module].read_text("utf-8"))) == []


def test_importing_the_instrument_costs_nothing():
    heavy = ("scipy", "matplotlib", "sklearn", "joblib", "rich", "algorithms", "experiments")
    code = f"import sys, audit; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    assert found.stderr == ""


def test_the_exhibits_load_two_modules_of_the_instrument():
    code = "import sys, algorithms.bugs; print(sorted(m for m in sys.modules if m.startswith('audit')))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['audit', 'audit.claims', 'audit.claims.profiles', 'audit.exact']"


# The rules can fail


@pytest.mark.parametrize(
    ("source", "module", "wrong"),
    [
        ("import algorithms", "audit.loss", ["algorithms"]),
        ("def f():\n    from algorithms.noise import Laplace", "audit.loss", ["algorithms.noise.Laplace"]),
        ("from experiments import run", "algorithms.noise", ["experiments.run"]),
        ("from audit import claims, bounds", "algorithms.noise", ["audit.bounds"]),
        ("from audit import PureDP", "algorithms.noise", ["audit.PureDP"]),
        ("import audit.exact_not", "algorithms.noise", ["audit.exact_not"]),
        ("from . import noise\nfrom .. import audit", "algorithms.data.build", []),
        ("import importlib\nimportlib.import_module('algorithms')", "audit.cli", ["algorithms"]),
        ("importlib.import_module(f'algorithms.{name}')", "audit.cli", ["algorithms."]),
        ("from audit.claims import PureDP\nimport audit.exact\nimport numpy", "algorithms.noise", []),
        ("from audit import bounds\nfrom algorithms import noise", "experiments.one", []),
    ],
)
def test_a_wrong_import_is_seen(source, module, wrong):
    assert wrong_imports(source, module) == wrong


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pickle", ["pickle"]),
        ("def f():\n    from pickle import loads", ["pickle.loads"]),
        ("import joblib\njoblib.load('x')", ["joblib.load"]),
        ("from joblib import dump", ["joblib.dump"]),
        ("np.load(path, allow_pickle=True)", ["allow_pickle"]),
        ("np.load(path, allow_pickle=False)\nfrom joblib import Parallel", []),
    ],
)
def test_unpickling_is_seen(source, found):
    assert unpickled(source) == found


@pytest.mark.parametrize(
    ("body", "lacking"),
    [
        ("    return 1", ["f returns"]),
        ("    yield 1", ["f yields"]),
        ("    raise ValueError", ["f raises"]),
        ("    return", []),
        ("    def g():\n        raise ValueError\n    g()", []),
        ("    if x:\n        raise ValueError\n    return lambda: 1", ["f raises", "f returns"]),
    ],
)
def test_a_missing_section_is_seen(body, lacking):
    assert list(undocumented(f'__all__ = [\'f\']\ndef f(x):\n    """Say."""\n{body}')) == lacking
    method = 'class C:\n    def f(self, x):\n        """Say."""\n' + "\n".join(
        f"    {line}" for line in body.split("\n")
    )
    raised = [f"C.{name}" for name in lacking if "raises" in name]
    assert list(undocumented(f"__all__ = ['C']\n{method}")) == raised
    sections = "".join(f"\n\n    {name}\n    {'-' * len(name)}\n    int" for name in ("Returns", "Yields", "Raises"))
    full = f"Say.{sections}\n    "
    assert list(undocumented(f'__all__ = [\'f\']\ndef f(x):\n    """{full}"""\n{body}')) == []
