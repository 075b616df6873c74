"""Compiled code that numba keeps beside its module, or in the folder that NUMBA_CACHE_DIR names."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba.core.dispatcher

__all__ = ["compiled_on_disk"]


def compiled_on_disk(kernel: Any) -> Callable[..., Any]:
    """Return a function of numba's that the first process to call it compiles, while others wait.

    It may call nothing but its own module and numpy, because numba's cache looks at no other file.
    """
    if not isinstance(kernel, numba.core.dispatcher.Dispatcher):  # numba is turned off
        function: Callable[..., Any] = kernel
        return function
    with suppress(RuntimeError):  # nothing can be written: every process compiles
        kernel.enable_caching()

    @wraps(kernel.py_func)
    def call(*arguments: Any) -> Any:
        types = tuple(map(kernel.typeof_pyval, arguments))
        if types not in kernel.overloads:
            _compile(kernel, types)
        return kernel(*arguments)

    return call


def _compile(kernel: Any, types: tuple[Any, ...]) -> None:
    folder = kernel.stats.cache_path
    if folder is None:
        _say()
        kernel.compile(types)
        return
    with _alone(folder):
        files = f"*.{kernel.__name__}-*"
        if not any(Path(folder).glob(files)):
            _say()
        try:
            kernel.compile(types)
        except Exception:  # a file that was cut off, or a full disk: numba lets both through
            for path in Path(folder).glob(files):
                path.unlink(missing_ok=True)
            with suppress(OSError):
                kernel.compile(types)


@cache
def _say() -> None:
    print("compiling TopDown's solver: a minute or so, once for this installation", file=sys.stderr, flush=True)


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Lock a folder for this process and thread, where its file system has such locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
