"""Files that are whole or absent: written under a temporary name, and renamed when they are on the disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

__all__ = ["usual_mode", "whole_file"]


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that appears, or replaces another, when the block ends without an error.

    Parameters
    ----------
    path : Path
        Of the file.

    Yields
    ------
    TextIO
        To write to, UTF-8, line ends as they are written.

    Raises
    ------
    OSError
        If it cannot be written; nothing is left behind.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, usual_mode(0o666))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)  # an interrupt may come after the renaming
        raise


def usual_mode(most: int) -> int:
    """Return the permissions that the user's mask leaves: temporary files and folders have fewer.

    Parameters
    ----------
    most : int
        0o666 for files, 0o777 for folders.

    Returns
    -------
    int
        Permission bits.
    """
    mask = os.umask(0)
    os.umask(mask)
    return most & ~mask
