"""Finished blocks on disk: an audit that was killed goes on from them and gives the same counts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import io
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from audit.results.files import check_writable
from audit.results.provenance import provenance
from audit.sampling.streams import Seed, entropy_of, seed_sequence

__all__ = ["BlockStore", "fingerprint", "source", "stored_seed"]

DIGEST = 32  # bytes of SHA-256 before the array


@dataclass(frozen=True)
class BlockStore:
    """What is left of finished blocks, one file each; whoever finds one takes it for the block itself.

    A block is a function of the audit, of its stream and of its number, and a file appears whole or not at all. So any
    number of processes may write the same store, and nothing is locked.

    Attributes
    ----------
    folder : pathlib.Path
        Of one audit: its name is that of mechanism, databases, question and seed.
    checked : set of int
        Databases of which a block was run again: no name tells all that code and data may depend on.
    """

    folder: Path
    checked: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, folder: str | Path, *names: str) -> BlockStore:
        """Return the store of one audit, in a folder of many.

        Parameters
        ----------
        folder : str or pathlib.Path
            Of all audits that are kept; made if need be.
        *names : str
            Of the question, and of the answer that a seed has begun.

        Returns
        -------
        BlockStore
            That can be written.

        Raises
        ------
        OSError
            If it cannot.
        """
        place = Path(folder, *names)
        check_writable(place)
        return cls(place)

    def read(self, stream: np.random.SeedSequence, number: int) -> NDArray[Any] | None:
        """Return what was kept of a block.

        Parameters
        ----------
        stream : numpy.random.SeedSequence
            Root of the streams that the block belongs to.
        number : int
            Of the block.

        Returns
        -------
        ndarray or None
            None if it is not there, or not as it was written.
        """
        try:
            content = self._path(stream, number).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:  # torn when the machine stopped
            return None
        kept: NDArray[Any] = np.lib.format.read_array(io.BytesIO(content[DIGEST:]), allow_pickle=False)
        return kept

    def check(self, stream: np.random.SeedSequence, kept: NDArray[Any], again: Callable[[], NDArray[Any]]) -> None:
        """Run one block of either database again, the first that is found, and refuse a store that holds another.

        Parameters
        ----------
        stream : numpy.random.SeedSequence
            Root of the streams that the block belongs to; its last number is that of the database.
        kept : ndarray
            What was kept of it.
        again : callable
            Makes the block anew.

        Raises
        ------
        ValueError
            If the mechanism or the data are not those that filled the store.
        """
        side = stream.spawn_key[-1] if stream.spawn_key else 0
        if side in self.checked:
            return
        self.checked.add(side)
        if not np.array_equal(kept, again()):
            raise ValueError(
                f"{self.folder} must hold runs of this mechanism on these data, and they come out otherwise: remove it"
            )

    def write(self, stream: np.random.SeedSequence, number: int, kept: NDArray[Any]) -> None:
        """Keep what is left of a block.

        Parameters
        ----------
        stream, number
            As in `read`.
        kept : ndarray
            Numbers or words.

        Raises
        ------
        OSError
            If it cannot be written; blocks that were there stay.
        """
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(kept), allow_pickle=False)
        path, content = self._path(stream, number), buffer.getvalue()
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:  # not synced: a block that is torn is found out, and made again
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _path(self, stream: np.random.SeedSequence, number: int) -> Path:
        return self.folder / f"{'-'.join(map(str, stream.spawn_key))}.{number}.block"


def stored_seed(folder: str | Path, question: str, rng: Seed) -> np.random.SeedSequence:
    """Return the root of the streams of an audit whose blocks are kept.

    Parameters
    ----------
    folder : str or pathlib.Path
        Of all audits that are kept; made if need be.
    question : str
        What is asked, of whom: a `fingerprint`.
    rng : None, int, numpy.random.Generator or numpy.random.SeedSequence
        None goes on with the seed that the question was begun with; if there is none, fresh entropy begins it.

    Returns
    -------
    numpy.random.SeedSequence
        As `seed_sequence` would.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    place = Path(folder) / question
    check_writable(place)
    if rng is not None:
        return seed_sequence(rng)
    path = place / "seed"
    handle, temporary = tempfile.mkstemp(dir=place, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{entropy_of(seed_sequence(None)):d}\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # of several that begin at once, one is first
            os.link(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    text = path.read_text()
    if not text.strip().isdecimal():
        raise ValueError(f"{path} must hold a seed, got {text[:40]!r}")
    return np.random.SeedSequence(int(text))


def fingerprint(*what: Any) -> str:
    """Return a name for values: two audits share blocks only where all that goes into a block is the same.

    Parameters
    ----------
    *what : object
        Numbers, text, arrays, databases, functions, mechanisms: by their parameters and code. What their code calls
        elsewhere is not looked at.

    Returns
    -------
    str
        Of 24 hexadecimal digits.

    Raises
    ------
    ValueError
        If a value is nested too deeply.
    """
    digest = hashlib.sha256(repr(sorted(provenance()["software"].items())).encode())
    try:
        _add(digest, what, {})
    except RecursionError:
        raise ValueError("a store needs a mechanism and data that are not nested deeply: run without one") from None
    return digest.hexdigest()[:24]


def source(mechanism: Any) -> str:
    """Return the text of the module that a mechanism comes from.

    Parameters
    ----------
    mechanism : Mechanism
        A function, a class, or an object of some class.

    Returns
    -------
    str
        Empty where there is none: typed at a prompt, or built in.
    """
    try:
        known = inspect.isroutine(mechanism) or isinstance(mechanism, type)
        return Path(inspect.getfile(mechanism if known else type(mechanism))).read_text("utf-8")
    except (TypeError, OSError, UnicodeDecodeError):
        return ""


def _add(digest: Any, value: Any, known: dict[int, tuple[int, Any]]) -> None:
    """Add a value to a digest, part by part; `known` are those added before, kept so that no other takes their id."""
    met = id(value) in known
    number, _ = known.setdefault(id(value), (len(known), value))
    digest.update(f"{number}:{type(value).__module__}.{type(value).__qualname__}(".encode())
    if met:
        return
    parts: Any = ()
    if value is None or isinstance(value, int | float | complex | str | bytes | np.generic):
        digest.update(repr(value).encode("utf-8", "surrogatepass"))
    elif type(value) is np.ndarray and value.dtype.kind != "O":
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif type(value) is np.ndarray:
        parts = [value.shape, *value.ravel().tolist()]
    elif type(value) is dict:
        parts = sorted(value.items(), key=repr)
    elif type(value) in (list, tuple):
        parts = value
    elif isinstance(value, CodeType):
        parts = (value.co_code, value.co_names, value.co_consts)
    elif isinstance(value, FunctionType):
        closure = [_content(cell) for cell in value.__closure__ or ()]
        parts = (value.__qualname__, source(value), value.__code__, value.__defaults__, value.__kwdefaults__, closure)
    elif isinstance(value, MethodType):
        parts = (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
    elif isinstance(value, type | ModuleType | BuiltinFunctionType):
        digest.update(f"{value.__name__} {source(value) if isinstance(value, type) else ''}".encode())
    elif hasattr(value, "py_func"):  # compiled: its own state has a new name in each process
        parts = (value.py_func,)
    elif dataclasses.is_dataclass(value):
        parts = [type(value), *(getattr(value, field.name, None) for field in dataclasses.fields(value))]
    else:
        parts = _whole(value)
    for part in parts:
        _add(digest, part, known)
    digest.update(b")")


def _content(cell: CellType) -> Any:
    """Return what a closure encloses."""
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def _whole(value: Any) -> tuple[Any, ...]:
    """Return an object in parts: as pickle sees it, or, where it cannot, its attributes."""
    try:
        return type(value), str(joblib.hash(value))
    except Exception:  # a lambda within, an open connection
        return type(value), sorted(getattr(value, "__dict__", {}).items(), key=repr)
