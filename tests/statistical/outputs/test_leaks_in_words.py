"""Leaks in outputs that are not arrays of numbers: exact counts in words, rows and mappings are found."""

import math

import numpy as np
import pytest

from audit.claims import PureDP
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.helpers import in_full

PAIR = NeighborPair.add_people([120, 75], cell=0)
SURE = 1 - 1e-6
HEX = np.array([*"0123456789abcdef"])


def numbers(size, rng):
    """One of a million numbers a run."""
    return rng.integers(0, 10**6, size).tolist()


def hexadecimal(size, rng):
    return ["".join(word) for word in rng.choice(HEX, (size, 16))]


def odd(data):
    return data[0] % 2


# Each tells one database from the other for certain.
CERTAIN = {
    "a count beside a word": lambda data, n, rng: [("a", data[0] + 1e-7 * one) for one in rng.random(n)],
    "a count and a random number in a word": lambda data, n, rng: [f"{data[0]}:{one}" for one in numbers(n, rng)],
    "a count behind a random number": lambda data, n, rng: [f"{one:06d}-{data[0]}" for one in numbers(n, rng)],
    "a count with decimals in a word": lambda data, n, rng: [f"total {data[0] + one:.7f}" for one in rng.random(n) / 9],
    "a count behind many random numbers": lambda data, n, rng: [
        f"{'/'.join(map(str, row))}/{data[0]} in the whole area" for row in rng.integers(0, 99, (n, 4)).tolist()
    ],
    "a letter at the end": lambda data, n, rng: [f"{one}{'ab'[odd(data)]}" for one in hexadecimal(n, rng)],
    "letters at the beginning": lambda data, n, rng: [f"{['in', 'ex'][odd(data)]}{one}" for one in hexadecimal(n, rng)],
    "the length": lambda data, n, rng: [one + "x" * odd(data) for one in hexadecimal(n, rng)],
    "which keys there are": lambda data, n, rng: [
        {"a": one, **({"rare": 1.0} if odd(data) else {})} for one in rng.laplace(size=n).tolist()
    ],
    "a value of a key": lambda data, n, rng: [{"a": one, "b": int(data[0])} for one in rng.laplace(size=n).tolist()],
    "a key among many": lambda data, n, rng: [{f"k{one}": 1, f"exact{data[0]}": 2} for one in numbers(n, rng)],
    "how many there are": lambda data, n, rng: [
        [0.5] * (int(one) % 7) + [1.0] * odd(data) * 7 for one in numbers(n, rng)
    ],
    "a word of a list": lambda data, n, rng: [
        ["no"] * (one % 4) + ["yes"] * odd(data) + ["no"] for one in numbers(n, rng)
    ],
    "None": lambda data, n, rng: [None if odd(data) else one for one in rng.laplace(size=n).tolist()],
    "an exception": lambda data, n, rng: [{"a": one} for one in rng.laplace(size=n).tolist()] if odd(data) else 1 / 0,
}


@pytest.mark.reliability(row=3)
@pytest.mark.parametrize("seeds", in_full(1, 20))
@pytest.mark.parametrize("leak", CERTAIN)
def test_what_tells_for_certain_is_found(leak, seeds, record_property):
    """20 of 20 at 20,000 runs and 1 - 1e-6; in the quick form at 4,000."""
    record_property("tried", seeds)
    for seed in range(seeds):
        size = 4000 if seeds == 1 else 20_000
        result = measure_loss(CERTAIN[leak], PAIR, PureDP(1.0), size=size, confidence=SURE, rng=seed)
        assert result.verdict == "violated"
        assert result.measured.epsilon > 3


@pytest.mark.parametrize(
    ("stop", "rate", "short"), [("fixed", 0.03, (1, 16)), pytest.param("early", 0.3, (2,), marks=pytest.mark.slow)]
)
def test_rare_words_among_numbers_are_read(stop, rate, short, tmp_path):
    """Some runs tell for certain, in a word that the short calls before an audit do not show."""

    def mechanism(data, size, rng):
        words = rng.random(size) < (rate if size not in short else 0.0)
        return [
            f"n={data[0]}" if word else one for word, one in zip(words, rng.laplace(size=size).tolist(), strict=True)
        ]

    options = {"size": 6000, "confidence": SURE, "rng": 1, "stop": stop}
    result = measure_loss(mechanism, PAIR, PureDP(1.0), **options)
    assert result.verdict == "violated"
    assert "'n=12" in result.event
    for _ in range(2):
        assert measure_loss(mechanism, PAIR, PureDP(1.0), store=tmp_path, **options).counts == result.counts


def test_a_random_word_without_a_leak_has_no_power():
    result = measure_loss(lambda data, n, rng: hexadecimal(n, rng), PAIR, PureDP(1.0), size=4000, rng=1)
    assert (result.verdict, result.detectable) == ("no power", math.inf)
    assert any("show words that selection never saw: what they tell is not known" in note for note in result.notes)


def noisy_mapping(data, size, rng):
    """Noisy counts by area, those below a threshold left out: a release as libraries make it."""
    counts = data + rng.geometric(1 - math.exp(-1), (size, 2)) - rng.geometric(1 - math.exp(-1), (size, 2))
    return [{name: int(one) for name, one in zip("ab", row, strict=True) if one > 75} for row in counts]


def noisy_words(data, size, rng):
    return [f"about {row[0]} people" for row in data + rng.geometric(0.5, (size, 2)) - rng.geometric(0.5, (size, 2))]


@pytest.mark.reliability(row=3)
@pytest.mark.parametrize("audits", in_full(1, 20))
@pytest.mark.parametrize("mechanism", [noisy_mapping, noisy_words])
def test_noise_in_words_and_mappings_is_measured_and_not_accused(mechanism, audits, record_property):
    """Negative control: losses 1 and log(2), at confidence 1 - 1e-6."""
    record_property("tried", audits)
    loss = 1.0 if mechanism is noisy_mapping else math.log(2)
    for seed in range(audits):
        result = measure_loss(
            mechanism, PAIR, PureDP(loss), size=6000 if audits == 1 else 20_000, confidence=SURE, rng=seed
        )
        assert result.verdict == "not refuted"
        assert 0.5 * loss < result.measured.epsilon <= loss
