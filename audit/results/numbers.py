"""What every number of a saved result must be, by its name: checked where a file is read, and nowhere else."""

from __future__ import annotations

import math
from typing import Any

from audit.arguments import LARGEST

__all__ = ["check_numbers"]

MOST = LARGEST - 1
Rule = tuple[type, float, float]  # whole or real, from, to
RULES: dict[Rule, str] = {
    (int, 0, MOST): "counts counts_x counts_y runs runs_x runs_y canaries hits rated regions look looks choosing most "
    "draws areas units resamples entries entries_changed entry starts",
    (int, 1, MOST): "size distance pairs components attempt call",
    (int, 0, math.inf): "seed seed_entropy",
    (float, 1, MOST): "inflation",
    (float, 0, 1): "confidence share probability false_alarm false_detection",
    (float, 0, MOST): "selection unseen expected shortfalls order lag change percentile multiplier",
    (float, 0, math.inf): "ceiling detectable rare measured seconds epsilon delta rho mu l1_change l2_change",
    (float, -MOST, MOST): "weights",
}
OF_NAME = {name: rule for rule, names in RULES.items() for name in names.split()}
NAMED_BY_OTHERS = ("mechanism", "software")


def check_numbers(value: Any, name: str = "", rule: Rule | None = None) -> None:
    """Refuse numbers out of the range of their field; in lists and dicts their own rule holds, or the outer."""
    if value == "-inf":  # as a number is written: no result has one
        value = -math.inf
    if isinstance(value, dict):
        for key, entry in value.items():
            if key not in NAMED_BY_OTHERS:
                check_numbers(entry, key, OF_NAME.get(key, rule))
    elif isinstance(value, list):
        for entry in value:
            check_numbers(entry, name, rule)
    elif rule is not None and isinstance(value, int | float):
        kind, least, most = rule
        if isinstance(value, bool) or not isinstance(value, int | kind) or not least <= value <= most:
            span = f"of {least} or more" if most == math.inf else f"from {least} to {most}"
            raise ValueError(f"{name} must be a{' whole' * (kind is int)} number {span}, got {repr(value)[:80]}")
