"""Words and files made hostile: what a stranger types, and what a disk, a spreadsheet or another program leaves."""

import hashlib
import json
import os
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

listed = str.split

# What a shell can hand over: any bytes but NUL, so that text may hold halves of surrogates.
NUMBERS = listed("-1 0 1 2 0.5 1e-320 1e308 1e400 -0.0 nan NaN inf -inf 0x10 1_0 1/3 1e ٣ ² 1,5 +1 1.0 true")
NUMBERS += ["9" * 19, "9" * 5000, " 1"]
LETTERS = listed("- -- . .. * ' \" %s%n {0} $HOME \\ a,b a:b ; | e\u0301 \U0001f600 日本 [bold]x[/bold] <b>x</b>")
LETTERS += listed("pure: pure:1,2 pure:inf approx:0,0 approx:0,1 zcdp:1e-300 gaussian:1e300 PURE:1 pure:1e-9 none:1")
LETTERS += listed("replace_one add_remove mine mine: :noisy mine:noisy.x mine:np os:getcwd nowhere:f gdpc phsafe nist")
LETTERS += ["", " ", "a" * 5000, "=cmd|' /C calc'!A0", "\x1b[31mred", "a\nb", "a\rb", "\t", "\x7f", "\u202eabc"]
LETTERS += ["\ufeff", *map(os.fsdecode, (b"\xff", b"\xed\xa0\x80", b"a\xc3"))]
PLACES = listed(". .. ~ out old new /dev/null /dev/full nowhere nowhere/at/all folder.json empty.csv counts.csv")
PLACES += ["counts.csv/x", "linked", "linked/new", "loop", "dangling", "x" * 300, "a/" * 2000]

NUMERIC = [0, -1, 1, 0.5, 1e308, 10**400, 2**53, 2**63, float("nan"), float("inf"), -float("inf")]
VALUES: list[Any] = [*NUMERIC, None, True, False, [], {}, [[]], {"": None}, [None], [1] * 300, {"x": {"runs": 1}}]
VALUES += ["", "inf", "nan", "1", "x" * 3000, "\x1b[2J", "a\nb", "\ud800", "=1+1", "<b>", "violated", "audit"]
FIELDS = ["NaN", "NA", "None", "inf", "-1", "1e400", " ", '"', '""', "a,b", "é", "1.5", "=cmd", "1;2", "TRUE", "-0", ""]
FIELDS += ["9" * 40, "\x00", "\x1b[2J", "\r", "x" * 70_000, "\ufeff", "\uff11", "1 000", "\u2028"]


@st.composite
def damaged(draw, content: bytes, suffix: str) -> bytes:
    """What a file may hold after something went wrong with it: in its own format where it is text, or in its bytes."""
    if suffix == ".json" and draw(st.booleans()):
        body = json.loads(content)
        place = draw(st.sampled_from(places(body)[1:]))
        return with_value(body, place, draw(st.sampled_from(VALUES))).encode("utf-8", "surrogatepass")
    if suffix == ".csv" and draw(st.booleans()):
        rows = [line.split(",") for line in content.decode().split("\n")]
        row = draw(st.sampled_from(rows))
        at = draw(st.integers(0, len(row) - 1))
        row[at : at + draw(st.integers(0, 2))] = [draw(st.sampled_from(FIELDS))]
        return "\n".join(map(",".join, rows)).encode("utf-8", "surrogatepass")
    at = draw(st.integers(0, len(content)))
    return draw(
        st.sampled_from(
            [
                content[:at],
                content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :] if at < len(content) else b"",
                content[:at] + b"\xff" + content[at:],
                content + content,
                bytes(len(content)),
                content.decode("utf-8", "replace").encode("utf-16"),
                content.replace(b"\n", b"\r"),
                b"[" * 200_000,
                b"null",
            ]
        )
    )


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value inside, and to the whole."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, below in inner for place in places(below, (*at, key)))]


def with_value(body: dict[str, Any], place: tuple[Any, ...], value: Any) -> str:
    """Return a file in which one value is another; a result is signed again, so that it is looked at."""
    body = deepcopy(body)
    is_signed = body.pop("sha256", None) is not None and body.pop("schema", None) is not None
    inside = body
    for key in place[:-1]:
        inside = inside.get(key, {}) if isinstance(inside, dict) else inside[key]
    inside[place[-1]] = value
    return signed(body) if is_signed else json.dumps(body)


def signed(body: dict[str, Any]) -> str:
    """A saved result with the checksum that belongs to it, as whoever writes one by hand can compute it."""
    body = {"schema": 2, **{key: value for key, value in body.items() if key != "sha256"}}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    return json.dumps({**body, "sha256": digest})
