"""Error messages that name the extra of plaudit that installs a missing package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

__all__ = ["check_extra", "needing"]

BRINGS = {
    "census": ("duckdb", "numba", "piqp"),
    "release": ("opendp",),
    "spark": ("duckdb", "pandas", "pyarrow", "pyspark"),
}


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Turn a failed import in the block into an ImportError that names the extra and how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"{what} needs the extra {extra}: pip install 'plaudit[{extra}]'") from error


def check_extra(extra: str, what: str) -> None:
    """Raise the ImportError of `needing` if a package of the extra is missing; import no package."""
    for module in BRINGS[extra]:
        with needing(extra, what):
            if find_spec(module) is None:
                raise ModuleNotFoundError(module)
