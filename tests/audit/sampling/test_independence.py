"""Runs that depend on each other are refused, whatever makes them so; independent ones are not, whatever their law."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import poisson

from audit.claims import GaussianDP, PureDP
from audit.events import Event
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.neighbors import NeighborPair
from audit.outputs import Kind, kind_of, read_outputs
from audit.sampling import independence
from audit.sampling.copies import chance_of_repeat, check_not_copied
from audit.sampling.independence import check_calls, check_file, check_order
from audit.sampling.probes import probe_runs
from audit.sampling.streams import Phase
from tests.audit.sampling.cases import runs_of
from tests.audit.sampling.test_probes import SOUND
from tests.helpers import in_full, refused_like

D = NeighborPair.declared(np.array([0]), np.array([1]), "add_remove")
ONCE_A_CALL = "^runs must be independent: randomness seems to be drawn once a call instead of once a run: "
UNSTEADY = "^runs must be independent: later ones differ from the first"
IN_ORDER = "^outputs must be independent and in the order in which they were made: "
COPIES = r"^runs must be independent: \d+ outputs occur \d+ times each, more than chance explains$"
SURE = 1 - 1e-6


def calls_of(size, calls=32):
    """The sizes of the calls that make so many runs."""
    return np.diff(np.arange(calls + 1) * size // calls)


def made(mechanism, size=3200, *, data=1, seed=1):
    """Successive runs of a mechanism in 32 calls."""
    rng = np.random.default_rng(seed)
    return np.concatenate([mechanism(data, runs, rng) for runs in calls_of(size)])


# Known truth: the evidence has mean 1 at most over all ways to share hits among groups, which are as likely


@pytest.mark.parametrize(
    ("runs", "total", "groups"), [((5, 5, 5, 5), 7, 4), ((3, 9, 2, 2), 4, 4), ((6, 6, 6, 1), 14, 2), ((0, 5, 9), 6, 4)]
)
def test_the_evidence_against_even_runs_has_mean_one_at_most(runs, total, groups):
    mean = ways = 0.0
    for hits in itertools.product(*(range(each + 1) for each in runs)):
        if sum(hits) == total:
            chance = math.prod(map(math.comb, runs, hits)) / math.comb(sum(runs), total)
            ways += chance
            mean += chance * math.exp(independence._excess(np.array([hits, runs])[:, :, None], groups))
    assert ways == pytest.approx(1)
    assert mean <= 1 + 1e-9


@pytest.mark.parametrize(("k", "b", "c"), [(2, 1, 1), (2, 0.01, 0.5), (4, 1, 1), (16, 0.1, 0.5)])
def test_the_evidence_of_copies_has_mean_one_at_most(k, b, c):
    rates = np.geomspace(1e-6, 100, 10_000)
    weights = {k - 1: -b, k: 2 * math.sqrt(b * c * k / (k + 1)), k + 1: -c}
    means = sum(poisson.pmf(times, rates) * weight for times, weight in weights.items())
    assert means.max() <= 1e-12
    assert (means + 0.01 * poisson.pmf(k, rates)).max() > 0  # no weight could be larger


# What is drawn once a call


def coin(data, size, rng, once):
    return (data * (rng.random(once) < 0.5) + rng.laplace(size=size)).round(6)


def scale(data, size, rng, once):
    return data + rng.choice([0.6, 1.6], once) * rng.laplace(size=size)


def weight(data, size, rng, once):
    return np.where(rng.random(size) < rng.random(once), data, 1 - data)


def rare(data, size, rng, once):
    return rng.random(size) < 0.1 * (rng.random(once) < 0.25)


@pytest.mark.parametrize("drawn", [coin, scale, weight, rare])
def test_what_is_drawn_once_a_call_is_refused(drawn):
    """The same once a run is not: false alarm 1e-10 of 20 comparisons each."""
    for seed in range(5):
        once = made(lambda data, size, rng: drawn(data, size, rng, 1) * 1.0, seed=seed)
        with refused_like(ValueError, f"{ONCE_A_CALL}a differs more between calls than within them$"):
            check_calls("a", [once, once], [calls_of(3200)] * 2)
    for seed in range(20):
        each = made(lambda data, size, rng: drawn(data, size, rng, size) * 1.0, seed=seed)
        check_calls("a", [each, each[::-1]], [calls_of(3200)] * 2)


def test_rare_guesses_are_compared_exactly():
    """Ten in one call of 32 have probability 1e-13, three 1e-3."""
    for hits, refused in ((3, False), (10, True), (11, True)):
        guesses = np.zeros(6400, np.int8)
        guesses[2000 : 2000 + hits] = 1
        if refused:
            with refused_like(ValueError, "the guess"):
                check_calls("the guess", [guesses, np.zeros(6400, np.int8)], [calls_of(6400)] * 2)
        else:
            check_calls("the guess", [guesses, guesses], [calls_of(6400)] * 2)


def test_short_stretches_of_one_scale_are_refused():
    rng = np.random.default_rng(4)
    stretches = [np.repeat(rng.exponential(size=400), 40) * rng.laplace(size=16_000) for _ in "xy"]
    with refused_like(ValueError, "^runs must be independent: a is more alike in runs that follow each other than in"):
        check_calls("a", stretches, [calls_of(16_000)] * 2)
    check_calls("a", [rng.permutation(side) for side in stretches], [calls_of(16_000)] * 2)  # false alarm 1e-11


def test_runs_that_change_slowly_are_refused():
    rng = np.random.default_rng(5)
    steps = [np.repeat([guess, 0], 40).astype(np.int8) for guess in (-1, 1)]
    drifting = rng.laplace(size=6400) + np.linspace(0, 1, 6400)
    for sides in ([steps[0], steps[1]], [steps[1], np.zeros(80, np.int8)], [drifting, drifting]):
        with refused_like(ValueError, UNSTEADY):
            check_calls("a", sides, [calls_of(len(sides[0]))] * 2)
    check_calls("a", [np.repeat([1, 0], 5).astype(np.int8)] * 2, [calls_of(10)] * 2)  # 0.004 each


# Lags


@pytest.mark.parametrize("lag", [1, 10, 700, 1500])
def test_runs_that_tell_of_others_are_refused_at_any_lag(lag):
    """Negative control: the same numbers in random order, false alarm 4e-11."""
    rng = np.random.default_rng(lag)
    own = rng.laplace(size=4000)
    own[lag:] += 0.9 * own[:-lag]
    found = rf"a of a run correlates by 0\.\d+ with that {lag} later$"
    with refused_like(ValueError, rf"^runs must be independent: {found}"):
        check_calls("a", [rng.laplace(size=4000), own], [calls_of(4000)] * 2)
    with refused_like(ValueError, rf"{IN_ORDER}{found.replace('run', 'row')}"):
        check_order("a", [rng.laplace(size=4000), own])
    mixed = rng.permutation(own)
    check_calls("a", [mixed, mixed], [calls_of(4000)] * 2)
    check_order("a", [mixed, mixed])


def test_lags_are_tested_among_the_first_runs():
    """What repeats beyond them is left to the comparison of calls; half a second of work is saved at 4 million runs."""
    runs = np.random.default_rng(6).laplace(size=2**18 + 5000)
    runs[-5000:] = runs[:5000]
    check_calls("a", [runs, runs], [calls_of(len(runs))] * 2)
    runs[5000:10_000] = runs[:5000]
    with refused_like(ValueError, r"a of a run correlates by 0\.\d+ with that 5000 later$"):
        check_calls("a", [runs, runs], [calls_of(len(runs))] * 2)


@pytest.mark.parametrize("few", [np.zeros(50), np.arange(7.0), np.ones(1), np.ones(0), np.ones(0, np.int8)])
def test_few_runs_or_one_value_prove_nothing(few):
    check_calls("a", [few, few], [calls_of(len(few), min(len(few), 32))] * 2 if len(few) else [np.empty(0, int)] * 2)
    check_order("a", [few, few])


# Audits


def autoregressive(shape, lag, rng, share=0.95):
    """Normal noise that correlates with that `lag` before."""
    noise = rng.normal(size=shape)
    for start in range(lag, shape, lag):
        part = slice(start, min(start + lag, shape))
        noise[part] *= math.sqrt(1 - share**2)
        noise[part] += share * noise[start - lag : part.stop - lag]
    return noise


FAULTS = {  # per run each keeps its promise
    "coin": (lambda d, n, r, k: (d[0] * (r.random(k) < 0.5) + r.laplace(size=n)).round(6), PureDP(0.621), ONCE_A_CALL),
    "word": (
        lambda d, n, r, k: np.where(d[0] ^ r.integers(0, 2, k) ^ (r.random(n) < 0.27), "yes", "no").tolist(),
        PureDP(0.01),
        ONCE_A_CALL,
    ),
    "lag": (
        lambda d, n, r, k: (d[0] + autoregressive(n, n if k > 1 else 120, r)).round(6),
        GaussianDP(1.0),
        "with that 120 later$",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_audits_of_dependent_runs_are_refused(fault):
    """Negative control: the same drawn once a run is not accused, 1e-6, nor refused, 1e-9."""
    mechanism, claim, message = FAULTS[fault]
    size = 40_000
    with refused_like(ValueError, message):
        measure_loss(lambda d, n, r: mechanism(d, n, r, 1), D, claim, size=size, rng=1, confidence=SURE)
    sound = measure_loss(lambda d, n, r: mechanism(d, n, r, n), D, claim, size=size, rng=1, confidence=SURE)
    assert sound.verdict != "violated"


def test_runs_of_a_registered_event_are_compared_too():
    options = {"event": Event.at_least((), 1), "size": 6000, "rng": 1}
    with refused_like(ValueError, f"{ONCE_A_CALL}the guess differs"):
        measure_loss(lambda d, n, r: d[0] + r.laplace() + np.zeros(n), D, PureDP(0.3), **options)
    measure_loss(lambda d, n, r: d[0] + r.laplace(size=n), D, PureDP(0.3), **options)


@pytest.mark.parametrize(("most", "calls"), [(None, 256), (40, 40)])
def test_an_audit_counts_in_many_calls_unless_the_mechanism_asks_for_fewer(most, calls):
    sizes = []

    def noting(data, size, rng):
        sizes.append(size)
        return data + rng.laplace(size=(size, 1))

    if most:
        noting.calls_per_side = most
    result = measure_loss(noting, D, PureDP(1.0), size=20_000, attack="entries", rng=1)
    choosing, counting = 3000 - int(probe_runs(20_000)) // 2, -(-7_100 // calls)
    assert sum(size == -(-choosing // 32) for size in sizes) == 2 * 31  # of those that choose
    assert sum(-(-6_900 // calls) <= size <= counting for size in sizes) >= 2 * (calls - 10)
    assert (f"{most} calls a database count instead of 256" in str(result.notes)) == (most is not None)
    noting.calls_per_side = 31
    with refused_like(ValueError, "^calls_per_side must be at least 32, got 31$"):
        measure_loss(noting, D, PureDP(1.0), size=20_000, rng=1)


# Given outputs


def given(x, y, claim=None):
    claim = claim or PureDP(1.0)
    return measure_loss_from_outputs(x, y, claim, relation="add_remove", rng=1, confidence=SURE)


def markov(size, rng, a=0.97):
    """Normal outputs that change little from one to the next."""
    found = rng.normal(size=size)
    for run in range(1, size):
        found[run] = a * found[run - 1] + math.sqrt(1 - a * a) * found[run]
    return found.round(6)


def part(rng, size=4000, share=0.3):
    """A file to which a job that was resumed has written some rows a second time."""
    rows = rng.laplace(size=size).round(6)
    return np.concatenate([rows, rows[: int(share * size)]])


DEPENDENT = {
    "Markov chain": (lambda rng: markov(4000, rng), IN_ORDER),
    "words of a Markov chain": (lambda rng: [f"about {one:.0f}" for one in markov(4000, rng, 0.99)], IN_ORDER),
    "slow drift": (lambda rng: rng.laplace(size=4000) + np.linspace(0, 1, 4000), IN_ORDER),
    "sorted by part": (lambda rng: np.sort(rng.integers(0, 2, 4000)) + rng.laplace(size=4000), IN_ORDER),
    "fifth entry": (lambda rng: np.column_stack([rng.laplace(size=(4000, 4)), markov(4000, rng)]), IN_ORDER),
    "run numbers": (
        lambda rng: np.column_stack([rng.laplace(size=4000).round(6), np.arange(4000)]),
        r"output\[1\] rises from row to row: leave it out if it numbers the runs",
    ),
    "5% again": (lambda rng: part(rng, 20_000, 0.05), IN_ORDER),
    "30% again, shuffled": (lambda rng: rng.permutation(part(rng)), COPIES),
    "words again": (lambda rng: [f"row {one}" for one in np.tile(rng.integers(0, 10**9, 500), 2)], COPIES),
}


@pytest.mark.parametrize("kind", DEPENDENT)
def test_given_outputs_that_depend_on_each_other_are_refused(kind):
    outputs, message = DEPENDENT[kind]
    with refused_like(ValueError, message):
        given(*(outputs(np.random.default_rng(seed)) for seed in (1, 2)))


def test_the_same_outputs_in_random_order_without_copies_are_not():
    """Negative control: false alarm 1e-9."""
    rng = np.random.default_rng(3)
    for kind in ("Markov chain", "words of a Markov chain", "sorted by part", "fifth entry"):
        x = rng.permutation(DEPENDENT[kind][0](rng))
        assert given(x[:2000], x[2000:]).verdict != "violated"


def test_the_guess_is_compared_along_the_file():
    """A category among numbers, of which words say nothing alone: what is guessed from it stays for a while."""
    rng = np.random.default_rng(6)

    def mixed(shift):
        kept = np.repeat(rng.random(200) < 0.5 + shift, 20)
        return [(float(number), "a" if one else "b") for number, one in zip(rng.normal(size=4000), kept, strict=True)]

    with refused_like(ValueError, f"{IN_ORDER}the guess of a row correlates"):
        given(mixed(0.2), mixed(-0.2), PureDP(3.0))


# False alarms


def atoms(size, rng):
    return np.where(rng.random(size) < 0.3, rng.integers(0, 3, size), rng.laplace(size=size).round(6))


GIVEN = {
    "coarse Laplace": lambda size, rng: rng.laplace(size=size).round(2),
    "fine Laplace": lambda size, rng: rng.laplace(size=size).round(4),
    "geometric": lambda size, rng: rng.geometric(0.5, size),
    "heavy tails": lambda size, rng: np.floor(rng.pareto(0.7, size).clip(max=1e9)),
    "clipped": lambda size, rng: rng.laplace(size=size).clip(-1, 1),
    "atoms": atoms,
    "constant": lambda size, rng: np.ones(size),
    "rare": lambda size, rng: rng.random(size) < 1e-3,
    "words": lambda size, rng: [f"{one:.1f}" for one in rng.laplace(size=size)],
    "vectors": lambda size, rng: rng.geometric(0.5, (size, 20)),
    "pairs": lambda size, rng: rng.poisson(3, (size, 2)),
    "records": lambda size, rng: [(int(one), "ab"[int(one) % 2]) for one in rng.poisson(20, size // 8)],
    "birthdays": lambda size, rng: rng.integers(0, size, size),
    "few repeats": lambda size, rng: rng.integers(0, 20 * size, size),
    "square roots": lambda size, rng: np.floor(size * rng.random(size) ** 3),
}


@pytest.mark.parametrize("files", in_full(6, 70))
@pytest.mark.parametrize("kind", GIVEN)
def test_sound_given_outputs_are_not_refused(kind, files):
    """In full 1,050 files, of 15 kinds and two databases each: false alarm 1e-6."""
    for file in range(files):
        rng = np.random.default_rng((file, 7))
        outputs = [GIVEN[kind](size, rng) for size in (40, 4000, 20_000)[file % 3] * np.array([1, 1])]
        settled = kind_of(outputs)
        sides = [read_outputs(side, settled) for side in outputs]
        for side in sides:
            check_not_copied(side)
        check_file(sides)


@pytest.mark.parametrize("audits", in_full(3, 300))
@pytest.mark.parametrize("kind", SOUND)
def test_runs_of_sound_mechanisms_are_not_refused(kind, audits):
    """In full 300 audits of 16 kinds, of a score and of rare and common guesses: false alarm 2e-7."""
    for audit in range(audits):
        sizes = (np.array([30, 30]), np.array([900, 1000]))[audit % 2]
        runs = runs_of(SOUND[kind], D, None, root=np.random.SeedSequence(audit))
        (calls,) = runs.groups(sizes, Phase.COUNT)
        codes = [np.array([hash(text) % 1009 for text in side], float) for side in texts(runs, sizes)]
        check_calls("a", codes, calls)
        for share in (10, 300):
            check_calls("the guess", [(side % share == 1).astype(np.int8) for side in codes], calls)


def texts(runs, sizes):
    return [np.concatenate(list(side)) for side in runs.reduced(sizes, lambda outputs: outputs, Phase.COUNT)]


# Copies of runs are refused, and independent outputs are not taken for copies


def test_copies_of_runs_are_refused():
    rng = np.random.default_rng(2)
    real, few, pairs = rng.laplace(size=60), rng.integers(0, 3, 900), rng.integers(0, 9, (400, 2))
    words = read_outputs([f"word {number}" for number in range(60)], Kind(None))
    for outputs in (real, few, pairs, words):
        check_not_copied(outputs)
    for copied in (np.tile(real, 2), np.repeat(real, 5), np.tile(rng.laplace(size=(50, 3)), (2, 1)), np.tile(words, 2)):
        with refused_like(ValueError, r"runs must be independent: \d\d outputs occur [25] times each"):
            check_not_copied(copied)
    check_not_copied(np.repeat([0, 1, 2], 50))  # three values agree so by chance


@pytest.mark.parametrize(
    ("outputs", "chance"),
    [
        ([5, 5, 5], 1),
        ([0, 0, 1, 1], (1 / 2) ** 4),
        ([[0, 1], [0, 1], [0, 2], [1, 1]], (6 / 16) ** 4),
        (np.arange(10), 1e-10),
        (np.arange(2000.0), 0),
    ],
)
def test_the_chance_of_a_repeat(outputs, chance):
    assert chance_of_repeat(np.array(outputs)) == pytest.approx(chance, rel=1e-12, abs=0)
