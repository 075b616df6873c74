"""Words, figures and origins of a report follow the numbers of the result."""

import ast
import itertools
import math
import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from algorithms.flaxman import GDPC
from audit import measure_loss, measure_loss_from_outputs
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.measure.one_run import Canaries, measure_loss_one_run
from audit.neighbors import NeighborPair
from audit.report import words as wording
from audit.report.figures import END, MOST, loss_bar, loss_curve, privacy_profiles
from audit.report.page import build_report, origin, public_origin, reproduction
from audit.report.words import actions, assumptions, event_class, headline, meaning, promise, remedy, unseen, visible
from audit.results import ONE_RUN
from tests.audit.report.hostile import PAYLOADS, Page
from tests.helpers import audited, estimated

KEYWORDS = {"size", "selection", "confidence", "rng", "share", "event", "relation", "distance", "unit"}


@pytest.mark.parametrize(
    ("claim", "measured", "promised", "shown"),
    [
        (PureDP(math.log(3)), PureDP(math.log(9)), "75.0", "90.0"),
        (ApproxDP(math.log(3), 1e-6), ApproxDP(math.log(9), 1e-6), "75.0", "90.0"),
        (GaussianDP(1.0), GaussianDP(2.0), f"{100 * norm.cdf(0.5):.1f}", f"{100 * norm.cdf(1.0):.1f}"),
        (PureDP(1.0), PureDP(1.00001), "73.1059", "73.1060"),
    ],
)
def test_right_guesses_are_those_of_theory(claim, measured, promised, shown):
    result = audited(claim=claim, measured=measured, verdict="violated")
    words = " ".join([promise(result), *meaning(result)])
    most, least = (float(number) for number in re.findall(r"(?:at most|at least|allows up to) ([\d.]+) times", words))
    assert (most, least) == pytest.approx((float(promised), float(shown)), abs=0.11)
    assert most < least  # the verdict follows from what is said
    assert ("Failures of probability 1e-06 are set aside." in words) == isinstance(claim, ApproxDP)


def test_words_follow_the_result():
    unbounded = audited(support={"order": "possible on x only", "probability": 0.25}, verdict="violated")
    assert "an output of probability 0.25 is possible on only one of the two databases" in " ".join(meaning(unbounded))
    assert "no count shows it" in " ".join(assumptions(unbounded))
    less = "May be missed (power below 0.8): a loss below 1.250 in the counted event"
    assert unseen(audited().redact())[:2] == [f"{less}.", "Any loss in other events may have been missed."]
    assert unseen(audited(rare=9.0))[:2] == list(audited(rare=9.0).power)
    assert "they are too few for this event." in unseen(audited(detectable=math.inf))[0]
    assert "they prove at most 0.9" in unseen(audited(detectable=math.inf, ceiling=0.9))[0]
    assert "neither refutes nor proves the promised 1: the true one may be larger" in meaning(audited())[1]
    assert "say nothing for or against the promise" in meaning(audited(verdict="no power", detectable=3.0))[0]
    assert actions(audited(verdict="no power", detectable=3.0)) == [("Audit again with about 9,600 runs in all.", [])]
    broken = actions(audited(verdict="violated", claim=PureDP(0.5)))
    assert broken[1][0].endswith("At 95%, up to 1 audit in 20 of a sound algorithm accuses it by chance.")
    assert "can only promise epsilon above" in broken[3][0]
    assert len(actions(audited(verdict="violated", claim=PureDP(0.5), confidence=0.999999))) == 3
    assert len(actions(unbounded)) == 2  # no promise is large enough
    assert len(actions(unbounded.redact())) == 1  # which has no event to look at
    assert actions(audited(provenance={"next": "plaudit audit a"}))[0][1] == ["plaudit audit a"]  # saved before
    assert [actions(audited(provenance={"next": forged}))[0][1] for forged in (5, {"a": 1}, [1, ["a"]])] == [[]] * 3
    two = actions(audited(provenance={"next": ["plaudit search a", "plaudit audit a"]}))[0]
    assert (two[1], "also with one row fewer" in two[0]) == (["plaudit search a", "plaudit audit a"], True)
    assert actions(audited(tried=("entries", "rows")))[1][1] == ["return collections.Counter(map(str, rows))"]
    assert actions(audited(measured=PureDP(0.49)))[0][0].startswith("This audit proves 49% of the promise. More runs")
    assert actions(audited(measured=PureDP(0.5)))[0][0].startswith("Audit other databases, which may lose more")
    assert headline([("a", audited())] * 2) == "No violation found in 2 audits."
    little = "No violation found, but this audit shows little: it proves 1.0% of the promise."
    assert headline([("a", audited(measured=PureDP(0.01)))]) == little
    assert "declared by the auditor" in assumptions(audited(adjacency="declared"))[0]
    assert "made elsewhere" in assumptions(audited(provenance={"parameters": {"runs_x": 9}}))[1]
    assert "one run" in assumptions(audited(bound=ONE_RUN))[1]
    assert "fixed before any run" in assumptions(audited(selection=0))[2]
    assert event_class(audited(bound="a theorem of mine")) == "an event of another kind"


RELATIVE = re.compile(r"\b(?:who|whom|whose|which(?! of)|that)\b")
BRITISH = re.compile(r"(?:olou|ighbou|behaviou|favou|labou)r|[mc]entre|(?:random|minim|recogn)is|analyse|oftener")


def stumbles(words):
    """Return the sentences that need a second reading."""
    sentences = re.split(r"(?<=\.) +(?=[A-Z])", words)
    nested = [one for one in sentences if any(len(RELATIVE.findall(part)) > 1 for part in re.split("[:;]", one))]
    return [*nested, *(one for one in sentences if len(one.split()) > 25 or BRITISH.search(one))]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("family", [PureDP, partial(ApproxDP, delta=1e-6), ZCDP, GaussianDP])
def test_every_verdict_can_be_read_aloud(family, relation):
    broken, witness = {"measured": 1.5, "verdict": "violated"}, {"order": "x only", "probability": 0.25}
    verdicts = ({"measured": 0.9}, {"measured": 0.01}, {"verdict": "no power", "detectable": 3.0}, broken)
    verdicts += (broken | {"support": witness}, broken | {"support": witness, "redacted": True}, {"distance": 40})
    designs = ({}, {"provenance": {"parameters": {"runs_x": 9}}}, {"bound": ONE_RUN}, {"basis": {"bets": 1}})
    for verdict, design, unit in itertools.product(verdicts, designs, ("person", "household")):
        changes = {"measured": 0.5, "rare": 9.0, "tried": ("rows",), "unit": unit} | verdict | design
        redacted, bound = changes.pop("redacted", False), family(changes.pop("measured"), relation=relation)
        result = audited(**changes, claim=family(1.0, relation=relation), measured=bound, relation=relation)
        result = result.redact() if redacted else result
        texts = [promise(result), *meaning(result), *unseen(result), *assumptions(result), *result.power]
        texts += [wording.quotable([("a", result)] * number) for number in (1, 2)]
        assert [one for words in (*texts, *(step for step, _ in actions(result))) for one in stumbles(words)] == []


def test_a_sentence_that_stumbles_is_found():
    """The negative control: words, nested clauses, spelling."""
    long = "The promise: someone who knows all other data, and holds both answers equally likely, guesses whether one "
    long += "person is in the data from one release, and is right at most 73.11 times in 100."
    for words in (long, "An event that the runs which were counted show.", "Neighbouring databases differ by one."):
        assert stumbles(words) == [words]


def test_profiles_are_those_of_theory():
    drawing = privacy_profiles(audited(claim=PureDP(1.0), measured=PureDP(2.0), verdict="violated"))
    for name, epsilon in (("promised", 1), ("measured", 2)):
        points = drawing.lines[name][0].split()
        assert points[0] == f"0,{1000 * (1 - math.tanh(epsilon / 2) / (1.1 * math.tanh(1.0))):.0f}"
        assert f"{1000 * epsilon / 2.3:.0f},1000" in points  # delta 0 from there on, of 2.3
    assert drawing.areas
    assert "epsilon 1, is a dashed line from 0.462 at epsilon 0 to 0 at epsilon 1." in drawing.words
    assert "The solid line is above" in drawing.words
    within = privacy_profiles(audited(claim=ZCDP(0.5), measured=ZCDP(0.4)))
    assert within.areas == ()
    assert "nowhere above" in within.words


def test_bars_are_in_units_of_the_promise():
    bar = loss_bar(audited(claim=ZCDP(0.5), measured=ZCDP(0.6), detectable=0.75, verdict="violated"))
    assert (bar.measured, bar.detectable, bar.beyond) == (f"{120 / END:.4g}", f"{150 / END:.4g}", False)
    far = loss_bar(audited(measured=PureDP(9.0), detectable=math.inf, verdict="violated"))
    assert (far.measured, far.detectable, far.beyond) == ("100", "", True)
    assert "Promised epsilon 1; lower bound 9" in far.words
    assert loss_bar(audited(verdict="no power", detectable=3.33)).needed == "detectable: 3.4 x the promise"
    assert loss_bar(audited(verdict="no power", detectable=math.inf)).needed == "no loss is detectable"
    within, refuted = audited(verdict="no power", detectable=2.2), audited(detectable=3.4)
    without = audited(claim=PureDP(0.0), verdict="no power", detectable=3.4)  # nothing is so many times 0
    assert [loss_bar(result).needed for result in (within, refuted, without)] == ["", "", ""]
    assert loss_bar(audited(claim=PureDP(math.inf))).measured == "0"
    assert loss_bar(audited(claim=PureDP(0.0), verdict="violated")).beyond


def test_curves_of_estimates_have_gaps_where_nothing_is_known():
    loss = np.array([1.0, 2.0, np.nan, 2.0, np.inf, 1.0])
    high = np.where(np.isnan(loss), loss, np.inf)
    drawing = loss_curve(estimated(at=np.arange(6.0), loss=loss, low=loss - 1, high=high))
    assert drawing.lines["estimate"] == ("0,667 200,333", "600,333", "1000,667")
    assert len(drawing.areas) == 3
    assert "in people, from 0 to 5: between 1 and 2 nats" in drawing.words
    many, one = (estimated(**dict.fromkeys(("at", "loss", "low", "high"), np.linspace(1.0, 9.0, n))) for n in (9999, 1))
    assert len(loss_curve(many).lines["estimate"][0].split()) == MOST
    assert loss_curve(one).across
    assert loss_curve(estimated(loss=np.full(3, np.nan))).words == "No point of the curve is known."
    assert "more letters" not in build_report([], [("e", many)], title="t")


def test_origins_are_shown_whatever_they_are():
    assert origin({"one": {"two": 3, "three": {"four": 4}}}) == [("one", "two 3, three (four 4)")]
    assert origin({str(k): k for k in range(500)})[-1] == ("and more", "440 entries")
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert origin({"deep": deep}) == [("deep", "(nested too deeply)")]
    page = build_report([("a", audited(provenance={"software": 3, "parameters": None, "command": 4}))], title="t")
    assert "software" in page


def test_a_public_origin_is_versions_and_a_day():
    given = {"software": {"plaudit": "0.1.0", "numpy": "2.4.0rc1", "mine": "1.2"}, "python": "3.11.7"}
    result = audited(provenance=given | {"created": "2026-01-02T03:04:05+00:00", "platform": "a host"})
    software = ("software", "plaudit 0.1.0, numpy 2.4.0rc1, Python 3.11.7")
    assert public_origin(result) == [software, ("made on", "2026-01-02")]
    assert public_origin(audited(provenance={"software": "0.1.0", "created": 5})) == []


def test_the_command_reproduces_a_result_and_is_shown():
    page = Page(build_report([("a", audited(provenance={"command": "plaudit audit gdpc --seed 1"}))], title="t"))
    assert "plaudit audit gdpc --seed 1" in page.text
    assert "read it before you run it" in page.text


def test_the_lines_of_python_reproduce_a_result():
    pair = NeighborPair.add_people([120, 75], cell=0)
    mechanism = GDPC(1.0)
    result = measure_loss(mechanism, pair, PureDP(1.0), size=400, rng=7, confidence=0.9)
    _, lines = reproduction(result)
    names = {"mechanism": mechanism, "pair": pair}
    exec("\n".join(lines), names)
    assert names["result"].counts == result.counts
    canaries = Canaries([100] * 50)
    once = measure_loss_one_run(mechanism, canaries, PureDP(1.0), rng=3)
    names = {"mechanism": mechanism, "canaries": canaries}
    exec("\n".join(reproduction(once)[1]), names)
    assert names["result"].counts == once.counts
    outputs = {"outputs_x": [0.0, 0.0, 1.0] * 9, "outputs_y": [1.0, 1.0, 0.0] * 9}
    grown = measure_loss_from_outputs(*outputs.values(), PureDP(1.0), relation="add_remove", stop="early")
    exec("\n".join(reproduction(grown)[1]), outputs)
    assert outputs["result"].basis == grown.basis


def test_what_files_say_stays_in_comments():
    for words in PAYLOADS:
        hostile = words + "\nimport os; os.abort()\r__import__('os')\u2028x"
        changes = {"mechanism": hostile, "pair": hostile, "event": hostile}
        given = {"size": hostile, "selection": hostile, "stop": hostile, "share": hostile}
        elsewhere = {"parameters": {**given, "runs_x": hostile}}
        for more in ({"selection": 0}, {"bound": ONE_RUN}, {"provenance": elsewhere}):
            result = audited(**changes | {"provenance": {"parameters": given}} | more)
            tree = ast.parse("\n".join(reproduction(result)[1]))
            assert [type(node) for node in tree.body] == [ast.ImportFrom, ast.Assign]
            call = tree.body[1].value
            assert [ast.unparse(argument) for argument in call.args][-1] == repr(result.claim)
            assert {keyword.arg for keyword in call.keywords} <= KEYWORDS
            assert all(isinstance(keyword.value, ast.Constant | ast.Name) for keyword in call.keywords)


@given(st.text())
def test_text_is_visible(words):
    shown = visible(words)
    assert shown.isprintable()
    assert visible(shown) == shown
    assert not re.search("[\u0300-\u036f]{4}", shown)


def test_text_that_hides_turns_or_covers_is_escaped():
    assert visible("a\u202eb\u2066\x00\x1b[0m\n") == "a\\u202eb\\u2066\\x00\\x1b[0m\\n"
    assert visible("\u3164\ud800\ufeff") == "\\u3164\\ud800\\ufeff"
    assert visible("e\u0301\u0301\u0301\u0301") == "e\u0301\u0301\u0301\\u0301"
    assert visible("Hoce\N{LATIN SMALL LETTER I WITH DIAERESIS}ma").isalpha()
    assert visible("abc", most=2) == "ab ... (1 more letters)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "about 9,600 runs in all (--size)"),  # 1.2 x 2000 x (2 / 1)^2; events of a group would be too rare
        (
            {"claim": PureDP(0.25), "measured": PureDP(0.0), "detectable": 0.75},
            "about 9,600 runs in all (--size), or databases that differ in 3 people",  # 1.1 x 2 / 1
        ),
        ({"unit": "record", "detectable": math.inf}, "more runs (--size), or databases that differ in several records"),
        ({"provenance": {"parameters": {"runs_x": 1000}}}, "about 9,600 runs in all"),  # made elsewhere
        (
            {"detectable": math.inf, "ceiling": 0.342, "distance": 20},
            "databases that differ in 6 people at most, or more runs (--size)",
        ),
        ({"detectable": math.inf, "ceiling": 0.04, "distance": 20}, "more runs (--size)"),
        ({"bound": "one-run guessing game"}, "more cells, or more people in each of them"),
        ({"verdict": "not refuted", "detectable": 1.5}, ""),
        ({"claim": PureDP(0.0), "measured": PureDP(0.0)}, ""),  # twice a promise of nothing is nothing
    ],
)
def test_what_would_give_power(changes, words):
    assert remedy(audited(**{"verdict": "no power", "detectable": 3.0} | changes), "--size") == words
