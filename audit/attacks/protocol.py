"""The interface of attacks, which propose candidate statistics; their registry, and the choice of those that run."""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from numpy.typing import NDArray

from audit.attacks.reading import Reading, learn
from audit.events import Event, Statistic
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.sampling.streams import Phase, halves

if TYPE_CHECKING:  # they load joblib, which the names of attacks do not need
    from audit.sampling.blocks import Reduce
    from audit.sampling.runs import Runs

__all__ = [
    "OWN",
    "WORDS",
    "Attack",
    "Exploration",
    "Family",
    "NoRunsError",
    "Place",
    "SingleAttack",
    "attack_names",
    "candidate_statistics",
    "register_attack",
    "registered",
    "underscored",
    "with_columns",
]

Family = Literal["threshold", "cell"]

OWN = "own statistics"  # stands for an attack's name if the caller gave the statistics
WORDS = "words"  # name of the attack on features of words

MOST = 4 / 5  # share of the selection runs that attacks may spend; the other runs choose among the candidates


class NoRunsError(ValueError):
    """An attack requested so many selection runs that too few would remain to choose the event."""


@dataclass
class Exploration:
    """Input of an attack: the pair, the selection runs that it may spend, and what all attacks have found so far."""

    runs: Runs  # source of outputs; `outputs` draws from it and counts the runs used
    choosing: int  # selection runs in all
    statistics_by_attack: dict[str, tuple[Statistic, ...]] = field(default_factory=dict)  # in the order of the attacks
    # Events that follow from the pair alone. They are counted whatever the selection runs choose.
    registered_events: list[Event] = field(default_factory=list)
    shared: dict[str, Any] = field(default_factory=dict)  # results that one attack computed and others reuse
    spent: int = 0  # runs used by all attacks, including extra ones
    extra_allowed: int = 0  # counting runs that attacks may spend, too, as none of them is made yet
    extra_used: int = 0  # counting runs that they have used
    current: str = ""  # name of the attack that is running
    skipped: tuple[str, ...] = ()  # attacks skipped because too few runs remained
    reading: Reading | None = None  # columns of outputs that are not numeric arrays

    @property
    def pair(self) -> NeighborPair:
        """The two databases."""
        return self.runs.pair

    @property
    def mechanism(self) -> Mechanism | None:
        """The mechanism, which may provide a likelihood or tree; None if outputs are given, or parsed into columns."""
        return getattr(self.runs, "mechanism", None) if self.reading is None else None

    @property
    def words(self) -> frozenset[int]:
        """Entries whose numbers are codes of words, so that distances between them mean nothing."""
        columns = () if self.reading is None else self.reading.columns
        return frozenset(number for number, column in enumerate(columns) if column.words is not None)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output."""
        return self.runs.shape

    def use_extra(self, runs: int) -> int:
        """Reserve up to `runs` counting runs, none of which is made yet, for `outputs`; return how many it may use."""
        extra = 2 * (min(runs, self.extra_allowed - self.extra_used) // 2)
        self.extra_used += extra
        return extra

    def outputs(self, size: int, reduce: Reduce, *stream: int, written: bool = False) -> list[Iterator[NDArray[Any]]]:
        """Make `size` runs, half on each database; return the result of `reduce` for each block."""
        if self.spent + size - self.extra_used > MOST * self.choosing:
            raise NoRunsError(
                f"attacks may spend {MOST:.0%} of {self.choosing} selection runs, got {self.spent + size}"
            )
        self.spent += size
        phase = stream or (Phase.LEARN, zlib.crc32(self.current.encode()))
        return self.runs.reduced(halves(size), reduce, *phase, written=written)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The candidate statistics, in the order in which attacks ran."""
        return tuple(itertools.chain.from_iterable(self.statistics_by_attack.values()))

    @property
    def tried(self) -> tuple[str, ...]:
        """The attacks that found candidate statistics, in the order in which they ran."""
        return tuple(name if name == OWN else underscored(name) for name in self.statistics_by_attack)

    def attack_of(self, statistic: Statistic) -> str:
        """Return the name of the attack that found a statistic."""
        inside = self.reading is not None and statistic.entry is not None and statistic.entry >= (self.reading.n_parts,)
        several = zip(self.tried, self.statistics_by_attack.values(), strict=True)
        return WORDS if inside else next(name for name, statistics in several if statistic in statistics)

    def advice(self, statistic: Statistic) -> str:
        """Return the advice of the attack that found a statistic; empty if it has none."""
        by = self.attack_of(statistic)
        return next((getattr(attack, "advice", "") for attack in registered() if underscored(attack.name) == by), "")

    def name_of(self, statistic: Statistic) -> str:
        """Return the name of a statistic, with the names of columns in place of indices."""
        return self._in_words(statistic.name)

    def _in_words(self, text: str) -> str:
        own = () if self.reading is None else [column.name for column in self.reading.columns]
        return with_columns(with_columns(text, own), self.runs.columns)

    def counted(self, event: Event) -> Event:
        """Return an event that reads outputs as the mechanism gives them, and is described with columns and words."""
        if event.statistic.written:
            return event
        labels = event.statistic.labels and {at: self._in_words(words) for at, words in event.statistic.labels.items()}
        reading, chosen = self.reading, replace(event.statistic, name=self.name_of(event.statistic), labels=labels)
        if reading is None:
            return replace(event, statistic=chosen)
        only = None if chosen.entry is None else chosen.entry[0]
        column = None if only is None else reading.columns[only]
        statistic = replace(chosen, function=lambda texts: chosen(reading(texts, only)))
        return replace(event, statistic=statistic, value=event.value if column is None else column.in_words)


def with_columns(words: str, names: Sequence[str]) -> str:
    """Return a text of a report with the names of columns in place of indices such as ``output[3]``."""

    def title(entry: str) -> str:
        *rows, column = entry.split(", ")
        return names[int(column)] + "".join(f"[{row}]" for row in rows) if int(column) < len(names) else entry

    def titles(match: re.Match[str]) -> str:
        return ", ".join(map(title, re.findall(r"\[([\d, ]+)\]", match[0])))

    return re.sub(r"output\[\d+(?:, \d+)*\](?:, \[\d+(?:, \d+)*\])*", titles, words) if names else words


class SingleAttack(Protocol):
    """An attack, which proposes candidate statistics; it may have ``advice`` for results whose event it found."""

    name: str  # with underscores, ``measure_loss(attack=...)`` takes it
    automatic: bool  # whether ``"auto"`` includes it

    def candidates(self, exploration: Exploration) -> Iterable[Statistic]:
        """Return candidate statistics; none if the attack does not apply."""


@dataclass
class Place:
    """An attack that is one function."""

    name: str
    candidates: Callable[[Exploration], Iterable[Statistic]]
    advice: str = ""
    automatic: bool = True


_registered: dict[str, SingleAttack] = {}


def register_attack(attack: SingleAttack) -> None:
    """Register an attack. It runs after those registered before it, and replaces one of the same name."""
    _registered[attack.name] = attack


def registered() -> tuple[SingleAttack, ...]:
    """Return all attacks in the order in which they run, which is that of their registration."""
    return tuple(_registered.values())


def underscored(name: str) -> str:
    """Return the name of an attack as ``measure_loss(attack=...)`` takes it."""
    return name.replace(" ", "_")


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
        Kinds of events: scores beyond thresholds, or sets of repeated values; for zCDP, of the one-sided event only.
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
        """Return the attack that searches everything except some names, such as ``"precision"``."""
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
    """Return the names that `Attack.named` accepts: ``"auto"``, the families of rules, and every registered attack."""
    return ("auto", *get_args(Family), *sorted(underscored(attack.name) for attack in registered()))


def candidate_statistics(runs: Runs, attack: Attack, choosing: int, *, extra_allowed: int = 0) -> Exploration:
    """Run each attack for candidate statistics; outputs that are not numeric arrays are parsed into columns first."""
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
