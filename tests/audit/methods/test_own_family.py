"""A family of promises of one's own: a class for the promise, one for its method, and two lines that register them."""

import json
import math
from dataclasses import dataclass

import pytest
from scipy.special import ndtr

from audit import NeighborPair, measure_loss
from audit.bounds.rectangle import delta_lower
from audit.claims import Claim, Relation, claim_from_dict, compose, parse_claim, register_claim
from audit.claims.families import FAMILIES
from audit.methods import Bets, RegionMethod, register_method
from audit.methods.method import FOR_FAMILY, NAMED
from audit.planning import plan_size
from audit.report.page import build_report
from audit.results.folder import read_audits
from audit.review.verify import verify_result
from tests.helpers import plaudit

PAIR = NeighborPair.add_people([120, 75], cell=0)


@dataclass(frozen=True)
class TotalVariation(Claim):
    """No event is likelier on a neighbor by more than a difference of probabilities."""

    kind = "variation"
    unit = "probability"
    sources = ("Barthe and Olmedo, 2013.",)

    difference: float
    relation: Relation = "add_remove"

    def delta_at(self, epsilon):
        """Return the same delta at every epsilon."""
        return min(1.0, self.difference)

    def epsilon_at(self, delta):
        """Return 0 from the difference on."""
        return 0.0 if delta >= self.difference else math.inf

    def at_shift(self, shift):
        """Return the total variation of two normal laws, so many standard deviations apart."""
        return self.at(2 * ndtr(shift / 2) - 1)


class Difference(RegionMethod):
    """The difference of a region's two probabilities, of which a group has as many as steps."""

    bound = "difference of two Clopper-Pearson limits"
    theorem = "A region is likelier on one database by at least the difference of two exact limits."
    sources = ("Clopper and Pearson, 1934.",)

    def region_lower(self, met, runs, met_other, runs_other, *, confidence):
        """Return the difference of one step that a region proves."""
        return float(delta_lower(0.0, met, runs, met_other, runs_other, confidence=confidence)) / self.distance


@pytest.fixture(autouse=True)
def registered():
    register_claim(TotalVariation)
    register_method(TotalVariation)(Difference)
    yield
    for register, key in ((FAMILIES, "variation"), (FOR_FAMILY, TotalVariation), (NAMED, Difference.bound)):
        register.pop(key)


@pytest.mark.parametrize(
    ("promised", "verdict", "stop"),
    [(0.25, "violated", "fixed"), (0.4, "not refuted", "fixed"), (0.25, "violated", "early")],  # the last 1 s
)
def test_it_is_measured_saved_and_checked(promised, verdict, stop, tmp_path, capsys):
    claim = TotalVariation(promised)
    result = measure_loss(
        lambda data, size, rng: data + rng.normal(size=(size, 2)), PAIR, claim, size=20_000, stop=stop, rng=1
    )
    assert result.verdict == verdict
    assert 0.25 < result.measured.difference < 2 * ndtr(0.5) - 1  # false alarm 0.05, and this seed gives none
    assert result.measured.difference < result.ceiling <= 1
    result.to_json(tmp_path / "audit.json")
    ((_, saved),) = read_audits(tmp_path / "audit.json")
    assert verify_result(saved).measured == result.measured
    assert plaudit("check", tmp_path, "--format", "line") == (1 if verdict == "violated" else 0)
    assert f"promised difference {promised:g}" in capsys.readouterr().out
    assert plaudit("verify", tmp_path / "audit.json") == (1 if verdict == "violated" else 0)
    page = build_report([("own", saved)], [], title="Audits")
    method = Difference if stop == "fixed" else Bets
    assert method.theorem in page
    assert all(source in page for source in TotalVariation.sources)


def test_it_is_written_read_parsed_composed_and_grouped():
    claim = parse_claim("variation:0.25")
    assert claim == TotalVariation(0.25)
    assert claim_from_dict(json.loads(json.dumps(claim.to_dict()))) == claim
    assert compose(claim, claim) == claim.group(2) == TotalVariation(0.5)
    assert claim.under("replace_one") == TotalVariation(0.5, "replace_one")
    assert str(claim) == "difference 0.25 (add/remove)"
    with pytest.raises(ValueError, match="or variation:DIFFERENCE with positive finite numbers"):
        parse_claim("variation:x")


def test_what_a_family_leaves_out_is_refused_in_one_line():
    with pytest.raises(ValueError, match="plans are not known for TotalVariation: its method has no power"):
        plan_size(TotalVariation(0.25))
    with pytest.raises(ValueError, match="plans are not known for TotalVariation"):
        Difference(TotalVariation(0.25), 1, 0.95).assumed(1.0)
    with pytest.raises(TypeError, match="TotalVariation is not measured by normal laws"):
        _ = TotalVariation(0.25).shift
    assert TotalVariation(0.25).excess(9.0, []) is None
    with pytest.raises(ValueError, match="a family of kind 'pure' exists: PureDP"):
        register_claim(type("Other", (TotalVariation,), {"kind": "pure"}))
