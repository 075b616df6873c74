"""Clocks that jump, pipes, devices, files of others, any mask of permissions: the same result, or a refusal."""

from __future__ import annotations

import datetime
import os
import random
import shutil
import signal
import stat
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from audit.results import provenance
from audit.sampling import progress
from tests.fuzz.holding import tree
from tests.processes.commands import AUDIT, COMMANDS
from tests.processes.making import NOBODY
from tests.processes.running import run, visible

SECONDS = 60  # that a command may take which reads a pipe or a device
INPUTS = {
    "counts.csv": AUDIT,
    "counts.npy": "plaudit audit gaussian-counts --claim zcdp:0.5 --data counts.npy --size 400 --seed 1 --jobs 1",
    "x.csv": COMMANDS["outputs"],
    "x.npy": COMMANDS["outputs"].replace(".csv", ".npy"),
    "errors.csv": COMMANDS["estimate"],
    "old/count.json": "plaudit check old/count.json",
    "session.json": "plaudit report session.json --out out/page.html",
    "persons.csv": COMMANDS["release ons"],
    "persons.parquet": COMMANDS["release ons"].replace("persons.csv", "persons.parquet"),
    "spec.json": COMMANDS["release ons"],
    "geo.csv": COMMANDS["release ons"],
    "groups.json": COMMANDS["release nist"],
    "adults.csv": COMMANDS["release topdown"],
    "households-persons.csv": COMMANDS["release phsafe"],
    "households-units.csv": COMMANDS["release phsafe"],
    "config.json": COMMANDS["explore"],
    "out/phsafe_table10.json": COMMANDS["experiments draw"],
}
"""A file of each kind, and a command that reads it."""
FILES = {"plan": "out/plan.svg", "explore": "out/settings.json"} | dict.fromkeys(
    ("report", "explore page"), "out/page.html"
)
OUTPUTS = FILES | {name: "out" for name in COMMANDS if name not in FILES}


def some(quick: list[str], names: dict[str, str]) -> list[object]:
    """Return a few by default, and all for the long tests."""
    return [*quick, *(pytest.param(name, marks=pytest.mark.slow) for name in names if name not in quick)]


def jumping(seed: int) -> None:
    """Let the clock jump by years, back and forth, whenever it is looked at; bars of progress are shown."""
    rng = random.Random(seed)

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.fromtimestamp(time.time(), tz)

    time.time = lambda: rng.uniform(0, 4e9)
    time.time_ns = lambda: int(1e9 * time.time())
    provenance.datetime.datetime = Jumping
    progress.PATIENCE = -1.0
    os.environ["FORCE_COLOR"] = "1"


@pytest.mark.reliability(18)
@pytest.mark.parametrize("name", some(["replay"], COMMANDS))
def test_clocks_that_jump_change_nothing(making, record_property, name):
    one = making(COMMANDS[name])
    times = 2 if "audit" not in name else 4
    record_property("tried", times)
    timed = f"{one.command} --timeout 600" if name in ("audit", "outputs") else one.command
    for seed in range(times):
        folder = one.prepared()
        ended = run(timed, folder, partial(jumping, seed), watched=True)
        assert ended.code == one.undisturbed.code, ended
        assert one.same(folder)
        if name == "audit":  # goes on from blocks that are of another age
            for path in (folder / "kept").rglob("*"):
                os.utime(path, (0, 0) if seed % 2 else (4e9, 4e9))
            assert run(timed, folder, partial(jumping, seed), watched=True).code == ended.code
            assert one.same(folder)


def feed(path: str, content: bytes, folder: Path) -> Callable[[], None]:
    """Put a pipe in a file's place, and return what ends the process that writes into it."""
    os.mkfifo(folder / path)
    child = os.fork()
    if child == 0:
        try:
            with open(folder / path, "wb") as file:
                file.write(content)
        finally:
            os._exit(0)

    def end() -> None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    return end


@pytest.mark.reliability(18)
@pytest.mark.parametrize("path", some(["errors.csv"], INPUTS))
def test_a_pipe_is_read_as_a_file_is_or_refused(making, path):
    one = making(INPUTS[path])
    folder = one.prepared()
    content = (folder / path).read_bytes()
    (folder / path).unlink()
    end = feed(path, content, folder)
    try:
        ended = run(one.command, folder, partial(signal.alarm, SECONDS))
    finally:
        end()
    (folder / path).unlink()
    (folder / path).write_bytes(content)
    assert ended.code >= 0, "it waits for a pipe that nobody writes into any more"
    one.held(ended, folder)


@pytest.mark.reliability(18)
@pytest.mark.parametrize("path", some(["errors.csv"], INPUTS))
def test_devices_are_refused_as_input(making, record_property, path):
    one, devices = making(INPUTS[path]), ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom")
    record_property("tried", len(devices))
    for device in devices:
        folder = one.prepared()
        content = (folder / path).read_bytes()
        (folder / path).unlink()
        (folder / path).symlink_to(device)
        ended = run(one.command, folder, partial(signal.alarm, SECONDS))
        (folder / path).unlink()
        (folder / path).write_bytes(content)
        assert ended.code == 2, (device, ended)
        one.held(ended, folder)


@pytest.mark.reliability(18)
@pytest.mark.parametrize("name", some(["replay"], OUTPUTS))
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_pipe_or_device_is_written_or_replaced(making, kind, name):
    one = making(COMMANDS[name])
    folder, path = one.prepared(), OUTPUTS[name]
    if path == "out" and (folder / path).exists():
        shutil.rmtree(folder / path)
    if kind == "pipe":
        os.mkfifo(folder / path)
    elif os.geteuid():
        pytest.skip("needs the right to make a device")
    else:  # as /dev/null is, which stays out of reach
        os.mknod(folder / path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    before = os.lstat(folder / path)
    ended = run(one.command, folder, partial(signal.alarm, SECONDS))
    assert os.lstat(folder / path) == before
    (folder / path).unlink()
    one.held(ended, folder, lost=True)
    assert ended.code == 2


@pytest.mark.reliability(18)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to be somebody else")
@pytest.mark.parametrize("name", some(["replay"], COMMANDS))
def test_what_is_somebody_elses_stays(making, record_property, name):
    """A folder that all may write, of which each may remove what is her own; then inputs that only others may read."""
    record_property("tried", 2)
    one = making(COMMANDS[name])
    folder = one.prepared()
    run(one.command, folder)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o1777 if path.is_dir() else 0o644)
    before = tree(folder)
    ended = run(one.command, folder, partial(os.seteuid, NOBODY))
    after = tree(folder)
    assert {path: after.get(path) for path in before} == before
    assert ended.code in (2, one.undisturbed.code), ended
    assert not [path for path in after if path.endswith(".part") or "staged" in path]
    folder = one.prepared()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o600)
    ended = run(one.command, folder, partial(os.seteuid, NOBODY))
    one.held(ended, folder)
    assert visible(tree(folder)) == one.before


@pytest.mark.reliability(18)
@pytest.mark.parametrize("name", some(["replay"], COMMANDS))
def test_files_are_for_whom_the_mask_says_and_confidential_ones_for_their_owner(making, record_property, name):
    one, masks = making(COMMANDS[name]), (0o000, 0o022, 0o027, 0o077)
    record_property("tried", len(masks))
    for mask in masks:
        folder = one.prepared()
        ended = run(one.command, folder, partial(os.umask, mask))
        assert (ended.code, ended.err) == (one.undisturbed.code, one.undisturbed.err)
        found = {path: stat.S_IMODE((folder / path).stat().st_mode) for path in one.new}
        confidential = name in CONFIDENTIAL
        for path, mode in found.items():
            if (folder / path).is_dir():
                assert mode == 0o777 & ~mask, (path, oct(mode))
            else:
                assert mode == (0o600 if confidential else 0o666 & ~mask), (path, oct(mode))


CONFIDENTIAL = ("audit", "outputs", "search", "replay", "estimate")
"""Commands that read what is somebody's own, and do not release it."""
