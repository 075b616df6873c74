"""What a process keeps for each data set accuses nobody; a constant that follows the database does."""

import importlib
import itertools
import sys
import threading
import zlib
from functools import cache

import numpy as np
import pytest

from audit.claims import GaussianDP, PureDP
from audit.cli.inputs.targets import own_mechanism
from audit.events import Event
from audit.measure import evaluation
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.neighbors import NeighborPair
from audit.outputs import Kind
from audit.sampling import anew
from audit.sampling.anew import as_before, runs_anew
from tests.helpers import refused_like

PAIR = NeighborPair.add_people([10, 4], 0)
KEPT = "^runs must not depend on what the process keeps: .* tells the databases apart in this process, "
ONE, ROOT = PureDP(1.0), np.random.SeedSequence(1)
MODULE = """
import sys
import numpy as np

kept, salt = {}, np.random.default_rng().integers(2**40)

def formatted(data, size, rng):
    digits = kept.setdefault(data.tobytes(), 4 + len(kept))
    return [f"{data.sum() + rng.laplace():.{digits}f}" for _ in range(size)]

salted = lambda data, size, rng: np.column_stack([np.full(size, salt), rng.laplace(size=size)])
held = (lambda salt: lambda data, size, rng: np.column_stack([np.full(size, salt), rng.laplace(size=size)]))(salt)

def late(data, size, rng):
    known = "wave" in sys.modules
    import wave
    return np.full(size, float(known))

def set_up(data, size, rng):  # a constant, if the program has set something up
    return np.column_stack([np.full(size, float(data.sum())), scale * rng.laplace(size=size).round(6)])
"""


def beside(statistic):
    """A noisy total beside what is told of a database, in every run."""
    return lambda data, size, rng: [(statistic(data), round(float(data.sum() + rng.laplace()), 6)) for _ in range(size)]


def in_order(values):
    """What a process gives data sets in the order in which it sees them."""
    known = {}

    def statistic(data):
        key = data.tobytes()
        if key not in known:
            known[key] = next(values)
        return known[key]

    return statistic


class Unsendable:
    """A constant of the database, by a mechanism that no other process can have."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, data, size, rng):
        return np.column_stack([np.full(size, data.sum()), rng.laplace(size=size).round(6)])


def audit(mechanism, claim=ONE, **options):
    return measure_loss(mechanism, PAIR, claim, **{"size": 400, "rng": 1} | options)


@pytest.fixture
def imported(monkeypatch, tmp_path):
    """Mechanisms in a module that is imported."""
    (tmp_path / "mechanisms_of_a_user.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mechanisms_of_a_user")
    del sys.modules["mechanisms_of_a_user"]


@pytest.mark.parametrize(
    ("statistic", "options"),
    [
        (in_order(iter(range(9))), {}),
        (in_order(iter(["red", "green", "blue"])), {"claim": GaussianDP(1.0)}),
        (id, {}),
        (in_order(iter(range(9))), {"event": Event.at_least(0, 0.5), "stop": "early", "size": 2000}),
    ],
    ids=["id", "color", "place-in-memory", "registered"],
)
def test_what_a_process_keeps_for_each_data_set_is_refused(statistic, options):
    """New processes, .5 s: an audit took it for a loss of 5 and more."""
    with refused_like(ValueError, KEPT):
        audit(beside(statistic), **options)


def test_what_a_module_keeps_for_each_data_set_is_refused(imported):
    with refused_like(ValueError, KEPT):
        audit(imported.formatted)


def test_new_processes_share_no_draw_of_a_module_and_no_order_of_words(imported, monkeypatch):
    """Three processes, 1 s: a function without a name is sent with what it reads; the command imports what it names."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    words = lambda data, size, rng: np.full(size, float(hash("word")))  # noqa: E731
    for mechanism in map(as_before, (imported.salted, words, own_mechanism("mechanisms_of_a_user:held"))):
        answers = runs_anew(mechanism[0], ((PAIR.x, PAIR.y), Kind(None)), 2, ROOT, 3, 60)
        assert len({side[0].split(",")[0] for one in answers for side in one[:1]}) == 3


def test_what_a_mechanism_imports_when_it_runs_is_imported_once(imported):
    """Audits of the same mechanisms need no second import, which took most of the time."""
    kind = Kind(None)
    first, second = (runs_anew(as_before(imported.late)[0], ((PAIR.x, PAIR.y), kind), 2, ROOT, 1, 60) for _ in range(2))
    assert (float(first[0][1][0]), float(second[0][1][0])) == (0, 1)


@pytest.mark.parametrize("statistic", [lambda data: zlib.crc32(data.tobytes()), {14: "even", 15: "odd"}.get, int])
def test_a_constant_that_follows_the_database_is_a_violation(statistic):
    """A hash, a lookup and the total itself; new processes, .5 s."""
    result = audit(beside(lambda data: statistic(data if statistic.__name__ == "<lambda>" else int(data.sum()))))
    assert (result.verdict, result.notes) == ("violated", ())


def test_a_mechanism_that_an_earlier_audit_has_set_is_no_other_for_it():
    """New processes, .5 s: what it was before that audit gives no such event, so that a note says what it may be."""
    mechanism = beside(in_order(iter(range(9))))
    with refused_like(ValueError, KEPT):
        audit(mechanism)
    assert audit(mechanism).notes == (evaluation.UNKNOWN,)


def test_where_no_new_process_can_tell_a_note_says_so(imported):
    imported.scale = 1.0
    for mechanism in (Unsendable(), imported.set_up):
        result = audit(mechanism)
        assert (result.verdict, result.notes) == ("violated", (evaluation.UNKNOWN,))
    x, y = (Unsendable()(data, 200, np.random.default_rng(3)) for data in (PAIR.x, PAIR.y))
    given = measure_loss_from_outputs(x, y, ONE, relation="add_remove", rng=2)
    assert (given.verdict, given.notes) == ("violated", (evaluation.GIVEN,))


def test_a_new_process_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(anew, "_server", cache(anew._server.__wrapped__))  # those of other tests go on
    monkeypatch.setattr(evaluation, "SECONDS", -60)
    assert audit(beside(lambda data: int(data.sum()))).notes == (evaluation.UNKNOWN,)


def test_a_real_leak_is_refused_no_oftener_than_at_the_level():
    """Four comparisons at a level of .05 each: of 120 tries 42 are refused with probability below 1e-4."""
    rng = np.random.default_rng(4)
    refused = 0
    for right, wrong in itertools.product((0.3, 0.7, 1.0), (0.0, 0.01)):
        law = np.array([[right - wrong, 1 - right, wrong], [wrong, 1 - right, right - wrong]])
        for _ in range(20):
            here, there = (np.array([rng.multinomial(runs, side) for side in law]) for runs in (400, 50))
            refused += evaluation._differs(here, there, 0.05)
    assert refused < 42
