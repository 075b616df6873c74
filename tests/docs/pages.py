"""The pages that a reader sees, and the code that is on them."""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "figures/README", "LIMITATIONS", "SECURITY", "THREAT_MODEL")),
    Path(__file__).with_name("other_names.md"),  # examples of public names that no page needs to show
    *sorted(path for path in DOCS.rglob("*.md") if "generated" not in path.parts and path.name != "papers.md"),
]


def blocks(page: Path, kind: str) -> list[str]:
    """Return the fenced blocks of a kind, such as ``console`` or ``{code-cell}``, without their options."""
    found = re.findall(rf"^```{re.escape(kind)}\n(.*?)^```$", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"^(:[a-z-]+:.*\n)+\n?", "", block) for block in found]


def interactive(page: Path) -> list[doctest.Example]:
    """Return the examples with a prompt."""
    return doctest.DocTestParser().get_examples(page.read_text("utf-8"), page.name)
