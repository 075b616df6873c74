import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.claims import GaussianDP, PureDP
from audit.exact import loss_distribution
from audit.measure.search import SearchResult, neighbors_of_counts, neighbors_within, search_loss
from audit.mechanism import per_run
from audit.neighbors import NeighborPair
from tests.audit.sampling.cases import PAIRS, STEP, geometric, noting
from tests.helpers import refused_like, refuses


def brute_force(kinds, most, relation):
    """All unordered pairs of neighbors, by comparing every two databases."""
    databases = [counts for counts in itertools.product(range(most + 1), repeat=kinds) if sum(counts) <= most]
    for x, y in itertools.combinations(databases, 2):
        change = np.subtract(y, x)
        if (np.abs(change).sum(), abs(change.sum())) == ((1, 1) if relation == "add_remove" else (2, 0)):
            yield frozenset((x, y))


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["add_remove", "replace_one"]))
def test_all_neighbors_are_there_each_once(kinds, most, relation):
    pairs = neighbors_within(list("abcd")[:kinds], most, relation=relation)
    found = [frozenset((tuple(pair.x.tolist()), tuple(pair.y.tolist()))) for pair in pairs]
    assert len(found) == len(set(found))
    assert set(found) == set(brute_force(kinds, most, relation))
    assert {(pair.relation, pair.distance, pair.adjacency) for pair in pairs} <= {(relation, 1, "verified")}
    sizes = [int(pair.x.sum()) for pair in pairs]
    assert sizes == sorted(sizes)
    if relation == "add_remove":
        assert all(pair.y.sum() == pair.x.sum() + 1 for pair in pairs)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("universe", [["a", "b", "c"], [[0, 1], [1, 1], [1, 0]], [1.5, 2.5, 3.5]], ids=str)
def test_databases_of_records_are_those_of_counts(universe, relation):
    counted = neighbors_within(universe, 3, relation=relation)
    listed = neighbors_within(universe, 3, relation=relation, form="records")
    assert len(counted) == len(listed) == 10 * 3
    rows = np.asarray(universe)
    for counts, records in zip(counted, listed, strict=True):
        assert records.unit == "record"
        assert records.label == counts.label
        for database, numbers in ((records.x, counts.x), (records.y, counts.y)):
            assert database.shape == (numbers.sum(), *rows.shape[1:])
            assert [sum(np.array_equal(record, row) for record in database) for row in rows] == numbers.tolist()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((["a", "a"], 1), {}, ValueError, "universe must be a list of different records"),
        (([None, "a"], 1), {}, TypeError, "universe must be numbers or text"),
        ((["a"], 0), {}, ValueError, "most must be at least 1, got 0"),
        ((["a"], 1), {"form": "rows"}, ValueError, 'form must be "counts" or "records", got \'rows\''),
        ((range(20), 20), {}, ValueError, "must have at most 100000 pairs, got 1378465288200 of 20 kinds, 20 people"),
    ],
)
def test_universes_that_cannot_be_are_refused(arguments, options, error, words):
    with refused_like(error, words):
        neighbors_within(*arguments, **options)


@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)], ids=str)
def test_the_pair_with_an_empty_cell_is_found(claim):
    pairs = [NeighborPair.add_people([9, 0, 5, 7, 8], cell) for cell in (0, 2, 1, 3, 4)]
    bare = lambda data, size, rng: np.where(data > 0, geometric(data, size, rng), 0)  # noqa: E731
    found = search_loss(bare, pairs, claim, keep=1, size=20_000, attack="threshold", confidence=1 - 1e-6, rng=1)
    assert found.verdict == found.worst.verdict == "violated"
    assert found.worst.pair == "1 person added to cell 1"
    assert (found.screened, len(found.results)) == (5, 1)


class WithLaw:
    """Tells that the first count is 1 in one of a billion runs: the exact law knows, and no run shows it."""

    def __call__(self, data, size, rng):
        return rng.integers(0, 2, size)

    def exact_loss(self, pair):
        chances = (1e-9 * (data[0] == 1) for data in (pair.x, pair.y))
        return loss_distribution(*([(1 - chance) / 2, (1 - chance) / 2, chance] for chance in chances))


def test_a_pair_with_an_impossible_output_goes_first():
    pairs = [NeighborPair.add_people([0, count], place) for place, count in ((1, 2), (1, 3), (1, 4), (0, 2))]
    found = search_loss(WithLaw(), pairs, PureDP(1.0), keep=1, size=2000, rng=1)
    assert (found.worst.pair, found.verdict) == ("1 person added to cell 0", "violated")
    assert found.worst.support == {"order": "possible on y only", "probability": pytest.approx(1e-9)}
    assert found.worst.measured.epsilon < 1
    assert found.worst.confidence == pytest.approx(0.95)


def test_the_size_of_the_family_is_said():
    found = search_loss(geometric, PAIRS, PureDP(1.0), keep=2, size=6000, event=STEP, rng=1)
    assert isinstance(found, SearchResult)
    assert str(found).startswith("6 pairs looked at, a family of 2 measured at 97.5% each, 95% together: not refuted; ")
    assert "\n" not in str(found)
    assert "measured at 97.5% each, 99.9999999% together" in str(replace(found, confidence=1 - 1e-9))
    assert [result.confidence for result in found.results] == pytest.approx([0.975, 0.975])
    assert (found.screened, found.screening, found.confidence) == (6, 1800, 0.95)
    assert [result.size for result in found.results] == [2100, 2100]
    assert found.worst.measured.epsilon == max(result.measured.epsilon for result in found.results)


def test_a_search_is_reproduced_by_its_seed():
    def search(seed):
        found = search_loss(geometric, PAIRS[:2], PureDP(1.0), keep=1, size=400, attack="entries", rng=seed)
        return [result.counts for result in found.results]

    assert search(3) == search(3)
    assert search(3) != search(4)
    root = np.random.default_rng(3)
    assert search(root) != search(root)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"pairs": []}, ValueError, "at least one pair of databases, got none"),
        ({"pairs": [PAIRS[0], ([1], [2])]}, TypeError, "pairs must be NeighborPairs, got tuple"),
        ({"pairs": [PAIRS[0], NeighborPair.move_people([1, 1], 0, 1)]}, ValueError, "the pair is replace_one"),
        ({"keep": 0}, ValueError, "keep must be at least 1, got 0"),
        ({"screen": 0.0}, ValueError, r"screen must be in \(0, 1\), got 0\.0"),
        ({"size": 500}, ValueError, "size must leave 40 runs to try each of 6 pairs, got 25 of 500"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(options, error, words):
    calls = []
    given = {"mechanism": noting(calls, geometric), "pairs": PAIRS, "claim": PureDP(1.0), "rng": 1} | options
    with refused_like(error, words):
        search_loss(given.pop("mechanism"), given.pop("pairs"), given.pop("claim"), **given)
    assert calls == []


def test_a_search_that_is_to_be_resumed_needs_a_seed(tmp_path):
    noisy = per_run(lambda data, rng: data + rng.laplace(size=data.size))
    pairs = [NeighborPair.add_people([5, 3], cell) for cell in range(2)]
    with pytest.raises(ValueError, match="a search with a store must have a seed to go on with"):
        search_loss(noisy, pairs, PureDP(1.0), size=400, store=tmp_path)
    first, second = (search_loss(noisy, pairs, PureDP(1.0), size=400, store=tmp_path, rng=1) for _ in range(2))
    assert [result.counts for result in first.results] == [result.counts for result in second.results]
    assert len(list(tmp_path.iterdir())) == 2


def test_pairs_of_counts_go_from_the_emptiest_cells_to_the_fullest():
    counts = np.array([[7, 0], [90, 3]])
    pairs = neighbors_of_counts(NeighborPair.add_people(counts, (0, 0)), 3)
    assert [pair.label for pair in pairs] == [f"1 person added to cell {cell}" for cell in ((0, 1), (0, 0), (1, 0))]
    assert all((pair.x == counts).all() and not pair.confidential for pair in pairs)
    assert len(neighbors_of_counts(pairs[0], 100)) == 4
    secret = neighbors_of_counts(NeighborPair.add_people(counts, (0, 0)).as_confidential(), 2)
    assert all(pair.confidential for pair in secret)


@given(counts=st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(any), most=st.integers(1, 30))
def test_pairs_of_counts_are_different_neighbors(counts, most):
    place = int(np.argmax(counts))
    moved = NeighborPair.move_people(counts, place, (place + 1) % len(counts))
    for first in (NeighborPair.add_people(counts, 0), moved):
        pairs = neighbors_of_counts(first, most)
        assert 1 <= len({pair.label for pair in pairs}) == len(pairs) <= most
        assert all(pair.relation == first.relation and pair.distance == 1 for pair in pairs)


def test_only_counts_of_people_have_more_pairs():
    for pair in (
        NeighborPair.add_record(np.array([[1, 2]]), np.array([3, 4]), label="a record"),
        NeighborPair.declared([1], [2], "add_remove", label="a record"),
    ):
        refuses(ValueError, "databases must be counts of people, got 'a record'", neighbors_of_counts, pair, 3)
