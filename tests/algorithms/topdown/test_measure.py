"""Noisy measurements: their law, what neighbors lose by them, and that nothing else leaves the truth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.noise import TwoTailedGeometric
from algorithms.noise.losses import loss_of_changes
from algorithms.schema import Schema
from algorithms.topdown import TopDown
from algorithms.topdown.budget import Budget
from algorithms.topdown.estimation.constraints import Invariant
from algorithms.topdown.estimation.family import answer
from algorithms.topdown.measure import Measurements
from audit.claims import ZCDP, PureDP
from audit.neighbors import NeighborPair

TREE = Hierarchy.regular(2, 2)
SCHEMA = Schema({"sex": ("female", "male"), "age": ("minor", "adult")})
HISTOGRAM = np.array([[9, 4, 0, 7], [3, 3, 3, 3], [0, 0, 0, 5], [20, 1, 2, 0]])
QUERIES = [{"detailed": 1}, {"total": "1/4", "sex": "3/4"}, {"sex": "1/2", "detailed": "1/2"}]


def release(promise: PureDP | ZCDP, **options: object) -> TopDown:
    return TopDown(SCHEMA, TREE, Budget(promise, ["1/4", "1/4", "1/2"], QUERIES), **options)


def moved(source: tuple[int, int], target: tuple[int, int]) -> NeighborPair:
    return NeighborPair.move_people(HISTOGRAM, source, target)


def test_noise_has_the_law_of_its_share_and_is_added(scripted: list) -> None:
    topdown = release(PureDP(4.0, "replace_one"))
    result = topdown.measure(HISTOGRAM, np.random.default_rng(1), size=3)
    assert [epsilon for epsilon, _ in scripted] == pytest.approx([0.5, 0.125, 0.375, 0.5, 0.5], rel=1e-15)
    tables = topdown.tables(HISTOGRAM)
    for ((level, name), noisy), (epsilon, noise) in zip(result.noisy.items(), scripted, strict=True):
        exact = answer(SCHEMA.query(name).groups, tables[TREE.level(level)])
        assert np.array_equal(noisy.answers, exact + noise)
        assert noisy.variance == pytest.approx(TwoTailedGeometric(epsilon).variance, rel=1e-12)


def test_one_run_has_no_leading_axis() -> None:
    topdown = release(ZCDP(0.5, "replace_one"))
    one = topdown.measure(HISTOGRAM, np.random.default_rng(1))
    assert {key: result.answers.shape for key, result in one.noisy.items()} == {
        (0, "detailed"): (1, 4), (1, "total"): (2, 1), (1, "sex"): (2, 2), (2, "sex"): (4, 2), (2, "detailed"): (4, 4),
    }  # fmt: skip
    many = topdown.measure(HISTOGRAM, np.random.default_rng(1), size=1)
    assert all(np.array_equal(many.noisy[key].answers[0], one.noisy[key].answers) for key in one.noisy)


def test_loss_of_a_pair_is_that_of_its_changed_answers() -> None:
    """One person moves from leaf 0 to leaf 3 and changes sex: every query but the total changes twice."""
    topdown = release(PureDP(2.0, "replace_one"))
    stage = topdown.stage("measurements")
    law = stage.exact_loss(moved((0, 0), (3, 2)))
    shares = (0.25, 0.0625, 0.1875, 0.25, 0.25)  # of the queries, each for two answers, with half of it * 2
    expected = loss_of_changes((TwoTailedGeometric(share), np.array([1, -1])) for share in shares)
    assert expected is not None
    for epsilon in (0.1, 0.5, 1.0, 1.5):
        assert law.delta_at(epsilon) == pytest.approx(expected.delta_at(epsilon), abs=1e-9)
    assert law.supremum == pytest.approx(2.0, rel=1e-9)
    assert stage.claim == PureDP(2.0, "replace_one")


@pytest.mark.parametrize(
    ("only", "share"),
    [([(0, "detailed")], 0.25), ([(1, "sex")], 0.1875), ([(1, "total"), (2, "sex")], 0.3125), (None, 1.0)],
)
def test_claims_of_single_queries_are_their_shares(only: list | None, share: float) -> None:
    assert release(PureDP(2.0, "replace_one")).stage("measurements", only=only).claim.epsilon == 2 * share
    assert release(ZCDP(2.0, "replace_one")).stage("measurements", only=only).claim.rho == 2 * share


def test_a_gaussian_pair_spends_its_rho() -> None:
    """Renyi divergence of order a is nearly a rho for wide noise; tables of several answers are bounds on a grid."""
    stage = release(ZCDP(0.02, "replace_one")).stage("measurements")
    law = stage.exact_loss(moved((0, 0), (3, 2)))
    assert law.renyi(2.0) / 2 == pytest.approx(0.02, rel=1e-3)
    assert law.renyi(8.0) / 8 == pytest.approx(0.02, rel=1e-3)


def test_likelihood_is_that_of_every_answer() -> None:
    topdown = release(PureDP(2.0, "replace_one"))
    stage = topdown.stage("measurements")
    outputs = stage(HISTOGRAM, 5, np.random.default_rng(5))
    assert outputs.shape == (5, 4 + 2 + 4 + 8 + 16)
    pair = moved((0, 0), (3, 2))
    loss = stage.log_likelihood(outputs, pair.x) - stage.log_likelihood(outputs, pair.y)
    assert np.abs(loss).max() <= 2.0 + 1e-9
    law = stage.exact_loss(pair)
    assert set(np.round(loss, 9)) <= set(np.round(law.loss, 9))
    with pytest.raises(ValueError, match="one column for each of 34 answers, got shape \\(5, 33\\)"):
        stage.log_likelihood(outputs[:, 1:], pair.x)


def test_pairs_that_break_an_invariant_are_refused() -> None:
    topdown = release(PureDP(1.0, "replace_one"), invariants=[Invariant("total", 1)])
    inside, across = moved((0, 0), (1, 1)), moved((0, 0), (3, 1))
    for mechanism in (topdown, topdown.stage("measurements"), topdown.stage("rounded")):
        mechanism.exact_loss(inside)
        with pytest.raises(ValueError, match=r"total of level 1 .* is 32 and 31: such a pair is not covered"):
            mechanism.exact_loss(across)
    added = NeighborPair.add_people(HISTOGRAM, (0, 0))
    with pytest.raises(ValueError, match=r"total of level 0 .* is 60 and 61: such a pair is not covered"):
        release(PureDP(1.0), invariants=[Invariant("total", 0)]).exact_loss(added)


class Leaky(TopDown):
    """A plan that remembers the truth, and publishes it."""

    def measure(self, histogram: Any, rng: Any, **options: Any) -> Measurements:
        object.__setattr__(self, "truth", self.tables(np.asarray(histogram)))
        return super().measure(histogram, rng, **options)

    def estimate(self, measurements: Measurements) -> Any:
        result = super().estimate(measurements)
        return replace(result, tables=getattr(self, "truth", result.tables))


@pytest.mark.parametrize("solver", ["piqp", "batched"])
@pytest.mark.parametrize("kind", [TopDown, Leaky])
def test_the_tables_depend_on_the_measurements_alone(solver: str, kind: type[TopDown]) -> None:
    """Same measurements, other truth or none, same tables; a plan that remembers the truth is the negative control."""
    budget = Budget(PureDP(1.0, "replace_one"), ["1/4", "1/4", "1/2"], QUERIES)
    options: dict[str, Any] = {"invariants": [Invariant("total", 0)], "solver": solver, "minimal": "total"}
    topdown, fresh, elsewhere = (kind(SCHEMA, TREE, budget, **options) for _ in range(3))
    others = np.full((4, 4), 3)
    others[0, 0] += HISTOGRAM.sum() - others.sum()
    plans = (topdown, HISTOGRAM), (elsewhere, others)
    ours, theirs = (plan.measure(data, np.random.default_rng(3)) for plan, data in plans)
    assert set(vars(ours)) == {"noisy", "known"}
    assert {name: totals.tolist() for name, totals in ours.known.items()} == {"total of level 0 (invariant)": [[60]]}
    result, *again = (plan.estimate(ours) for plan in (topdown, fresh, elsewhere))
    topdown.measure(others, np.random.default_rng(4))
    again.append(topdown.estimate(ours))
    same = [np.array_equal(result.tables, each.tables) and np.array_equal(result.real, each.real) for each in again]
    assert same == [kind is TopDown] * 3
    assert not np.array_equal(fresh.estimate(theirs).tables, again[0].tables)  # of other measurements


def test_measurements_of_another_plan_are_refused() -> None:
    topdown = release(PureDP(1.0, "replace_one"), invariants=[Invariant("total", 0)])
    result = topdown.measure(HISTOGRAM, np.random.default_rng(3))
    narrow = {key: replace(one, answers=one.answers[..., :1]) for key, one in result.noisy.items()}
    runs = {key: replace(one, answers=np.array([one.answers] * (1 + key[0]))) for key, one in result.noisy.items()}
    shape = "must have 1 areas by 4 answers of detailed at level 0, got"
    for change, words in (
        ({"noisy": {}}, f"{shape} None"),
        ({"known": {}}, "answers of every invariant, and not of total of level 0"),
        ({"noisy": narrow}, rf"{shape} \(1, 1\)"),
        ({"noisy": runs}, r"must all have the same runs, got \[\(1,\), \(2,\), \(3,\)\]"),
    ):
        with pytest.raises(ValueError, match=words):
            topdown.estimate(replace(result, **change))
