"""What holds for every registered method: no counts exceed the largest possible bound, and its power is as stated."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from audit.claims.families import FAMILIES
from audit.methods import Bets, Game, Gaussian, OneRun, Renyi, TwoSamples, Variation
from audit.methods.method import NAMED, method_for, method_named
from tests.audit.methods.cases import BINS, BOTH, CLAIMS, MANY, ONE, audited, binned, lower, named, weighed


@pytest.mark.parametrize(
    ("claim", "fixed", "few"),
    [
        (PureDP(1), Game, TwoSamples),
        (ApproxDP(1, 1e-6), Game, TwoSamples),
        (ZCDP(0.5), Renyi, Renyi),
        (GaussianDP(1), Gaussian, Gaussian),
        (ApproxDP(0, 0.1), Variation, Variation),
    ],
)
def test_the_promise_says_how_it_is_measured(claim, fixed, few):
    assert method_for(claim, 3, 0.9) == fixed(claim, 3, 0.9)
    assert type(method_for(claim, 1, 0.9, fewest=149)) is few
    assert type(method_for(claim, 1, 0.9, fewest=150)) is fixed
    for method in (fixed, Bets, few, OneRun):
        assert method_named(method.bound, claim) is method
    assert fixed.coins == issubclass(fixed, Game)


def test_a_method_of_another_family_is_none():
    assert method_named(Gaussian.bound) is Gaussian
    assert method_named(Gaussian.bound, PureDP(1)) is None
    assert method_named("a theorem of mine") is None
    with pytest.raises(TypeError, match="the rule of an audit of one run is fixed before it"):
        OneRun(PureDP(1), 1, 0.95).choose((), None, None, families=(), counting=1)
    claims = (PureDP(1), ApproxDP(1, 0), ApproxDP(1, 1e-6), ZCDP(1))
    assert [OneRun(claim, 1, 0.95).share(9000) for claim in claims] == [None, None, 0.5, 0.085]
    with pytest.raises(TypeError, match="no method is registered for claims of type Nothing"):
        method_for(type("Nothing", (Claim,), {"delta_at": None, "epsilon_at": None})(), 1, 0.95)


def test_every_family_and_method_is_cited():
    for family in FAMILIES.values():
        assert method_for(family(*[0.5] * len(family.parameter_names())), 1, 0.95).sources
    assert type(method_for(type("Derived", (ZCDP,), {})(0.5), 1, 0.95)) is Renyi
    assert all(method.theorem.endswith(".") and method.sources for method in NAMED.values())


@settings(max_examples=5)  # every method is asked each time
@given(
    MANY, MANY, BINS, BINS, st.floats(0.01, 0.999), st.integers(1, 5), st.floats(0, 0.3), st.sampled_from([1.0, 4.0])
)
def test_no_counts_exceed_it(x, y, bins_x, bins_y, confidence, distance, delta, order):
    cases = [(method, claim, BOTH) for claim in (PureDP(1), ApproxDP(1, delta)) for method in (Game, TwoSamples)]
    cases += [(method, CLAIMS[method], event) for method in (Gaussian, Variation, Renyi) for event in (ONE, BOTH)]
    for method, claim, event in cases:
        part = 20 if method is TwoSamples else 1  # it is for few runs
        how, counts = method(claim, distance, confidence), named(*([n // part for n in side] for side in (x, y)))
        if event is ONE:
            counts = named((0, *x[1:]), (0, *y[1:]))
        assert lower(how, counts, event) <= how.ceiling(counts, how.basis(event)) + 1e-9
    for toward in ("x", "y"):
        event = weighed(order, toward, [-9.0, -1.0, 0.5, 7.0])  # beyond the range that is tried for any score
        counts = binned(bins_x, bins_y)
        assert lower(how, counts, event) <= how.ceiling(counts, how.basis(event)) + 1e-9


def sides(runs, kinds):
    """All counts of so many runs by so many kinds."""
    if kinds == 1:
        return [(runs,)]
    return [(first, *others) for first in range(runs + 1) for others in sides(runs - first, kinds - 1)]


@pytest.mark.parametrize("runs", [(4, 4), (2, 5)])
@pytest.mark.parametrize(
    ("method", "claim", "distance"),
    [
        *((method, claim, 1) for method in (Game, TwoSamples) for claim in (PureDP(1), ApproxDP(1, 0.1))),
        *((Game, ApproxDP(1, 0.05), 2), (TwoSamples, ApproxDP(1, 0.05), 2), (Gaussian, GaussianDP(1), 2)),
        *((Renyi, ZCDP(0.5), 1), (Renyi, ZCDP(0.5), 3)),
    ],
)
def test_of_all_counts_of_few_runs_the_best_reach_it(method, claim, distance, runs):
    how = method(claim, distance, 0.2)
    basis = how.basis(BOTH)
    found = [how.lower(named(x, y), basis) for x, y in itertools.product(*(sides(side, 3) for side in runs))]
    counts = named((1, 1, runs[0] - 2), (0, 1, runs[1] - 1))
    assert 0 < max(found) == how.lower(how.never_confused(counts, basis), basis)
    ceiling = how.ceiling(counts, basis)
    assert max(found) < ceiling if method is Renyi else max(found) == ceiling  # a score shows more than a region
    assert min(found) == 0  # negative control: others show nothing


def test_of_all_counts_of_bins_the_best_of_the_best_event_reach_it():  # 150 counts, each five times
    how, found, most = Renyi(ZCDP(0.5), 1, 0.2), [], []
    counts = [binned(x, y) for x, y in itertools.product(sides(4, 3), sides(3, 3))]
    for order, toward, most_weight in (*itertools.product((1.0, 4.0), "xy", (0.5,)), (1.0, "y", 3.0)):
        basis = how.basis(weighed(order, toward, [-most_weight, 0.1, most_weight]))
        found.append(max(how.lower(one, basis) for one in counts))
        assert order > 1 or found[-1] == how.lower(how.never_confused(counts[0], basis), basis)
        most.append(how.ceiling(counts[0], basis))
    assert len(set(most[:4])) == 1
    assert most[0] < most[4] == found[4]  # an event with larger weights, which is not among the others tried
    assert len(set(found)) == len(found)  # other orders, and the other database, show less
    assert max(found[:4]) < most[0]


@pytest.mark.parametrize("method", CLAIMS)
def test_a_group_shares_its_loss(method):
    alone = audited((90, 5, 5), (5, 90, 5), method=method)
    group = audited((90, 5, 5), (5, 90, 5), method=method, distance=4)
    shared = 4**alone.claim.growth
    assert group.measured.budget == pytest.approx(alone.measured.budget / shared, rel=1e-9)
    assert group.ceiling == pytest.approx(alone.ceiling / shared, rel=1e-9)
    assert (alone.distance, group.distance) == (1, 4)
    assert alone.verdict == "violated" != group.verdict


@pytest.mark.parametrize("method", CLAIMS)
@pytest.mark.parametrize("share", [0.95, 0.05])
def test_every_event_has_its_share_of_the_error(method, share):
    """Several events are counted on the same runs: each has the bound of one event alone at its part of the error."""
    how, alone = method(CLAIMS[method], 1, 0.95), method(CLAIMS[method], 1, 1 - 0.05 * share)
    counts, basis = named((90, 5, 5), (5, 90, 5)), how.basis(BOTH)
    shared = how.lower(counts, {**basis, "share": share})
    assert shared == pytest.approx(alone.lower(counts, basis), rel=1e-9)
    assert shared < how.lower(counts, basis)


@pytest.mark.parametrize("method", CLAIMS)
def test_nothing_seen_shows_nothing(method):
    empty = audited((0, 0), (0, 0), method=method)
    assert (empty.measured.budget, empty.ceiling, empty.detectable) == (0, 0, math.inf)
    if method is not Renyi:
        silent = audited((0, 0, 50), (0, 0, 50), method=method)
        assert (silent.measured.budget, silent.detectable) == (0, math.inf)
        assert silent.ceiling > 2 * silent.claim.budget


@pytest.mark.parametrize("method", CLAIMS)
def test_it_lies_beyond_the_promise_and_needs_what_runs_can_show(method):
    how = method(CLAIMS[method], 1, 0.95)
    many, few = named((140, 60), (60, 140)), named((7, 3), (3, 7))
    basis = how.basis(BOTH)
    assert how.claim.budget < how.detectable(many, basis) < how.ceiling(many, basis)
    assert how.detectable(few, basis) > how.detectable(many, basis)
    beyond = min(9 * how.ceiling(few, basis), 0.99 if method is Variation else math.inf)
    assert method(how.claim.at(beyond), 1, 0.95).detectable(few, basis) == math.inf
    assert method(how.claim, 1, 0.999).detectable(many, basis) > how.detectable(many, basis)
