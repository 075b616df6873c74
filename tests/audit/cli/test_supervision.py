"""The command as a process of its own: ends of any kind, interrupts, readers that leave, time limits, stores."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from audit.io.temporary import cleaned
from tests.audit.cli.desk import INTERRUPTED, NO_POWER, OWN, QUICK, UNREAD, USAGE, VIOLATION, WITHIN, Command, shell

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes where Linux tells of them")

# What ends a command in its place, which is never a verdict; and what happens around one that it has reported, which
# stays.
ENDS = {
    "os._exit(1)": (USAGE, "ended with exit code 1 by code that it runs"),
    "os.kill(os.getpid(), signal.SIGKILL)": (USAGE, "ended by SIGKILL"),
    "os.kill(os.getpid(), 40)": (USAGE, "ended by signal 40"),
    "threading.Thread(target=os._exit, args=(1,)).start(); time.sleep(60)": (USAGE, "ended with exit code 1"),
    "(child := os.fork()) or sys.exit(1); os.waitpid(child, 0); os._exit(0)": (USAGE, "ended with exit code 0"),
    "os.kill(os.getpid(), signal.SIGTERM)": (INTERRUPTED, ""),
    "os.closerange(3, 64); sys.exit(0)": (WITHIN, ""),
    "[os.write(number, b'1') for number in range(3, 64) if is_open(number)]; sys.exit(3)": (NO_POWER, ""),
    "os.fork() or time.sleep(600); sys.exit(1)": (VIOLATION, ""),
    "atexit.register(os._exit, 1); sys.exit(0)": (WITHIN, ""),
    "atexit.register(os._exit, 0); sys.exit(1)": (VIOLATION, ""),
    "atexit.register(os.kill, os.getpid(), signal.SIGSEGV); sys.exit(1)": (VIOLATION, ""),
    "atexit.register(time.sleep, 600); sys.exit(3)": (NO_POWER, ""),
    "threading.Thread(target=time.sleep, args=(600,)).start(); sys.exit(1)": (VIOLATION, ""),
    "supervision.set_deadline(1, ''); atexit.register(time.sleep, 600); sys.exit(1)": (VIOLATION, ""),
}
START = """
import atexit, os, signal, subprocess, sys, threading, time
from audit.cli import supervision
def is_open(number):
    return os.path.exists(f'/dev/fd/{number}')
"""


@contextmanager
def program(code: str, *, patience: float = 60, before: str = "", **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a program that is watched, with its work as lines of code, and with lines that come before it."""
    work = "\n".join(f"    {line}" for line in code.splitlines())
    lines = [START, f"supervision.GRACE = {patience}", before, f"def work():\n{work}"]
    command = [sys.executable, "-c", "\n".join([*lines, "supervision.supervised(work, 'program')"])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdout=pipe, stderr=pipe, **options) as process:
        try:
            yield process
        finally:
            process.kill()  # where it did not end


@pytest.mark.parametrize("code", ENDS)
def test_only_a_verdict_that_was_reached_is_one(code: str) -> None:
    exit_code, reason = ENDS[code]
    with program(code, patience=0.5) as ended:
        out, err = ended.communicate(timeout=60)
    assert (ended.returncode, out, err.count("\n")) == (exit_code, "", bool(reason))
    assert reason in err


def test_no_core_is_written_and_what_is_left_is_found(tmp_path: Path) -> None:
    code = f"""
from audit.io.temporary import STAGED, Path, temporary_folder
subprocess.run([sys.executable, '-c', 'import resource as r; print(r.getrlimit(r.RLIMIT_CORE)[0])'])
with temporary_folder(STAGED, Path({str(tmp_path)!r})) as staged:
    (staged / 'rows').write_text('text')
    os.kill(os.getpid(), signal.SIGSEGV)"""
    with program(code.strip()) as ended:
        out, err = ended.communicate(timeout=60)
    assert (ended.returncode, out) == (USAGE, "0\n")
    assert err == "program: error: the command was ended by SIGSEGV, before it had finished\n"
    assert len(list(cleaned(tmp_path))) == 1


def test_the_process_that_watches_loads_nothing_heavy() -> None:
    code = "import sys, audit.cli.supervision; sys.exit(len({'numpy', 'joblib', 'algorithms'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def state(process: int) -> str:
    """Return the letter that Linux has for what a process does; Z also for one that is no more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


COMES_BACK = """
from audit.sampling.calls import Caller
def mechanism(data, size, rng):
    if len(os.listdir()) < 4:
        open(f"{{os.getpid()}} {{len(os.listdir())}}", "w").close()
        if os.fork() == 0:
            {end}
    return [0] * size
Caller(mechanism, None).batch(5, None)
print("one", flush=True)
sys.exit(3)
"""


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "raise ValueError", "raise KeyboardInterrupt"])
def test_a_fork_that_comes_back_from_a_mechanism_makes_no_audit(workspace: Path, end: str) -> None:
    (workspace / "forks").mkdir()
    with program(COMES_BACK.format(end=end), cwd=workspace / "forks") as ended:
        out, err = ended.communicate(timeout=60)
    assert (ended.returncode, out, err) == (NO_POWER, "one\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(closed: str) -> None:
    code = "import os, sys; from audit.cli.supervision import supervised as run\n"
    code += "run(lambda: (print(1, flush=True), os.write(1, b'2'), print(3, file=sys.stderr), sys.exit(3)), 'program')"
    command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code]
    ended = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    assert ended.returncode == NO_POWER
    assert ended.stdout == ("" if ">&-" in closed.split() else "1\n2")
    assert ended.stderr == ("" if "2>&-" in closed else "3\n")


# Nothing can be told to it, since it holds the interpreter's lock; and it has started a process that would outlive it.
# Until it is there, signals wait: an instant earlier they would be heard.
DEAF = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), other.pid, flush=True)
"""
LONG = "sum(range(10**10))"  # minutes, not for ever where a fault lets it outlive the test


@LINUX
@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [
        ("killed", -signal.SIGKILL, ""),
        ("asked again", INTERRUPTED, "program: interrupted before it had cleaned up\n"),
        (
            "late",
            USAGE,
            "program: error: the command must end within 0.5 s, and did not: it was stopped; with advice\n",
        ),
    ],
)
def test_nothing_outlives_a_command(ending: str, code: int, words: str) -> None:  # processes start, half a second
    expected = "supervision.set_deadline(0.5, '; with advice')\n" if ending == "late" else ""
    with program(DEAF + expected + LONG, patience=0.1) as watcher:
        assert watcher.stdout is not None
        processes = [int(word) for word in watcher.stdout.readline().split()]
        assert len(processes) == 2
        if ending == "killed":
            watcher.kill()
        while ending == "asked again" and watcher.poll() is None:
            watcher.terminate()
            time.sleep(0.02)
        _, err = watcher.communicate(timeout=60)
        wait_until(lambda: [state(process) for process in processes] == ["Z", "Z"])
    assert (watcher.returncode, err) == (code, words)


# Whoever watches makes two processes, the one that ends the work and the work, and comes to nothing after one of them.
HELD_UP = """
made = []
def fork(fork=os.fork):
    made.append(fork())
    if made[-1] and len(made) == {number}:
        os.write(1, b"%d\\n" % made[-1])  # whole, whatever the other one writes
        time.sleep(600)
    return made[-1]
os.fork = fork
"""


@LINUX
@pytest.mark.parametrize("number", [1, 2])
def test_nothing_outlives_a_command_that_is_killed_as_it_starts(number: int) -> None:
    work = 'os.write(1, b"at work\\n")\ntime.sleep(600)'
    with program(work, before=HELD_UP.format(number=number)) as watcher:
        assert watcher.stdout is not None
        lines = {watcher.stdout.readline().strip() for _ in range(number)}
        (process,) = lines - {"at work"}
        assert len(lines) == number
        watcher.kill()
        wait_until(lambda: state(int(process)) == "Z")
        assert watcher.stdout.read() == ""


CLEANS = """
try:
    print("at work", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("asked", flush=True)
    os.kill(os.getpid(), signal.SIGINT)  # a second signal is ignored, whoever sends it
    sys.stdin.readline()
    print("cleaned up", flush=True)
    sys.exit(3)
"""


def test_a_command_is_asked_to_end_once_and_cleans_up_undisturbed() -> None:
    with program(CLEANS, stdin=subprocess.PIPE) as child:
        assert child.stdout is not None
        for word, number in (("at work\n", signal.SIGTERM), ("asked\n", signal.SIGHUP)):
            assert child.stdout.readline() == word
            child.send_signal(number)
        out, err = child.communicate("\n", timeout=60)
    assert (child.returncode, out, err) == (NO_POWER, "cleaned up\n", "")


@LINUX
def test_a_command_stops_and_goes_on_with_its_watcher() -> None:
    with program("print(os.getpid(), flush=True)\nsys.stdin.readline()\nsys.exit(0)", stdin=subprocess.PIPE) as watcher:
        assert watcher.stdout is not None
        both = [watcher.pid, int(watcher.stdout.readline())]
        watcher.send_signal(signal.SIGTSTP)
        wait_until(lambda: [state(process) for process in both] == ["T", "T"])
        watcher.send_signal(signal.SIGCONT)
        wait_until(lambda: "T" not in [state(process) for process in both])
        watcher.communicate("\n", timeout=60)
    assert watcher.returncode == WITHIN


def test_a_reader_that_has_left_is_no_violation(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        environment = os.environ | {"PYTHONUNBUFFERED": ""}
        process = shell("--version", stdout=writing, stderr=subprocess.PIPE, env=environment)
        assert (process.returncode, process.stderr) == (UNREAD, "")
        with open(writing, "w", buffering=1, closefd=False) as unread:
            monkeypatch.setattr(sys, "stdout", unread)
            audit = plaudit("audit", "mine:promising", "--data", "counts.csv", *QUICK, "--out", "out")
        assert audit == (UNREAD, "", "")
    finally:
        os.close(writing)
    assert sorted(os.listdir("out")) == ["mine-promising.json"]


def test_a_mechanism_that_hangs_ends_in_time(workspace: Path) -> None:  # a process, half a second
    (workspace / "hangs.py").write_text("import time\ndef mechanism(*_):\n    time.sleep(600)\n")
    outcome = shell("audit", "hangs:mechanism", *OWN, "--store", "kept", "--timeout", "1.5", capture_output=True)
    words = "the command must end within 1.5 s, and did not: it was stopped; finished runs are in kept, and the same "
    assert outcome.returncode == USAGE
    assert outcome.stderr.startswith(f"plaudit: error: {words}")
