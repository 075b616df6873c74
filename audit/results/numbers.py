"""What every number of a saved result must be, by its name: checked where a file is read, and nowhere else."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from audit.arguments import LARGEST

__all__ = ["check_numbers"]


class _Rule(NamedTuple):
    """Whether a number is whole, and between what it lies."""

    whole: bool
    least: float
    most: float


RULES = {
    _Rule(True, 0, LARGEST - 1): "counts counts_x counts_y runs runs_x runs_y canaries hits rated regions look looks "
    "choosing most draws areas units resamples entries entries_changed entry starts",
    _Rule(True, 1, LARGEST - 1): "size distance pairs components attempt call",
    _Rule(True, 0, math.inf): "seed seed_entropy",
    _Rule(False, 0, 1): "confidence share probability false_alarm false_detection",
    _Rule(False, 0, LARGEST): "selection unseen expected shortfalls order lag change percentile multiplier",
    _Rule(False, 0, math.inf): "ceiling detectable rare measured seconds epsilon delta rho mu l1_change l2_change",
    _Rule(False, -LARGEST, LARGEST): "weights",
}
OF_NAME = {name: rule for rule, names in RULES.items() for name in names.split()}
NAMED_BY_OTHERS = ("mechanism", "software")


def check_numbers(value: Any, name: str = "it", rule: _Rule | None = None) -> None:
    """Refuse numbers that no result has; those in lists and dicts are under the rule of their own name or the list's.

    Those without a rule may be any that a float holds, which reading JSON sees to.
    """
    if isinstance(value, dict):
        for key, entry in value.items():
            if key not in NAMED_BY_OTHERS:
                check_numbers(entry, key, OF_NAME.get(key, rule))
    elif isinstance(value, list):
        for entry in value:
            check_numbers(entry, name, rule)
    elif rule is not None and isinstance(value, int | float):
        kinds = (int,) if rule.whole else (int, float)
        if type(value) not in kinds or not rule.least <= value <= rule.most:
            span = f"of {rule.least} or more" if rule.most == math.inf else f"from {rule.least} to {rule.most}"
            raise ValueError(f"{name} must be a{' whole' * rule.whole} number {span}, got {repr(value)[:80]}")
