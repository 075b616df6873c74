"""What CONTRIBUTING.md shows is what the tests run, and runs as it is printed."""

import ast
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT, blocks

SHOWN = {
    "tests/audit/attacks/test_own_attack.py": ["Rounding"],
    "tests/algorithms/test_own_system.py": ["Toy", "release_toy"],
    "tests/audit/methods/test_own_family.py": ["TotalVariation", "Difference"],
}
KNOWN = [  # what the last line of each has made known
    "from audit.attacks import attack_names\nassert 'fractional_bits' in attack_names()",
    "from algorithms.systems import systems\nassert systems('toy')['toy'].claim == PureDP(1.0)",
    "from audit.claims import parse_claim\nassert parse_claim('variation:0.25') == TotalVariation(0.25)",
]
BLOCKS = blocks(ROOT / "CONTRIBUTING.md", "python")


@pytest.mark.parametrize(("file", "block"), [*zip(SHOWN, BLOCKS, strict=True)])
def test_the_code_is_that_of_the_tests(file, block):
    source = (ROOT / file).read_text("utf-8")
    nodes = {node.name: node for node in ast.parse(source).body if hasattr(node, "name")}

    def text(node):
        first = min(part.lineno for part in (node, *node.decorator_list))
        return "\n".join(source.splitlines()[first - 1 : node.end_lineno])

    assert "\n\n\n".join(text(nodes[name]) for name in SHOWN[file]) in block


def test_the_code_runs_as_it_is_printed(tmp_path):  # in one process, each block in a module of its own
    code = [block + known for block, known in zip(BLOCKS, KNOWN, strict=True)]
    run = f"for code in {code}: exec(code, {{'__name__': '__main__'}})"
    done = subprocess.run([sys.executable, "-"], input=run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
