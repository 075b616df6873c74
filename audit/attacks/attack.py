"""Which attacks an audit uses, and the candidate statistics that they find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from audit.attacks.protocol import OWN, WORDS, Exploration, NoRunsError, registered, underscored
from audit.attacks.reading import learn
from audit.events import Statistic

if TYPE_CHECKING:  # as in `audit.attacks.protocol`
    from audit.sampling.runs import Runs

__all__ = ["Attack", "Family", "attack_names", "candidate_statistics"]

Family = Literal["threshold", "cell"]


def _automatic() -> tuple[str, ...]:
    return tuple(sorted(attack.name for attack in registered() if attack.automatic))


@dataclass(frozen=True, eq=False)
class Attack:
    """Where to search for the event that shows the largest loss.

    Attributes
    ----------
    statistics : tuple of Statistic, optional
        Search these only. Default: the statistics that `looks` finds.
    families : tuple of {"threshold", "cell"}
        Scores beyond thresholds, and sets of single values that repeat; not of zero-concentrated promises.
    looks : tuple of str
        Names of registered attacks, such as ``"entries"``. Default: all that are automatic.
    """

    statistics: tuple[Statistic, ...] | None = None
    families: tuple[Family, ...] = get_args(Family)
    looks: tuple[str, ...] = field(default_factory=_automatic)

    def __post_init__(self) -> None:
        if not self.families or not set(self.families) <= set(get_args(Family)):
            raise ValueError(f'families must be of "threshold" and "cell", got {self.families}')
        names = sorted(attack.name for attack in registered())
        if not self.looks or not set(self.looks) <= set(names):
            raise ValueError(f"looks must be of {', '.join(names)}, got {self.looks}")
        if self.statistics is not None and not self.statistics:
            raise ValueError("an attack needs at least one statistic, got none")

    @classmethod
    def named(cls, name: str) -> Attack:
        """Return the attack of a name in `attack_names`: ``"auto"`` searches everything, others one family or place."""
        if name not in attack_names():
            raise ValueError(f"attack must be an Attack or one of {', '.join(attack_names())}, got {name!r}")
        if name == "auto":
            return cls()
        if name in get_args(Family):
            return cls(families=(name,))  # type: ignore[arg-type]
        return cls(looks=tuple(attack.name for attack in registered() if underscored(attack.name) == name))

    @classmethod
    def without(cls, *names: str) -> Attack:
        """Return the attack that searches everything but some names, such as ``"precision"``."""
        _, *possible = attack_names()
        for name in names:
            if name not in possible:
                raise ValueError(f"an attack can do without {', '.join(possible)}, got {name!r}")
        families = tuple(family for family in get_args(Family) if family not in names)
        looks = tuple(look for look in _automatic() if underscored(look) not in names)
        if not families or not looks:
            raise ValueError(f"an attack needs a family and a place to look, got none without {', '.join(names)}")
        return cls(families=families, looks=looks)


def attack_names() -> tuple[str, ...]:
    """Return the names that `Attack.named` knows: ``"auto"``, the families of rules, and every registered attack."""
    return ("auto", *get_args(Family), *sorted(underscored(attack.name) for attack in registered()))


def candidate_statistics(runs: Runs, attack: Attack, choosing: int, *, extra_allowed: int = 0) -> Exploration:
    """Ask every attack in turn what of an output is worth looking at; what is no array of numbers is read before."""
    if attack.statistics is not None:
        return Exploration(runs.as_given(), choosing, statistics_by_attack={OWN: attack.statistics})
    reading, spent = learn(runs, choosing, inside=WORDS in attack.looks) if runs.written else (None, 0)
    if reading is not None:
        runs = runs.read_by(reading, len(reading.columns))
    exploration = Exploration(runs, choosing, spent=spent, extra_allowed=extra_allowed, reading=reading)
    for single in registered():
        exploration.current = single.name
        if single.name not in attack.looks:
            continue
        try:
            statistics = tuple(single.candidates(exploration))
        except NoRunsError:
            if len(attack.looks) == 1:
                raise
            exploration.skipped += (underscored(single.name),)
            continue
        if statistics:
            exploration.statistics_by_attack[single.name] = statistics
    if not exploration.statistics_by_attack:
        raise ValueError(
            f"an attack must find something to look at: {', '.join(attack.looks)} of outputs of shape {runs.shape} "
            "gives nothing"
        )
    return exploration
