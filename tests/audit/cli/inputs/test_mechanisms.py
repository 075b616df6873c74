"""Mechanisms of a user's own: a module beside the user, and no library; results say which file it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.audit.cli.desk import MINE, NO_POWER, OWN, Command, audited, refused


@pytest.mark.parametrize(("module", "library"), [("colorsys", "colorsys.py"), ("time", "in Python itself")])
def test_a_module_with_the_name_of_a_library_is_refused(
    plaudit: Command, workspace: Path, module: str, library: str
) -> None:
    (workspace / f"{module}.py").write_text(MINE)
    outcome = plaudit("audit", f"{module}:noisy", *OWN)
    assert refused(outcome, f"a module of your own must not have the name of a library, got {module!r}, which is ")
    assert outcome.err.endswith(f"{library}\n")


def test_results_say_which_file_was_imported(plaudit: Command, workspace: Path) -> None:
    source = {"file": "mine.py", "sha256": hashlib.sha256(MINE.encode()).hexdigest()}
    assert audited(plaudit, "mine:noisy", *OWN).provenance["imported"] == source
    assert "imported" not in audited(plaudit, "gdpc").provenance
    assert plaudit("replay", "mine:noisy", *OWN, "--out", "out").code == NO_POWER  # its noise passes no seam
    (path,) = Path("out").glob("*.json")
    assert json.loads(path.read_bytes())["provenance"]["imported"] == source
