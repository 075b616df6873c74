"""Views of results for notebooks: HTML, data frames, and HTML pages in files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from audit.installed import plugin
from audit.io.files import write_atomically
from audit.io.html import as_html
from audit.results.formatting import CAUTION, COLUMNS, WARNING, row

__all__ = ["Reported", "audit_html", "audits_html", "frame"]

SHOWN = ("promised", "neighbors", "measured", "confidence", "detectable", "event", "witness", "runs", "pair", "seed")
OF_SEVERAL = ("name", "promised", "neighbors", "measured", "detectable", "verdict", "pair")


def audit_html(summary: Mapping[str, Any], notes: Sequence[str]) -> str:
    """Return HTML of one audit from its summary."""
    cells = row(summary)
    secret = [WARNING] if summary["confidential"] else []
    caution = [] if cells["verdict"] == "violated" else [CAUTION]
    facts = [(COLUMNS[key], cells[key]) for key in SHOWN]
    return as_html(cells["name"], facts, verdict=cells["verdict"], notes=[*secret, *notes, *caution])


def audits_html(title: str, summaries: Sequence[Mapping[str, Any]], verdict: str) -> str:
    """Return an HTML table of several audits from their summaries."""
    cells = [row(summary) for summary in summaries]
    secret = [WARNING] if any(summary["confidential"] for summary in summaries) else []
    rows = [[one[key] for key in OF_SEVERAL] for one in cells]
    head = [COLUMNS[key] for key in OF_SEVERAL]
    return as_html(title, rows, head=head, verdict=verdict, notes=[*secret, CAUTION])


def frame(columns: Any) -> Any:
    """Return rows or columns as a pandas DataFrame."""
    try:
        return import_module("pandas").DataFrame(columns)
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None


class Reported(ABC):
    """Base class of results with an HTML report."""

    @abstractmethod
    def _reported(self) -> tuple[str, dict[str, list[tuple[str, Any]]]]:
        """Return the title of the page, and its audits or estimates, each with its name."""

    def report(self, path: str | Path) -> None:
        """Write the page of ``plaudit report``; replace only such a page. If confidential, the file is private."""
        path = Path(path)
        if path.suffix.lower() != ".html":
            raise ValueError(f"path must end in .html, got {str(path)!r}")
        title, results = self._reported()
        views = plugin("report")
        page = views.build_report(**{"audits": [], **results}, title=title)
        private = any(one.confidential for some in results.values() for _, one in some)
        write_atomically(path, page, views.REPORT, private=private)
