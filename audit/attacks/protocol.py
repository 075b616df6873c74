"""What an attack is: a place to look for candidate statistics, and what it may spend; with the register of all."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from audit.attacks.reading import Reading
from audit.events import Event, Statistic
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.sampling.streams import Phase, halves

if TYPE_CHECKING:  # they load joblib, which the names of attacks do not need
    from audit.sampling.blocks import Reduce
    from audit.sampling.runs import Runs

__all__ = ["OWN", "WORDS", "Exploration", "Look", "register_attack", "registered", "underscored"]

OWN = "own statistics"  # in the place of an attack's name, where the caller gave the statistics
WORDS = "words"  # the attack on what is inside words

MOST = 4 / 5  # share of the selection runs that attacks may spend: the others choose among their candidates


@dataclass
class Exploration:
    """What an attack knows, the selection runs that it may spend, and what all attacks have found.

    Attributes
    ----------
    runs : Runs
        Where outputs come from; `outputs` asks for them and keeps count.
    choosing : int
        Selection runs in all.
    statistics_by_attack : dict
        Statistics of the attacks that have looked, by their names.
    shared : dict
        What one attack has worked out and others may use.
    spent : int
        Selection runs that all of them took.
    lent, borrowed : int
        Runs that should count and that attacks may spend before any of them is made, and those that they took.
    looking : str
        Name of the attack that looks now.
    reading : Reading or None
        Which columns these outputs are, where a mechanism's own are no arrays of numbers.
    """

    runs: Runs
    choosing: int
    statistics_by_attack: dict[str, tuple[Statistic, ...]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    spent: int = 0
    lent: int = 0
    borrowed: int = 0
    looking: str = ""
    reading: Reading | None = None

    @property
    def pair(self) -> NeighborPair:
        """The two databases."""
        return self.runs.pair

    @property
    def mechanism(self) -> Mechanism | None:
        """May tell of its own likelihood or tree; None of given outputs, and where columns are read of outputs."""
        return getattr(self.runs, "mechanism", None) if self.reading is None else None

    @property
    def words(self) -> frozenset[int]:
        """Entries whose numbers stand for words, and have no distances."""
        columns = () if self.reading is None else self.reading.columns
        return frozenset(number for number, column in enumerate(columns) if column.known is not None)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one output."""
        return self.runs.shape

    def borrow(self, runs: int) -> int:
        """Take up to so many of the runs that should count, for `outputs` to spend, and return how many: fewer count.

        That leaves bounds valid, as none of those that count has been made.
        """
        borrowed = 2 * (min(runs, self.lent - self.borrowed) // 2)
        self.borrowed += borrowed
        return borrowed

    def outputs(self, size: int, reduce: Reduce, *stream: int) -> list[Iterator[NDArray[Any]]]:
        """Spend so many runs, half on either database; yield what `reduce` keeps of blocks on `x` and on `y`.

        It takes a block of outputs, shape (runs, *output). The random stream is by default one that belongs to the
        attack.

        Raises
        ------
        ValueError
            If too few selection runs would be left to choose the event.
        """
        self.spent += size
        if self.spent - self.borrowed > MOST * self.choosing:
            raise ValueError(f"attacks may spend {MOST:.0%} of {self.choosing} selection runs, got {self.spent}")
        return self.runs.reduced(halves(size), reduce, *(stream or (Phase.LEARN, zlib.crc32(self.looking.encode()))))

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What of an output is worth looking at, in the order in which attacks looked."""
        return tuple(itertools.chain.from_iterable(self.statistics_by_attack.values()))

    @property
    def tried(self) -> tuple[str, ...]:
        """The attacks that had something to look at, in the order in which they looked."""
        return tuple(name if name == OWN else underscored(name) for name in self.statistics_by_attack)

    def attack_of(self, statistic: Statistic) -> str:
        """Return the name of the attack that found one of the statistics."""
        inside = self.reading is not None and statistic.entry is not None and statistic.entry >= (self.reading.n_parts,)
        several = zip(self.tried, self.statistics_by_attack.values(), strict=True)
        return WORDS if inside else next(name for name, statistics in several if statistic in statistics)

    def advice(self, statistic: Statistic) -> str:
        """Return what the attack that found one of the statistics advises; empty if nothing."""
        by = self.attack_of(statistic)
        return next((getattr(look, "advice", "") for look in registered() if underscored(look.name) == by), "")

    def name_of(self, statistic: Statistic) -> str:
        """Return the name of a statistic, with columns in words where it is about columns."""
        return statistic.name if self.reading is None else self.reading.named(statistic.name)

    def counted(self, event: Event) -> Event:
        """Return an event that reads outputs as they come, with their columns and words by name."""
        reading, chosen = self.reading, event.statistic
        if reading is None:
            return event
        only = None if chosen.entry is None else chosen.entry[0]
        column = None if only is None else reading.columns[only]
        statistic = replace(chosen, name=self.name_of(chosen), function=lambda texts: chosen(reading(texts, only)))
        return replace(event, statistic=statistic, value=event.value if column is None else column.in_words)


class Look(Protocol):
    """An attack: one place to look for candidate statistics.

    Attributes
    ----------
    name : str
        As ``Attack(looks=...)`` takes it and, with underscores, ``measure_loss(attack=...)``.
    automatic : bool
        Whether ``"auto"`` looks here.
    advice : str, optional
        What a result says to whoever's event this attack has found.
    """

    name: str
    automatic: bool

    def candidates(self, exploration: Exploration) -> Iterable[Statistic]:
        """Return what of an output is worth looking at; nothing if this is no place to look."""


_registered: dict[str, Look] = {}


def register_attack(look: Look) -> None:
    """Make an attack known to `measure_loss`, to the command, and to ``"auto"`` if it says so.

    Parameters
    ----------
    look : Look
        Looks after all that were registered before; one of the same name is replaced.
    """
    _registered[look.name] = look


def registered() -> tuple[Look, ...]:
    """Return all attacks in the order in which they look: that of their registration."""
    return tuple(_registered.values())


def underscored(look: str) -> str:
    """Return the name of an attack as ``measure_loss(attack=...)`` takes it."""
    return look.replace(" ", "_")
