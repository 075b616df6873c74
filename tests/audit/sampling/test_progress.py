"""What is shown while an audit runs, and what every result says about where it was made."""

import datetime
import io
import json
import platform
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from audit.results.provenance import provenance
from audit.sampling import progress
from audit.sampling.progress import progress_bar


@pytest.fixture
def screen(monkeypatch):
    """Return what would be written to a terminal, and how to choose its kind and the patience with it."""
    written = io.StringIO()

    def prepare(*, terminal=True, kind="xterm", patience=0.0):
        monkeypatch.setattr(progress, "PATIENCE", patience)
        options = {"file": written, "force_terminal": terminal, "width": 100, "_environ": {"TERM": kind}}
        monkeypatch.setattr(progress, "console", lambda stderr: Console(**options))
        return written

    return prepare


def work(total=10, **options):
    with progress_bar("count", total, **options) as advance:
        for _ in range(total):
            advance(1)


def test_by_default_there_is_a_bar_on_the_terminal_of_the_main_process_alone(screen, monkeypatch):
    written = screen()
    work(visible=None)
    assert "10/10" in written.getvalue()
    written.truncate(0)
    monkeypatch.setattr(progress.multiprocessing.current_process(), "_name", "LokyProcess-1")
    work(visible=None)
    assert written.getvalue() == ""


@pytest.mark.parametrize(
    ("options", "visible"),
    [
        ({"patience": 1e6}, True),
        ({"patience": 1e6, "kind": "dumb"}, True),
        ({"terminal": False}, True),
        ({}, False),
        ({"terminal": False}, None),
    ],
)
def test_silence_for_short_work_off_a_terminal_and_on_request(options, visible, screen):
    written = screen(**options)
    work(visible=visible)
    assert written.getvalue() == ""


def test_long_work_says_how_far_it_is_where_there_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress_bar("count\x1b[2J of\nall", 12000) as advance:
        for _ in range(2):
            time.sleep(0.02)
            advance(1500)
    lines = stream.getvalue().splitlines()
    assert lines == [f"plaudit: count [2J of all: {done} of 12,000 runs after 0 min" for done in ("1,500", "3,000")]


def test_provenance_names_software_platform_and_time():
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    found = provenance(size=5, selection=0.3)
    created = datetime.datetime.fromisoformat(found["created"])
    assert before <= created <= datetime.datetime.now(datetime.UTC)
    assert created.utcoffset() == datetime.timedelta(0)
    assert found["software"]["numpy"] == np.__version__
    assert set(found["software"]) == {"plaudit", "numpy", "scipy", "scikit-learn", "joblib"}
    assert found["python"] == platform.python_version()
    assert platform.system() in found["platform"]
    assert found["parameters"] == {"size": 5, "selection": 0.3}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
