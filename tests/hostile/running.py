"""The command in a copy of this process, in a folder of its own: what it says, and what it leaves."""

import fcntl
import io
import json
import mmap
import multiprocessing
import os
import re
import select
import shlex
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from audit import cli
from audit.cli.supervision import ENDINGS, supervised

PATIENCE = 300.0  # seconds, for a machine under load: a command that takes longer hangs
HELD = 20.0  # seconds: longer than a process that is asked to end may wait before it does
MOST_WORDS = 2**20  # bytes that a command may print before anybody reads
LEFTOVER = re.compile(r"(?:^|/)(?:\.[0-9a-f]{8}-\d+-\d+-[0-9a-f]{16}\.part$|\.plaudit-staged-)")
"""What a process that is killed cannot take along: names that no reader takes for a result."""
TIMELESS = ("seconds", "created", "sha256")  # of JSON: what two runs of the same command do not share
CHANGES = {"open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree"}
# What Python, and the libraries below, say of mistakes in a program: no rule that a user could have broken.
FOREIGN = re.compile(
    r"^\w*(?:Error|Exception|Warning|Interrupt)\b:? |unsupported operand|object (?:has no|is not|of type|cannot)|"
    r"NoneType|could not convert|(?:list|tuple|string) ind(?:ex|ices)|index \S+ is out of bounds|not enough values|"
    r"too many values|must be real number|cannot convert float|maximum recursion|invalid literal|ufunc|"
    r"unexpected keyword|positional argument|embedded null|integer string conversion|"
    r"could not be broadcast|truth value of an|Out of bounds|zero-size array|math domain|too large to convert|"
    r"INTERNAL|std::|0x[0-9a-f]{6}|<class|<lambda|not JSON serializable|Traceback"
)

Tree = dict[str, bytes | None]
Command = Callable[[list[str]], None]


@dataclass(frozen=True)
class Ended:
    """What a command said, with its exit code, which is negative where a signal has ended it."""

    code: int
    out: str
    err: str


class Running:
    """A command at work in a folder; `before` is called in the process that works, before it begins."""

    def __init__(
        self,
        arguments: list[str],
        folder: Path,
        before: Callable[[], None] | None = None,
        *,
        watched: bool = False,
        command: Command = cli.main,
    ) -> None:
        self.ends, telling = os.pipe()
        pipes = [os.pipe() for _ in range(2)]  # no files, which a limit or a full disk would cut
        for _, writing in pipes:
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, MOST_WORDS)
        self.reading = [reading for reading, _ in pipes]

        def work() -> None:
            os.write(telling, b"%32d" % os.getpid())
            if before is not None:
                before()
            command(arguments)

        def begin() -> None:
            _settle(folder, (pipes[0][1], pipes[1][1]))
            if watched:
                supervised(work, "plaudit")
            work()

        self.process = multiprocessing.get_context("fork").Process(target=begin)
        with warnings.catch_warnings():  # of a process with threads: the child has none of them and needs none
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        for writing in (telling, *(writing for _, writing in pipes)):
            os.close(writing)

    @property
    def watcher(self) -> int:
        """The process that was started: it watches the one that works, or works itself."""
        return self.process.pid or 0

    @cached_property
    def worker(self) -> int:
        """The process that works, once it does."""
        return int(os.read(self.ends, 32))

    def ended(self, patience: float = PATIENCE) -> Ended:
        """Wait for the end; nothing of the command is at work after it."""
        self.process.join(patience)
        assert self.process.exitcode is not None, "it hangs"
        while select.select([self.ends], [], [], patience)[0]:
            if not os.read(self.ends, 32):  # the other end was closed by every process that had it
                break
        else:
            raise AssertionError("it left something running")
        os.close(self.ends)
        texts = []
        for reading in self.reading:
            with open(reading, "rb") as file:
                texts.append(file.read().decode("utf-8", "backslashreplace"))
        return Ended(self.process.exitcode, *texts)


def _settle(folder: Path, pipes: tuple[int, int]) -> None:
    """Make a copy of this process what a shell starts: with a session, standard streams and a folder of its own."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ENDINGS:  # these tests may run below nohup, whose commands ignore them
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, pipe in enumerate(pipes, 1):
        os.dup2(pipe, number)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "w", closefd=False)) for number in (1, 2))
    spill = folder.parent / "spill"
    spill.mkdir(exist_ok=True)
    spill.chmod(0o777)
    tempfile.tempdir = os.environ["TMPDIR"] = str(spill)
    os.environ["BROWSER"] = "true"  # `--open` shows its page to nobody
    os.chdir(folder)
    warnings.resetwarnings()
    warnings.simplefilter("default")
    sys.path[:] = [str(folder) if entry == "" else entry for entry in sys.path]
    sys.modules.pop("mine", None)  # of another folder


def run(words: str, folder: Path, before: Callable[[], None] | None = None, *, watched: bool = False) -> Ended:
    """Run a command to its end."""
    return Running(shlex.split(words), folder, before, watched=watched).ended()


class Changes:
    """The steps at which a process opens or changes what is in a folder, counted wherever it runs."""

    def __init__(self, folder: Path):
        self.folder, self.counter, self.state = str(folder), mmap.mmap(-1, 8), mmap.mmap(-1, 2)

    @property
    def number(self) -> int:
        """How many there were."""
        return int.from_bytes(self.counter[:], "little")

    def hold(self) -> None:
        """Wait in the process that takes the steps, until it is interrupted, and `HELD` seconds at most."""
        self.state[0], until = 1, time.monotonic() + HELD
        while time.monotonic() < until:
            time.sleep(0.005)

    def wait(self, running: Running) -> bool:
        """Wait until it is held, or has ended without that step; tell whether it is held."""
        until = time.monotonic() + PATIENCE
        while not self.state[0] and running.process.is_alive():
            assert time.monotonic() < until, "it hangs"
            time.sleep(0.002)
        return bool(self.state[0])

    def watched(self, at: int = 0, do: Callable[[], None] = bool) -> Callable[[], None]:
        """Return what counts the steps of its process, and does something just before one of them."""

        def hook(event: str, given: tuple[Any, ...]) -> None:
            paths = [one for one in given[:2] if isinstance(one, str | Path)]
            if event in CHANGES and any(os.path.join(self.folder, path).startswith(self.folder) for path in paths):
                number = self.number + 1
                self.counter[:] = number.to_bytes(8, "little")
                if number == at:
                    do()

        return lambda: sys.addaudithook(hook)


def tree(folder: Path) -> Tree:
    """What is in a folder, but for what compilers leave: files with what they hold, links with where they lead."""
    paths = (Path(above, name) for above, *inner in os.walk(folder) for name in (*inner[0], *inner[1]))

    def content(path: Path) -> bytes | None:
        if path.is_symlink():
            return os.readlink(path).encode()
        return path.read_bytes() if path.is_file() else None

    return {str(path.relative_to(folder)): content(path) for path in paths if "__pycache__" not in path.parts}


def halves(found: Tree, *allowed: Tree) -> list[str]:
    """Return what is neither as it was nor as it is to be: each file, whole, is that of one of the folders."""

    def known(path: str) -> bool:
        try:
            value = _timeless(path, found[path])
            return any(path in one and _timeless(path, one[path]) == value for one in allowed)
        except ValueError:  # half of a file of JSON
            return False

    return [path for path in found if not known(path)]


def _timeless(path: str, content: bytes | None) -> Any:
    """What a file says, whenever it was made."""

    def without_times(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_times(one) for key, one in value.items() if key not in TIMELESS}
        return [without_times(one) for one in value] if isinstance(value, list) else value

    return without_times(json.loads(content)) if path.endswith(".json") and content is not None else content
