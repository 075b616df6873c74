"""Saved audits held against their own counts: every bound computed again, every forgery refused."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.measure.one_run import Canaries, measure_loss_one_run
from audit.methods.betting import GUESSED, SCORED
from audit.methods.method import NAMED
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.results.files import read_json, write_json
from audit.results.folder import read_audits, read_results
from audit.review.verify import recomputed, verify_result
from tests.audit.audits import gaussian
from tests.helpers import noisy, refused_like
from tests.hostile.oracle import GAMES, Event, verdicts

GOLDEN = Path(__file__).parents[2] / "golden" / "saved"
PAIR = NeighborPair.add_people([120, 75], 0)
CLAIMS = {"pure": PureDP(1.0), "approx": ApproxDP(1.0, 1e-3), "zcdp": ZCDP(0.5), "gaussian": GaussianDP(1.0)}


def made(kind):
    how, _, family = kind.partition(" ")
    claim = CLAIMS[family]
    mechanism = gaussian if family in ("zcdp", "gaussian") else noisy
    if how == "one-run":
        return measure_loss_one_run(mechanism, Canaries([50] * 400), claim, rng=1)
    if how in ("given", "few"):
        runs = 60 if how == "few" else 800
        x, y = (mechanism(data, runs, np.random.default_rng(seed)) for seed, data in enumerate((PAIR.x, PAIR.y)))
        return measure_loss_from_outputs(x, y, claim, relation="add_remove", rng=1)
    stop, size = ("early", 150) if how == "early" else ("fixed", 4000)
    return measure_loss(
        mechanism, PAIR, claim, attack="cell" if how == "cells" else "entries", size=size, rng=1, stop=stop
    )


KINDS = [f"{how} {family}" for how in ("fixed", "one-run", "given") for family in CLAIMS]
KINDS += [f"{how} {family}" for how in ("early", "few", "cells") for family in ("pure", "zcdp")]
BET = dict(zip(GUESSED, (2, 0.5, 0.5, 9, 9, 0), strict=True))
saved = pytest.fixture(scope="module")(lambda: {kind: made(kind) for kind in KINDS})  # 3 s, once for all tests


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_audit_is_computed_again_from_its_file(saved, kind, tmp_path):
    result = saved[kind]
    result.to_json(tmp_path / "audit.json")
    ((_, read),) = read_audits(tmp_path / "audit.json")
    again = verify_result(read)
    for name in ("measured", "ceiling", "detectable", "verdict"):
        assert getattr(again, name) == getattr(result, name)


def test_the_kinds_are_all_there_are(saved):
    assert {result.bound for result in saved.values()} == NAMED.keys() - {"total variation of a guessing game"}
    assert any(result.others for result in saved.values())


def swapped(counts):
    """As many runs, of which others speak for the other database."""
    parts = sorted((key for key in counts["x"] if key != "runs"), key=counts["x"].__getitem__)
    if not parts:  # bets on scores have their own
        return {"x": counts["y"], "y": counts["x"]}
    first, *_, last = parts
    return {**counts, "x": {**counts["x"], first: counts["x"][last], last: counts["x"][first]}}


def says_the_same(result):
    try:
        again = recomputed(result)
    except ValueError:
        return False
    return again.measured == result.measured and again.ceiling == result.ceiling


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_number_is_refused_although_the_file_is_whole(saved, kind, tmp_path, record_property):
    record_property("tried", 4)
    result = saved[kind]
    for change in (
        {"measured": result.claim.at(result.measured.budget * 0.99 + 1e-6)},
        {"counts": swapped(result.counts)},
        {"confidence": 0.9},
        {"ceiling": result.ceiling + 1},
    ):
        forged = replace(result, **change)
        write_json(tmp_path / "forged.json", forged.to_dict())
        read = AuditResult.from_dict(read_json(tmp_path / "forged.json"))  # the forger wrote the checksum anew
        if "counts" in change and says_the_same(read):
            continue  # a bound of 0 stays 0
        with pytest.raises(
            ValueError, match=r"must follow from the counts|regions must be|must be that of the event|bets must be"
        ):
            verify_result(read)


@pytest.mark.reliability(row=7)
def test_bins_that_have_no_weight_are_refused(saved):
    result = saved["fixed zcdp"]
    names = [key for key in result.counts["x"] if key != "runs"]
    moved = {f"bin {9999 if key == names[0] else key[4:]}": n for key, n in result.counts["x"].items() if key != "runs"}
    forged = replace(result, counts={**result.counts, "x": {"runs": result.counts["x"]["runs"], **moved}})
    with pytest.raises(ValueError, match=r"every run must be in one of \d+ bins, got \['bin 9999'\]"):
        verify_result(forged)


def test_the_minimum_detectable_loss_is_that_of_the_event_that_is_named(saved):
    result = next(one for one in saved.values() if one.others and one.basis.get("detects"))
    verify_result(result)
    moved = {**result.others[0], "basis": {**result.others[0]["basis"], "detects": True}}
    basis = {key: value for key, value in result.basis.items() if key != "detects"}
    with pytest.raises(ValueError, match="the minimum detectable loss must be that of the event that is named"):
        verify_result(replace(result, basis=basis, others=(moved, *result.others[1:])))


def test_of_two_events_with_the_same_minimum_detectable_loss_either_may_be_named(saved):
    """Such as none at all: the one that proves most comes first, whichever was named."""
    result = saved["fixed pure"]
    basis = {**result.basis, "share": 0.5, "unseen": 0.95, "detects": False}
    other = {"event": "", "attack": "", "counts": result.counts, "notes": [], "measured": 0.0}
    twin = replace(result, basis=basis, others=({**other, "basis": {**basis, "detects": True}},))
    assert recomputed(twin).detectable == math.inf


def test_a_witness_stands_as_it_is(saved):
    result = replace(saved["fixed pure"], support={"order": "x only", "probability": 0.1}, verdict="violated")
    assert verify_result(result).verdict == "violated"


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"counts": {"x": {"runs": 3}}}, "counts must be of x and of y, got 'x'"),
        ({"counts": {"x": {"guessed_x": 0, "guessed_y": 0}, "y": {"runs": 3}}}, "counts on x must be parts"),
        ({"counts": {"x": {"runs": 1400}, "y": {"runs": 1400}}, "size": 4000}, "must have guessed_x in its basis"),
        ({"size": 4_000_000}, "all 4000000 runs must choose or count, got 1200 and 2800"),
        ({"selection": 10**6}, "runs must be those that choose and those that count, got 1000000 and 2800 of 4000"),
        ({"detectable": 9.0, "verdict": "no power"}, r"^detectable must follow from the counts: 1\.\d+, got 9$"),
        ({"verdict": "no power"}, "^the verdict must follow from the counts: 'not refuted', got 'no power'$"),
        ({"kind": "early pure", "bound": "guessing game"}, "the bound must be for an audit with stop='early'"),
        ({"kind": "fixed zcdp", "bound": "bets on guesses"}, "the bound must be for an audit with stop='fixed'"),
        ({"kind": "fixed zcdp", "basis": {"look": 2}}, "an earlier version stopped this audit early, by 'variational"),
        ({"kind": "early pure", "basis": {"bets": [BET]}}, r"bets must be on the \d+ counted runs"),
        ({"kind": "early pure", "basis": {"bets": [{"regions": 2}]}}, "must have right in its basis or counts"),
        ({"kind": "early zcdp", "basis": {"bets": [{key: [1] for key in SCORED}]}}, "bets must be on the"),
        ({"kind": "fixed zcdp", "basis": {"order": 1.5}}, "must follow from the counts"),
        ({"bound": "a lucky guess"}, "no method for a promise of epsilon 1"),
        ({"bound": "bets on guesses", "provenance": {}}, "must have bets in its basis or counts"),
        (
            {"bound": "anytime-valid guessing game", "basis": {"expected": None}},
            "an earlier version stopped this audit",
        ),
        ({"bound": "one-run guessing game"}, "runs must be those that choose and those that count"),
        ({"bound": "one-run guessing game", "size": 1, "provenance": {}}, "must have most in its basis"),
        ({"bound": "one-run guessing game", "size": 1, "provenance": {}, "basis": {"most": 1}}, "must be the guesses"),
    ],
)
def test_forged_and_impossible_audits_are_refused_in_one_line(saved, change, words):
    result = saved[change.get("kind", "fixed pure")]
    forged = {name: value for name, value in change.items() if name != "kind"}
    with refused_like(ValueError, words):
        verify_result(replace(result, **forged | {"basis": result.basis | change.get("basis", {})}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attack": ""}, "; an earlier version of plaudit wrote the file, which did not save the attack, and may "),
        ({"provenance": {"software": {"plaudit": "0.0.9"}}}, "; version 0.0.9 of plaudit wrote the file, and may "),
    ],
)
def test_numbers_of_another_version_are_refused_as_such(saved, change, words):
    ours = replace(saved["fixed zcdp"], detectable=9.0)
    for forged in ({"detectable": 9.0}, {"verdict": "no power"}):
        with pytest.raises(ValueError, match=f"must follow from the counts.*{words}.*: make the audit again$"):
            verify_result(replace(saved["fixed zcdp"], **forged, **change))
    with pytest.raises(ValueError, match=r", got 9$"):  # negative control: a file of this version
        verify_result(ours)


def test_a_redacted_audit_cannot_be_verified_and_says_so(saved):
    with pytest.raises(ValueError, match="a redacted audit has no counts"):
        verify_result(saved["fixed zcdp"].redact())


def test_files_of_the_first_schema_open_and_are_verified_where_they_hold_enough():
    audits, estimates, *_ = read_results(GOLDEN)
    assert [name for name, _ in audits] == ["schema_1_pure", "schema_1_zcdp"]
    assert estimates == []
    pure, zcdp = (result for _, result in read_audits(GOLDEN))
    assert not pure.confidential
    assert math.isclose(verify_result(pure).measured.epsilon, pure.measured.epsilon)
    with pytest.raises(ValueError, match="must have regions in its basis or counts, which files of earlier versions"):
        verify_result(zcdp)


def test_what_a_pair_says_of_itself_reaches_the_result():
    secret = measure_loss(noisy, PAIR.as_confidential(), PureDP(1.0), size=400, rng=1)
    assert (secret.confidential, secret.redact().confidential, secret.redact().redacted) == (True, False, True)
    assert measure_loss_one_run(noisy, Canaries([5] * 50), PureDP(1.0), confidential=True).confidential
    assert not measure_loss(noisy, PAIR, PureDP(1.0), size=400, rng=1).confidential  # negative control


@pytest.mark.parametrize("shares", [(0.95, 0.06), (0.0, 0.05), (-1.0, 0.05)])
def test_events_share_one_error_probability(saved, shares):
    result = next(result for result in saved.values() if len(result.others) == 1)
    other = {**result.others[0], "basis": {**result.others[0]["basis"], "share": shares[1]}}
    with pytest.raises(ValueError, match="events must have shares of one error probability, got "):
        verify_result(replace(result, basis={**result.basis, "share": shares[0]}, others=(other,)))


def test_what_is_said_of_rare_outcomes_does_not_hang_on_the_order_of_events():
    """Float noise that is not rounded: events of two searches are counted, and the largest bound stands first."""
    pair = NeighborPair.add_people([0, 75, 43], cell=0)

    def wide(counts, size, rng):
        return counts + rng.laplace(scale=4, size=(size, counts.size))

    result = measure_loss(wide, pair, PureDP(1), size=2000, confidence=0.999, rng=2)
    bases = [result.basis, *(other["basis"] for other in result.others)]
    main, ordinary = (basis for basis in bases if "hits" in basis)
    assert main["hits"] > ordinary["hits"]
    assert result.basis["share"] < main["share"]
    assert verify_result(result).rare == result.rare


# The verdict a second time, by code that shares nothing with plaudit's


def plain(result):
    """What a file holds."""
    return json.loads(json.dumps(result.to_dict()))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "one-run zcdp"])
def test_a_promise_is_rejected_up_to_the_bound_and_no_further(saved, kind):
    """A grid of orders lets a Renyi divergence differ by a thousandth, one of lines the weights of one run by three."""
    result = saved[kind]
    body = plain(result)
    assert verdicts(body) == {result.verdict}
    events = [Event(body, one["counts"], one["basis"]) for one in (body, *body["others"])]
    near = 3e-3 if kind == "one-run gaussian" else 1e-3 if result.claim.kind == "zcdp" else 1e-5
    if bound := result.measured.budget:
        beyond = near if "bets" not in result.bound else 0.0051  # bets test budgets of a grid
        rejected = [any(event.rejects(bound * by) for event in events) for by in (1 - near, 1 + beyond)]
        assert rejected == [True, False]
    if result.bound in GAMES and result.claim.kind in ("pure", "approx") and not body["others"]:
        powerful = [events[0].powerful(result.detectable * by) for by in (1 - 1e-5, 1 + 1e-5)]
        assert powerful == [False, True]


def test_counts_that_say_something_else_have_another_verdict(saved):
    """Negative control."""
    body = plain(saved["fixed pure"])
    assert verdicts(body) == {"not refuted"}
    assert verdicts({**body, "claim": {**body["claim"], "epsilon": 0.01}}) == {"violated"}
    few = {"x": {"runs": 9, "guessed_x": 5, "guessed_y": 4}, "y": {"runs": 9, "guessed_x": 4, "guessed_y": 5}}
    assert verdicts({**body, "counts": few, "others": []}) == {"no power"}
