"""Results in a notebook: every fact of them, nothing of the data, and no name that is read as HTML."""

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from audit.claims import ZCDP, ApproxDP, PureDP
from audit.io.html import COLORS
from audit.measure.search import SearchResult
from audit.neighbors import NeighborPair
from audit.planning import plan_table
from audit.replay import replay
from tests.helpers import audited, contrast, estimated, noisy, refused, refused_like, refuses, replayed

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e & \"x\" 'y'"
PAIR = NeighborPair.add_people([120, 75], 0)
PLAN = plan_table(PureDP(1.0), violations=(2.0, 1.5))
SEARCHED = SearchResult((audited(), audited(pair="1 person added to cell 1")), 9, 900, 0.9)


def shown(thing):
    """The texts that a notebook shows of a result."""
    cells = ElementTree.fromstring(thing._repr_html_())  # every tag is closed
    assert {cell.tag for cell in cells.iter()} <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert "".join(cells.itertext()).isprintable()
    return [*cells.itertext()]


@pytest.mark.parametrize(
    ("thing", "texts"),
    [
        (audited(), ["count", "not refuted", "epsilon 1", "person added or removed", "0.8750", "95%", "1.250", "42"]),
        (audited(measured=PureDP(1.23456), verdict="violated"), ["violated", "1.234"]),
        (audited(confidential=True), ["CONFIDENTIAL: results of confidential data. `plaudit report --public` leaves "
                                      "out what discloses them."]),
        (estimated(), ["Estimate, no bound and never a verdict", "0.5 nats", "0.25 to inf", "- errors have one law"]),
        (replayed(), ["GDPC", "not refuted", "epsilon 1 (add/remove)", "one run only"]),
        (replay(noisy, PAIR, PureDP(1.0), rng=1), ["noisy", "no power"]),
        (replayed(violations=({"kind": "output", "sentence": "It differs."},)), ["violated", "output: It differs."]),
        (SEARCHED, ["Pairs of databases: 9 looked at, 2 measured, at 90% confidence together", "0.8750"]),
        (PureDP(1.0), ["PureDP: epsilon 1 (add/remove)", "at most 73.11 times in 100, from even odds"]),
        (ApproxDP(1.0, 1e-6, "replace_one"), ["1e-06", "one replaced"]),
        (ZCDP(0.5), ["rho", "0.5"]),
        (PAIR, ["1 person added to cell 0", "1 step, computed from the databases", "ndarray (2,)"]),
        (NeighborPair.declared(0, 1, "replace_one", distance=2), ["2 steps, declared by the caller"]),
        (PLAN, ["221", "66", "1.5"]),
        (plan_table(PureDP(1.0), violations=(1.2,), runs=1228), ["80.1%"]),
        (plan_table(PureDP(1e-9), violations=(1.05,)), ["out of reach"]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_a_notebook_shows(thing, texts):
    found = shown(thing)
    assert set(texts) <= set(found)


@pytest.mark.parametrize(
    "thing",
    [
        audited(mechanism=HOSTILE, event=HOSTILE, pair=HOSTILE, notes=(HOSTILE,)),
        estimated(method=HOSTILE, assumptions=(HOSTILE,), statistic=HOSTILE),
        replayed(mechanism=HOSTILE, violations=({"kind": HOSTILE, "sentence": HOSTILE},)),
        NeighborPair.declared(1, 2, "add_remove", label=HOSTILE),
        SearchResult((audited(mechanism=HOSTILE, pair=HOSTILE),), 1, 0, 0.9),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_name_is_markup(thing):
    assert any("<script>alert(1)</script> [31m" in text for text in shown(thing))


def test_a_verdict_is_read_on_light_and_on_dark_pages():
    assert f"background:{COLORS['violated']}" in audited(verdict="violated")._repr_html_()
    assert min(contrast(to_rgb(color), (1, 1, 1)) for color in COLORS.values()) >= 4.5  # white on it, on any page


def test_a_pair_shows_nothing_of_its_data():
    pair = NeighborPair.add_people([98765, 43210], 0)
    found = " ".join(shown(pair.as_confidential()))
    assert not re.search("9876|4321", found)
    assert "CONFIDENTIAL: the databases are." in found
    assert "CONFIDENTIAL" not in pair._repr_html_()


def test_data_frames_hold_the_numbers():
    one = audited().to_frame()
    assert one.to_dict("records") == [audited().summary()]
    curve = estimated().to_frame()
    assert list(curve.columns) == ["at", "loss", "low", "high"]
    np.testing.assert_array_equal(curve["loss"], estimated().loss)
    assert list(SEARCHED.to_frame()["pair"]) == ["1 person added to cell 0", "1 person added to cell 1"]
    assert PLAN.to_frame().to_dict("records") == list(PLAN.rows)


def test_a_data_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for thing in (audited(), estimated(), SEARCHED, PLAN):
        refuses(ImportError, "to_frame needs pandas: pip install pandas", thing.to_frame)


def test_a_result_writes_its_report(tmp_path):
    secret = audited(confidential=True, mechanism="own count")
    for number, thing in enumerate((secret, estimated(), SEARCHED)):
        path = tmp_path / "new" / f"{number}.html"
        thing.report(path)
        page = path.read_text("utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert (path.stat().st_mode & 0o077 == 0) == (thing is secret) == ("<title>CONFIDENTIAL: " in page)
        with refused_like(ValueError, r"path must end in \.html, got '.*audit\.json'"):
            thing.report(tmp_path / "audit.json")


def test_a_result_is_drawn_as_the_command_draws_it():
    axes = [thing.plot() for thing in (audited(), estimated(), PLAN)]
    assert not any(ax.spines["top"].get_visible() for ax in axes)  # of the house style
    assert len(axes[2].lines[0].get_xdata()) == 2
    with refused(ValueError, "a plan of what 2000 runs detect has no curve of runs needed"):
        plan_table(PureDP(1.0), violations=(1.2,), runs=2000).plot()
