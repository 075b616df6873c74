"""A command that is killed at any instant leaves nothing that is half written or lost, and is made again as if new."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from audit.io.temporary import STAGED
from tests.fuzz.holding import tree
from tests.processes.commands import COMMANDS
from tests.processes.making import Making
from tests.processes.running import KILLED, Changes, Running, halves, run, visible

WAYS = ("at a time", "at a step", "in a write")
TIMES = {"audit": 110, "experiments run": 60} | {name: 50 for name in COMMANDS if name.startswith("release ")}
"""How often each command is killed, the others ten times: 500 times together."""
PART = 10  # kills that one test makes


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
        done = (ended.code, ended.err) == self.undisturbed
        last = ended.err.removeprefix(self.undisturbed[1])  # columns that are not released were named before
        assert done or (ended.code, last) == (-signal.SIGKILL, "") or self.told(ended.code, last), ended
        self.again(folder, left)
        return not done

    def told(self, code: int, err: str) -> bool:
        """Whether one line says how the process that worked was ended."""
        program = self.command.split()[0]
        lines = [f"{program}: error: the command was ended by {name}, before it had finished" for name in SIGNALS]
        return code == 2 and err.count("\n") == 1 and err.startswith(tuple(lines))

    def again(self, folder: Path, left: set[str]) -> None:
        """Run a command again that was killed: what it leaves is whole, and is what it would have been."""
        once = any(word in self.command for word in (" release ", " --save "))
        whole = once and (folder / self.making.new[0]).exists()
        before = tree(folder / "out") if whole else {}
        again = run(self.command, folder)
        if whole:  # it appeared in one step, and it stays
            assert again.code == 2
            assert "out must be a new or an empty folder" in again.err or "must name a new file" in again.err
            assert tree(folder / "out") == before
        else:
            assert again.code == self.undisturbed[0]
            named = again.err.count("left by a run that was killed: ")
            assert named >= len({os.path.dirname(path) for path in left if STAGED not in path or "/" not in path})
        found = visible(tree(folder))
        assert found.keys() - left == self.whole.keys()
        assert halves({path: found[path] for path in self.whole}, self.whole) == []
        assert run("plaudit doctor --clean .", folder).code == 0
        assert visible(tree(folder)) == {path: content for path, content in found.items() if path not in left}


SIGNALS = ("SIGKILL", "SIGXFSZ")


def ending(size: int) -> None:
    """Let the process be ended in the middle of a write, as soon as a file has so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


PARTS = [
    pytest.param(name, part, marks=pytest.mark.slow) for name in COMMANDS for part in range(TIMES.get(name, 10) // PART)
]


@pytest.mark.reliability(6)
@pytest.mark.parametrize(("name", "part"), [("replay", None), ("release ons", None), *PARTS])
def test_killed_at_any_instant_it_leaves_nothing_half_and_loses_nothing(record_property, making, name, part):
    times = len(WAYS) if part is None else PART
    record_property("tried", times)
    rng, killing = random.Random(f"{name} {part}"), Killing(making(COMMANDS[name]))
    killed = [killing.killed(WAYS[number % len(WAYS)], rng) for number in range(times)]
    assert any(killed)
