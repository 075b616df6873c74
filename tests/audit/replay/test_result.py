"""What a replay says, what it refuses, and how it is called."""

import functools
import importlib
import json
import math
import sys

import numpy as np
import pytest

import audit
from algorithms.bugs import known_bugs
from algorithms.flaxman import GDPC
from algorithms.noise import Gaussian, Laplace, TwoTailedGeometric, add_noise
from audit.claims import PureDP
from audit.neighbors import NeighborPair
from audit.replay import replay
from audit.report.tables import replay_table
from tests.audit.replay.cases import ADDED, MOVED, sum_of
from tests.helpers import refused_like


def drawn(*laws, out=0, raises=None):
    """A mechanism that draws noise by each law, and releases a multiple of the data."""

    def mechanism(data, size, rng):
        for number, law in enumerate(laws):
            add_noise(data[0] * 0, law(data) if callable(law) else law, size, rng, query=f"q{number}")
        if raises and data[0] == 51:
            raise raises
        return np.array([out * data[0]])

    return mechanism


def several(number):
    return lambda data, size, rng: [add_noise(0, ONE, size, rng, query="s") for _ in range(number(data[0]))][:1]


def seeded(seed):
    return lambda data, size, rng: add_noise(0, ONE, size, np.random.default_rng(seed(data[0])), query="s")


ONE, GEOMETRIC = Laplace(1.0), TwoTailedGeometric(1.0)
OUTPUTS = "outputs must be arrays, numbers, words or made of them, got {}$"
RULE = "one number or two, finite and not negative"
LEAK = "output: all answers are the same, and yet {}: more than noisy values is released"
SEED = "seed: noise {} comes from a generator seeded by {}, not from the one that was given"
WORDS = [
    (drawn(ONE, out=2), LEAK.format("entry (0,) of the output is 100 on x and 102 on y")),
    (drawn(lambda data: Laplace(float(data[0])), GEOMETRIC),
     "law: noise of 'q0': laplace, scale 50 on x and laplace, scale 51 on y"),
    (drawn(ONE, raises=KeyError("no\x1b[2J")),
     "exception: x does not raise anything, y raises KeyError ('no\\x1b[2J')"),
    (lambda data, size, rng: add_noise(np.zeros(data[0]), ONE, size, rng, query="s"),
     "shape: 's' has shape (1, 50) on x and (1, 51) on y"),
    (several(lambda n: n), "number: x makes 50 draws and y at least 51: 's' is on one of them alone"),
    (several(lambda n: 101 - n), "number: x makes 51 draws and y 50: 's' is on one of them alone"),
    (lambda data, size, rng: add_noise(0, ONE, size, rng, query=f"cell {data[0]}"),
     "order: draw 1 is of 'cell 50' on x and of 'cell 51' on y"),
    (lambda data, size, rng: ONE.sample(3, rng) if data[0] == 50 else add_noise([0] * 3, ONE, None, rng),
     "order: draw 1 is of noise by itself on x and of '' on y"),
    (sum_of(of=lambda data: math.inf if data[0] > 50 else 0), "nan: 'sum' is inf on y, which no noise hides"),
    (seeded(lambda n: n), SEED.format("of 's'", "the data")),
    (lambda data, size, _: ONE.sample(size, np.random.default_rng(3)), SEED.format("by itself", "a constant")),
    (sum_of(sensitivity=0.98), "sensitivity: 'sum' changes by 1 in L1, and 0.98 is declared"),
    (sum_of(TwoTailedGeometric(2.0), claim=PureDP(1.0)),
     "loss: all queries together lose epsilon 2 on this pair, and 1 is promised"),
    (lambda data, size, rng: {"a": [data[0]]}, LEAK.format("the outputs differ")),
    (lambda data, size, rng: add_noise(np.zeros(1), ONE, size, rng) + [0] * (data[0] - 49),
     LEAK.format("the output is float64 of shape (1, 1) on x and float64 of shape (1, 2) on y")),
    (lambda data, size, rng: np.ones(2, float if data[0] == 50 else int),
     LEAK.format("the output is float64 of shape (2,) on x and int64 of shape (2,) on y")),
]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "words"), WORDS, ids=range(len(WORDS)))
def test_words_of_every_kind(mechanism, words):
    assert list(map(str, replay(mechanism, ADDED).violations)) == [words]
    assert replay(drawn(ONE), ADDED).violations == ()  # negative control


def test_messages_that_differ_by_an_address_are_the_same():
    def failing(data, size, rng):
        raise ValueError(f"no {object()}")

    found = replay(failing, ADDED)
    assert found.violations == ()
    assert found.verdict == "no power"
    assert found.notes[0] == "both runs raise the same exception: ValueError (no <object object at 0x...>)"


def test_names_of_exceptions_are_hostile_too():
    kind = type("\x1b[31mError", (Exception,), {})

    def failing(data, size, rng):
        raise kind(f"\x1b[2J{data[0]}")

    for pair in (ADDED, NeighborPair.declared([1], [1], "add_remove")):
        found = replay(failing, pair)
        assert "\x1b" not in "".join([str(found), *map(str, found.violations), *found.notes])


def test_the_table_reads_without_a_manual():
    found = replay(MovedTwice(1.0), ADDED)
    words = "sensitivity: 'a b' changes by 2 in L1, and 1 is declared"
    columns = replay_table(found).table.columns
    assert list(zip(*((column.header, *map(str, column.cells)) for column in columns), strict=True)) == [
        ("query", "draws", "noise", "L1", "L2", "declared", "epsilon", "rho"),
        ("a b", "3", "two tailed geometric, epsilon 1", "2", "2", "1", "2", "0.86006"),
        ("noise by itself", "2", "gaussian, scale 2", "-", "-", "-", "-", "-"),
    ]
    assert [str(violation) for violation in found.violations] == [words]
    assert found.notes == ("noise is drawn by itself: what it is added to is not seen",)


def test_json_says_what_the_table_says():
    found = replay(MovedTwice(1.0), ADDED)
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (record["verdict"], record["claim"]["epsilon"], record["notes"]) == ("violated", 1.0, list(found.notes))
    assert record["violations"] == [{"kind": "sensitivity", "sentence": "'a b' changes by 2 in L1, and 1 is declared"}]
    counted, alone = record["queries"]
    assert (counted["query"], counted["draws"], counted["l1_change"], counted["epsilon"]) == ("a\n\x1bb", 3, 2.0, 2.0)
    assert (alone["declared"], alone["l1_change"], alone["epsilon"], alone["rho"]) == (None, None, None, None)


class MovedTwice:
    def __init__(self, epsilon):
        self.claim = PureDP(epsilon)

    def __call__(self, data, size, rng):
        noisy = add_noise(2 * data, TwoTailedGeometric(1.0), size, rng, query="a\n\x1bb", sensitivity=1)
        return noisy[:, :2] + Gaussian(2.0).sample((size, 2), rng)


def test_confidential_databases_make_confidential_results():
    secret = ADDED.as_confidential()
    assert replay(GDPC(1.0), secret).confidential
    [violation] = replay(MovedTwice(2.0), secret).violations
    assert str(violation) == "CONFIDENTIAL: sensitivity: 'a b' changes by 2 in L1, and 1 is declared"


def own(exact, rng):
    return exact


def lazily(values, rng):
    yield from values


def test_a_seed_gives_the_same_result():
    bug, pair = known_bugs()["unperturbed-zeros"].mechanism, NeighborPair.add_people([5, 0], 1)
    first, second = (replay(bug, pair, rng=2) for _ in range(2))
    assert list(map(str, first.violations)) == list(map(str, second.violations))
    assert first.seed == second.seed == 2
    assert str(replay(bug, pair, rng=7).violations) != str(first.violations)


@pytest.mark.parametrize(
    ("mechanism", "options", "error", "words"),
    [
        (3, {}, TypeError, r"mechanism must be callable as \(data, size, rng\), got 3"),
        (GDPC(1.0), {"pair": ([1], [2])}, TypeError, "pair must be a NeighborPair, got tuple"),
        (GDPC(1.0), {"claim": 1.0}, TypeError, "claim must be one of .*PureDP.*, got float"),
        (GDPC(1.0), {"claim": PureDP(math.inf)}, ValueError, "a claim that is audited must have a positive and finite"),
        (GDPC(1.0), {"pair": MOVED}, ValueError, "the pair is replace_one and the claim add_remove: audit claim.under"),
        (GDPC(1.0), {"observe": "power"}, ValueError, 'observe must be "output" or "time", got \'power\''),
        (GDPC(1.0), {"size": 29, "observe": "time"}, ValueError, "size must be at least 30, got 29"),
        (GDPC(1.0), {"rng": "secure"}, TypeError, "rng must be None, an integer, a Generator or a SeedSequ"),
        (sum_of(query="q", sensitivity=-1), {}, ValueError, f"the sensitivity of 'q' must be {RULE}, got -1$"),
        (sum_of(query="q", sensitivity=math.inf), {}, ValueError, f"the sensitivity of 'q' must be {RULE}, got inf$"),
        (sum_of(query="q", sensitivity=(1, 1, 1)), {}, ValueError, rf"the sensitivity .* {RULE}, got \(1, 1, 1\)$"),
        (sum_of(query="q", sensitivity="1"), {}, ValueError, f"the sensitivity of 'q' must be {RULE}, got '1'$"),
        (sum_of(query="q", of=lambda _: 1j), {}, TypeError, "values of 'q' must be real numbers, got dtype complex128"),
        (lambda data, size, rng: replay.primitive("exact")(own)("abc", rng), {}, TypeError,
         "values of 'own' must be real numbers, got dtype <U3$"),
        (lambda data, size, rng: list(replay.primitive("values")(lazily)(data, rng)), {}, TypeError,
         "answers of 'lazily' must be what can be copied, got generator$"),
        (lambda data, size, rng: lambda: data, {}, TypeError, OUTPUTS.format("function")),
        (lambda data, size, rng: functools.partial(int, data[0]), {}, TypeError, OUTPUTS.format("partial")),
        (lambda data, size, rng: object(), {}, TypeError, OUTPUTS.format("object")),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(mechanism, options, error, words):
    with refused_like(error, f"^{words}"):
        replay(mechanism, **{"pair": ADDED, **options})
    assert replay(sum_of(query="q", sensitivity=[1, 1]), ADDED).queries[0].declared == (1, 1)  # negative control


@pytest.mark.parametrize("first", ["from audit import replay", "import audit.replay", "import audit.replay as replay"])
@pytest.mark.parametrize("second", ["from audit import replay", "from audit.replay import replay"])
def test_the_module_and_the_function_are_one(monkeypatch, first, second):
    monkeypatch.delitem(sys.modules, "audit.replay")
    monkeypatch.delattr(audit, "replay")
    for statement in (first, second, "from audit import replay"):
        names = {}
        exec(statement, names)
        function = names.get("replay", getattr(names.get("audit"), "replay", None))
        assert function(GDPC(1.0), ADDED).verdict == "not refuted"
        assert callable(function.primitive)
    assert importlib.import_module("audit.replay")(GDPC(1.0), ADDED).exact_loss.maximum == 1
    monkeypatch.undo()
