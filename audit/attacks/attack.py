"""Which attacks an audit uses, and the candidate statistics that they find."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, get_args

from audit.attacks.protocol import Exploration, registered
from audit.attacks.reading import Reading, learn
from audit.attacks.words import Words
from audit.events import Event, Statistic
from audit.mechanism import Mechanism

if TYPE_CHECKING:  # as in `audit.attacks.protocol`
    from audit.sampling.runs import Runs

__all__ = ["OWN", "Attack", "Candidates", "Family", "attack_names", "candidate_statistics"]

Family = Literal["threshold", "cell"]

OWN = "own statistics"  # what found a statistic that the caller gave


def _automatic() -> tuple[str, ...]:
    return tuple(sorted(look.name for look in registered() if look.automatic))


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
    looks : tuple of str
        Where statistics come from: ``"entries"`` of the output that the pair changes, or that move most from `x` to
        `y`, singly and jointly; the exact ``"likelihood ratio"``, of a mechanism that offers ``log_likelihood``; the
        ``"paths"`` of a tree, for one that tells its ``areas``, with raking undone; classifiers, ``"trained"`` on
        selection runs; and what `register_attack` has added. Default: all of these that say so.
    """

    statistics: tuple[Statistic, ...] | None = None
    families: tuple[Family, ...] = get_args(Family)
    looks: tuple[str, ...] = field(default_factory=_automatic)

    def __post_init__(self) -> None:
        if not self.families or not set(self.families) <= set(get_args(Family)):
            raise ValueError(f'families must be of "threshold" and "cell", got {self.families}')
        known = sorted(look.name for look in registered())
        if not self.looks or not set(self.looks) <= set(known):
            raise ValueError(f"looks must be of {', '.join(known)}, got {self.looks}")
        if self.statistics is not None and not self.statistics:
            raise ValueError("an attack needs at least one statistic, got none")

    @classmethod
    def named(cls, name: str) -> Attack:
        """Return the attack of a name: ``"auto"`` for everything, the others for one family or one look.

        Parameters
        ----------
        name : str
            One of `attack_names`, as `measure_loss` takes it.

        Returns
        -------
        Attack
            What is searched.

        Raises
        ------
        ValueError
            If the name is not one of them.
        """
        if name not in attack_names():
            raise ValueError(f"attack must be an Attack or one of {', '.join(attack_names())}, got {name!r}")
        if name == "auto":
            return cls()
        if name in get_args(Family):
            return cls(families=(name,))  # type: ignore[arg-type]
        return cls(looks=tuple(look.name for look in registered() if _name_of(look.name) == name))

    @classmethod
    def without(cls, *names: str) -> Attack:
        """Return the attack that searches everything but what is named.

        Parameters
        ----------
        *names : str
            Of `attack_names`: families of rules, or places to look. ``"precision"`` is left out for a simulation whose
            real counterpart does not use float noise.

        Returns
        -------
        Attack
            What is searched.

        Raises
        ------
        ValueError
            If a name is not one of them, or nothing is left to search.
        """
        known = attack_names()[1:]
        for name in names:
            if name not in known:
                raise ValueError(f"an attack can do without {', '.join(known)}, got {name!r}")
        families = tuple(family for family in get_args(Family) if family not in names)
        looks = tuple(look for look in _automatic() if _name_of(look) not in names)
        if not families or not looks:
            raise ValueError(f"an attack needs a family and a place to look, got none without {', '.join(names)}")
        return cls(families=families, looks=looks)


def attack_names() -> tuple[str, ...]:
    """Return the names that `Attack.named` knows.

    Returns
    -------
    tuple of str
        ``"auto"``, the families of rules, and every registered attack.
    """
    return ("auto", *get_args(Family), *sorted(_name_of(look.name) for look in registered()))


def _name_of(look: str) -> str:
    return look.replace(" ", "_")


@dataclass(frozen=True)
class Candidates:
    """What of an output is worth looking at."""

    statistics: tuple[Statistic, ...]  # at least one
    spent: int  # runs that it took to find them
    borrowed: int  # and those among them that should have counted
    runs: Runs  # where the outputs come from that they score
    by: tuple[str, ...]  # the attack that found each of them, by its name
    reading: Reading | None = None  # which columns these are, where outputs are no arrays of numbers

    @property
    def tried(self) -> tuple[str, ...]:
        """The attacks that had something to look at, in the order in which they looked."""
        return tuple(dict.fromkeys(self.by))

    def found_by(self, statistic: Statistic) -> str:
        """Return the name of the attack that found one of the statistics."""
        inside = self.reading is not None and statistic.entry is not None and statistic.entry >= (self.reading.whole,)
        return Words.name if inside else self.by[self.statistics.index(statistic)]

    def advice(self, statistic: Statistic) -> str:
        """Return what the attack that found one of the statistics advises; empty if nothing."""
        by = self.found_by(statistic)
        return next((getattr(look, "advice", "") for look in registered() if _name_of(look.name) == by), "")

    def name_of(self, statistic: Statistic) -> str:
        """Return the name of a statistic, with columns in words where it is about columns."""
        return statistic.name if self.reading is None else self.reading.named(statistic.name)

    def counted(self, event: Event) -> Event:
        """Return the event as it is told and counted: of outputs as they come, with their columns and words by name."""
        reading, chosen = self.reading, event.statistic
        if reading is None:
            return event
        only = None if chosen.entry is None else chosen.entry[0]
        column = None if only is None else reading.columns[only]
        statistic = replace(chosen, name=self.name_of(chosen), function=lambda texts: chosen(reading(texts, only)))
        return replace(event, statistic=statistic, value=event.value if column is None else column.in_words)


def candidate_statistics(
    runs: Runs, attack: Attack, choosing: int, mechanism: Mechanism | None = None, *, lent: int = 0
) -> Candidates:
    """Ask every attack in turn what of an output is worth looking at; what is no array of numbers is read before."""
    if attack.statistics is not None:
        return Candidates(attack.statistics, 0, 0, runs.as_given(), (OWN,) * len(attack.statistics))
    reading, spent = learn(runs, choosing, inside=Words.name in attack.looks) if runs.written else (None, 0)
    if reading is not None:  # a likelihood and a tree are about outputs, of which columns are none
        runs, mechanism = runs.read_by(reading, len(reading.columns)), None
    known = Exploration(runs, choosing, mechanism, spent=spent, lent=lent, reading=reading)
    for look in registered():
        known.looking = look.name
        if look.name in attack.looks and (several := tuple(look.candidates(known))):
            known.found[look.name] = several
    if not known.found:
        raise ValueError(
            f"an attack must find something to look at: {', '.join(attack.looks)} of outputs of shape {runs.shape} "
            "gives nothing"
        )
    found = [(one, _name_of(name)) for name, several in known.found.items() for one in several]
    statistics, by = zip(*found, strict=True)
    return Candidates(statistics, known.spent, known.borrowed, runs, by, reading)
