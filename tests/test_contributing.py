"""What CONTRIBUTING.md shows is what the tests run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHOWN = {
    "tests/audit/attacks/test_own_attack.py": ["Rounding"],
    "tests/algorithms/test_own_system.py": ["Toy", "release_toy"],
    "tests/audit/methods/test_own_family.py": ["TotalVariation", "Difference"],
}


@pytest.mark.parametrize("file", SHOWN)
def test_the_code_is_that_of_the_tests(file):
    source = (ROOT / file).read_text("utf-8")
    nodes = {node.name: node for node in ast.parse(source).body if hasattr(node, "name")}

    def text(node):
        first = min(part.lineno for part in (node, *node.decorator_list))
        return "\n".join(source.splitlines()[first - 1 : node.end_lineno])

    parts = [text(nodes[name]) for name in SHOWN[file]]
    blocks = re.findall(r"```python\n(.*?)\n```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
    assert "\n\n\n".join(parts) in blocks


def test_an_attack_is_small():
    tree = ast.parse((ROOT / "tests/audit/attacks/test_own_attack.py").read_text("utf-8"))
    (attack,) = [node for node in tree.body if getattr(node, "name", "") == "Rounding"]
    assert attack.end_lineno - attack.lineno + 1 <= 30
