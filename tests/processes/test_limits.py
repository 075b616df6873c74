"""Limits of the system: too few addresses, files or processes are one line and exit code 2, or the same result."""

from __future__ import annotations

import os
import random
import re
import resource
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.processes.commands import COMMANDS
from tests.processes.making import NOBODY, Making
from tests.processes.running import run


def few_addresses(making: Making, rng: random.Random) -> bool:
    """So many bytes more than the process has before it begins."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return limited(making, resource.RLIMIT_AS, used + rng.choice([0, rng.randrange(2**20), rng.randrange(2**26)]))


def few_files(making: Making, rng: random.Random) -> bool:
    """So many files open at the same time, of which the process has some before it begins."""
    return limited(making, resource.RLIMIT_NOFILE, max(map(int, os.listdir("/proc/self/fd"))) + rng.randrange(2, 12))


def few_processes(making: Making, rng: random.Random) -> bool:
    """No further processes and threads, for somebody whom limits concern."""
    if os.geteuid():
        pytest.skip("needs the right to be somebody else")
    return limited(making, resource.RLIMIT_NPROC, rng.randrange(3), partial(os.setuid, NOBODY))


def limited(making: Making, kind: int, size: int, before: Callable[[], None] = bool) -> bool:
    folder = making.prepared()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def limit() -> None:
        resource.setrlimit(kind, (size, size))
        before()

    ended = run(making.command, folder, limit, watched=True)
    crashed = re.fullmatch(CRASH, ended.err, re.DOTALL)  # of what is compiled, whose own words may come before
    return making.held(replace(ended, err=crashed[1]) if crashed else ended, folder, lost=False)


CRASH = r"(?:.*\n)?(\w+: error: the command was ended by (?:SIGSEGV|SIGABRT|SIGBUS), before it had finished[^\n]*\n)"
WAYS = (few_addresses, few_files, few_processes)
QUICK = [pytest.param(way, "replay", marks=pytest.mark.quick) for way in WAYS]
FULL = [pytest.param(way, name, marks=pytest.mark.slow) for way in WAYS for name in COMMANDS]


@pytest.mark.reliability(17)
@pytest.mark.parametrize(("way", "name"), [*QUICK, *FULL])
def test_within_such_a_limit_it_says_so_or_makes_the_same(request, record_property, making, way, name):
    times = 5 if request.node.get_closest_marker("slow") else 1
    rng, one = random.Random(f"{way.__name__} {name}"), making(COMMANDS[name])
    ended = [way(one, rng) for _ in range(times)]
    record_property("tried", ended.count(False))  # the others did not meet the limit
