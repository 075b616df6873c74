"""Losses of replayed queries: those of the mechanisms, added up, and held against promises."""

import math

import numpy as np
import pytest

from algorithms.bottom_up import BottomUp
from algorithms.flaxman import GDPC
from algorithms.flaxman.gaussian import GaussianCounts
from algorithms.noise import Gaussian, Laplace, TwoTailedGeometric, add_noise
from algorithms.ons.independent import IndependentNoise
from algorithms.ons.tables import Table
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.neighbors import NeighborPair
from audit.replay import replay
from tests.audit.replay.cases import ADDED, MOVED, PEOPLE, RECORDS, SCHEMA, TREE, kinds, nist, ons, sum_of, topdown

FREQUENCIES = [Table(0, "sex"), Table(2, "total")]


ADDITIVE = {
    "gdpc": (GDPC(0.7), NeighborPair.add_people([50, 3, 7], 1, people=3)),
    "gaussian counts": (GaussianCounts(0.3), NeighborPair.add_people([50, 3, 7], 1, people=2)),
    "bottom-up, inverse": (BottomUp(0.7, TREE, noise="inverse_cdf"), NeighborPair.add_people(PEOPLE, (3, 1))),
    "nist, geometric": (nist(law="geometric").stage("measurements"), RECORDS),
    "topdown, concentrated": (topdown(promise=ZCDP(0.5, "replace_one")).stage("measurements"), MOVED),
    "ons, levels": (ons().stage("measurements"), NeighborPair.add_people(PEOPLE, (3, 1))),
} | {
    f"ons, {law}, {'rounded' if rounded else 'not rounded'}": (
        IndependentNoise(
            TREE, SCHEMA, 1.0, FREQUENCIES, law=law, delta=0.01 if law == "gaussian" else 0.0, rounded=rounded
        ),
        NeighborPair.add_people(PEOPLE, (3, 1)),
    )
    for law, rounded in (("laplace", True), ("laplace", False), ("gaussian", True))
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "topdown, concentrated" else name for name in ADDITIVE],
)
def test_the_exact_loss_is_that_of_the_mechanism(name):
    mechanism, pair = ADDITIVE[name]
    found, expected = replay(mechanism, pair), mechanism.exact_loss(pair)
    law = found.exact_loss
    assert found.verdict == ("violated" if name == "bottom-up, inverse" else "not refuted")
    assert law.maximum == pytest.approx(expected.maximum, rel=1e-12)
    for delta in (0.1, 1e-6):
        for one, other in ((law, expected), (law.reverse(), expected.reverse())):
            assert one.epsilon_at(delta) == pytest.approx(other.epsilon_at(delta), rel=1e-9, abs=1e-9)
    assert law.renyi(2) == pytest.approx(expected.renyi(2), rel=1e-9)
    assert expected.epsilon_at(1e-3) > 0


def test_losses_of_queries_add_up():
    found = replay(topdown(promise=ZCDP(0.5, "replace_one")), MOVED)
    assert math.fsum(query.rho for query in found.queries) == pytest.approx(0.5, rel=1e-9)
    first = found.queries[0]
    assert first.exact_loss.renyi(2) == pytest.approx(2 * first.rho, rel=1e-9)
    assert first.epsilon == math.inf


@pytest.mark.parametrize(
    ("law", "claim", "kept"),
    [
        (Gaussian(1.0), PureDP(50.0), False),
        (Gaussian(1.0), ZCDP(0.5), True),
        (Gaussian(1.0), ZCDP(0.499), False),
        (Laplace(1.0), ZCDP(1e-3), True),  # its table bounds this loss from above: it is not held against anyone
        (Laplace(1.0), PureDP(0.99), False),
        (Gaussian(1.0), ApproxDP(1.0, GaussianDP(1.0).delta_at(1.0) * 1.0001), True),
        (Gaussian(1.0), ApproxDP(1.0, GaussianDP(1.0).delta_at(1.0) / 1.01), False),
    ],
)
def test_the_loss_of_one_query_is_held_against_every_kind_of_promise(law, claim, kept):
    found = replay(sum_of(law), ADDED, claim)
    assert kinds(found) == ([] if kept else ["loss"])


@pytest.mark.parametrize(("number", "kept"), [(4, True), (5, False)])
@pytest.mark.parametrize(("law", "claim"), [(Gaussian(2.0), ZCDP(0.5)), (TwoTailedGeometric(0.5), ApproxDP(1, 0.181))])
def test_the_losses_of_several_queries_add_up(law, claim, number, kept):
    def several(data, size, rng):
        return [add_noise(data.sum(), law, size, rng, query=f"q{place}") for place in range(number)]

    assert kinds(replay(several, ADDED, claim)) == ([] if kept else ["loss"])


@pytest.mark.parametrize("claim", [PureDP(1.0), ZCDP(1.0), GaussianDP(1.0), ApproxDP(1.0, 0.1)])
def test_what_no_noise_hides_breaks_every_promise(claim):
    found = replay(sum_of(Gaussian(1e6), of=lambda data: math.nan if data[0] > 50 else 0.0), ADDED, claim)
    assert kinds(found) == ["nan", "loss"]


def test_losses_beyond_all_floats_leave_the_others():
    def several(data, size, rng):
        laws = (TwoTailedGeometric(1.0), Gaussian(1e-149), Gaussian(1e-148))
        return [add_noise(data.sum(), law, size, rng, query=str(law)) for law in laws]

    found = replay(several, ADDED, ApproxDP(0.5, 0.1))
    assert kinds(found) == ["loss"]
    assert found.exact_loss is None or found.exact_loss.maximum == math.inf


def test_groups_may_change_more_and_are_promised_less():
    three = NeighborPair.add_people([50, 3, 7], 0, people=3)
    found = replay(GDPC(1.0), three)
    assert (found.verdict, found.claim, found.queries[0].l1_change) == ("not refuted", PureDP(3.0), 3.0)
    half = replay(sum_of(TwoTailedGeometric(1.0), sensitivity=0.5), three)
    assert str(half.violations[0]) == "sensitivity: 'sum' changes by 3 in L1, and 0.5 is declared for each of 3 steps"


def test_sensitivities_are_those_of_the_mechanisms_own_neighbors():
    pair = NeighborPair.move_people([50, 3, 7], 0, 1)
    found = replay(GDPC(1.0), pair, PureDP(1.0).under("replace_one"))
    assert (found.verdict, found.queries[0].l1_change) == ("not refuted", 2.0)
    assert replay(GDPC(1.0), pair.under("add_remove")).verdict == "not refuted"
    assert kinds(replay(GDPC(1.0), pair, PureDP(1.0, "replace_one"))) == ["loss"]
    added = replay(topdown(), NeighborPair.add_people(PEOPLE, (0, 0)), PureDP(1.0))
    assert (added.verdict, added.queries[0].l1_change) == ("not refuted", 1.0)  # of whom a replacement says nothing


def test_a_mechanism_that_promises_nothing():
    endless = ons(perturb_zeros=False).stage("measurements")
    pair = NeighborPair.add_people(np.where(PEOPLE == 10, 0, PEOPLE), (0, 0))
    found = replay(endless, pair)
    assert found.claim is None
    assert kinds(found) == ["output"]
