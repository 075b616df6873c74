from __future__ import annotations

import math

import numpy as np
import pytest

from audit import sampling
from audit.attacks import Attack, discovery
from audit.attacks.discovery import GivenRuns, MechanismRuns, Phase, find_statistics, halves, learn_words, scores
from audit.attacks.entries import LIKELIHOOD_RATIO, changed_cells
from audit.attacks.paths import path_statistics
from audit.attacks.words import Categories
from audit.claims import ZCDP, GaussianDP, PureDP
from audit.events import LARGEST, cell
from audit.loss import measure_loss
from audit.mechanism import per_run
from audit.neighbors import NeighborPair

SEED = np.random.SeedSequence(2021)
PAIR = NeighborPair.add_people([30, 40, 50], cell=1)
UNKNOWN = NeighborPair.declared("x", "y", "add_remove")
TREE = [-1, 0, 0, 0]


def noisy(data, size, rng):
    return data + rng.laplace(size=(size, *np.shape(data)))


def whole(outputs):
    return outputs


def names(statistics):
    return [statistic.name for statistic in statistics]


def runs_of(mechanism=noisy, pair=PAIR, shape=(3,), *, root=SEED, told=None):
    return MechanismRuns(mechanism, pair, shape, root, 1, (told if told is not None else []).append)


def given(x, y, pair=PAIR):
    return GivenRuns((np.asarray(x), np.asarray(y)), pair, SEED)


def joined(parts):
    return [np.concatenate(list(part)) for part in parts]


# Where outputs come from


def test_phases_are_distinct():
    numbers = [int(phase) for phase in Phase]
    assert len(set(numbers)) == len(Phase) == 7


def test_runs_of_every_phase_and_side_are_fresh():
    told = []
    runs = runs_of(lambda data, size, rng: rng.random(size), shape=(), told=told)
    keys = [(Phase.EXPLORE,), (Phase.EXPLORE, 2), (Phase.LEARN,), (Phase.SELECT,), (Phase.COUNT,), (Phase.COUNT, 1)]
    drawn = [part for key in keys for part in joined(runs.reduced((40, 30), whole, *key))]
    assert [len(part) for part in drawn] == [40, 30] * len(keys)
    assert len(np.unique(np.concatenate(drawn))) == 70 * len(keys)
    assert sum(told) == 70 * len(keys)
    again = joined(runs_of(lambda data, size, rng: rng.random(size), shape=()).reduced((40, 30), whole, *keys[3]))
    for one, other in zip(again, drawn[6:8], strict=True):
        np.testing.assert_array_equal(one, other)
    other = joined(runs_of(runs.mechanism, shape=(), root=np.random.SeedSequence(1)).reduced((40, 30), whole, *keys[3]))
    assert not np.isin(other[0], drawn[6]).any()


def test_runs_are_of_either_database_and_reduced():
    on_x, on_y = joined(
        runs_of(lambda data, size, rng: np.tile(data, (size, 1))).reduced((3, 2), lambda o: o.sum(axis=1), Phase.COUNT)
    )
    assert on_x.tolist() == [120] * 3
    assert on_y.tolist() == [121] * 2
    assert [list(part) for part in runs_of().reduced((0, 0), whole, Phase.COUNT)] == [[], []]


def test_given_outputs_are_used_once_and_in_order():
    x, y = np.arange(20), np.arange(100, 130)
    runs = given(x, y)
    assert (runs.shape, runs.left) == ((), [20, 30])
    first = joined(runs.reduced((5, 7), whole, Phase.EXPLORE))
    assert runs.left == [15, 23]
    second = [list(part) for part in runs.reduced((0, 3), whole, Phase.EXPLORE)]  # whatever the phase
    assert second[0] == []
    third = joined(runs.reduced((15, 20), whole, Phase.COUNT))
    assert runs.left == [0, 0]
    assert [first[0].tolist() + third[0].tolist(), first[1].tolist() + second[1][0].tolist() + third[1].tolist()] == [
        x.tolist(),
        y.tolist(),
    ]


def test_outputs_that_are_numbered_stay_used():
    runs = given([["a"], ["b"], ["c"]], [["c"], ["c"], ["d"]])
    joined(runs.reduced((1, 2), whole))
    numbered = runs.numbered(Categories(("a", "b", "c")))
    assert numbered.left == [2, 1]
    on_x, on_y = joined(numbered.reduced((2, 1), whole))
    assert (on_x.tolist(), on_y.tolist()) == ([[1], [2]], [[-1]])
    assert runs.left == numbered.left == [0, 0]


def test_words_of_a_mechanism_are_numbered_before_anything_sees_them():
    runs = runs_of(lambda data, size, rng: np.array(["b", "?"])[np.arange(size) % 2], shape=())
    numbered = runs.numbered(Categories(("a", "b")))
    assert runs.categories is None
    assert [part.tolist() for part in joined(numbered.reduced((3, 1), whole, Phase.COUNT))] == [[1, -1, 1], [1]]


@pytest.mark.parametrize("runs", [0, 1, 2, 7, 100])
def test_halves_are_equal_or_nearly(runs):
    first, second = halves(runs)
    assert first + second == runs
    assert 0 <= first - second <= 1


def test_scores_are_one_column_a_statistic():
    statistics = (cell(2), cell(0))
    on_x, on_y = scores(given([[1, 2, 3]], [[4, 5, 6], [7, 8, 9]]), (1, 2), statistics)
    assert (on_x.tolist(), on_y.tolist()) == ([[3, 1]], [[6, 4], [9, 7]])
    nothing = scores(given(np.zeros((1, 3)), np.zeros((1, 3))), (0, 0), statistics)
    assert [part.shape for part in nothing] == [(0, 2), (0, 2)]


def test_scores_of_many_blocks_are_put_together(monkeypatch):
    monkeypatch.setattr(sampling, "CELLS", 12)
    on_x, on_y = scores(runs_of(), (21, 9), (cell(1), cell(2)), Phase.SELECT)
    assert (on_x.shape, on_y.shape) == ((21, 2), (9, 2))
    np.testing.assert_allclose(on_x.mean(axis=0), [40, 50], atol=2)


# What is found worth looking at


def test_statistics_of_ones_own_are_all_that_is_looked_at():
    told, own = [], (cell(0),)
    found, spent = find_statistics(runs_of(told=told), Attack(own), 10_000)
    assert found is own
    assert spent == sum(told) == 0


@pytest.mark.parametrize("choosing", [8, 9, 100, 2999])
def test_entries_that_the_pair_changes_are_looked_at_after_a_glance_at_the_others(choosing):
    told = []
    found, spent = find_statistics(runs_of(told=told), Attack.named("entries"), choosing)
    looked_at = names(changed_cells(PAIR, (3,)))
    assert looked_at == ["output[1]", "distance of output[1] from 40.5", "sum of output"]
    assert names(found)[:3] == looked_at
    assert len(found) == 3 or choosing < 100  # a mean of two runs may seem to move
    assert spent == max(4, choosing // 10)
    assert sum(told) == spent + 1  # one output more says what sums are about


def test_entries_that_move_although_the_pair_leaves_them_alone_are_found():
    def leak(data, size, rng):
        outputs = noisy(data, size, rng)
        outputs[:, 0] += data[1]  # by 1 from x to y
        return outputs

    found, _ = find_statistics(runs_of(leak), Attack.named("entries"), 20_000)
    # 16 standard errors of 1,000 runs on either database; the third entry passes 5 with probability 6e-7.
    assert names(found) == [*names(changed_cells(PAIR, (3,))), "output[0]"]


def test_where_the_pair_does_not_tell_more_runs_find_what_moves():
    told = []
    runs = runs_of(
        lambda data, size, rng: rng.laplace([0, 0, data == "y", 0], size=(size, 4)), UNKNOWN, (4,), told=told
    )
    found, spent = find_statistics(runs, Attack.named("entries"), 3000)
    assert spent == 1000
    assert sum(told) == spent + 1
    # 11 standard errors; another entry passes 5 with probability 2e-6.
    assert names(found)[0] == "output[2]"
    assert names(found)[1].startswith("distance of output[2] from 0.")
    assert len(found) == 2


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_an_output_that_is_one_number_costs_no_runs(shape):
    runs = runs_of(lambda data, size, rng: rng.random((size, *shape)), UNKNOWN, shape)
    found, spent = find_statistics(runs, Attack(), 10_000)
    assert names(found) == [cell(*(0,) * len(shape)).name]
    assert spent == 0


def test_classifiers_are_taught_where_there_are_runs_enough():
    told = []
    found, spent = find_statistics(runs_of(told=told), Attack.named("trained"), 3000)
    assert names(found) == ["logistic regression on 3 entries", "gradient boosting on 3 entries"]
    assert spent == 300 + 1000
    assert sum(told) == spent + 1
    everything, _ = find_statistics(runs_of(), Attack(), 3000)
    assert names(everything) == names(changed_cells(PAIR, (3,))) + names(found)
    few, spent = find_statistics(runs_of(), Attack(), 1199)  # a third is below 400
    assert names(few) == names(changed_cells(PAIR, (3,)))
    assert spent == 119


def test_lessons_are_no_longer_than_they_need_be(monkeypatch):
    monkeypatch.setattr(discovery, "MOST_TO_LEARN", 500)
    _, spent = find_statistics(runs_of(), Attack.named("trained"), 3000)
    assert spent == 300 + 500


def test_a_classifier_learns_the_same_from_the_same_seed_and_tells_databases_apart():
    found, again = (find_statistics(runs_of(), Attack.named("trained"), 3000)[0] for _ in range(2))
    outputs = noisy(PAIR.x, 100, np.random.default_rng(1))
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one(outputs), other(outputs))
        on_x, on_y = scores(runs_of(), (2000, 2000), [one], Phase.SELECT)
        assert on_y.mean() - on_x.mean() > 0.3  # the loss is 1: scores move by 0.6 or so, with error below 0.03


class Known:
    """A mechanism that tells its likelihood, or its tree."""

    def __call__(self, data, size, rng):
        return noisy(data, size, rng)

    def log_likelihood(self, outputs, data):
        return -np.abs(outputs - data).sum(axis=1)


class Tree(Known):
    areas = (TREE, [1, 2, 3], [1, 2, 3])


def test_a_likelihood_makes_classifiers_needless():
    found, _ = find_statistics(runs_of(Known()), Attack(), 3000, Known())
    assert names(found) == [LIKELIHOOD_RATIO, *names(changed_cells(PAIR, (3,)))]
    assert found[0](np.array([PAIR.x, PAIR.y])).tolist() == [-1, 1]
    alone, spent = find_statistics(runs_of(Known()), Attack.named("likelihood_ratio"), 3000, Known())
    assert names(alone) == [LIKELIHOOD_RATIO]
    assert spent == 0


def test_a_tree_is_looked_at_along_its_paths():
    paths = names(path_statistics(PAIR, TREE, [1, 2, 3]))
    found, spent = find_statistics(runs_of(Tree()), Attack.named("paths"), 3000, Tree())
    assert (names(found), spent) == (paths, 0)
    everything, _ = find_statistics(runs_of(Tree()), Attack(), 3000, Tree())
    assert names(everything) == [LIKELIHOOD_RATIO, *paths, *names(changed_cells(PAIR, (3,)))]


@pytest.mark.parametrize("silent", [None, noisy])
@pytest.mark.parametrize(
    ("name", "look"), [("likelihood_ratio", "likelihood ratio"), ("paths", "paths"), ("trained", "trained")]
)
def test_an_attack_that_finds_nothing_is_refused(name, look, silent):
    words = rf"an attack must find something to look at: {look} of outputs of shape \(3,\) gives nothing"
    with pytest.raises(ValueError, match=f"^{words}$"):
        find_statistics(runs_of(), Attack.named(name), 8, silent)
    with pytest.raises(ValueError, match="likelihood ratio, trained of outputs of shape"):
        find_statistics(runs_of(), Attack(looks=("likelihood ratio", "trained")), 8, silent)


def test_given_outputs_are_searched_like_fresh_ones():
    rng = np.random.default_rng(3)
    x, y = rng.laplace(size=(2, 2000, 4))
    y[:, 3] += 1
    runs = given(x, y, UNKNOWN)
    found, spent = find_statistics(runs, Attack(), 3000)
    assert names(found)[0] == "output[3]"
    assert names(found)[-2:] == ["logistic regression on 4 entries", "gradient boosting on 4 entries"]
    assert spent == 2000
    assert runs.left == [999, 1000]  # and one that says what sums are about


# Words


def test_words_are_learned_from_a_tenth_of_the_runs():
    def poll(data, size, rng):
        return rng.choice(["no", "yes", f"only {data[1]}"], size)

    told = []
    categories, spent = learn_words(runs_of(poll, shape=(), told=told), 1000)
    assert categories.words == ("no", "only 40", "only 41", "yes")
    assert spent == sum(told) == 100
    assert learn_words(runs_of(poll, shape=()), 8)[1] == 2
    words, spent = learn_words(given([["a", "b"]] * 50, [["b", "c"]] * 50), 100)
    assert (words.words, spent) == (("a", "b", "c"), 10)


def test_no_more_words_are_learned_than_memory_holds(monkeypatch):
    monkeypatch.setattr(discovery, "CELLS", 600)
    _, spent = learn_words(runs_of(lambda data, size, rng: rng.choice(["a", "b"], (size, 30)), shape=(30,)), 10_000)
    assert spent == 20


@pytest.mark.parametrize("cells", [10, 40])
def test_blocks_of_the_same_few_words_are_no_sign_of_a_shared_stream(cells, monkeypatch):
    monkeypatch.setattr(sampling, "CELLS", 20 * cells)
    letters = np.array(list("abcdefghijklmnopqrst"))
    runs = runs_of(lambda data, size, rng: rng.choice(letters, (size, cells)), shape=(cells,))
    assert learn_words(runs, 1000)[0].words == tuple(letters.tolist())  # each block holds all 20


def many_words(data, size, rng):
    """One of a million words; on `y` now and then the last in the alphabet."""
    words = np.char.add("w", rng.integers(0, 10**6, size).astype(str))
    return np.where((rng.random(size) < 0.02) & (data[1] == 41), "zebra", words)


def test_a_word_that_gives_one_database_away_is_found_among_a_million():
    result = measure_loss(many_words, PAIR, PureDP(1), size=60_000, rng=1)
    assert result.verdict == "violated"
    # Learned from 1,800 runs; of 21,000 on y 420 are zebras, which shows logit(0.05 ** (1 / 420)) = 4.9.
    assert result.measured.epsilon > 4
    assert "'zebra'" in result.event


@pytest.mark.parametrize("size", [27, 40])
def test_words_of_few_runs_are_audited(size):
    result = measure_loss(lambda data, n, rng: rng.choice(["a", "b"], (n, 2)), PAIR, PureDP(1), size=size, rng=1)
    assert result.verdict == "no power"


# Exceptions: whoever sees a release sees that it failed


def failing(rate, give=noisy):
    """Each run fails at a rate that depends on the database, and a batch wherever one of its runs does."""

    def mechanism(data, size, rng):
        if (rng.random(size) < rate(data)).any():
            raise ArithmeticError("a count is too large")
        return give(data, size, rng)

    return mechanism


def vote(data, size, rng):
    return rng.choice(["no", "yes"], size)


def only(side, rate):
    return lambda data: rate * (data[1] == (40 if side == "x" else 41))


@pytest.mark.parametrize("side", ["x", "y"])
@pytest.mark.parametrize(("give", "words"), [(noisy, "-inf"), (vote, "'(raised an exception)'")])
def test_a_mechanism_that_always_fails_on_one_database_is_told_by_it(side, give, words):
    result = measure_loss(failing(only(side, 1.0), give), PAIR, PureDP(1), attack="entries", size=4000, rng=1)
    assert result.verdict == "violated"
    assert result.measured.epsilon > 0.99 * result.ceiling  # every guess is right
    assert f"{side} if output" in result.event
    assert words in result.event


@pytest.mark.parametrize("side", ["x", "y"])
@pytest.mark.parametrize(("give", "words"), [(noisy, "-inf"), (vote, "'(raised an exception)'")])
def test_a_mechanism_that_now_and_then_fails_on_one_database_is_told_by_it(side, give, words):
    result = measure_loss(failing(only(side, 0.1), give), PAIR, PureDP(1), attack="entries", size=20_000, rng=1)
    assert result.verdict == "violated"
    # About 700 runs fail, all on one side: logit(0.05 ** (1 / 700)) = 5.5, and 5.6 of 800. A rule may guess a little
    # more than that, and be wrong once or twice.
    assert 4.8 < result.measured.epsilon < 5.6
    assert f"{side} if output" in result.event
    assert words in result.event
    assert result.counts[side][f"guessed_{side}"] == pytest.approx(700, abs=100)


@pytest.mark.parametrize("attack", ["auto", "trained"])
def test_exceptions_on_both_databases_are_no_evidence(attack):
    pair = NeighborPair.move_people([30, 40, 50], 0, 2)
    result = measure_loss(
        failing(lambda data: 0.3), pair, PureDP(2, relation="replace_one"), attack=attack, size=10_000, rng=2
    )
    assert result.verdict != "violated"  # false alarm 0.05, and the seed is fixed
    assert 0.9 < result.measured.epsilon <= 2  # what the noise loses is found all the same


@pytest.mark.parametrize("block", [1, 8])
def test_rates_of_failing_keep_their_ratio(block, monkeypatch):
    """A sound mechanism, which fails at rates of ratio exp(1): not accused, whatever runs make up a block."""
    monkeypatch.setattr(sampling, "CELLS", 3 * block)
    mechanism = failing(lambda data: 0.05 * math.e ** (data[1] - 40), lambda data, size, rng: rng.random((size, 3)))
    on_x, on_y = scores(runs_of(mechanism), (3000, 3000), [cell(0)], Phase.COUNT)
    failed = [np.sum(part == -LARGEST) for part in (on_x, on_y)]
    # 150 and 408 are expected: the log-ratio has standard error sqrt(1 / 150 + 1 / 408) = 0.096 and passes 1.5 with
    # probability 1e-7. It would be 2 and 1.7 if failed batches were free to succeed when they run again.
    assert math.log(failed[1] / failed[0]) < 1.5


@pytest.mark.parametrize("claim", [ZCDP(0.5), GaussianDP(1.0)])
def test_failures_are_evidence_for_every_promise(claim):
    result = measure_loss(failing(only("y", 0.4)), PAIR, claim, attack="entries", size=20_000, rng=3)
    assert result.verdict == "violated"


def test_exhausted_memory_is_no_output_of_an_audit():
    def mechanism(data, size, rng):
        if data[1] == 41:
            raise MemoryError
        return noisy(data, size, rng)

    with pytest.raises(MemoryError):
        measure_loss(mechanism, PAIR, PureDP(1), size=1000, rng=1)


def test_a_mechanism_that_always_fails_is_in_error():
    def mechanism(data, rng):
        raise ArithmeticError("a count is too large")

    with pytest.raises(ArithmeticError, match="a count is too large"):
        measure_loss(per_run(mechanism), PAIR, PureDP(1), size=1000, rng=1)
