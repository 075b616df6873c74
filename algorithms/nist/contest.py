"""Readers of the two files in which the contest lists the values of each field: specifications and a codebook."""

from __future__ import annotations

import os
import re
import reprlib
from pathlib import Path

from algorithms.schema import MOST_LEVELS, Schema, read_named, read_specification
from audit.io.files import read_bytes

__all__ = ["read_codebook", "read_contest"]

_FIELD, _CODE = re.compile(r"^ ([^\s]+)\t"), re.compile(r"^([^\s]+)\t")


def read_codebook(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """Read the values of fields, without leading zeros, from a codebook as IPUMS writes them, ``codebook.cbk``.

    A line of a field is a space, its name, a tab; the lines of its values below are a code, a tab, a label.
    """
    name = os.fspath(path)
    try:
        lines = read_bytes(Path(name)).decode(errors="replace").splitlines()  # labels are ignored
    except OSError as error:
        raise ValueError(f"codebook must be a file that can be read, got {name} ({error.strerror})") from error
    fields: dict[str, dict[str, None]] = {}
    field: dict[str, None] = {}
    for line in lines:
        if begins := _FIELD.match(line):
            field = fields.setdefault(begins[1], {})
        elif code := _CODE.match(line):
            field[code[1].lstrip("0") or "0"] = None  # a value may be listed twice
    listed = {name: tuple(values) for name, values in fields.items() if values}
    if not listed:
        raise ValueError(f"codebook must list fields and their values as IPUMS does, got none in {name}")
    return listed


def read_contest(
    specifications: str | os.PathLike[str], codebook: str | os.PathLike[str], bins: str | os.PathLike[str] | None = None
) -> Schema:
    """Return the fields of the contest and the values that each may have, as NistDp3 defines them.

    A field has the values in `bins`, a file in the format of `read_specification`; else those in the codebook; else the
    whole numbers from 0 to its ``maxval`` in the specifications. `bins` are for wide numbers, and for the five fields
    whose values the contest allowed to be read from the data (`algorithms.bugs.systems.nist.DomainFromData`).

    These files must not be made from the data to be protected: ``maxval`` and ``count`` of ``colorado-specs.json`` were
    computed from the records of Colorado, which are public.
    """
    fields = read_named(specifications, "specifications")
    if not isinstance(fields, dict) or not fields or not all(isinstance(field, dict) for field in fields.values()):
        raise ValueError(f"specifications must be an object of one field or more, got {reprlib.repr(fields)}")
    special = None if bins is None else read_specification(bins)
    own = {} if special is None else dict(special.attributes)
    if unknown := sorted(set(own) - set(fields)):
        raise ValueError(f"bins must be of fields of the specifications, got {unknown[0]!r}")
    listed = read_codebook(codebook)
    levels = {name: own.get(name) or listed.get(name) or _to_maxval(name, field) for name, field in fields.items()}
    return Schema(levels) if special is None else Schema(levels, edges=special.edges, codes=special.codes)


def _to_maxval(name: str, field: dict[str, object]) -> list[str]:
    most = field.get("maxval")
    if not isinstance(most, int) or isinstance(most, bool) or not 0 <= most < MOST_LEVELS:
        rule = f"must have values in the codebook, a maxval below {MOST_LEVELS:,}, or bins"
        raise ValueError(f"{name} {rule}, got maxval {reprlib.repr(most)}")
    return [str(value) for value in range(most + 1)]
