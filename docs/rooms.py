"""The picture of docs/architecture.md, from the imports: ``python docs/rooms.py`` draws it again."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "_static" / "rooms.svg"
PACKAGES = ("audit", "algorithms", "experiments")
WIDTH, HEIGHT, BETWEEN, FLOOR, MARGIN = 104, 24, 12, 54, 24

parsed = cache(ast.parse)  # trees that several rules of tests/test_house.py read
Graph = dict[str, set[str]]


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Yield what a source imports, wherever in it, type checking included; ``from a import b`` gives ``a.b``."""
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
        elif isinstance(node, ast.Call) and called(node.func).endswith(("import_module", "__import__")):
            target = node.args[0]
            if isinstance(target, ast.Constant):
                yield str(target.value)
            elif isinstance(target, ast.JoinedStr) and isinstance(target.values[0], ast.Constant):
                yield str(target.values[0].value)


def called(function: ast.expr) -> str:
    """Return what is called by ``a.b()`` and by ``b()``: b."""
    return getattr(function, "attr", getattr(function, "id", ""))


def import_graph(sources: Mapping[str, tuple[str, bool]]) -> Graph:
    """Return which module imports which: sources are texts by module and whether it is a package."""
    graph = {}
    for module, (text, is_package) in sources.items():
        found = set(imports(parsed(text), module, is_package))
        found = {name if name in sources else name.rpartition(".")[0] for name in found}
        graph[module] = {name for name in found if name in sources and name != module}
    return graph


def rooms() -> Graph:
    """Return which folder or module of a package imports which, within the package."""
    sources = {}
    for path in (path for package in PACKAGES[:2] for path in (ROOT / package).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        sources[module] = (path.read_text("utf-8"), path.name == "__init__.py")
    graph: Graph = {}
    for module, targets in import_graph(sources).items():
        room, inside = room_of(module), {room_of(target) for target in targets}
        if room.count(".") and not room.endswith("__main__"):
            own = {target for target in inside if target.count(".") and target.split(".")[0] == room.split(".")[0]}
            graph.setdefault(room, set()).update(own - {room})
    return graph


def room_of(module: str) -> str:
    """Return the folder or module of a package where a module is."""
    return ".".join(module.split(".")[:2])


def floors(graph: Graph) -> list[list[str]]:
    """Return the rooms from the ground up, each above all that it imports, near those."""
    height: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in height:
            height[room] = 1 + max((of(target) for target in graph[room]), default=-1)
        return height[room]

    levels: list[list[str]] = [[] for _ in range(1 + max(map(of, sorted(graph))))]
    for room in sorted(graph):
        levels[height[room]].append(room)
    place: dict[str, float] = {}
    for level in levels:
        near = {room: math.fsum(place[t] for t in graph[room]) / max(1, len(graph[room])) for room in level}
        for number, room in enumerate(sorted(level, key=lambda room: (near[room], room))):
            place[room] = (number + 0.5) / len(level)
        level.sort(key=place.__getitem__)
    return levels


def direct(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield the imports that no longer way through other rooms replaces."""

    @cache
    def below(room: str) -> frozenset[str]:
        return frozenset(graph[room]).union(*map(below, graph[room]))

    for room, targets in sorted(graph.items()):
        for target in sorted(targets):
            if not any(target in below(other) for other in targets - {target}):
                yield room, target


def drawing() -> str:
    """Return the picture: one part a package, a room in each box, a line down to what it imports."""
    graph, parts, top, width = rooms(), [], float(MARGIN), 0.0
    of_audit = {
        room_of(name)
        for path in (ROOT / "algorithms").rglob("*.py")
        for name in imports(parsed(path.read_text("utf-8")), "", False)
        if room_of(name) in graph and name.startswith("audit.")
    }
    for package in reversed(PACKAGES[:2]):
        own = {room: targets for room, targets in graph.items() if room.startswith(f"{package}.")}
        levels = floors(own)
        width = max(width, 2 * MARGIN + max(map(len, levels)) * (WIDTH + BETWEEN) - BETWEEN)
        parts.append((package, own, levels))
    text, lines, boxes = [], [], []
    for package, own, levels in parts:
        text.append(f'<text class="package" x="{MARGIN}" y="{top + 12:g}">{package}/</text>')
        at = {}
        for number, level in enumerate(reversed(levels)):
            step = (width - 2 * MARGIN) / len(level)
            for place, room in enumerate(level):
                at[room] = (MARGIN + (place + 0.5) * step, top + 26 + number * FLOOR)
        for room, target in direct(own):
            (x, y), (to_x, to_y) = at[room], at[target]
            bend = math.copysign(FLOOR / 2, to_y - y)
            lines.append(
                f'<path d="M{x:.0f} {y + HEIGHT:.0f}C{x:.0f} {y + HEIGHT + bend:.0f} '
                f'{to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y:.0f}"/>'
            )
        for room, (x, y) in sorted(at.items()):
            kind = ' class="shared"' if room in of_audit else ""
            boxes.append(f'<rect{kind} x="{x - WIDTH / 2:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>')
            boxes.append(f'<text x="{x:.0f}" y="{y + 16:.0f}">{room.partition(".")[2]}</text>')
        top += 26 + len(levels) * FLOOR
    style = (
        "text{font:12px system-ui,sans-serif;text-anchor:middle;fill:#222}.package{font-weight:600;text-anchor:start}"
        "rect{fill:#fff;stroke:#888}.shared{fill:#dbe9f6;stroke:#2166ac}path{fill:none;stroke:#bbb}"
        "@media(prefers-color-scheme:dark){text{fill:#eee}rect{fill:#222}.shared{fill:#1d3b57}path{stroke:#666}}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {top:.0f}" role="img">',
            "<title>Rooms of audit and of algorithms, each above those that it imports</title>",
            f"<style>{style}</style>",
            *lines,
            *boxes,
            *text,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(drawing(), "utf-8")
