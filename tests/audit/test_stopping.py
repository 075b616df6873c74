"""Audits that may stop early: stages that double, what adds up over them, and what begins again."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure import stages
from audit.measure.choice import Choice, Counted, Selected
from audit.measure.loss import measure_loss
from audit.measure.stages import count_in_stages
from audit.methods.method import method_for
from audit.results.files import write_json
from audit.results.folder import read_audits
from audit.review.verify import verify_result
from tests.audit.audits import COIN, leaky, normal
from tests.audit.methods.cases import ONE

TIGHT = {
    "pure": (leaky(1.0, 0.0), PureDP(1.0)),
    "approximate": (leaky(1.0, 0.01), ApproxDP(1.0, 0.01)),
    "Gaussian": (normal, GaussianDP(1.0)),
    "zero-concentrated": (normal, ZCDP(0.5)),
}


@settings(max_examples=200)
@given(st.integers(20, 10**7), st.floats(0.001, 0.99))
def test_stages_double_and_take_all_runs(size, share):
    made = list(stages._stages(size, share))
    assert sum(map(sum, made)) == size
    sizes = [sum(stage) for stage in made]
    assert all(late == 2 * early for early, late in itertools.pairwise(sizes[:-1]))
    if len(made) > 1:
        assert 7 * sizes[-2] <= sizes[-1] < 16 * sizes[-2]
        assert min(min(stage) for stage in made) >= 99
        assert all(abs(choosing - share * (choosing + counting)) <= 0.5 for choosing, counting in made)
    assert list(stages._stages(size, 0.0)) == [(0, size)]


@settings(max_examples=100)
@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=4), st.sampled_from([1.25, 2.0]), st.booleans())
def test_looks_are_few_and_the_last_one_takes_all_runs(counted, growth, going_on):
    counted = sorted(counted) if going_on else [100 * 8**k + runs % 100 for k, runs in enumerate(counted)]
    found = stages._looks(counted, growth, going_on=going_on)
    most = 0
    for looks, upto in zip(found, itertools.accumulate(counted) if going_on else counted, strict=True):
        assert looks == sorted(set(looks))
        assert looks[-1] == upto
        assert looks[0] > most
        assert all(late <= growth * early + 2 for early, late in itertools.pairwise(looks))
        assert looks[0] <= max(1000, growth * most + 2, upto / growth + 1)
        most = upto


def ended(claim, *, size=10_000, share=0.3, rate=0.5, early_rate=0.5):
    """Where an audit ends whose event is met by chance on either database, in the last stage and before; its calls."""
    method, made = method_for(claim, 1, 0.95, early=True), []

    def choose(stage, choosing, counting):
        made.append(("choose", stage, choosing, counting))
        return Choice((Selected(ONE, expected=(70.0, 0.75)),), runs=stage)

    def count(chosen, sizes, look):
        made.append(("count", chosen.runs, look, sum(sizes)))
        met = [round(side * (rate if chosen.runs == 3 else early_rate)) for side in sizes]
        counts = {
            name: {"runs": side, "guessed_x": 0, "guessed_y": seen}
            for name, side, seen in zip("xy", sizes, met, strict=True)
        }
        return [Counted(counts)] * len(chosen.events)

    return count_in_stages(method, choose, count, size=size, share=share, coins=np.random.default_rng(1)), made


def test_guesses_at_every_event_add_up_where_one_bound_holds_for_all():
    found, made = ended(PureDP(0.01))
    counted = [call[1:] for call in made if call[0] == "count"]
    assert [call[1:] for call in made if call[0] == "choose"] == [(0, 300, 700), (1, 2700, 6300)]
    assert [look for _, look, _ in counted] == list(range(1, len(counted) + 1))
    assert (found.size, found.selection, found.runs) == (10_000, 3000, 1)
    assert sum(side["runs"] for side in found.events[0].counts.values()) == sum(runs for *_, runs in counted) == 7000
    assert found.events[0].basis == {
        "expected": [700.0, 0.75],
        "share": 0.85,
    }  # of all runs that might count, as the first stage suggests


@pytest.mark.parametrize("claim", [GaussianDP(0.01), ZCDP(0.001)])
def test_elsewhere_a_stage_counts_its_own_event_alone(claim):
    found, made = ended(claim)
    assert [call for call in made if call[0] == "count"] == [
        ("count", 0, 1, 700),
        ("count", 1, 2, 788),
        ("count", 1, 3, 787),
        ("count", 1, 4, 1575),
        ("count", 1, 5, 3150),
    ]
    assert (found.size, found.selection, found.runs) == (10_000, 3000, 1)
    assert sum(side["runs"] for side in found.events[0].counts.values()) == 6300
    assert [found.events[0].basis[name] for name in ("look", "looks", "choosing")] == [5, 5, 2700]


def test_a_registered_event_is_counted_from_beginning_to_end():
    for claim in (PureDP(0.01), GaussianDP(0.01)):
        found, made = ended(claim, share=0.0)
        assert [call for call in made if call[0] == "choose"] == [("choose", 0, 0, 10_000)]
        assert sum(side["runs"] for side in found.events[0].counts.values()) == found.size == 10_000
        assert "choosing" not in found.events[0].basis


def test_parts_that_selection_never_saw_do_not_settle_an_audit(monkeypatch):
    assert ended(PureDP(1.0), share=0.0, size=50_000)[0].size < 50_000
    monkeypatch.setattr(Choice, "unseen", lambda choice: {"unseen": 1.0})
    assert ended(PureDP(1.0), share=0.0, size=50_000)[0].size == 50_000


@pytest.mark.parametrize("kind", TIGHT)
def test_stages_make_runs_of_their_own_and_say_how_many(kind, tmp_path):
    """No output comes twice, the numbers are those of the runs, and a file is computed again from its counts."""
    mechanism, claim = TIGHT[kind]
    made = []

    def noting(data, size, rng):
        made.append(rng.bit_generator.seed_seq.spawn_key)
        return mechanism(data, size, rng)

    result = measure_loss(noting, COIN, claim.at(0.9 * claim.budget), size=20_000, stop="early", rng=3)
    runs = sum(side["runs"] for side in result.counts.values())
    assert 1000 < result.size <= 20_000
    assert result.selection + runs == result.size if kind in ("pure", "approximate") else runs < result.size
    assert result.selection in (300, 900, 6000)  # of the first stage, of two, and of all three
    stages = {key[1] for key in made if key[0] == 7}
    assert stages == set(range(len(stages)))
    assert len(stages) > 1
    write_json(tmp_path / "audit.json", result.to_dict())
    ((_, read),) = read_audits(tmp_path / "audit.json")
    again = verify_result(read)
    assert (again.measured, again.detectable) == (result.measured, result.detectable)
    same = measure_loss(mechanism, COIN, result.claim, size=20_000, stop="early", rng=3, n_jobs=2)
    assert (same.counts, same.size, same.event) == (result.counts, result.size, result.event)
