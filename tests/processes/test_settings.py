"""What a seed decides is the same under any settings of the machine: audits of all kinds, and releases."""

from __future__ import annotations

import json
import locale
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.processes.everything import CONTROL

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "PYTHONHASHSEED": ["0", "1", "9", "4242", "random"],
    "OMP_NUM_THREADS": ["1", "2", "4"],
    "OPENBLAS_NUM_THREADS": ["1", "2", "4"],
    "LC_ALL": ["C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", "ar_EG.UTF-8", ""],  # nothing: LANG is heeded
    "LANG": ["C", "fr_FR.UTF-8", "ja_JP.EUC-JP"],
    "TZ": ["UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati", "NoSuch/Place"],
    "PYTHONUTF8": ["0", "1"],
    "COLUMNS": ["20", "80", "400"],
}
PLAIN = {name: values[0] for name, values in SETTINGS.items()}
JOBS = (1, 2, 3)  # of the settings that one test tries


@pytest.fixture(scope="module")
def made(good_files):
    """What is made under settings, in a process of its own; once where they are the same."""

    @cache
    def make(settings: tuple[tuple[str, str], ...], jobs: int) -> dict[str, object]:
        command = [sys.executable, "-m", "tests.processes.everything", str(good_files), str(jobs)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **dict(settings)}
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return lambda settings, jobs: make(tuple(settings.items()), jobs)


def missing_locales():
    """Return those that this machine does not have: a process falls back to C, and tries nothing."""
    before, missing = locale.setlocale(locale.LC_ALL), []
    for name in sorted({*SETTINGS["LC_ALL"], *SETTINGS["LANG"]} - {""}):
        try:
            locale.setlocale(locale.LC_ALL, name)
        except locale.Error:
            missing.append(name)
    locale.setlocale(locale.LC_ALL, before)
    return missing


@pytest.mark.slow
@pytest.mark.reliability(13)
@pytest.mark.parametrize("part", range(8))
def test_what_a_seed_decides_is_the_same_under_any_settings(record_property, made, part):
    if missing := missing_locales():
        pytest.skip(f"needs the locales {', '.join(missing)}")
    rng, plain = random.Random(part), made(PLAIN, 1)
    record_property("tried", len(JOBS) * (len(plain) - 1))
    for jobs in JOBS:
        settings = {name: rng.choice(values) for name, values in SETTINGS.items()}
        found = made(settings, jobs)
        control = {CONTROL} if settings["PYTHONHASHSEED"] != PLAIN["PYTHONHASHSEED"] else set()
        assert {name for name in plain if found[name] != plain[name]} == control, (settings, jobs)
        assert found.keys() == plain.keys()
