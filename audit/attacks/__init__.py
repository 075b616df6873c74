"""Where to look for the event that shows the largest loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from audit.attacks.selection import Family
from audit.events import Statistic

__all__ = ["Attack", "Look"]

Look = Literal["entries", "likelihood ratio", "paths", "trained"]

NAMED: dict[str, dict[str, tuple[str, ...]]] = {
    "auto": {},
    "threshold": {"families": ("threshold",)},
    "cell": {"families": ("cell",)},
    "entries": {"looks": ("entries",)},
    "likelihood_ratio": {"looks": ("likelihood ratio",)},
    "paths": {"looks": ("paths",)},
    "trained": {"looks": ("trained",)},
}


@dataclass(frozen=True, eq=False)
class Attack:
    """What is searched for the event that shows the largest loss.

    Attributes
    ----------
    statistics : tuple of Statistic, optional
        What may be looked at, and nothing else. Default: what `looks` finds.
    families : tuple of {"threshold", "cell"}
        Kinds of rules on each: scores beyond thresholds, and sets of single values: of scores with few values, or of
        those that repeat. A promise of zero-concentrated privacy is measured by likelihood ratios instead.
    looks : tuple of {"entries", "likelihood ratio", "paths", "trained"}
        Where statistics come from: the entries of the output that the pair changes, or that move most from `x` to `y`,
        singly and jointly; the exact likelihood ratio, of a mechanism that offers ``log_likelihood``; the paths of
        a tree, for one that tells its ``areas``, with raking undone; and classifiers, trained on selection runs.
    """

    statistics: tuple[Statistic, ...] | None = None
    families: tuple[Family, ...] = ("threshold", "cell")
    looks: tuple[Look, ...] = get_args(Look)

    def __post_init__(self) -> None:
        if not self.families or not set(self.families) <= {"threshold", "cell"}:
            raise ValueError(f'families must be of "threshold" and "cell", got {self.families}')
        if not self.looks or not set(self.looks) <= set(get_args(Look)):
            raise ValueError(f"looks must be of {', '.join(get_args(Look))}, got {self.looks}")
        if self.statistics is not None and not self.statistics:
            raise ValueError("an attack needs at least one statistic, got none")

    @classmethod
    def named(cls, name: str) -> Attack:
        """Return the attack of a name: ``"auto"`` for everything, the others for one family or one look.

        Parameters
        ----------
        name : {"auto", "threshold", "cell", "entries", "likelihood_ratio", "paths", "trained"}
            As `measure_loss` takes it.

        Returns
        -------
        Attack
            What is searched.

        Raises
        ------
        ValueError
            If the name is not one of them.
        """
        if name not in NAMED:
            raise ValueError(f"attack must be an Attack or one of {', '.join(NAMED)}, got {name!r}")
        return cls(**NAMED[name])  # type: ignore[arg-type]
