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


def test_the_first_words_do_not_wait_a_minute_and_fast_runs_do_not_flood(screen, monkeypatch, capsys):
    screen(terminal=False, patience=5.0)
    seconds = 0
    monkeypatch.setattr(progress, "EVERY", 60.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(seconds))

    def lines(*known):
        nonlocal seconds
        seconds = 0
        with progress_bar("count", 1000) as advance:
            for seconds, words in known:  # noqa: B007  the clock reads them
                advance(1, words)
        return [line.removeprefix("plaudit: count: ") for line in capsys.readouterr().err.splitlines()]

    assert lines((4, "low"), (6, ""), (7, "high"), (50, "higher"), (67, ""), (127, "highest"), (128, "")) == [
        "2 of at most 1,000 runs after 6 s: low",
        "5 of at most 1,000 runs after 1 min: higher",
        "7 of at most 1,000 runs after 2 min: highest",
    ]
    assert lines((61, ""), (90, "low"), (100, "high"), (151, "")) == [
        "1 of 1,000 runs after 1 min",
        "2 of at most 1,000 runs after 2 min: low",
        "4 of at most 1,000 runs after 3 min: high",
    ]


def test_words_stand_below_the_bar_with_what_is_left(screen):
    written = screen()
    with progress_bar("count", 100) as advance:
        advance(20)
        advance(0, "odds of 14 to 1")
    bar, words = written.getvalue().split("20/100")[-1].splitlines()[:2]
    assert "odds" not in bar
    assert words.startswith("odds of 14 to 1; at most 80 runs are left")


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
