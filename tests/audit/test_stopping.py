"""Audits that may stop early: every run counts, teaches the next rule, and may be the last."""

import math
from dataclasses import replace

import numpy as np
import pytest

from audit.bounds.betting import Bet
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.events import Event, Statistic, ThresholdRule, WeightRule, cell
from audit.measure import betting
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.methods.betting import Bets, block_size
from audit.results.files import write_json
from audit.results.folder import read_audits
from audit.review.verify import verify_result
from tests.audit.audits import COIN, TIGHT, leaky, normal
from tests.helpers import in_full, refused_like

PURE = leaky(1.0, 0.0), PureDP(1.0)


def early(mechanism, claim, **options):
    return measure_loss(mechanism, COIN, claim, **{"stop": "early", "rng": 3} | options)


def test_blocks_grow_by_a_quarter_and_take_all_runs():
    made, sizes = 12, []
    while made < 1000:
        sizes.append(block_size(made, 1000))
        made += sizes[-1]
    assert made == 1000
    assert sizes[:6] == [8, 8, 8, 9, 11, 14]
    assert max(late / sum(sizes[: place + 1], 12) for place, late in enumerate(sizes[3:], 2)) < 0.26


@pytest.mark.parametrize("kind", TIGHT)  # two audits and a file
def test_size_is_every_call_of_the_mechanism_and_a_file_is_computed_again(kind, tmp_path):
    """No output comes twice; the result does not depend on the number of workers."""
    mechanism, claim, _ = TIGHT[kind]
    made = []

    def noting(data, size, rng):
        made.append((rng.bit_generator.seed_seq.spawn_key, size))
        return mechanism(data, size, rng)

    result = early(noting, claim.at(0.9 * claim.budget), size=600)
    assert sum(size for _, size in made) == result.size <= 600
    runs = sum(side["runs"] for side in result.counts.values())
    assert (result.selection, result.selection + runs) == (12, result.size)
    bet_on = [key for key, _ in made if key[0] == 7]
    assert len(bet_on) == len(set(bet_on))
    assert max(size for key, size in made if key[0] == 7) == 1  # so that no runs share a call
    write_json(tmp_path / "audit.json", result.to_dict())
    ((_, read),) = read_audits(tmp_path / "audit.json")
    again = verify_result(read)
    assert (again.measured, again.detectable, again.verdict) == (result.measured, result.detectable, result.verdict)
    same = early(mechanism, result.claim, size=600, n_jobs=2)
    assert (same.counts, same.size, same.event) == (result.counts, result.size, result.event)


def test_bets_expect_what_earlier_runs_showed():
    """The first bet has seen ten runs, and half of one more of either kind: five runs on each database."""
    event = Event.at_least((), 1, low=0)
    for seed in range(5):
        bet = early(*PURE, size=40, event=event, rng=seed).basis["bets"][0]
        right, wrong = bet["right_share"], bet["wrong_share"]
        counts = [11 * share - 0.5 for share in (right, wrong)]
        assert counts == pytest.approx(np.round(counts), abs=1e-9)
        assert right + wrong == pytest.approx(1)


def test_coins_pick_the_databases():  # eight audits
    on_y = [early(*PURE, size=40, rng=seed).counts["y"]["runs"] for seed in range(8)]
    assert len(set(on_y)) > 3  # of 28 runs


GROSS = {
    "pure": (leaky(2.0, 0.0), PureDP(1.0), 110),
    "approximate": (leaky(2.0, 0.01), ApproxDP(1.0, 0.01), 130),
    "total variation": (leaky(0.0, 0.6), ApproxDP(0, 0.3), 130),
    "Gaussian": (lambda data, size, rng: np.round(data + rng.normal(size=size) / 2, 6), GaussianDP(1.0), 125),
    "zero-concentrated": (lambda data, size, rng: np.round(data + rng.normal(size=size) / 8**0.5, 6), ZCDP(1.0), 300),
    "infinite": (lambda data, size, rng: data + np.zeros(size), PureDP(1.0), 40),
    "infinite, Gaussian": (lambda data, size, rng: data + np.zeros(size), GaussianDP(1.0), 40),
}


@pytest.mark.parametrize("kind", GROSS)
@pytest.mark.parametrize("seeds", in_full((1,), (12,)))
def test_twice_the_promise_takes_tens_of_runs(kind, seeds):
    """Wald's limits, with the law known, are 45, 46, -, 42, 101 (four times rho), 8 and 8 runs."""
    mechanism, claim, most = GROSS[kind]
    results = [early(mechanism, claim, rng=seed) for seed in range(seeds)]
    assert all(result.verdict == "violated" for result in results)
    assert np.median([result.size for result in results]) <= (most if seeds == 12 else 3 * most)


@pytest.mark.slow
@pytest.mark.parametrize("size", [120, 700, 3000])
def test_the_minimum_detectable_loss_is_found_about_as_often_as_announced(size):
    """In at least 24 of 40 audits, where 80% are announced: with that probability there are fewer once in 500 times."""
    for claim, law in (
        (PureDP(1.0), lambda loss: leaky(loss, 0.0)),
        (GaussianDP(1.0), lambda mu: lambda data, size, rng: np.round(data + rng.normal(size=size) / mu, 6)),
    ):
        announced = early(law(1.0), claim, size=size).detectable
        found = [early(law(announced), claim, size=size, rng=seed).verdict for seed in range(40)]
        assert found.count("violated") >= 24


@pytest.mark.parametrize("kind", TIGHT)
def test_outputs_that_never_vary_have_no_power(kind):
    result = early(lambda data, size, rng: np.zeros(size), TIGHT[kind][1], size=60)
    assert (result.verdict, result.measured.budget, result.detectable) == ("no power", 0, math.inf)


class Kept:
    """A bit that ten runs share, whatever the data: each alone loses nothing."""

    def __init__(self):
        self.runs, self.bit = 0, 0.0

    def __call__(self, data, size, rng):
        bits = []
        for _ in range(size):
            self.bit = self.bit if self.runs % 10 else float(rng.integers(0, 2))
            self.runs += 1
            bits.append(self.bit)
        return np.array(bits)


def test_runs_that_share_what_the_process_keeps_are_refused():
    with refused_like(ValueError, "^runs must be independent: "):
        early(Kept(), PureDP(0.02), confidence=0.8, size=1000)


@pytest.mark.parametrize(
    "claim", [PureDP(400.0), GaussianDP(30.0), ApproxDP(0, 0.995), ZCDP(40.0), ZCDP(4.0), ApproxDP(200.0, 0.1)], ids=str
)
def test_a_promise_of_nearly_nothing_is_not_refuted_and_blames_nobody(claim):
    """In numbers that a float holds: no warning, and none is laid to the mechanism."""
    result = measure_loss(normal, replace(COIN, distance=3), claim, size=60, stop="early", rng=1)
    assert (result.verdict, result.measured.budget <= claim.budget) == ("no power", True)
    assert not any("warned" in note for note in result.notes)


def test_a_score_of_a_user_may_be_infinite_and_is_read_again(tmp_path):
    event = Event(cell(), WeightRule(np.array([0.5]), np.array([-np.inf, 1e3])))
    early(normal, ZCDP(0.5), event=event, size=100).to_json(tmp_path / "a.json")
    ((_, read),) = read_audits(tmp_path / "a.json")
    verify_result(read)


def test_a_registered_statistic_scores_each_run_by_itself():
    event = Event(Statistic("centered", lambda outputs: outputs - outputs.mean()), ThresholdRule(-0.1, 0.1))
    with refused_like(ValueError, "^centered must score each run by itself"):
        early(normal, PureDP(1.0), event=event, size=100)


def test_a_registered_event_spends_no_runs_on_choice():
    event = Event.at_least((), 1, low=0)
    result = early(*PURE, size=600, event=event)
    assert result.event == "y if output >= 1, x if output <= 0"
    assert result.searched == "one event, registered beforehand"
    assert all(bet["regions"] == 2 for bet in result.basis["bets"])


def test_other_outputs_than_numbers_teach_too():  # three audits
    """Words at first, and words that come later among numbers."""

    def words(data, size, rng):
        return ["yes" if yes else "no" for yes in rng.random(size) < 0.2 + 0.6 * data]

    def later(data, size, rng):
        return [("x" if data and rng.random() < 0.5 else float(rng.normal())) for _ in range(size)]

    known = early(later, PureDP(1.0), event=Event.at_least((), 1), size=60, rng=8)
    assert (known.verdict, known.event) == ("no power", "y if output >= 1")
    assert early(words, PureDP(1.0)).verdict == early(later, PureDP(1.0)).verdict == "violated"


@pytest.mark.parametrize("kind", ["pure", "zero-concentrated", "words that come later"])
def test_a_longer_file_repeats_the_bets_of_a_shorter_one(kind):  # four audits
    """So the bounds of all looks at a file that grows hold together; a file that is shuffled anew would not do so."""
    mechanism, claim, _ = TIGHT.get(kind, TIGHT["pure"])
    rng = np.random.default_rng(5)
    last = 55 if kind in TIGHT else 110
    x, y = (mechanism(data, last, rng).tolist() for data in (0, 1))
    if kind not in TIGHT:
        y[30:] = [("no" if one else "yes") if rng.random() < 0.7 else one for one in y[30:]]
    looks = [looked_at(x[:runs], y[:runs], claim) for runs in (10, 22, 40, last)]
    for scored in (True, False) if kind == "zero-concentrated" else (False,):
        bets = [
            basis["bets"]
            for look in looks
            for basis in (look.basis, *(other["basis"] for other in look.others))
            if ("score" in basis["bets"][0]) == scored
        ]
        assert [bets[-1][: len(some)] for some in bets[:-1]] == bets[:-1]
        assert 1 == len(bets[0]) < len(bets[1]) < len(bets[2]) < len(bets[3])
    assert looks[-1].notes[-1].endswith("against the promise, 20 decide")
    assert looks[-1].counts["x"]["runs"] == looks[-1].counts["y"]["runs"]  # as no coin picks them
    assert (looks[-1].verdict == "violated") == (kind not in TIGHT)  # words are told although numbers came first


def looked_at(x, y, claim, **options):
    return measure_loss_from_outputs(x, y, claim, relation="add_remove", stop="early", **options)


def test_a_file_that_grows_ends_with_its_first_violation():
    """A few more runs than the mechanism itself takes: bets on a file wait for a whole block."""
    x, y = (np.tile([1 - bit, 1 - bit, bit, 1 - bit], 50).astype(float) for bit in (0, 1))
    x, y = (np.random.default_rng(seed).permutation(side) for seed, side in enumerate((x, y)))
    looks = [looked_at(x[:runs], y[:runs], PureDP(0.2)) for runs in (100, 200)]
    assert looks[0].verdict == looks[1].verdict == "violated"
    assert (looks[0].size, looks[0].measured) == (looks[1].size, looks[1].measured)
    for words, outputs, options in (
        ("bets need at least 10 outputs on each database, got 10 and 9", (x[:10], y[:9]), {}),
        ("a list, or an array of numbers, got ndarray of <U32", (x.astype(str), y.astype(str)), {}),
        ("as the next call repeats this one, got a Generator", (x, y), {"rng": np.random.default_rng()}),
    ):
        with refused_like(ValueError, words):
            looked_at(*outputs, PureDP(1.0), **options)


@pytest.mark.parametrize("runs", [45, 51])
def test_a_word_in_the_last_bet_is_no_error(runs):
    x, y = np.random.default_rng(1).normal([[[0.0]], [[1.0]]], 1.0, (2, 70, 2)).tolist()
    y[40] = "err"
    assert looked_at(x[:runs], y[:runs], PureDP(1.0)).size > 80


def test_outputs_that_take_much_memory_are_dropped_and_the_rule_stays(monkeypatch):
    monkeypatch.setattr(betting, "KEPT", 60)
    result = early(leaky(2.0, 0.0), PureDP(1.0))
    assert result.verdict == "violated"
    assert max(bet["runs"] for bet in result.basis["bets"]) <= 60


LEFT = [0]  # runs until the user stops the audit


def interrupted(data, size, rng):
    LEFT[0] -= size
    if LEFT[0] < 0:
        raise KeyboardInterrupt
    return leaky(1.0, 0.0)(data, size, rng)


def test_an_interrupted_audit_says_what_it_has_and_goes_on_from_its_store(tmp_path):
    LEFT[0] = 150
    result = early(interrupted, PureDP(1.0), size=400, store=tmp_path)
    assert result.verdict != "violated"
    assert 100 < result.size <= 150
    assert f"stopped by the user after {result.size} runs: the bound holds" in result.notes
    verify_result(result)
    LEFT[0] = 10**6
    whole = early(interrupted, PureDP(1.0), size=400, store=tmp_path)
    assert 10**6 - LEFT[0] <= 400 - result.size + 20  # the first look at the mechanism, and one block of either side
    assert whole.counts == early(leaky(1.0, 0.0), PureDP(1.0), size=400).counts
    LEFT[0] = 5
    with pytest.raises(KeyboardInterrupt):
        early(interrupted, PureDP(1.0), size=400)


def test_what_is_known_so_far_is_told(monkeypatch):
    lines = []
    monkeypatch.setattr(
        "audit.measure.loss.bet_on_runs", lambda *args, **kw: betting.bet_on_runs(*args, **kw | {"say": lines.append})
    )
    early(leaky(2.0, 0.0), PureDP(1.0))
    assert all(words.endswith("to 1 against the promise, 20 decide") for words in lines)
    odds = [float(words.split()[2].replace(",", "")) for words in lines]
    assert odds[0] <= max(odds[:-1]) < 20 <= odds[-1]


def test_a_method_of_bets_reads_the_last_line_of_the_promise():
    """Where nothing was bet, the next rule suits twice the promise, as the first one does."""
    how = Bets(GaussianDP(1.0), 1, 0.95)
    assert Bets(GaussianDP(1.0), 1, 0.95, (Bet(2, 0.5, 0.5, 8, 4, 4),))._forgiven == how._forgiven > 0
    assert Bets(GaussianDP(1.0), 1, 0.95, (Bet(2, 0.1, 0.001, 800, 80, 1),))._forgiven < how._forgiven
