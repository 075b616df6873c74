"""Runs in new processes that see `y` first, so that state which a process keeps for each data set is built anew."""

from __future__ import annotations

import atexit
import gc
import os
import pickle  # noqa: TID251  of this very program, for processes that run its code anyway
import signal
import subprocess
import sys
import sysconfig
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, partial
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import resolve_name
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from audit.io.workers import packed
from audit.mechanism import Mechanism
from audit.outputs import Kind
from audit.sampling.calls import Caller
from audit.sampling.streams import Phase, stream

__all__ = ["FIRST", "answer", "as_before", "import_anew", "runs_anew"]

COPIES = 2  # copies of either database in a process: state that is kept by memory address is built anew for each
PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from audit.sampling.anew import answer; answer(int(sys.argv[1]))"
OWN = tuple(str(Path(__file__).parents[2] / name) for name in ("audit", "algorithms"))  # installed or not
LIBRARIES = (*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), *OWN)
Outputs = list[NDArray[Any]]  # on x and on y

FIRST: ContextVar[bytes | None] = ContextVar("a mechanism before several audits; empty: none is tried", default=None)
_originals: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # mechanisms as they were before their first audit here
_imported: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # mechanisms that new processes import, too


def import_anew(mechanism: Mechanism, name: str) -> None:
    """Let new processes import a mechanism by module:object, so that random numbers drawn at import are drawn anew."""
    with suppress(TypeError):  # an object without weak references
        _imported[mechanism] = packed(partial(resolve_name, name))[1]


def as_before(mechanism: Mechanism) -> tuple[bytes, ...]:
    """Return a mechanism pickled as it is now and as before its first audit here; nothing if it cannot be pickled."""
    if (first := FIRST.get()) is not None:
        return (first,) if first else ()
    with suppress(TypeError):
        if mechanism in _imported:
            return (_imported[mechanism],)
    try:
        now = packed(mechanism)[1]
        return tuple(dict.fromkeys([now, _originals.setdefault(mechanism, now)]))
    except TypeError:  # an object without weak references
        return (now,)
    except ValueError:
        return ()


def runs_anew(
    mechanism: bytes, data: tuple[Any, Kind], runs: int, seed: np.random.SeedSequence, times: int, seconds: float
) -> list[Outputs]:
    """Return outputs of a pickled mechanism in so many new processes, or none if one fails or takes too long."""
    # Each is forked from a server process, which has imported the mechanism's libraries but run nothing, and has its
    # own hash seed. `data` are both databases, and the kind of their outputs.
    try:
        question = mechanism, packed(data)[1], runs, seed
    except ValueError:
        return []
    servers = [_server(os.getpid(), number) for number in range(times)]
    answers: list[Outputs] = []
    try:
        for number, (connection, _) in enumerate(servers):  # one by one: a mechanism may take much memory
            connection.send((sys.path, os.getcwd(), dict(os.environ), (number, *question)))
            if not connection.poll(seconds):
                break
            answers.append(connection.recv())
    except (EOFError, OSError):
        answers.clear()
    finally:
        if len(answers) < times:  # for any reason
            _server.cache_clear()
            for connection, server in servers:
                _end(os.getpid(), connection, server)
    return answers if len(answers) == times else []


@cache
def _server(process: int, number: int) -> tuple[Connection, subprocess.Popen[bytes]]:
    """Start one of several server processes, which fork for each request; it ends with this process."""
    here, there = Pipe()
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    command = [sys.executable, "-P", "-c", PROGRAM, str(there.fileno()), *sys.path]
    quiet: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    with there:
        server = subprocess.Popen(command, **quiet, start_new_session=True, pass_fds=[there.fileno()], env=settings)
    atexit.register(_end, process, here, server)
    return here, server


def _end(process: int, connection: Connection, server: subprocess.Popen[bytes]) -> None:
    connection.close()
    if os.getpid() == process and server.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def answer(file: int) -> None:
    """Serve requests of `runs_anew`, each in a fork of this process, until the connection ends."""
    connection = Connection(file)
    with suppress(EOFError):
        while True:
            sys.path[:], folder, settings, (number, mechanism, *others) = connection.recv()
            os.chdir(folder)
            os.environ.update(settings)
            _import_libraries(mechanism)
            imported, reporting = Pipe(duplex=False)
            if child := os.fork():
                reporting.close()
                for name in imported.recv():  # what the mechanism imported as it ran: the next fork has it already
                    with suppress(Exception):
                        import_module(name)
                if os.waitpid(child, 0)[1]:
                    return
                continue
            try:
                np.random.seed()  # noqa: NPY002  copies have one state; Python's own generator is seeded anew
                before = _libraries()
                connection.send(_outputs(number, mechanism, *others))
                reporting.send(_libraries() - before)
                os._exit(0)
            finally:
                os._exit(1)


def _unpickled(mechanism: bytes) -> Any:
    """Return a mechanism whose modules are imported anew, so that they draw new random numbers at import."""
    found = pickle.loads(mechanism)
    if isinstance(found, partial) and found.func is resolve_name:
        found = found()
    left, known = [found], {id(getattr(module, "__dict__", None)) for module in list(sys.modules.values())}
    while left:
        one = left.pop()
        if id(one) in known or (isinstance(one, type) and "<locals>" not in one.__qualname__):
            continue
        known.add(id(one))
        if isinstance(one, FunctionType) and id(one.__globals__) not in known and one.__module__ != "__main__":
            with suppress(Exception, SystemExit):  # a module may raise anything at import
                module = vars(import_module(one.__module__))
                known.add(id(module))
                one.__globals__.update({name: module[name] for name in one.__globals__.keys() & module.keys()})
        left += gc.get_referents(one)
    return found


def _import_libraries(mechanism: bytes) -> None:
    """Import the libraries of a mechanism for all forks, but no modules of the user, which may draw random numbers."""
    before = set(sys.modules)
    _unpickled(mechanism)
    for name in sys.modules.keys() - before - _libraries():
        del sys.modules[name]


def _libraries() -> set[str]:
    """Return the names of imported modules that are none of the user's."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return {name for name, file in files.items() if (file or LIBRARIES[0]).startswith(LIBRARIES)}


def _outputs(number: int, mechanism: bytes, others: bytes, runs: int, seed: np.random.SeedSequence) -> Outputs:
    unpickled, outputs = _unpickled(mechanism), list[Outputs]([[], []])
    copies = [pickle.loads(others) for _ in range(COPIES)]
    for place, (databases, kind) in enumerate(copies):
        for side in (1, 0):
            rng = np.random.default_rng(stream(seed, Phase.ANEW, number, place, side))
            caller = Caller(unpickled, databases[side], kind)
            outputs[side].append(caller.run(-(-runs // COPIES), rng).copy())
    return [np.concatenate(side) for side in outputs]
