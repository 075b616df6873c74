"""The rules of the house, read from the source: which way imports go, how large rooms are, what is documented."""

import ast
import gc
import importlib
import itertools
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import audit
from docs.rooms import PACKAGES, PICTURE, drawing, import_graph, imports, parsed
from tests.docs.test_glossary import wrong
from tests.test_plaudit import HEAVY

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
SOURCES |= {"plaudit": ROOT / "plaudit.py"}
TESTS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "tests").rglob("*.py"))
}
MODULES = sorted(SOURCES)
IMPORTABLE = [
    name
    for name in MODULES
    if not name.endswith(".__main__") and not name.startswith("algorithms.data.") and name != "plaudit"
]

# Floors, from the ground up: a room imports from lower floors, and from its own room. Rooms of one floor do not see
# each other.
FLOORS = {
    "audit": [
        {"arguments", "installed", "io", "values"},
        {"exact", "written"},
        {"claims"},
        {"events", "mechanism", "neighbors"},
        {"adapters", "outputs", "bounds"},
        {"results"},
        {"sampling"},
        {"attacks"},
        {"methods"},
        {"estimates", "measure"},
        {"planning", "replay"},
        {"review"},
        {"explorer", "report"},
        {"testing"},
        {"cli"},
    ],
    "algorithms": [
        {"extras", "hierarchy", "schema"},
        {"noise"},
        {"data", "population"},
        {"release", "registry"},
        {path.parent.name for path in (ROOT / "algorithms").glob("*/system.py")} - {"bugs"},
        {"bugs", "counts"},
        {"systems"},
    ],
}
FLOOR_OF = {
    f"{package}.{room}": floor
    for package, floors in FLOORS.items()
    for floor, rooms in enumerate(floors)
    for room in rooms
}
# Of audit, algorithms import no more than these: they do not know of audits. What enters and leaves, and sheets of the
# explorer, are for the engine of releases and for what registers a system; and for those who have to.
OF_AUDIT = {"arguments", "claims", "exact", "neighbors"}
SHEET = "audit.explorer.sheet"  # what a sheet of the explorer is, as data: it imports no more than they may
SHEETS = {"algorithms.counts.explorer", "algorithms.topdown.explorer.sheet", "algorithms.phsafe.explore"} | {
    "algorithms.phsafe.workbook"
}
READERS = {"algorithms.schema", "algorithms.phsafe.budget", "algorithms.nist.contest"}  # of public settings
WORKERS = {"algorithms.noise.drawing", "algorithms.topdown.estimate"}  # that share work out
MOST_MODULES, MOST_LINES = 16, 400
# Lines, at most 2% more than there are.
WEIGHT = {"audit": 23_790, "algorithms": 20_200, "experiments": 8_050, "tests": 41_990}
LONGER = {"algorithms.topdown.estimation.kernels"}  # compiled once and cached by file


def wrong_imports(source, module, is_package=False):
    """Imports that go up, or sideways to another room of the floor."""
    package, *rooms = module.split(".")
    room = ".".join([package, *rooms[:1]])
    return [
        name
        for name in imports(parsed(source), module, is_package)
        if name.split(".")[0] in (*PACKAGES, "plaudit", "tests") and not allowed(name, package, room, module)
    ]


def allowed(name, package, room, module):
    other, *rooms = name.split(".")
    target = ".".join([other, *rooms[:1]])
    if other == "tests":  # those of a package reach no tests of another, whatever they share with all
        return package == "tests" and (not {rooms[0], room.partition(".")[2]} <= {*PACKAGES} or rooms[0] in room)
    if package == "tests":
        return True
    if other != package:
        if "plaudit" in (other, package):  # the door of the house, which nothing inside comes back to
            return package == "experiments" or other == "audit"
        if package == "algorithms":
            return other == "audit" and bool(rooms) and (rooms[0] in OF_AUDIT or outside(rooms[0], name, room, module))
        return package == "experiments"
    if package == "experiments" or room == target or room not in FLOOR_OF:  # a package's own door sees all of it
        return True
    return target in FLOOR_OF and FLOOR_OF[target] < FLOOR_OF[room]


def outside(room_of_audit, name, room, module):
    """Whether a module of algorithms may import what enters and leaves, or a sheet of the explorer."""
    trusted = room in ("algorithms.release", "algorithms.systems") or module.endswith(".system")
    if f"{name}.".startswith(f"{SHEET}."):
        return trusted or module in SHEETS
    return room_of_audit == "io" and (trusted or module in READERS | WORKERS)


def check_order(texts):
    """Raise an error that names modules which import each other in a circle."""
    TopologicalSorter(import_graph(texts)).prepare()


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


def undocumented(source, public=None):
    """Sections that docstrings of public functions lack: what they return, and that they raise."""
    for node in public_definitions(parsed(source)):
        if not isinstance(node, ast.FunctionDef) or (public is not None and node.name not in public):
            continue
        own, sections = list(own_nodes(node)), sections_of(node)
        if any(isinstance(part, ast.Raise) for part in own) and "Raises" not in sections:
            yield f"{node.name} raises"
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own):
            if "Yields" not in sections:
                yield f"{node.name} yields"
        elif any(isinstance(part, ast.Return) and part.value is not None for part in own) and "Returns" not in sections:
            yield f"{node.name} returns"


def messages(source):
    """What a file may show a user: strings with a space that are no docstring and no list of names."""
    nodes = ast.walk(parsed(source))
    apart = {node.value for node in nodes if isinstance(node, ast.Expr) or getattr(node, "attr", "") == "split"}
    shown = [node.value for node in nodes if isinstance(node, ast.Constant) and node not in apart]
    return "\n".join(text for text in shown if isinstance(text, str) and " " in text.strip())


# The rules


@pytest.fixture(scope="module", autouse=True)
def uncollected():
    """Trees of all sources are a million nodes: no search for garbage goes through them, and each rule finds a list."""
    gc.disable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ast, "walk", cache(lambda tree, walk=ast.walk: [*walk(tree)]))
        yield
    parsed.cache_clear()
    gc.enable()


def broken_by(rule, modules=MODULES):
    """What breaks a rule, by module."""
    found = {name: list(rule((SOURCES | TESTS)[name].read_text("utf-8"), name)) for name in modules}
    return {name: wrong for name, wrong in found.items() if wrong}


def test_imports_go_down():  # all sources are parsed, 1 s
    rooms = {
        f"{package}.{path.stem}" for package in FLOORS for path in (ROOT / package).iterdir() if "__" not in path.stem
    }
    used_rooms = {room for room in rooms if room in MODULES or any(m.startswith(f"{room}.") for m in MODULES)}
    assert used_rooms <= FLOOR_OF.keys()
    assert broken_by(lambda text, name: wrong_imports(text, name, SOURCES[name].name == "__init__.py")) == {}


def test_tests_reach_their_own_package():  # all tests are parsed, 1 s
    assert broken_by(wrong_imports, TESTS) == {}


def test_no_imports_run_in_a_circle():
    texts = {name: (path.read_text("utf-8"), path.name == "__init__.py") for name, path in (SOURCES | TESTS).items()}
    check_order(texts)


def test_the_picture_is_as_the_imports_are():
    assert PICTURE.read_text("utf-8") == drawing(), "python docs/rooms.py draws it again"


def test_rooms_are_small():
    folders = Counter(path.parent for path in SOURCES.values() if not path.stem.startswith("__"))
    folders += Counter(path.parent for path in (ROOT / "tests").rglob("test_*.py"))
    assert {str(folder.relative_to(ROOT)) for folder, n in folders.items() if n > MOST_MODULES} == set()
    lines = broken_by(lambda text, name: [n] if (n := len(text.splitlines())) > MOST_LINES else [])
    assert lines.keys() <= LONGER


def test_the_house_stays_light():
    """It was too heavy to take over once, although each change had been small."""
    weights = {
        name: sum(len(path.read_bytes().splitlines()) for path in (ROOT / name).rglob("*.py")) for name in WEIGHT
    }
    assert {name: lines for name, lines in weights.items() if lines > WEIGHT[name]} == {}


def test_every_package_says_what_lives_there():
    packages = [name for name, path in SOURCES.items() if path.name == "__init__.py"]
    assert broken_by(lambda text, name: [] if ast.get_docstring(parsed(text)) else ["silent"], packages) == {}


def test_arrays_are_read_without_pickle():
    """Modules that unpickle are banned by ruff's rule TID251, which knows no arguments."""
    assert broken_by(lambda text, name: re.findall(r"allow_pickle=(?!False\b)", text)) == {}


def test_messages_use_one_word_for_one_thing():
    assert broken_by(lambda text, name: wrong(messages(text), "messages")) == {}
    others = [path for kind in ("*.toml", "words.*.json", "*.j2") for path in (ROOT / "audit").rglob(kind)]
    assert {str(path): found for path in others if (found := wrong(path.read_text("utf-8"), "messages"))} == {}


def test_every_public_name_exists():
    for module in IMPORTABLE:
        loaded = importlib.import_module(module)
        listed = getattr(loaded, "__all__", None)
        if listed is None:  # a script, or a package of parts, which offers nothing to import
            assert module.startswith("experiments") or SOURCES[module].name == "__init__.py"
            continue
        assert len(set(listed)) == len(listed)
        for name in listed:
            assert getattr(loaded, name) is not None
            assert not name.startswith("_")


def test_public_docstrings_say_what_comes_back_and_what_goes_wrong():
    """Those of what `import audit` offers; everything else says in a line or two what it does."""
    homes = {}
    for name in audit.__all__:
        homes.setdefault(getattr(audit, name).__module__, set()).add(name)
    assert {"measure_loss", "per_run"} <= set().union(*homes.values())
    assert broken_by(lambda text, name: undocumented(text, homes[name]), sorted(homes)) == {}


def test_importing_the_instrument_costs_nothing():
    heavy = (*HEAVY, "algorithms", "experiments")
    code = f"import sys, audit; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    assert found.stderr == ""


def test_algorithms_load_little_of_the_instrument():
    rooms = "sorted({'.'.join(m.split('.')[:2]) for m in sys.modules if m.startswith('audit')})"
    code = f"import sys, algorithms.bugs; print({rooms})"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['audit', 'audit.arguments', 'audit.claims', 'audit.exact']"


# The rules can fail


@pytest.mark.parametrize(
    ("source", "module", "wrong"),
    [
        ("import algorithms", "audit.measure.loss", ["algorithms"]),
        ("def f():\n    from algorithms.noise import Laplace", "audit.measure.loss", ["algorithms.noise.Laplace"]),
        ("from audit import claims, bounds", "algorithms.noise", ["audit.bounds"]),
        ("from audit.explorer.sheet import Sheet", "algorithms.phsafe.explore", []),
        ("from audit.explorer.sheet import Sheet", "algorithms.phsafe.ledger", ["audit.explorer.sheet.Sheet"]),
        ("from audit.io.files import sync", "algorithms.topdown.release", ["audit.io.files.sync"]),
        ("from audit.io.files import sync\nfrom audit.explorer import sheet", "algorithms.ons.system", []),
        ("from algorithms.ons import laws", "algorithms.nist.mechanism", ["algorithms.ons.laws"]),
        ("import importlib\nimportlib.import_module('algorithms')", "audit.cli", ["algorithms"]),
        ("importlib.import_module(f'algorithms.{name}')", "audit.cli", ["algorithms."]),
        ("from audit import bounds\nfrom algorithms import noise", "experiments.one", []),
        ("from plaudit import foreign_package", "audit.cli.doctor", ["plaudit.foreign_package"]),
        ("from plaudit import main", "audit.__main__", ["plaudit.main"]),
        ("import_module('audit.cli')\nimport algorithms", "plaudit", ["algorithms"]),
        ("from tests.helpers import noisy\nimport tests.audit.audits, audit.cli", "tests.audit.cli.test_app", []),
        ("from tests.audit import audits", "tests.algorithms.test_systems", ["tests.audit.audits"]),
    ],
)
def test_a_wrong_import_is_seen(source, module, wrong):
    assert wrong_imports(source, module) == wrong


@pytest.mark.parametrize("back", ["def f():\n    from a import x", "if TYPE_CHECKING:\n    import a"])
def test_a_circle_is_seen(back):
    sources = {"a": "import b", "b": "import c", "c": "", "d": "import a"}
    TopologicalSorter(import_graph({name: (text, False) for name, text in sources.items()})).prepare()
    with pytest.raises(CycleError):
        TopologicalSorter(
            import_graph({name: (text, False) for name, text in (sources | {"c": back}).items()})
        ).prepare()


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
    sections = "".join(f"\n\n    {name}\n    {'-' * len(name)}\n    int" for name in ("Returns", "Yields", "Raises"))
    full = f"Say.{sections}\n    "
    assert list(undocumented(f'__all__ = [\'f\']\ndef f(x):\n    """{full}"""\n{body}')) == []
