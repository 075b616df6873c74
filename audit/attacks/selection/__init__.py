"""The choice of events on selection runs: each event is rated by the bound to expect from it on fresh runs."""

from __future__ import annotations

from audit.attacks.protocol import Family
from audit.attacks.selection.choice import distinct, empty_event, rate_candidates, select_events
from audit.attacks.selection.ratings import Guessing, Shifts
from audit.attacks.selection.tables import Table, tabulated
from audit.attacks.selection.weights import select_weights

__all__ = [
    "Family",
    "Guessing",
    "Shifts",
    "Table",
    "distinct",
    "empty_event",
    "rate_candidates",
    "select_events",
    "select_weights",
    "tabulated",
]
