"""Signals from outside, to the process that watches or the one that works: what is said is true, nothing is half."""

from __future__ import annotations

import os
import random
import re
import select
import signal
import time
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from algorithms.release import engine
from audit.cli import supervision
from audit.cli.exits import INTERRUPTED, USAGE
from tests.fuzz.desk import RUNS
from tests.fuzz.holding import tree
from tests.processes.commands import COMMANDS
from tests.processes.making import Making
from tests.processes.running import KILLED, Changes, Ended, Running, halves, visible
from tests.reliability.plugin import LOG, seed_of

TWO = f"plaudit audit gdpc gdpc-half-noise --epsilon 1 {RUNS} --data counts.csv --out out"
FIRST, SECOND = "out/gdpc.json", "out/gdpc-half-noise.json"
ASKED = {
    "audit": COMMANDS["audit"],
    "two audits": TWO,
    "release ons": COMMANDS["release ons"],
    "experiments run": COMMANDS["experiments run"],
    "report": COMMANDS["report"],
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP, signal.SIGKILL)
WAYS = list(product(("at a time", "at a step"), SIGNALS, ("watcher", "worker")))
PARTS, FULL, SLOW = 5, 7, 1  # of each command: how often each way is tried, by `measure` and by the long tests
LIMIT = 60.0  # seconds until nothing is left, on a machine under load
WORDS = re.compile(r"\w+: interrupted(?:; (?P<more>.*))?\n")
NOTHING, PUBLISHED = "nothing was written", "out holds a whole release, and its budget is spent"
SAVED = "1 of 2 audits finished before that, saved in out"


class Signals:
    """A command that gets signals, and what must be true of it then."""

    def __init__(self, making: Making):
        self.making, self.usual = making, making.undisturbed

    def sent(self, when: str, number: signal.Signals, whom: str, rng: random.Random, limit: float = LIMIT) -> str:
        """Send a signal to a run, hold what it says and leaves against what may be, run it again; say how it ended.

        "in vain" is for a process that had come to its end before.
        """
        making, changes = self.making, Changes(folder := self.making.prepared())
        step = rng.randint(rng.choice([1, max(1, making.steps - 12)]), making.steps) if when == "at a step" else 0
        running = Running(making.command, folder, changes.watched(step, changes.hold), watched=True)
        worker = os.pidfd_open(running.worker)
        victim = worker if whom == "worker" else os.pidfd_open(running.watcher)
        try:
            held = step > 0 and changes.wait(running)
            if not step:
                time.sleep(rng.uniform(0, making.seconds))
            late = bool(select.select([victim], [], [], 0)[0])  # ready once it has come to its end
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(victim, number)
                if number == signal.SIGSTOP:
                    time.sleep(rng.uniform(0, 0.2))
                    signal.pidfd_send_signal(victim, signal.SIGCONT)
            if number == signal.SIGSTOP:
                changes.let_go()
            ended = running.ended(limit)
        finally:
            with suppress(ProcessLookupError):  # where it should have ended
                signal.pidfd_send_signal(worker, signal.SIGKILL)
            os.close(worker)
        kind = self.told(ended, number, whom)
        assert (kind == "done") == (number == signal.SIGSTOP) or not held, (step, ended)
        self.left(ended, folder, kind)
        making.again(folder)
        return "in vain" if late else "continued" if number == signal.SIGSTOP else kind

    def held_at_steps(self, number: signal.Signals, whom: str, limit: float) -> None:
        """Send a signal at ten steps, one a run."""
        for seed in range(10):
            self.sent("at a step", number, whom, random.Random(seed), limit)

    def told(self, ended: Ended, number: signal.Signals, whom: str) -> str:
        """Return what has become of a run by its exit code, which must go with the signal and with its words."""
        if (ended.code, ended.err) == (self.usual.code, self.usual.err):
            return "done"
        last = ended.err.removeprefix(self.usual.err)  # columns that are not released were named before
        if number == signal.SIGKILL and whom == "watcher":
            assert (ended.code, last) == (-signal.SIGKILL, ""), ended
            return "killed"
        program = self.making.program
        if number == signal.SIGKILL:
            assert ended.code == USAGE, ended
            assert last.startswith(f"{program}: error: the command was ended by SIGKILL, before it had finished"), ended
            assert last.count("\n") == 1, ended
            return "killed"
        assert number != signal.SIGSTOP, ended
        assert ended.code == INTERRUPTED, ended
        assert WORDS.fullmatch(last), ended
        return "interrupted"

    def left(self, ended: Ended, folder: Path, kind: str) -> None:
        """What is left is whole, and is what the command says it is."""
        found = visible(tree(folder))
        parts = {path for path in found if KILLED.search(path)}
        assert kind == "killed" or not parts, (parts, ended)
        assert halves({path: found[path] for path in found.keys() - parts}, self.making.before, self.making.whole) == []
        assert self.making.before.keys() <= found.keys()
        if kind == "done":
            assert found.keys() == self.making.whole.keys(), ended
        if self.making.command == TWO:
            assert SECOND not in found or FIRST in found
        if " release " in self.making.command:
            assert "out" not in found or found.keys() - parts == self.making.whole.keys(), ended
        if kind == "interrupted":
            more = WORDS.search(ended.err)["more"]
            new = found.keys() & set(self.making.new)
            assert more in {None, NOTHING, PUBLISHED, SAVED}, ended
            assert more != NOTHING or not new, ended
            assert more != SAVED or FIRST in new, ended
            if " release " in self.making.command:
                assert ("out" in new) == (more == PUBLISHED or "written to out" in ended.out), ended


@pytest.mark.reliability(7)
@pytest.mark.parametrize(
    ("name", "part"),
    [
        pytest.param("release ons", None, marks=pytest.mark.quick),
        *(pytest.param(name, part, marks=pytest.mark.slow) for name in ASKED for part in range(PARTS)),
    ],
)
def test_what_a_command_says_that_gets_a_signal_is_true(request, record_property, making, name, part):
    signals, rng = Signals(making(ASKED[name])), random.Random(f"{seed_of(request.config)} {name} {part}")
    times = FULL if request.config.getoption(LOG, None) else SLOW
    ways = WAYS[part::PARTS] * times if part is not None else rng.sample(WAYS[10:], 3)
    kinds = Counter(signals.sent(*way, rng) for way in ways)
    assert kinds["interrupted"] + kinds["killed"] > 0
    record_property("tried", kinds["interrupted"] + kinds["killed"] + kinds["continued"])
    record_property("counts", {name: dict(kinds)})


# It is noticed where a command is deaf, where its process is left, and where a release is written in its place


def deaf():
    for number in supervision.ENDINGS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def in_its_place(folder):
    folder.mkdir()
    yield folder


@pytest.mark.parametrize(
    ("place", "attribute", "planted", "way", "limit", "words"),
    [
        (supervision, "install_signal_handlers", deaf, (signal.SIGTERM, "watcher"), 5, "it hangs"),
        (supervision, "_send", lambda *_: None, (signal.SIGKILL, "watcher"), 5, "interrupted|left something"),
        (engine, "whole_folder", in_its_place, (signal.SIGTERM, "worker"), LIMIT, "interrupted"),
    ],
)
def test_a_planted_fault_is_noticed(making, monkeypatch, place, attribute, planted, way, limit, words):
    signals = Signals(making(ASKED["release ons"]))
    monkeypatch.setattr(place, attribute, planted)
    with pytest.raises(AssertionError, match=words):
        signals.held_at_steps(*way, limit)
