"""Finished blocks on disk: an audit that was killed continues from them, with the same counts."""

from __future__ import annotations

import hashlib
import inspect
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher
from numpy.typing import NDArray

from audit.io.files import Kind, check_writable, write_atomically, writing
from audit.outputs import as_texts
from audit.results.provenance import provenance
from audit.sampling.streams import Seed, entropy_of, seed_sequence

__all__ = ["BlockStore", "contents", "fingerprint", "source", "stored_seed"]

DIGEST = 32  # bytes of SHA-256 before the array
BLOCK = Kind("a block")  # recognized by its name alone, as the folder belongs to one audit


@dataclass(frozen=True)
class BlockStore:
    """Cache of finished blocks, one file each, written atomically: several processes may use it."""

    folder: Path  # of one audit: its name is a hash of mechanism, databases, arguments and seed
    repeats: bool = True  # whether the same seed gives the same outputs again
    checked: set[int] = field(default_factory=set)  # databases of which a block was run again

    @classmethod
    def of(cls, folder: str | Path, *names: str, repeats: bool = True) -> BlockStore:
        """Return the store of one audit, in a folder of many."""
        return cls(_writable(Path(folder, *names)), repeats)

    def finished(
        self, stream: np.random.SeedSequence, numbers: Iterable[int], run: Callable[[int], NDArray[Any]]
    ) -> dict[int, NDArray[Any]]:
        """Return finished blocks by number; refuse a store if `run` does not reproduce a block of either database."""
        done = {number: block for number in numbers if (block := self.read(stream, number)) is not None}
        side = stream.spawn_key[-1] if stream.spawn_key else 0
        if done and self.repeats and side not in self.checked:
            self.checked.add(side)
            number, block = next(iter(done.items()))
            if not np.array_equal(block, run(number)):
                raise ValueError(
                    f"{self.folder} must hold runs of this mechanism on these data, and they come out otherwise: "
                    "remove it"
                )
        return done

    def read(self, stream: np.random.SeedSequence, number: int) -> NDArray[Any] | None:
        """Return a finished block, if there is one."""
        try:
            content = self._path(stream, number).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:  # torn when the machine stopped
            return None
        values: NDArray[Any] = np.lib.format.read_array(io.BytesIO(content[DIGEST:]), allow_pickle=False)
        return as_texts([text[:-1] for text in values.tolist()]) if values.dtype.kind == "U" else values

    def write(self, stream: np.random.SeedSequence, number: int, values: NDArray[Any]) -> None:
        """Store a finished block."""
        if values.dtype.kind == "O":  # texts, each with an end: numpy drops zeros there
            values = np.array([f"{text}." for text in values], str)
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(values), allow_pickle=False)
        path, content = self._path(stream, number), buffer.getvalue()
        # Not synced: a torn block is detected by its digest, and made again.
        with _no_fault_of_the_mechanism(self.folder):
            write_atomically(path, hashlib.sha256(content).digest() + content, BLOCK, private=True, synced=False)

    def _path(self, stream: np.random.SeedSequence, number: int) -> Path:
        return self.folder / f"{'-'.join(map(str, stream.spawn_key))}.{number}.block"


def stored_seed(folder: str | Path, question: str, rng: Seed) -> np.random.SeedSequence:
    """Return the root of the streams of an audit with a store: without `rng`, the seed with which it began."""
    place = _writable(Path(folder) / question)
    if rng is not None:
        return seed_sequence(rng)
    path = place / "seed"
    with (
        suppress(FileExistsError),
        writing(path, None, private=True) as file,
    ):  # if several audits begin at once, the first one writes
        file.write(f"{entropy_of(seed_sequence(None)):d}\n".encode())
    text = path.read_text()
    if not text.strip().isdecimal():
        raise ValueError(f"{path} must hold a seed, got {text[:40]!r}")
    return np.random.SeedSequence(int(text))


def _writable(place: Path) -> Path:
    with _no_fault_of_the_mechanism(place):
        place.mkdir(parents=True, exist_ok=True)
        check_writable(place)
    return place


class _StoreError(OSError, ValueError):
    """An error of the disk, which is not an error of the mechanism."""


@contextmanager
def _no_fault_of_the_mechanism(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _StoreError(error.errno, error.strerror, str(place)) from error


def fingerprint(*what: Any) -> str:
    """Return a hash of values: two audits share blocks only if everything that determines a block is the same."""
    # Functions are hashed by their code, closure and the text of their modules, classes by that text. Other data that
    # their code reads are not hashed: so `BlockStore.finished` runs one block again, if a seed reproduces it.
    try:
        return str(_Hasher("sha1").hash((provenance()["software"], what)))[:24]
    except RecursionError:
        raise ValueError("a store needs a mechanism and data that are not nested deeply: run without one") from None


def contents(*databases: Any) -> str:
    """Return a hash of the contents of arrays, tables, lists and mappings; other objects may keep caches."""
    plain = [one for one in databases if isinstance(one, np.ndarray | list | dict | set) or hasattr(one, "columns")]
    return str(_Hasher("sha1").hash(plain))


class _Hasher(NumpyHasher):  # type: ignore[misc]
    """`joblib.hash` that hashes functions and classes by content, and objects that it refuses by their attributes."""

    def save(self, value: Any) -> None:
        value = getattr(value, "py_func", value)  # compiled by numba: its state has another name in each process
        if isinstance(value, FunctionType | CodeType | type | ModuleType) and id(value) not in self.memo:
            self.memoize(value)  # a function may enclose itself
            value = _parts(value)
        if isinstance(value, frozenset):  # such as a constant of code: its order differs between processes
            value = "frozenset", sorted(value, key=repr)
        try:
            super().save(value)
        except (RecursionError, OSError):  # such as a file of code that cannot be read
            raise
        except Exception:
            super().save((type(value), sorted(getattr(value, "__dict__", {}).items(), key=repr)))


def _parts(value: Any) -> tuple[Any, ...]:
    """Return the parts that identify a function, its code or a class: two lambdas of one module have the same name."""
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_consts
    named = getattr(value, "__qualname__", value.__name__), source(value)
    if not isinstance(value, FunctionType):
        return named
    enclosed = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]  # without empty cells
    return *named, value.__code__, value.__defaults__, value.__kwdefaults__, enclosed


def source(value: Any) -> str:
    """Return the text of the module that a function, a class or an object comes from; empty if there is none."""
    try:
        known = inspect.isroutine(value) or isinstance(value, type)
        return Path(inspect.getfile(value if known else type(value))).read_text("utf-8")
    except (TypeError, FileNotFoundError, NotADirectoryError, UnicodeDecodeError):  # typed in, or in an archive
        return ""
