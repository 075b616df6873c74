"""Folders of saved results: read one or all, and save results without replacing others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from audit.results.audit_result import AuditResult, Verdict
from audit.results.estimate import LossEstimate
from audit.results.files import read_json, save_json
from audit.results.plain import check_numbers
from audit.results.replayed import ReplayRecord

__all__ = ["Results", "audits_of_session", "name_in_files", "read_audits", "read_results", "save_result"]

Saved = AuditResult | LossEstimate | ReplayRecord
KINDS: dict[str, type[Saved]] = {"audit": AuditResult, "estimate": LossEstimate, "replay": ReplayRecord}
LONGEST = 180  # bytes of a name; file systems allow 255, including number and suffix
ENTRY = {"node_id": str, "attempt": int, "call": int, "expected": str, "audit": dict}  # of a test session
EXPECTED = ("not refuted", "violated")  # of a promise; of a known bug


class Results(NamedTuple):
    """Saved results with their names."""

    audits: list[tuple[str, AuditResult]]
    estimates: list[tuple[str, LossEstimate]]
    replays: list[tuple[str, ReplayRecord]]
    known_bugs: set[str]  # names of audits whose tests expect a violation

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts of audits and replays, without the violations that tests expect."""
        every: list[tuple[str, AuditResult | ReplayRecord]] = [*self.audits, *self.replays]
        return [one.verdict for name, one in every if not (one.verdict == "violated" and name in self.known_bugs)]


def name_in_files(name: str) -> str:
    """Return a file name that is valid on any system: letters, digits, dashes, dots and underscores."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return plain.encode()[:LONGEST].decode(errors="ignore").strip(".") or "audit"


def save_result(result: Saved, folder: Path, name: str) -> Path:
    """Save a result in a folder under its name, or under the next free one, such as name-2; return the path."""
    plain, number = name_in_files(name), 1
    while True:
        path = folder / f"{plain}{'' if number == 1 else f'-{number}'}.json"
        try:
            save_json(path, result.to_dict(), private=result.confidential, commanded=True)
        except FileExistsError:
            number += 1
        else:
            return path


def read_audits(*paths: Path) -> list[tuple[str, AuditResult]]:
    """Read saved audits, at least one, with their names; other kinds of results are left out."""
    return read_results(*paths, needed=("audits",)).audits


def read_results(
    *paths: Path, needed: Sequence[str] = (), through: Callable[[Collection[Path]], Iterable[Path]] = iter
) -> Results:
    """Read saved results with their names, from folders, single files and reports of test sessions."""
    # The second result of the same name gets the suffix (2). A file given twice is read once. If no result is of a
    # `needed` kind, a ValueError is raised. The function `through` wraps the iteration over files to show progress.
    lists: dict[type[Saved], list[Any]] = {AuditResult: [], LossEstimate: [], ReplayRecord: []}
    names, known_bugs = set[str](), set[str]()
    for file in through({file.resolve(): file for path in paths for file in _files(path)}.values()):
        for name, result, known_bug in _read(file):
            own = next(own for k in count(1) if (own := name if k == 1 else f"{name} ({k})") not in names)
            names.add(own)
            known_bugs |= {own} if known_bug else set()
            lists[type(result)].append((own, result))
    results = Results(lists[AuditResult], lists[LossEstimate], lists[ReplayRecord], known_bugs)
    kinds = [kind for kind in ("audits", "estimates", "replays") if getattr(results, kind)]
    if needed and not set(needed) & set(kinds):
        got = f"{' and '.join(kinds)} only" if kinds else "none"
        where = ", ".join(map(str, paths))
        raise ValueError(f"{where} must hold saved {' or '.join(needed)}, got {got}")
    return results


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(f"{path}: no such file or folder of saved audits")
    files = sorted(file for file in path.glob("*.json") if not file.name.startswith("."))
    if not files:
        raise ValueError(f"{path} must hold saved audits (*.json), got none")
    return files


def _read(path: Path) -> list[tuple[str, Saved, bool]]:
    try:
        values: dict[str, Any] = read_json(path)
        if values.get("kind") == "session":
            check_numbers(values)
            return list(audits_of_session(values.get("audits")))
        return [(path.stem, KINDS.get(str(values.get("kind")), AuditResult).from_dict(values), False)]
    except ValueError as error:
        text = str(error)
        raise ValueError(text if str(path) in text else f"{path}: {text}") from None


def audits_of_session(entries: Any) -> Iterator[tuple[str, AuditResult, bool]]:
    """Yield the audits of a test session: name, result, and whether the test expects a violation."""
    for entry in entries if isinstance(entries, list) else [entries]:
        if not isinstance(entry, dict) or any(type(entry.get(key)) is not kind for key, kind in ENTRY.items()):
            raise ValueError(f"an audit of a test session must have {', '.join(ENTRY)}, got {repr(entry)[:80]}")
        if entry["expected"] not in EXPECTED:
            raise ValueError(f"expected must be one of {', '.join(EXPECTED)}, got {entry['expected'][:80]!r}")
        known_bug = entry["expected"] == "violated"
        again = f", attempt {entry['attempt']}" if entry["attempt"] > 1 else ""
        name = f"{entry['node_id']} call {entry['call']}{again}{' (known bug)' * known_bug}"
        try:
            yield name, AuditResult.from_dict(entry["audit"]), known_bug
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
