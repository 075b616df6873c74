"""Every known bug against a naive twin: one run at a time, all noises listed, nothing shared with the code."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from algorithms.bugs import known_bugs
from algorithms.bugs.bug import KnownBug
from algorithms.bugs.sums import ReorderedSum
from algorithms.population import load
from audit.neighbors import NeighborPair
from tests.helpers import chi_square, refused, refuses

BUGS = known_bugs()


# Naive twins: the budgets of the geometric draws of one run, and what is released with these draws


def add(data, noise):
    return tuple(d + k for d, k in zip(data, noise, strict=True))


def each(epsilon):
    return lambda data: [epsilon] * len(data)


def inhabited(data):
    return [1.0] * sum(d > 0 for d in data)


def sum_of_halves(shares):
    total = np.float16(0)
    for share in shares:
        total = np.float16(total + np.float16(share))
    return int(total)


def cached(data, noise):
    by_value = dict(zip(sorted(set(data)), noise, strict=True))
    return tuple(d + by_value[d] for d in data)


def say(count, noisy):
    return str(noisy) if noisy >= 0 else f"error: the count {count} became negative"


REJECTED = None  # the run is made again

TWINS = {
    "notebook": (each(-math.log(0.1)), add),
    "half-noise": (each(2.0), add),
    "moved-person": (each(1.0), add),
    "unperturbed-zeros": (each(1.0), lambda d, k: tuple(a + b if a else 0 for a, b in zip(d, k, strict=True))),
    "observed-domain": (lambda d: [1.0] * (1 + (d[1] > 0)), lambda d, k: (*add(d[: len(k)], k), -(2**31))[:2]),
    "skipped-zeros": (inhabited, lambda d, k: sum(d) + sum(k)),
    "empty-area-exit": (lambda d: [1.0] * 2 if sum(d) else [], lambda d, k: add(d, k) if k else (0, 0)),
    "silent-invariant": (lambda _: [1.0], lambda d, k: (d[0] + k[0], d[1] - k[0])),
    "edited-to-truth": (each(1.0), lambda d, k: add(d, (min(max(e, -2), 2) for e in k))),
    "retried-negatives": (each(0.5), lambda d, k: add(d, k) if min(add(d, k)) >= 0 else REJECTED),
    "public-size": (each(1.0), lambda d, k: tuple(n / sum(d) for n in add(d, k))),
    "poisson-scale": (
        lambda d: [1 / math.sqrt(n) for n in d if n],
        lambda d, k: (d[0] + k[0], d[1] + (k[1] if d[1] else 0)),
    ),
    "raw-data-summed": (lambda _: [0.1], lambda d, k: sum(d) + k[0]),
    "bounds-from-data": (lambda d: [1 / max(d)], lambda d, k: sum(d) + k[0]),
    "nan-survives-clipping": (lambda _: [0.1], lambda d, k: 0 if any(map(math.isnan, d)) else 17 + k[0]),
    "reordered-sum": (lambda _: [0.5], lambda d, k: sum_of_halves(d) + k[0]),
    "overflowing-total": (lambda _: [1.0], lambda d, k: (sum(d) + 2**15) % 2**16 - 2**15 + k[0]),
    "rounded-first": (each(0.5), lambda d, k: add([min(range(0, 99, 5), key=lambda r: abs(r - n)) for n in d], k)),
    "forked-areas": (lambda _: [1.0], lambda d, k: add(d, k * 2)),
    "cached-noise": (lambda d: [1.0] * len(set(d)), cached),
    "talkative-error": (each(1.0), lambda d, k: (say(d[0], d[0] + k[0]),)),
    "quality-gate": (each(1.0), lambda d, k: add(d, k) if abs(k[0]) <= 2 else "stopped"),
}
ENDLESS = {"skipped-zeros", "bounds-from-data"}  # no output is impossible, yet the loss has no end
ONE_OUTPUT = {"seeded-by-data", "seeded-by-time", "one-stream"}  # known for certain: test_randomness
ELSEWHERE = {"published-twice", "square-root-shares", "forgotten-level", "laplace-holes"}  # a test of their own


@cache
def naive_laws(name):
    """Probability of every output on `x` and on `y`, from all draws of a probability above exp(-25) or so."""
    budgets, release = TWINS[name]
    pair = [data.tolist() for data in (BUGS[name].x, BUGS[name].y)]
    reach = math.ceil(25 / min(budget for data in pair for budget in budgets(data)))
    return [naive_law(budgets(data), release, data, range(-reach, reach + 1)) for data in pair]


def naive_law(budgets, release, data, k):
    draws = []
    for epsilon in budgets:
        draws.append([(n, math.tanh(epsilon / 2) * math.exp(-epsilon * abs(n))) for n in k])
    law = defaultdict(float)
    for drawn in itertools.product(*draws):
        output = release(data, tuple(n for n, _ in drawn))
        if output is not REJECTED:
            law[output] += math.prod(chance for _, chance in drawn)
    kept = math.fsum(law.values())
    return {output: chance / kept for output, chance in law.items()}


def naive_delta(p, q, epsilon):
    return math.fsum(max(chance - math.exp(epsilon) * q.get(output, 0.0), 0.0) for output, chance in p.items())


def sampled(bug, data, size, seed):
    """Outputs of `size` runs as the twin writes them; an error is an output."""
    rng = np.random.default_rng(seed)
    if "gate" in type(bug.mechanism).__name__.lower():
        return Counter(one_run(bug.mechanism, data, rng) for _ in range(size))
    outputs = bug.mechanism(data, size, rng)
    assert len(outputs) == size
    distinct, seen = np.unique(outputs, axis=0, return_counts=True)
    rows = distinct.tolist() if distinct.ndim == 1 else map(tuple, distinct.tolist())
    return Counter(dict(zip(rows, seen.tolist(), strict=True)))


def one_run(mechanism, data, rng):
    try:
        return tuple(mechanism(data, 1, rng)[0].tolist())
    except RuntimeError:
        return "stopped"


def misfit(observed, law):
    """P-value of the chi-square test; 0 if an impossible output was seen."""
    if observed.keys() - law.keys():
        return 0.0
    counts = np.array([[observed[output], observed.total() * chance] for output, chance in law.items()])
    return chi_square(*counts.T, least=10) if len(law) > 1 else 1.0


def test_no_bug_goes_unchecked():
    assert set(BUGS) == set(TWINS) | ONE_OUTPUT | ELSEWHERE
    assert Counter(bug.found for bug in BUGS.values()) == {"counts": 26, "refused": 2, "witness": 1}


# True losses


@pytest.mark.parametrize("name", TWINS)
def test_the_exact_law_is_that_of_the_twin(name):
    """Ratios of outputs near the end of what the twin lists are left out: one law is cut off before the other."""
    bug = BUGS[name]
    p, q = naive_laws(name)
    law, claimed = bug.mechanism.exact_loss(bug), bug.mechanism.claim.epsilon
    for epsilon in (0.0, claimed / 2, claimed, 1.5 * claimed, 3 * claimed):
        assert law.delta_at(epsilon) == pytest.approx(naive_delta(p, q, epsilon), abs=1e-8)
        assert law.reverse().delta_at(epsilon) == pytest.approx(naive_delta(q, p, epsilon), abs=1e-8)
    assert max(law.maximum, law.reverse().maximum) == pytest.approx(bug.loss, rel=1e-9)
    if name == "overflowing-total":  # the laws are too far apart for the twin to list what both can release
        assert bug.loss == 1.0 * (max(p) - max(q))
        return
    only_p = math.fsum(chance for output, chance in p.items() if output not in q)
    only_q = math.fsum(chance for output, chance in q.items() if output not in p)
    assert law.infinite_mass == pytest.approx(only_p, abs=1e-8)
    assert law.missing_mass == pytest.approx(only_q, abs=1e-8)
    ratios = [abs(math.log(p[o] / q[o])) for o in p.keys() & q.keys() if max(p[o], q[o]) > 1e-9]
    if name in ENDLESS:
        assert max(only_p, only_q) < 1e-6
        assert max(ratios) > 2.5 * claimed
    elif math.isinf(bug.loss):
        assert max(only_p, only_q) > 0.01
    else:
        assert max(ratios) == pytest.approx(bug.loss, rel=1e-9)
        assert max(only_p, only_q) < 1e-8


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_every_bug_breaks_its_promise_on_neighbors(bug):
    assert bug.loss > 1.3 * bug.mechanism.claim.epsilon
    assert bug.relation == bug.mechanism.claim.relation
    assert getattr(bug.mechanism, "true_loss", math.inf) >= bug.loss * (1 - 1e-12)
    law = bug.mechanism.exact_loss(bug)
    claimed = bug.mechanism.claim.epsilon
    assert max(law.delta_at(claimed), law.reverse().delta_at(claimed)) > 0.005
    if bug.x.shape == bug.y.shape and bug.x.dtype.kind == "i":
        assert NeighborPair(bug.x, bug.y, bug.relation).distance == 1
    else:  # one value a person, in any order
        more, fewer = sorted((bug.x, bug.y), key=len, reverse=True)
        extra = Counter(map(str, more.tolist()))
        extra.subtract(map(str, fewer.tolist()))
        assert sorted(extra.values())[-1] == sum(extra.values()) == 1


@pytest.mark.parametrize("name", TWINS)
def test_the_sampler_follows_the_law(name):
    bug = BUGS[name]
    size = 3_000 if name == "quality-gate" else 20_000
    p, q = naive_laws(name)
    for data, law, other in ((bug.x, p, q), (bug.y, q, p)):
        observed = sampled(bug, data, size, seed=1)
        assert misfit(observed, law) > 1e-6  # the false alarm
        assert misfit(observed, other) < 1e-12


# The registry


def test_known_bugs_are_read_only_and_new_each_time():
    bug = known_bugs()["half-noise"]
    with pytest.raises(ValueError, match="read-only"):
        bug.x[0] = 1
    with pytest.raises(AttributeError):
        bug.loss = 1.0
    data = np.array([1, 2])
    copied = KnownBug(bug.mechanism, data, data, loss=0.0, size=1, event="", source="")
    data[0] = 7
    assert copied.x.tolist() == copied.y.tolist() == [1, 2]
    assert (copied.relation, copied.found) == ("add_remove", "counts")


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_every_bug_says_where_it_comes_from_and_refuses_what_it_cannot_run_on(bug):
    documentation = type(bug.mechanism).__doc__
    assert all(part in documentation for part in ("**Bug.**", "**True loss.**"))
    assert bug.source
    assert bug.event
    assert bug.size >= 500
    for epsilon in (0, math.nan):
        with pytest.raises(ValueError, match="epsilon must be positive and finite, got"):
            replace(bug.mechanism, epsilon=epsilon)
    for name, least in ((one.name, one.metadata.get("least")) for one in fields(bug.mechanism)):
        if least is not None:
            refuses(TypeError, f"{name} must be an integer, got 2.0", replace, bug.mechanism, **{name: 2.0})
            with refused(ValueError, f"{name} must be at least {least}, got {least - 1}"):
                replace(bug.mechanism, **{name: least - 1})
    for data in ([[1, 2]], ["a"], [-1]):
        if data != [-1] or not isinstance(bug.mechanism, ReorderedSum):  # which clips it
            with pytest.raises((TypeError, ValueError), match=r"^(counts|values) must "):
                bug.mechanism(data, 1, np.random.default_rng(0))


ON_COUNTS = [
    name
    for name, bug in BUGS.items()
    if bug.x.shape == bug.y.shape and bug.x.dtype.kind == "i" and not hasattr(bug.mechanism, "tree")
]


@pytest.mark.parametrize("name", ON_COUNTS)
def test_bugs_of_counts_run_on_a_census(name):
    """An exact law may be too large to give, but asking for it is no error."""
    mechanism = BUGS[name].mechanism
    _, counts = load("morocco")
    law = mechanism.exact_loss(NeighborPair.add_people(counts, 7))
    assert law is None or law.maximum >= 0
    if name == "quality-gate":
        with pytest.raises(RuntimeError, match="the release failed at the quality gate"):
            mechanism(counts, 1, np.random.default_rng(1))  # 1,503 counts: one is always too far off
    else:
        released = mechanism(counts, 1, np.random.default_rng(1))
        assert released.shape in {(1,), (1, counts.size), (1, 2, counts.size)}


def power_is_there(law, counting, claimed, confidence):
    """Whether some event guesses right often enough, with a margin of three standard deviations."""
    order = np.argsort(-law.loss)
    p = np.concatenate([[law.infinite_mass], law.probability[order], [0.0]])
    q = np.concatenate([[0.0], np.exp(law.log_p - law.loss)[order], [law.missing_mass]])
    steps = np.unique(np.linspace(1, p.size, 400).astype(int))
    chance = 1 / (1 + math.exp(-claimed))
    for guess_x, guess_y in ((p.cumsum(), q.cumsum()), (q[::-1].cumsum(), p[::-1].cumsum())):
        right, wrong = guess_x[steps - 1], guess_y[steps - 1]
        share = np.clip((right + wrong) / 2, 1e-300, 1)
        guesses = np.floor(counting * share - 3 * np.sqrt(counting * share * (1 - share)))
        hits = np.clip(right / (2 * share), 0, 1)
        correct = np.floor(guesses * hits - 3 * np.sqrt(np.maximum(guesses, 0) * hits * (1 - hits)))
        seen = guesses > 0
        if np.any(stats.binom.sf(correct[seen] - 1, guesses[seen], chance) <= 1 - confidence):
            return True
    return False


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.found == "counts"])
def test_the_size_shows_the_bug(name):
    bug = BUGS[name]
    law, counting = bug.mechanism.exact_loss(bug), 0.7 * bug.size
    assert power_is_there(law, counting, bug.mechanism.claim.epsilon, 1 - 1e-6)
    if math.isfinite(bug.loss):
        assert not power_is_there(law, counting, bug.loss, 1 - 1e-6)  # with that promise it would be no bug
