"""Check that a file is UTF-8 text with commas between fields; the error names a command that converts it."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from audit.io.text import quoted

__all__ = ["BYTES", "check_commas", "decoded", "encoding_fault", "made_by"]

BYTES = "surrogateescape"  # invalid UTF-8 is decoded to lone surrogates, which ODD finds
ODD, WINDOWS = re.compile("[\udc80-\udcff]"), re.compile("[\udc80-\udc9f]")
MARKS = ("\udcff\udcfe", "\udcfe\udcff")  # the first bytes of UTF-16; PACKED: of workbooks and archives
PACKED = ("PK\3\4", "\x1f\udc8b")
NUMBER = re.compile(r'""|nan?|[+-]?(inf|\d[\d.,]*(e[+-]?\d+)?)', re.IGNORECASE)  # `""` stands for a quoted field
SEPARATORS = {";": "semicolons", r"\t": "tabs", "|": "bars", " ": "spaces"}


def made_by(command: str, path: Path) -> str:
    """Return a shell command that converts a file into a new one.

    >>> made_by("tr , .", Path("my counts.csv"))
    "tr , . < 'my counts.csv' > 'my counts-new.csv'"
    """
    return f"{command} < {shlex.quote(str(path))} > {shlex.quote(str(path.with_stem(f'{path.stem}-new')))}"


def decoded(path: Path, content: bytes) -> str:
    """Decode UTF-8 content, which may be only the start of the file; raise an error if it is another encoding."""
    text = io.StringIO(content.decode("utf-8-sig", BYTES), newline=None).read()
    if ODD.search(text) or "\0" in text[:2]:
        raise ValueError(encoding_fault(path, text.split("\n")))
    return text


def encoding_fault(path: Path, lines: Iterable[str]) -> str:
    """Return a message: the first line that is not UTF-8, its probable encoding, and how to convert it."""
    rule, known = f"{path} must be text in UTF-8", False
    for number, line in enumerate(lines, 1):
        if number == 1 and line.startswith(PACKED):
            return f"{rule}, and is a workbook or an archive: save it as CSV"
        if number == 1 and (line.startswith(MARKS) or "\0" in line[:2]):
            name = "UTF-16"
            code = "utf-16" if line.startswith(MARKS) else "utf-16be" if line[0] == "\0" else "utf-16le"
        elif ODD.search(line):
            name, code = ("Windows-1252", "cp1252") if WINDOWS.search(line) else ("Latin-1", "latin1")
        else:
            known |= not line.isascii()
            continue
        field = next((part for part in re.split("[,;\t]", line) if ODD.search(part)), line)
        way_out = "write it anew, for lines before it are" if known else made_by(f"iconv -f {code} -t utf-8", path)
        return f"{rule}, and line {number} is probably {name}, got {quoted(field.strip())}: {way_out}"
    return rule


def check_commas(path: Path, line: str, second: str = "") -> None:
    """Raise an error if the first lines have another separator than commas, perhaps with decimal commas."""
    below = second.replace("\t", r"\t")
    bare = re.sub('"[^"]*"', '""', line.replace("\t", r"\t"))  # quoted names may contain any separator
    for mark, name in SEPARATORS.items():
        if below and mark not in below:  # not a separator, but part of a name
            continue
        parts = bare.split(mark)
        numbers = all(NUMBER.fullmatch(part.strip()) for part in parts)
        if len(parts) > 1 and (numbers or (mark != " " and len(parts) - 1 > bare.count(","))):
            got, command = quoted(line.replace("\t", r"\t")), made_by(f"tr ',{mark}' '.,'", path)
            rule = f"must have commas between fields, got {name} in line 1, {got}"
            raise ValueError(f"{path} {rule}: {command} (decimal commas become points)")
