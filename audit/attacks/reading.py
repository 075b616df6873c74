"""Parser of outputs that are not numeric arrays: it learns their columns, and turns each into numbers for attacks."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise, repeat
from operator import eq, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audit.events import score_in_words
from audit.sampling.streams import Phase, halves
from audit.values import ABSENT, ANOTHER, MARK, NAMES, NUMBER, RAISED, TYPE, WORD, raised_by, value_of
from audit.written import FORM

if TYPE_CHECKING:  # as in `audit.attacks.protocol`
    from audit.sampling.runs import Runs

__all__ = ["FORMS", "MANY", "Column", "Reading", "learn"]

Floats = NDArray[np.float64]

SHARE = 1 / 10  # share of the selection runs from which columns and words are learned
HELD = 2**24  # letters of these runs that are held in memory
BLOCK = 2**28  # most letters of a block, all texts padded to the longest; larger blocks are refused
COLUMNS = 4096  # most columns, and most words of a column, that are distinguished; further words share one code
HOLDS = 256  # longest list whose words are counted
LENGTH, KEYS, WITHIN = "length of ", "number of keys of ", " within "
FORMS = TYPES, SIGN, ORDER = "type of ", "sign of zero of ", "order of keys of "
FEW, MANY = 4, 64  # distinct words above which features of words are read, and also their first and last letters
LOOKED_INTO, NUMBERED = 4, 256  # most columns whose features of words are read, and most whose numbers are
INSIDE = 4  # most numbers read inside a word
SHOWN = 80  # letters of a word that reports show
ENDS = (1, 2, 4, 8)  # lengths of the first and last letters that are read
THOUSANDS = ",' \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"  # separators of thousands
NUMBERS = re.compile(rf"[-+]?(?:\d{{1,3}}(?:[{THOUSANDS}]\d{{3}})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
DIGITS = str.maketrans("", "", THOUSANDS)


@dataclass(frozen=True)
class Column:
    """One number that is read from a written output."""

    source: str  # the part of an output that is read, as `_leaves` names it
    name: str  # name in reports
    read: Callable[[str], Any] | None  # feature of a word: a word or number; None: the part is a number
    words: tuple[str, ...] | None  # sorted words, each coded by its place; None: a number is read

    def scores(self, values: Sequence[Any]) -> Floats:
        """Return one number for each value of the part, shape (runs,)."""
        if self.read is None:
            # Zeros of both signs are one value here; another column has the sign.
            if str not in {*map(type, values)}:
                return np.array(values, np.float64) + 0.0
            return np.array([WORD if isinstance(value, str) else value for value in values], np.float64) + 0.0
        if not all(isinstance(value, str) for value in values):
            words = iter(self.scores([value for value in values if isinstance(value, str)]))
            numbers = (
                (value if RAISED <= value <= TYPE else NUMBER) if not isinstance(value, str) else next(words)
                for value in values
            )
            return np.fromiter(numbers, np.float64, len(values))
        scores = map(self.read, values)
        if self.words is not None:
            places = {word: float(number) for number, word in enumerate(self.words)}
            scores = map(places.get, scores, repeat(ANOTHER))
        return np.fromiter(scores, np.float64, len(values))

    def in_words(self, score: float) -> str:
        """Return a score as the report shows it."""
        if not self.words or not 0 <= score < len(self.words):
            return score_in_words(score)
        word = self.words[int(score)]
        return repr(word) if len(word) <= SHOWN else f"{word[:SHOWN]!r}... ({len(word)} letters)"


@dataclass(frozen=True)
class Reading:
    """The columns of written outputs, and the patterns of their words, as learned from some runs."""

    columns: tuple[Column, ...]  # parts first, each twice if it may be number or word; then features of words
    n_parts: int  # number of columns that are whole parts
    numbers: frozenset[str]  # parts that were numbers in some run
    patterns: frozenset[tuple[str, str]]  # parts, and patterns of their words: # replaces the first numbers
    fixed: frozenset[str]  # lengths of lists that never vary: the columns of their entries suffice

    def __call__(self, texts: NDArray[Any], only: int | None = None) -> Floats:
        """Return the columns of written outputs, shape (runs, columns); zeros in all but `only`, if that is given."""
        distinct, inverse = _distinct(texts)
        parts = _leaves(distinct, any(column.source.startswith(FORMS) for column in self.columns), self.fixed)
        absent = [raised_by(text) if text.startswith(MARK) else ABSENT for text in distinct]
        scores = np.zeros((len(texts), len(self.columns)), order="F")
        by_source: dict[str, list[int]] = defaultdict(list)
        for place in range(len(self.columns)) if only is None else [only]:
            by_source[self.columns[place].source].append(place)
        for source, places in by_source.items():
            values: Sequence[Any] = [part.get(source, none) for part, none in zip(parts, absent, strict=True)]
            where = inverse
            if any(self.columns[place].read for place in places):  # words repeat more often than numbers do
                values, place_of = _distinct(values)
                where = place_of[inverse]
            for place in places:
                scores[:, place] = self.columns[place].scores(values)[where]
        return scores

    def new(self, texts: NDArray[Any]) -> Floats:
        """Return 1 for each output with a part, or a pattern of a word, that was never seen, else 0: shape (runs,)."""
        distinct, inverse = _distinct(texts)
        parts = _leaves(distinct, False, self.fixed)
        return np.array([not self._is_known(one) for one in parts], np.float64)[inverse]

    def _is_known(self, parts: dict[str, Any]) -> bool:
        """Return whether each part is known: a number where numbers were seen, or a word of a pattern seen there."""
        return (parts.keys() <= self.numbers and str not in map(type, parts.values())) or all(
            (name, _pattern(part)) in self.patterns
            if type(part) is str
            else name in self.numbers or _list_of(name) in self.fixed
            for name, part in parts.items()
        )


def learn(runs: Runs, choosing: int, *, inside: bool) -> tuple[Reading, int]:
    """Learn the columns of written outputs, with features of words if `inside`; return also the number of runs used."""
    first = next(iter(runs.reduced((1, 0), _texts, Phase.SHAPE, 3)[0]))
    spent = max(2, min(int(choosing * SHARE), HELD // max(1, len(first[0]))))
    blocks = runs.reduced(halves(spent), _texts, Phase.SHAPE, 2)
    outputs = _leaves(tuple(text.decode() for side in blocks for block in side for text in block), True, frozenset())
    return _learned(outputs, inside=inside), 1 + spent


def _learned(outputs: Sequence[dict[str, Any]], *, inside: bool) -> Reading:
    """Return the columns of outputs, each of which is given as a mapping of its parts."""
    names = Counter(name for parts in outputs for name in parts)
    constant = {name for name in names if name.startswith(FORMS)} - _varying(outputs)
    lengths = [name for name in names if name.startswith(LENGTH)]
    fixed = {name for name in lengths if len({parts.get(name) for parts in outputs if parts}) == 1}
    names = Counter({name: n for name, n in names.items() if name not in fixed and _list_of(name) not in fixed})
    words = {name: Counter(parts[name] for parts in outputs if isinstance(parts.get(name), str)) for name in names}
    numbers = {name for parts in outputs for name, part in parts.items() if type(part) is not str}
    columns: list[Column] = []
    frequent = set([name for name, _ in names.most_common() if name not in constant][:COLUMNS])
    for name in (name for name in names if name in frequent):
        if name in numbers:
            columns.append(Column(name, name, None, None))
        if words[name]:
            columns.append(_words(name, name, str, words[name]))
    columns = columns or [Column("output", "output", None, None)]  # every run raised, or gave an empty list
    n_parts, many = len(columns), sorted(words, key=lambda name: -len(words[name]))  # ties keep their order
    # The second limit is for few runs, which show few distinct words even if none repeats.
    many = [name for name in many if name not in constant and len(words[name]) > min(FEW, words[name].total() / 2)]
    for place, name in enumerate(many[:NUMBERED] if inside else ()):
        columns += [*_numbers(name, words[name]), *(_inside(name, words[name]) if place < LOOKED_INTO else ())]
    dropped = names.keys() - frequent - constant  # not read; outputs that have them count as never seen
    patterns = {(name, _pattern(word)) for name, counts in words.items() if name not in dropped for word in counts}
    known = frozenset(numbers - dropped), frozenset(patterns), frozenset(fixed)
    return Reading(tuple(map(_lettered, columns)), n_parts, *known)


def _lettered(column: Column) -> Column:
    """Return a column whose name has Unicode letters in place of the ASCII escapes of JSON."""
    name = re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), column.name)
    return replace(column, name=name) if name.isprintable() else column


def _words(source: str, name: str, read: Callable[[str], Any], words: Iterable[str]) -> Column:
    """Return the column that codes words: the most frequent ones, if there are too many."""
    frequencies = Counter(read(word) for word in (words.elements() if isinstance(words, Counter) else words))
    return Column(source, name, read, tuple(sorted(word for word, _ in frequencies.most_common(COLUMNS))))


def _numbers(name: str, words: Iterable[str]) -> Iterator[Column]:
    """Yield columns of the numbers inside words."""
    most = max(len(NUMBERS.findall(word)) for word in words)
    for place in range(min(INSIDE, most)):
        yield Column(name, f"number {place + 1} in {name}", functools.partial(_number, place), None)


def _inside(name: str, words: Counter[str]) -> Iterator[Column]:
    """Yield columns of other features of words: their length, first and last letters, and the text around numbers."""
    yield Column(name, f"length of {name}", len, None)
    if len(set(map(_pattern, words))) < len(words):
        yield _words(name, f"text around the numbers of {name}", _pattern, words)  # if new, no power is stated
    for letters in ENDS if len(words) > min(MANY, words.total() / 2) else ():
        several = "letter" if letters == 1 else f"{letters} letters"
        yield _words(name, f"first {several} of {name}", itemgetter(slice(letters)), words)
        yield _words(name, f"last {several} of {name}", itemgetter(slice(-letters, None)), words)


def _number(place: int, word: str) -> float:
    numbers = NUMBERS.findall(word)
    return float(numbers[place].translate(DIGITS)) if len(numbers) > place else ABSENT


@functools.lru_cache(maxsize=2**12)
def _pattern(word: str) -> str:
    """Return a word with # in place of its first numbers, which have columns."""
    return NUMBERS.sub("#", word, count=INSIDE)


def _texts(texts: NDArray[Any]) -> NDArray[Any]:
    """Return written outputs as an array of bytes, which the cache of blocks can store: JSON is ASCII."""
    longest = max(map(len, texts), default=0)
    if longest * len(texts) > BLOCK:
        raise ValueError(f"outputs must be written in at most {BLOCK // len(texts)} letters each, got {longest}")
    return np.array(texts, "S")


def _distinct(values: Iterable[Any]) -> tuple[tuple[Any, ...], NDArray[np.intp]]:
    """Return the distinct values in order of appearance, and the index of each value among them."""
    place: dict[Any, int] = {}
    inverse = np.array([place.setdefault(value, len(place)) for value in values], np.intp)
    return tuple(place), inverse


@functools.lru_cache(maxsize=2)
def _leaves(texts: tuple[str, ...], form: bool, fixed: frozenset[str]) -> list[dict[str, Any]]:
    """Return each output's numbers and words by part, with types and signs if `form`; none for a run that raised."""
    # Words are not counted in lists of `fixed` length, whose entries have columns.
    parted = [("null", "", "") if text.startswith(MARK) else text.partition(FORM) for text in texts]
    values = json.loads(f"[{','.join([text for text, *_ in parted])}]")
    leaves: list[dict[str, Any]] = []
    for text, value, (_, _, types) in zip(texts, values, parted, strict=True):
        leaves.append({})
        if not text.startswith(MARK):
            _walk("output", value, leaves[-1], form, fixed)
            if form:
                _add_form(leaves[-1], json.loads(types or "{}"))
    return leaves


def _add_form(parts: dict[str, Any], types: dict[str, str]) -> None:
    """Add types and signs of zeros to the parts of an output, given the types that JSON cannot express."""
    for name, value in tuple(parts.items()):
        place = name.removeprefix(LENGTH).removeprefix(KEYS)
        if place != name and WITHIN not in name:
            parts[TYPES + place] = types.pop(place, "list" if name.startswith(LENGTH) else "dict")
        elif place == name and not name.startswith(ORDER):
            parts[TYPES + place] = types.pop(place, NAMES.get(value, type(value).__name__))
            if value == 0 and type(value) is float:
                parts[SIGN + place] = repr(value)
    parts.update({TYPES + place: name for place, name in types.items()})  # types of keys


def _varying(outputs: Sequence[dict[str, Any]]) -> set[str]:
    """Return the types, signs of zeros and orders of keys that do not follow from the values."""
    variants: dict[str, set[tuple[Any, str]]] = defaultdict(set)
    for parts in outputs:
        for name in parts:
            if name.startswith(FORMS):
                place = name.removeprefix(TYPES)
                value = parts.get(place, KEYS + place in parts)
                kind = type(value) is str if isinstance(value, str | bool) or not RAISED <= value <= TYPE else value
                variants[name].add((kind, parts[name]))
    varying = {name for name, pairs in variants.items() if len(pairs) > len({kind for kind, _ in pairs})}
    return {name for name in varying if not name.startswith(ORDER) or not _is_one_order(variants[name])}


def _is_one_order(orders: Iterable[tuple[Any, str]]) -> bool:
    graph: dict[str, set[str]] = defaultdict(set)
    for _, keys in orders:
        for one, other in pairwise(map(json.dumps, json.loads(keys))):
            graph[other].add(one)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    return True


def _list_of(name: str) -> str:
    """Return the name of a list's length, given the name of a count of one of its words; else an empty text."""
    return LENGTH + name.rpartition(WITHIN)[2] if WITHIN in name else ""


def _walk(name: str, value: Any, leaves: dict[str, Any], form: bool, fixed: frozenset[str]) -> None:
    keys: Iterable[Any]
    if isinstance(value, dict):
        leaves[KEYS + name] = float(len(value))
        if form:
            leaves[ORDER + name] = f"[{', '.join(value)}]"
        keys, parts = tuple(value), list(value.values())
    elif isinstance(value, list):
        leaves[LENGTH + name] = float(len(value))
        keys, parts = range(len(value)), value
    else:
        leaves[name] = value if type(value) in (int, str, bool) else value_of(value)
        return
    kinds = {*map(type, parts)}
    if kinds <= {int, str, bool, float} and all(map(eq, parts, parts)):  # most parts: no calls are needed
        leaves.update(zip(_parts(name, keys), parts, strict=True))
    else:
        for place, part in zip(_parts(name, keys), parts, strict=True):
            _walk(place, part, leaves, form, fixed)
    if str in kinds and isinstance(value, list) and len(value) <= HOLDS and LENGTH + name not in fixed:
        words = Counter(part for part in value if type(part) is str)
        leaves.update({f"{word!r}{WITHIN}{name}": float(times) for word, times in words.items()})


@functools.lru_cache(maxsize=16)
def _parts(name: str, keys: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of parts by their keys; cached, as outputs repeat them."""
    return tuple([f"{name}[{key}]" for key in keys])
