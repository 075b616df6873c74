"""A lower bound is the same words in every view, and never more than what was measured."""

import csv
import io
import re
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from audit.claims import GaussianDP, PureDP
from audit.report.figures import loss_bar, privacy_profiles
from audit.report.formats import FORMS
from audit.report.page import build_report
from audit.report.tables import audit_table
from audit.results import verdict_of
from experiments.audits import none_above
from experiments.experiment import between
from tests.helpers import audited, powers

NUMBER = r"(\d[\d.]*(?:e[+-]\d+)?)"
FAMILIES = st.sampled_from([PureDP, GaussianDP])


def of(family, promised, measured):
    claim = family(promised)
    verdict = verdict_of(claim, claim.at(measured), 1.25 * promised)
    return audited(claim=claim, measured=claim.at(measured), verdict=verdict, detectable=1.25 * promised, ceiling=1e9)


def views(result):
    """How every view writes the lower bound of an audit."""
    named = [("name", result)]
    forms = {name: write(named) for name, write in FORMS.items() if name != "json"}  # which holds all digits
    (row,) = csv.DictReader(io.StringIO(forms["csv"]))
    labels = result.plot().texts
    yield "csv", row["measured"]
    yield "markdown", forms["markdown"].splitlines()[2].split(" | ")[4]
    yield "line", re.search(rf"lower bound {NUMBER} at", forms["line"])[1]
    yield "table", next(iter(audit_table(named).table.columns[2].cells)).plain
    yield "figure", re.match(NUMBER, labels[0].get_text())[1]
    yield "page", re.search(rf"lower bound {NUMBER};", loss_bar(result).words)[1]
    yield "page", re.search(rf"The lower bound, \w+ {NUMBER},", privacy_profiles(result).words)[1]


@settings(max_examples=25)
@given(FAMILIES, powers(-3, 2), st.floats(1e-3, 3))
def test_a_lower_bound_is_rounded_down_wherever_it_is_printed(family, promised, share):  # every form of a result
    result = of(family, promised, promised * share)
    bounds = dict(views(result))
    assert len(set(bounds.values())) == 1, bounds
    assert Decimal(bounds["figure"]) <= Decimal(repr(result.measured.budget))
    assert f">{bounds['page']}<" in build_report([("name", result)], title="t")


@given(powers(-3, 1))
def test_experiments_say_no_more(bound):
    """What is checked of a lower bound, in words."""
    audits = [{"lower_bound": bound, "verdict": "not refuted"}]
    for check in (none_above("all", audits, 100.0), between("lower bound", bound, 0, 100)):
        text = re.search(rf"(?:bound|bound:) {NUMBER}, expected", check.words)[1]
        assert Decimal(text) <= Decimal(repr(bound))
