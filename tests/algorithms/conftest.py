"""What the tests of systems stand on."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Write files of rows, of text or of what becomes JSON into a folder of their own, which is the current one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # what killed runs have left elsewhere is not named
    monkeypatch.chdir(tmp_path)

    def write(files):
        for name, content in files.items():
            if isinstance(content, list):
                with Path(name).open("w", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(content)
            else:
                Path(name).write_text(content if isinstance(content, str) else json.dumps(content))

    return write
