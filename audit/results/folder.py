"""Saved results read back, one by one or a folder at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from audit.results.audit_result import AuditResult
from audit.results.estimate import LossEstimate
from audit.results.files import read_json

__all__ = ["read_audit", "read_audits", "read_results"]


def read_audit(path: Path) -> AuditResult:
    """Read one saved audit."""
    found = _read(path)
    if not isinstance(found, AuditResult):
        raise ValueError(f"{path} must be a saved audit, got an estimate")
    return found


def read_audits(folder: Path) -> list[tuple[str, AuditResult]]:
    """Read the saved audits of a folder."""
    return [(path.stem, read_audit(path)) for path in _paths(folder)]


def read_results(folder: Path) -> tuple[list[tuple[str, AuditResult]], list[tuple[str, LossEstimate]]]:
    """Read the saved audits and estimates of a folder."""
    audits, estimates = [], []
    for path in _paths(folder):
        found = _read(path)
        if isinstance(found, AuditResult):
            audits.append((path.stem, found))
        else:
            estimates.append((path.stem, found))
    return audits, estimates


def _paths(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a folder of saved audits, and there is none")
    paths = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    if not paths:
        raise ValueError(f"{folder} must hold saved audits (*.json), got none")
    return paths


def _read(path: Path) -> AuditResult | LossEstimate:
    try:
        values: dict[str, Any] = read_json(path)
        return LossEstimate.from_dict(values) if values.get("kind") == "estimate" else AuditResult.from_dict(values)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if str(path) in text else f"{path}: {text}") from None
