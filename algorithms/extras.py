"""Say which extra installs what is missing."""

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
    """Import what an extra brings, or say in one line who needs it and how it is installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"{what} needs the extra {extra}: pip install 'plaudit[{extra}]'") from error


def check_extra(extra: str, what: str) -> None:
    """Refuse, in the words of `needing`, to go on without what an extra brings; nothing is imported."""
    for module in BRINGS[extra]:
        with needing(extra, what):
            if find_spec(module) is None:
                raise ModuleNotFoundError(module)
