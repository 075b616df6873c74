"""A command that is killed at any instant leaves nothing that is half written or lost, and is made again as if new."""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest

from tests.fuzz.holding import tree
from tests.processes.commands import COMMANDS
from tests.processes.making import Making
from tests.processes.running import KILLED, Changes, Running, halves, run, visible
from tests.reliability.plugin import seed_of

WAYS = ("at a time", "at a step", "in a write")
TIMES = {"audit": 110, "experiments run": 60} | {name: 50 for name in COMMANDS if name.startswith("release ")}
"""How often it is tried to kill each command, the others ten times."""
PART = 10  # attempts of one test: a command may end before it is killed


class Killing:
    """A command that is killed, and run again."""

    def __init__(self, making: Making):
        self.making = making
        self.command, self.before, self.whole = self.making.command, self.making.before, self.making.whole
        self.undisturbed = self.making.undisturbed.code, self.making.undisturbed.err

    def killed(self, way: str, rng: random.Random) -> bool:
        """Kill a run, hold what it leaves against what may be, and run it again; tell whether it was killed."""
        folder = self.making.prepared()
        if way == "at a time":
            at_work = Running(self.command, folder, watched=True)
            victim = os.pidfd_open(rng.choice([at_work.watcher, at_work.worker]))
            time.sleep(rng.uniform(0, self.making.seconds))
            with suppress(ProcessLookupError):  # it has come to its end
                signal.pidfd_send_signal(victim, signal.SIGKILL)
            os.close(victim)
            ended = at_work.ended()
        else:
            step, size = rng.randint(1, self.making.steps), rng.randrange(self.making.largest)
            changes = Changes(folder)
            kill = changes.watched(step, lambda: os.kill(os.getpid(), signal.SIGKILL))
            ended = run(self.command, folder, kill if way == "at a step" else lambda: ending(size), watched=True)
        found = visible(tree(folder))
        left = {path for path in found if KILLED.search(path)}
        assert halves({path: found[path] for path in found.keys() - left}, self.before, self.whole) == []
        assert self.before.keys() <= found.keys()
        # Before the end, how columns were read is said, and where a link leads, whose folder is another each time.
        err, usual = (re.sub(r"\S+/link leads.*", "link", text) for text in (ended.err, self.undisturbed[1]))
        done = (ended.code, err) == (self.undisturbed[0], usual)
        last = "" if usual.startswith(err) else err.removeprefix(usual)
        assert done or (ended.code, last) == (-signal.SIGKILL, "") or self.told(ended.code, last), ended
        self.making.again(folder)
        return not done

    def told(self, code: int, err: str) -> bool:
        """Whether one line says how the process that worked was ended, and others what it has left."""
        program = self.command.split()[0]
        lines = [f"{program}: error: the command was ended by {name}, before it had finished" for name in SIGNALS]
        error, *left = err.splitlines() or [""]
        return code == 2 and error in lines and not left


SIGNALS = ("SIGKILL", "SIGXFSZ")


def ending(size: int) -> None:
    """Let the process be ended in the middle of a write, as soon as a file has so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


QUICK = [pytest.param(name, None, marks=pytest.mark.quick) for name in ("replay", "release ons")]
PARTS = [
    pytest.param(name, part, marks=pytest.mark.slow) for name in COMMANDS for part in range(TIMES.get(name, 10) // PART)
]


@pytest.mark.reliability(6)
@pytest.mark.parametrize(("name", "part"), [*QUICK, *PARTS])
def test_killed_at_any_instant_it_leaves_nothing_half_and_loses_nothing(request, record_property, making, name, part):
    times = len(WAYS) if part is None else PART
    rng, killing = random.Random(f"{seed_of(request.config)} {name} {part}"), Killing(making(COMMANDS[name]))
    killed = Counter(way for way in (WAYS * times)[:times] if killing.killed(way, rng))
    assert killed
    record_property("tried", killed.total())
    record_property("attempts", times)
    record_property("ways", dict(killed))
