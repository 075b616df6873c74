"""Words and files made hostile: what a stranger types, and what a disk, a spreadsheet or another program leaves."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

listed = str.split

# What a shell can hand over: any bytes but NUL, so that text may hold halves of surrogates.
NUMBERS = listed("-1 0 1 2 0.5 1e-320 1e308 1e400 -0.0 nan NaN inf -inf 0x10 1_0 1/3 1e ٣ ² 1,5 +1 1.0 2147483648 true")
NUMBERS += ["9" * 19, "9" * 40, "9" * 5000, " 1"]
LETTERS = listed(
    "- -- . .. * ' \" %s%n {0} $HOME \\ a,b a:b ; | e\u0301 \U0001f600 日本 [bold]x[/bold] <b>alert(1)</b>"
)
LETTERS += listed("pure: pure:1,2 pure:inf pure:-1 approx:1 approx:0,0 approx:0,1 zcdp:1e-300 gaussian:1e300 PURE:1")
LETTERS += listed("pure:1e-9 none:1 replace_one add_remove mine mine: :noisy mine:noisy.x mine:np os:getcwd nowhere:f")
LETTERS += listed("gdpc adpc phsafe topdown nist ons morocco midwest smallest largest,empty total state state,state")
LETTERS += ["", " ", "a" * 5000, "=cmd|' /C calc'!A0", "\x1b[31mred", "\x1b]0;title\x07", "a\nb", "a\rb", "\t", "\x7f"]
LETTERS += ["\x9b2J", "\u202eabc", "\ufeff", *map(os.fsdecode, (b"\xff", b"\xed\xa0\x80", b"a\xc3", b"\x80\x1b[2J"))]
PLACES = listed(". .. ~ out old new /dev/null /dev/full /proc/self/mem nowhere nowhere/at/all folder.json empty.csv")
PLACES += ["counts.csv/x", "linked", "linked/new", "loop", "dangling", "x" * 300, "a/" * 2000]

NUMERIC = [0, -1, 1, 0.5, 1e308, 10**400, 2**53, 2**63, 2**64, float("nan"), float("inf"), -float("inf")]
VALUES: list[Any] = [*NUMERIC, None, True, False, [], {}, [[]], {"": None}, [None], [1] * 300, {"x": {"runs": 1}}]
VALUES += ["", "inf", "nan", "1", "1e9", "x" * 3000, "\x1b[2J", "a\nb", "\ud800", "é", "=1+1", "<b>"]
VALUES += listed("violated pure audit estimate replay")
FIELDS = listed('NaN NA None inf -1 1e400 " "" "a a,b é 1.5 0x1 =cmd \'x 1;2 TRUE A f state -0')
FIELDS += ["", " ", "9" * 40, "\x00", "\x1b[2J", "\r", "x" * 70_000, "\ufeff", "\uff11", "1 000", "\u2028"]


def word(rng: Random) -> str:
    """A word that nobody expects."""
    return rng.choice(rng.choice([NUMBERS, LETTERS, PLACES]))


def spoiled(rng: Random, path: Path) -> bytes:
    """What a file holds after something went wrong with it, once or twice; in its own format, if there is a way."""
    content = path.read_bytes()
    own = {".json": changed_json, ".csv": _csv, ".npy": _npy, ".parquet": _parquet}
    for _ in range(rng.choice([1, 1, 1, 2])):
        ways = [own[path.suffix]] if rng.random() < 0.6 else BYTES
        try:
            content = rng.choice(ways)(rng, content)
        except Exception:  # it is no file of its format any more
            content = rng.choice(BYTES)(rng, content)
    return content


def _span(rng: Random, content: bytes) -> tuple[int, int]:
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return a, min(b, a + rng.choice([1, 8, 100, 10**9]))


def _cut(rng: Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _flip(rng: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 3, 30]) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _without(rng: Random, content: bytes) -> bytes:
    a, b = _span(rng, content)
    return content[:a] + content[b:]


def _twice(rng: Random, content: bytes) -> bytes:
    a, b = _span(rng, content)
    return content[:b] + content[a:]


def _inserted(rng: Random, content: bytes) -> bytes:
    a, _ = _span(rng, content)
    return content[:a] + rng.choice(FIELDS).encode("utf-8", "surrogatepass") + content[a:]


def _encoded(rng: Random, content: bytes) -> bytes:
    return content.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-32", "cp1252", "utf-7"]), "replace")


def _lines(rng: Random, content: bytes) -> bytes:
    return content.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"\x00\n", b"", b"\xe2\x80\xa8"]))


BYTES: list[Callable[[Random, bytes], bytes]] = [_cut, _flip, _without, _twice, _inserted, _encoded, _lines]
BYTES += [
    lambda rng, content: b"",
    lambda rng, content: b"\xef\xbb\xbf" + content,
    lambda rng, content: content + content,
    lambda rng, content: bytes(len(content)),
    lambda rng, content: b"PK\x03\x04" + content,
    lambda rng, content: rng.choice([b"[", b'{"a":', b'"'])[:5] * rng.choice([1, 3000, 200_000]),
    lambda rng, content: rng.choice([b"null", b"1e400", b"NaN", b"[]", b"{}", b'"x"', b"\xff", b"\n", b"-", b"x,y\n"]),
]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, below in inner for place in places(below, (*at, key)))]


def changed_json(rng: Random, content: bytes) -> bytes:
    """One value is another, is gone, or is there twice; results are signed again, so that it is looked at."""
    body = json.loads(content)
    intact = isinstance(body, dict) and body.pop("sha256", None) is not None and body.pop("schema", None) is not None
    *way, last = rng.choice(places(body)[1:])
    inside = body
    for key in way:
        inside = inside[key]
    change = rng.choice(["other", "other", "other", "gone", "renamed", "swapped", "deep"])
    if change == "gone":
        del inside[last]
    elif change == "renamed" and isinstance(inside, dict):
        inside[rng.choice([last.upper(), last + " ", "", "\x1b[2J", "x" * 300, "schema"])] = inside.pop(last)
    elif change == "swapped":
        other = rng.choice(list(inside) if isinstance(inside, dict) else range(len(inside)))
        inside[last], inside[other] = inside[other], inside[last]
    elif change == "deep":
        for _ in range(rng.choice([1, 50, 900])):
            inside[last] = [inside[last]]
    else:
        numeric = isinstance(inside[last], int | float)
        near = (
            inside[last] * rng.choice([-1, 0, 2, 0.5, 1000, 1e300]) if numeric and abs(inside[last]) < 2**1000 else None
        )
        inside[last] = near if near is not None and rng.random() < 0.5 else rng.choice(VALUES)
    text = json.dumps(body, ensure_ascii=rng.random() < 0.5)
    return (signed(json.loads(text)) if intact else text).encode("utf-8", "surrogatepass")


def signed(body: dict[str, Any]) -> str:
    """A saved result with the checksum that belongs to it, as whoever writes one by hand can compute it."""
    body = {"schema": 2, **body}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    return json.dumps({**body, "sha256": digest})


def _csv(rng: Random, content: bytes) -> bytes:
    """A field, a line or a column is another, is gone, or is there twice."""
    rows = [line.split(",") for line in content.decode().split("\n")]
    row = rng.choice(rows)
    at = rng.randrange(len(row))
    change = rng.choice(["field", "field", "field", "column", "line", "twice", "shorter", "longer", "names"])
    if change == "field":
        row[at] = rng.choice(FIELDS)
    elif change == "column":
        value = rng.choice([*FIELDS, None])
        for other in rows[1:]:
            other[at : at + 1] = [] if value is None else [value]
    elif change == "line":
        rows.remove(row)
    elif change == "twice":
        rows += [row] * rng.choice([1, 1, 500])
    elif change == "shorter":
        row.pop(at)
    elif change == "longer":
        row.insert(at, rng.choice(FIELDS))
    else:
        rows[0][rng.randrange(len(rows[0]))] = rng.choice([*FIELDS, rows[0][0], rows[0][0].upper()])
    return "\n".join(map(",".join, rows)).encode("utf-8", "surrogatepass")


def _npy(rng: Random, content: bytes) -> bytes:
    """Numbers of another kind or shape, or a header that promises something else."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if rng.random() < 0.4:
        header = [(b"<f8", b"|O  "), (b"<i8", b"<M8"), (b"<f8", b"<c8"), (b"(600", b"(6e9"), (b"}", b"]"), (b"'", b'"')]
        header += [(b"4,)", b"-1)"), (b"False", b"True "), (b"NUMPY\x01", b"NUMPY\x09"), (b"(", b"(" * 3000)]
        return content.replace(*rng.choice(header), 1)
    kinds = ["f2", "f4", "c16", "?", "S4", "U3", "M8[s]", "m8[s]", "u8", "i1", ">f8", "g"]
    with np.errstate(all="ignore"):
        array = array.astype(rng.choice(kinds)) if rng.random() < 0.5 else array.real.astype(float)
        if array.dtype.kind == "f":
            array.flat[rng.randrange(array.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1, 0.5, 2.0**53])
    shape = rng.choice([array.shape, (1, *array.shape), (0,), (), (array.size,), (array.size, 1, 1), array.shape[::-1]])
    array = array.reshape(shape) if np.prod(shape) == array.size else np.resize(array, shape)
    np.save(file := io.BytesIO(), array)
    return file.getvalue()


def _parquet(rng: Random, content: bytes) -> bytes:
    """A column of another type, with a hole, another name, or none."""
    frame = pd.read_parquet(io.BytesIO(content))
    name = rng.choice(list(frame.columns))
    change = rng.choice(["missing", "numbers", "lists", "times", "bytes", "flags", "gone", "named", "empty", "vast"])
    if change == "gone":
        frame = frame.drop(columns=name)
    elif change == "named":
        frame = frame.rename(columns={name: rng.choice([field for field in FIELDS if field != "\x00"])})
    elif change == "empty":
        frame = frame[:0]
    else:
        makes = {
            "missing": None,
            "numbers": 1.5,
            "lists": [1, None],
            "flags": True,
            "bytes": b"\xff\x00",
            "vast": 2**63 - 1,
        }
        value = makes.get(change, pd.Timestamp("2020-04-01T00:00:00+02:00"))
        rows = range(len(frame)) if rng.random() < 0.5 or value is not None else [0]
        column = [value if row in rows else old for row, old in enumerate(frame[name])]
        frame[name] = pd.Series(column, dtype=object if value is None or isinstance(value, list | bytes) else None)
    frame.to_parquet(file := io.BytesIO(), index=False)
    return file.getvalue()
