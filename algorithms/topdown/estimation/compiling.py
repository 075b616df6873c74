"""Code that is compiled once a machine: it is kept in the user's folder of caches, for all checkouts and processes."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from importlib import metadata
from pathlib import Path
from typing import Any

import numba.core.caching
import numba.core.dispatcher
import numba.misc.appdirs

__all__ = ["once"]

appdirs: Any = numba.misc.appdirs
config: Any = numba.config
core: Any = numba.core
SETTINGS = ("BOUNDSCHECK", "ENABLE_AVX", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML")  # numba's own
VERSIONS = (platform.python_version(), *(metadata.version(name) for name in ("numba", "llvmlite", "numpy")))


def once(kernel: Any) -> Callable[..., Any]:
    """Return a function of numba's that the first process to call it compiles, and says so, while others wait.

    It may call nothing but its own module and numpy: the code is found again by what is in the module.
    """
    if not isinstance(kernel, core.dispatcher.Dispatcher):  # numba is turned off
        function: Callable[..., Any] = kernel
        return function

    @wraps(kernel.py_func)
    def call(*arguments: Any) -> Any:
        types = tuple(map(kernel.typeof_pyval, arguments))
        if types not in kernel.overloads:
            stored = _Cache(kernel.py_func)
            if _is_own(stored.cache_path):
                kernel._cache = stored
                with _alone(stored.cache_path):
                    kernel.compile(types)
            else:  # nothing can be written there, or by others, too: every process compiles
                _say()
                kernel.compile(types)
        return kernel(*arguments)

    return call


class _Locator(core.caching._CacheLocator):  # type: ignore[misc]
    """A folder named by all that compiled code depends on, but for the processor, which numba looks at by itself."""

    def __init__(self, function: Any, source: str) -> None:
        numbers, code = {}, []
        for name, value in function.__globals__.items():  # as they are now, whatever the text says
            if isinstance(value, bool | int | float):
                numbers[name] = value
            elif isinstance(value, core.dispatcher.Dispatcher):
                own = value.py_func.__code__
                code.append((name, own.co_code, own.co_consts, own.co_names))
        settings = [getattr(config, name, None) for name in SETTINGS]
        depends = Path(source).read_bytes() + repr((numbers, code, VERSIONS, settings)).encode()
        root = config.CACHE_DIR or appdirs.AppDirs(appname="plaudit", appauthor=False).user_cache_dir
        self.folder = Path(root, f"{Path(source).stem}-{hashlib.sha256(depends).hexdigest()[:20]}")

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return self.folder.name

    def get_disambiguator(self) -> str:
        return ""

    @classmethod
    def from_function(cls, function: Any, source: str) -> _Locator:
        locator = cls(function, source)
        with suppress(OSError):
            for folder in (locator.folder.parent, locator.folder):  # parents that are made on the way have other modes
                folder.mkdir(0o700, parents=True, exist_ok=True)
        return locator


class _Found(core.caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Cache(core.caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Found

    def load_overload(self, types: Any, context: Any) -> Any:
        code = None
        try:
            code = super().load_overload(types, context)
        except Exception:  # cut off or damaged: compiled again
            with suppress(OSError):
                self.flush()
        if code is None:
            _say()
        return code

    def save_overload(self, types: Any, compiled: Any) -> None:
        with suppress(OSError):  # a full disk: compiled again next time
            super().save_overload(types, compiled)


@cache
def _say() -> None:
    print("compiling TopDown's solver: a minute or so, once on this machine", file=sys.stderr, flush=True)


def _is_own(folder: str) -> bool:
    """Tell whether nobody else can write what would be run from there."""
    if not hasattr(os, "getuid"):
        return True
    with suppress(OSError):
        about = os.stat(folder)
        return about.st_uid == os.getuid() and not about.st_mode & 0o022
    return False


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Lock a folder for this process and thread, where there are such locks."""
    handle = None
    with suppress(ImportError, OSError):
        import fcntl  # not on every system

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)
