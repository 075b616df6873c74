"""Which branches the default tests take: ``python -m tests.reliability.branches FILE``, of data that coverage kept.

The data are those of branch mode, such as ``pytest --cov audit --cov algorithms --cov-branch`` leaves in ``.coverage``.
Only processes that coverage starts count, so that what tests of the command run elsewhere is not in them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import coverage

LEAST = {"audit": 0.95, "algorithms": 0.90}
SHOWN = 10


def taken(data_file: Path | str) -> dict:
    """Return the branches of both packages and how many were taken, and the modules that miss the most of them."""
    measured = coverage.Coverage(data_file=str(data_file), config_file=False)
    measured.load()
    if not measured.get_data().has_arcs():
        raise ValueError(f"coverage must be measured with branches, got {data_file}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        measured.json_report(outfile=str(report), include=[f"*/{package}/*" for package in LEAST])
        files = json.loads(report.read_text("utf-8"))["files"]
    ...
