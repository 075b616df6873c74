"""A command that is killed, interrupted, or left without a disk: what it says is true, and nothing is half there."""

import errno
import os
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import product
from pathlib import Path

import pytest

from algorithms.release import engine
from audit.cli import supervision
from audit.cli.exits import INTERRUPTED, USAGE
from audit.results.folder import read_audits
from tests.helpers import SEED
from tests.hostile.running import FOREIGN, LEFTOVER, Changes, Ended, Running, halves, run, tree
from tests.workspace import HOUSEHOLDS, OUTPUTS, RELEASED, RUNS

COMMANDS = {
    "audit": f"audit gdpc gdpc-half-noise --epsilon 1 {RUNS} --data counts.csv --out out --store kept",
    "outputs": f"audit --outputs-x x.csv --outputs-y y.csv {OUTPUTS} --out out",
    "replay": "replay gdpc --data counts.csv --cell 0 --seed 1 --out out",
    "report": "report old --out out/page.html",
    "release ons": f"release ons {RELEASED} --method top-down --geo geo.csv --seed 1",
    "release phsafe": f"release phsafe {HOUSEHOLDS} --config config.json --seed 1 --out out",
}
CONFIDENTIAL = ("audit", "outputs", "replay")  # which read what is somebody's own, and do not release it
ABOUT_ALL = {"out/README.md": b".\n"}  # what is about all results of a folder
NOBODY = 65534
ENDED = r"(?s).*plaudit: error: the command was ended by SIG(KILL|XFSZ), before .*\n"
INTERRUPTED_LINE = re.compile(r"plaudit: interrupted(?:; (?P<more>.*))?\n")
TIMES = 8  # that the long tests try each way with each command


@pytest.fixture
def times(request, record_property):
    """How often a test tries its way: once by default."""
    number = TIMES if request.node.get_closest_marker("slow") else 1
    record_property("tried", number)
    return range(number)


def of_each(quick, *ways):
    """A few cases by default, and every way with every command in the long tests."""
    slow = [pytest.param(name, *way, marks=pytest.mark.slow) for name in COMMANDS for way in ways]
    return [*(pytest.param(*case, marks=pytest.mark.quick) for case in quick), *slow]


class Baseline:
    """A command, and what it leaves where nothing disturbs it."""

    def __init__(self, words: str, workspace: Path, place: Path) -> None:
        self.words, self.workspace, self.place, self.copies = words, workspace, place, 0
        run(words, self.fresh())  # compiles what is to be compiled
        folder = self.fresh()
        self.before, changes = tree(folder), Changes(folder)
        self.undisturbed = run(words, folder, changes.watched(), watched=True)
        assert self.undisturbed.code != USAGE, self.undisturbed  # a command that is refused holds nothing
        self.steps, self.complete = changes.number, tree(folder)
        self.new = sorted(self.complete.keys() - self.before.keys())
        self.largest = max(len(self.complete[path] or b"") for path in self.new)

    def fresh(self) -> Path:
        """Return a fresh folder of good files; where results go, there is one of yesterday."""
        shutil.rmtree(self.place / str(self.copies), ignore_errors=True)
        self.copies += 1
        folder = self.place / str(self.copies) / "workspace"
        shutil.copytree(self.workspace, folder, symlinks=True)
        if "release" not in self.words:
            (folder / "out").mkdir()
            shutil.copy(folder / "new" / "count.json", folder / "out" / "yesterday.json")
        return folder

    def check(self, ended: Ended, folder: Path, *, disk: bool = False) -> None:
        """Whole files only, nothing lost, and one line where it failed; a `disk` that fails may lose what was there."""
        files = tree(folder)
        wrong = halves(files, self.before, self.complete)
        if disk:
            wrong = [path for path in wrong if not (files[path] or b"").endswith(ABOUT_ALL.get(path, b"\0"))]
            wrong = [path for path in wrong if not LEFTOVER.search(path)]
        assert wrong == [], ended
        assert disk or self.before.keys() <= files.keys()
        *notes, last = ended.err.splitlines() or [""]
        if ended.code == self.undisturbed.code:
            assert ended.err == self.undisturbed.err
            assert disk or not self.complete.keys() - files.keys()
            return
        assert (ended.code, last[:16]) == (USAGE, "plaudit: error: "), ended
        assert not FOREIGN.search(last[16:]), ended
        assert all(line in self.undisturbed.err for line in notes), ended
        if "release" in self.words and "holds a whole release" not in last:
            assert "out" not in files

    def check_again(self, folder: Path) -> None:
        """Run the command where another run of it was cut short: what it leaves is whole, and is what it would be."""
        leftovers = {path for path in tree(folder) if LEFTOVER.search(path)}
        release = tree(folder / "out") if "release" in self.words and (folder / "out").exists() else {}
        again = run(self.words, folder)
        if release:  # it appeared in one step, and it stays
            assert again.code == USAGE
            assert tree(folder / "out") == release
        else:
            assert again.code == self.undisturbed.code, again
        files = tree(folder)
        assert files.keys() - leftovers == self.complete.keys()
        assert halves({path: files[path] for path in self.complete}, self.complete) == []
        assert run("doctor --clean .", folder).code == 0
        assert tree(folder) == {path: content for path, content in files.items() if path not in leftovers}


@pytest.fixture(scope="session")
def baseline(good_files, tmp_path_factory):  # the command runs twice, for the first test that asks: half a second
    return cache(lambda name: Baseline(COMMANDS[name], good_files, tmp_path_factory.mktemp("made")))


# Killed


def kill_at_a_step(case: Baseline, folder: Path, rng: random.Random) -> Callable[[], None]:
    return Changes(folder).watched(rng.randint(1, case.steps), lambda: os.kill(os.getpid(), signal.SIGKILL))


def kill_in_a_write(case: Baseline, folder: Path, rng: random.Random) -> Callable[[], None]:
    """As soon as a file has so many bytes."""
    size = rng.randrange(case.largest)

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.reliability(row=6)
@pytest.mark.parametrize(
    ("name", "way"),
    of_each([("replay", kill_at_a_step), ("release ons", kill_at_a_step), ("release ons", kill_in_a_write)],
        [kill_at_a_step], [kill_in_a_write]),
)  # fmt: skip
def test_killed_it_leaves_nothing_half_and_loses_nothing(times, baseline, name, way):
    case, rng = baseline(name), random.Random(f"{SEED} {name} {way.__name__}")
    for _ in times:
        folder = case.fresh()
        ended = run(case.words, folder, way(case, folder, rng), watched=True)
        files = tree(folder)
        leftovers = {path for path in files if LEFTOVER.search(path)}
        assert halves({path: files[path] for path in files.keys() - leftovers}, case.before, case.complete) == []
        assert case.before.keys() <= files.keys()
        last = ended.err.removeprefix(case.undisturbed.err)
        if (ended.code, last) != (case.undisturbed.code, ""):
            assert re.fullmatch(ENDED, last), ended
            assert ended.code == USAGE
        case.check_again(folder)


# Interrupted


@pytest.mark.reliability(row=6)
@pytest.mark.parametrize(
    ("name", "number", "whom"),
    of_each([("release ons", signal.SIGINT, "watcher"), ("release ons", signal.SIGTERM, "worker")],
        *product((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), ("watcher", "worker"))),
)  # fmt: skip
def test_interrupted_it_says_what_is_left_and_that_is_true(times, baseline, name, number, whom):
    case, rng = baseline(name), random.Random(f"{SEED} {name} {number} {whom}")
    for _ in times:
        interrupt(case, rng.randint(1, case.steps), number, whom)


def interrupt(case: Baseline, step: int, number: int, whom: str, patience: float = 60.0) -> None:
    changes = Changes(folder := case.fresh())
    running = Running(case.words.split(), folder, changes.watched(step, changes.hold), watched=True)
    worker = os.pidfd_open(running.worker)
    try:
        if not changes.wait(running):
            return  # it ended without that step
        with suppress(ProcessLookupError):
            os.kill(running.worker if whom == "worker" else running.watcher, number)
        ended = running.ended(patience)
    finally:
        with suppress(ProcessLookupError):  # where it should have ended
            signal.pidfd_send_signal(worker, signal.SIGKILL)
        os.close(worker)
    assert ended.code == INTERRUPTED, ended
    *notes, last = ended.err.splitlines(keepends=True) or [""]
    assert all(line in case.undisturbed.err for line in notes), ended
    message = INTERRUPTED_LINE.fullmatch(last)
    assert message, ended
    files = tree(folder)
    assert halves(files, case.before, case.complete) == [], ended
    assert case.before.keys() <= files.keys()
    new = files.keys() & set(case.new)
    if "release" in case.words:
        assert "out" not in files or files.keys() == case.complete.keys(), ended
        assert ("out" in new) == ("a whole release" in (message["more"] or "") or "written to out" in ended.out), ended
    elif message["more"] == "nothing was written":
        assert not {path for path in new if path.startswith("out/")}, ended
    case.check_again(folder)


def interrupt_at_ten_steps(case: Baseline, number: int, whom: str, patience: float) -> None:
    for step in range(1, case.steps, max(1, case.steps // 10)):
        interrupt(case, step, number, whom, patience)


def ignore_signals(*_):
    for number in supervision.ENDINGS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def in_its_place(folder):
    folder.mkdir()
    yield folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "attribute", "planted", "way", "patience", "words"),
    [
        (supervision, "install_signal_handlers", ignore_signals, (signal.SIGTERM, "watcher"), 5, "it hangs"),
        (engine, "whole_folder", in_its_place, (signal.SIGTERM, "worker"), 60, "interrupted"),
    ],
)
def test_a_planted_fault_is_noticed(baseline, monkeypatch, place, attribute, planted, way, patience, words):
    case = baseline("release ons")
    monkeypatch.setattr(place, attribute, planted)
    with pytest.raises(AssertionError, match=words):
        interrupt_at_ten_steps(case, *way, patience)


# Disks and limits


def no_larger(case, folder, rng):
    """No file may have more bytes: a disk that is full in the middle of a write."""
    size = rng.choice([0, 1, rng.randrange(case.largest)])
    return partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


def full_output(case, folder, rng):
    """Nothing that is printed can be written."""
    return lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def removed(case, folder, rng):
    """Somebody removes where results go while the command is at work."""
    at = rng.randint(1, case.steps)
    return Changes(folder).watched(at, lambda: shutil.rmtree(folder / "out", ignore_errors=True))


def failing(case, folder, rng):
    """One step fails, as of a disk that is broken."""

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return Changes(folder).watched(rng.randint(1, case.steps), fail)


def somebody_elses(case, folder, rng):
    """Folders that their owner alone may write."""
    if os.geteuid():
        pytest.skip("needs the right to be somebody else")
    return partial(os.seteuid, NOBODY)


def few_files(case, folder, rng):
    """So many files open at the same time, of which the process has some before it begins."""
    size = max(map(int, os.listdir("/proc/self/fd"))) + rng.randrange(2, 12)
    return partial(resource.setrlimit, resource.RLIMIT_NOFILE, (size, size))


WAYS = (no_larger, full_output, removed, failing, somebody_elses, few_files)


@pytest.mark.reliability(row=6)
@pytest.mark.parametrize(("name", "way"), of_each([("replay", way) for way in WAYS], *([way] for way in WAYS)))
def test_on_such_a_disk_it_says_so_and_leaves_nothing_half(times, baseline, name, way):
    case, rng = baseline(name), random.Random(f"{SEED} {name} {way.__name__}")
    for _ in times:
        folder = case.fresh()
        case.check(run(case.words, folder, way(case, folder, rng)), folder, disk=way in (removed, failing))


def log_of_syncs(log: Path) -> None:
    """Let this process write down in a file what it syncs, and what gets a name."""
    fsync, lines = os.fsync, log.open("w", buffering=1)

    def sync(handle: int) -> None:
        lines.write(f"sync {os.fstat(handle).st_ino}\n")
        fsync(handle)

    def hook(event: str, given: tuple[object, ...]) -> None:
        if event in ("os.rename", "os.link"):
            source, target = map(str, given[:2])
            lines.write(f"name {os.stat(source).st_ino} {os.stat(os.path.dirname(target) or '.').st_ino} {target}\n")

    os.fsync = sync
    sys.addaudithook(hook)


@pytest.mark.parametrize("name", ["replay", "report", "release ons"])
def test_a_file_is_synced_before_it_gets_its_name_and_the_folder_after_it(baseline, tmp_path, name):
    """So nothing that was told to be saved is half there, or gone, where the power fails."""
    case, log = baseline(name), tmp_path / "syncs"
    run(case.words, folder := case.fresh(), partial(log_of_syncs, log))
    synced, waiting, named = set(), set(), []
    for kind, number, *more in (line.split(" ", 3) for line in log.read_text().splitlines()):
        if kind == "sync":
            synced.add(number)
            waiting.discard(number)
        else:
            named.append(more[1])
            assert number in synced, more[1]
            waiting.add(more[0])
    assert named
    assert waiting == set()
    if name.startswith("release"):  # whose files got their names in a folder that was not there yet
        assert {str((folder / path).stat().st_ino) for path in case.new if not path.endswith("out")} <= synced


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ("replay", "release ons") else pytest.mark.slow) for n in COMMANDS]
)
def test_files_are_for_whom_the_mask_says_and_confidential_ones_for_their_owner(baseline, name):
    case = baseline(name)
    for mask in (0o000, 0o027):
        folder = case.fresh()
        run(case.words, folder, partial(os.umask, mask))
        for path in case.new:
            mode, is_folder = stat.S_IMODE((folder / path).stat().st_mode), (folder / path).is_dir()
            private = name in CONFIDENTIAL and not is_folder
            assert mode == (0o600 if private else (0o777 if is_folder else 0o666) & ~mask), (path, oct(mode))


@pytest.mark.parametrize("name", ["replay", "release ons"])
def test_no_pipe_is_written_or_replaced(baseline, name):
    case = baseline(name)
    shutil.rmtree((folder := case.fresh()) / "out", ignore_errors=True)
    os.mkfifo(folder / "out")
    assert run(case.words, folder, partial(signal.alarm, 60)).code == USAGE
    assert stat.S_ISFIFO(os.lstat(folder / "out").st_mode)


SETTINGS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
    {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "OMP_NUM_THREADS": "2", "COLUMNS": "20"},
)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("release ons", SETTINGS[1], marks=pytest.mark.quick),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in product(("audit", "release ons"), SETTINGS)),
    ],
)
def test_what_a_seed_decides_is_the_same_under_any_settings(baseline, name, settings):  # the command starts, 1 s
    case = baseline(name)
    folder, command = case.fresh(), [sys.executable, "-P", "-m", "plaudit", *case.words.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, env=os.environ | settings)
    assert done.returncode == case.undisturbed.code, done.stderr
    wanted = {path: content for path, content in case.complete.items() if not path.startswith("kept")}
    files = {path: content for path, content in tree(folder).items() if not path.startswith("kept")}
    assert files.keys() == wanted.keys()
    assert [path for path in halves(files, wanted) if not path.endswith(".png")] == []


@pytest.mark.slow
def test_of_audits_into_one_folder_at_once_none_is_lost(baseline):
    folder, seeds = baseline("audit").fresh(), range(40)
    words = f"audit gaussian-counts --claim zcdp:0.5 --confidence 0.999999 {RUNS} --data counts.csv --out out"
    for start in range(0, len(seeds), 8):
        commands = [words.replace("--seed 1", f"--seed {seed}") for seed in seeds[start : start + 8]]
        runs = [Running(command.split(), folder) for command in commands]
        assert [ended for ended in (run.ended() for run in runs) if ended.code not in (0, 3) or ended.err] == []
    audits = dict(read_audits(*(folder / "out").glob("gaussian*.json")))
    assert sorted(audit.seed_entropy for audit in audits.values()) == list(seeds)
