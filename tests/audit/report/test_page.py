"""The HTML report: numbers and words that follow from results, nothing that hostile or confidential text could do."""

from __future__ import annotations

import ast
import errno
import math
import os
import re
import resource
from base64 import b64encode
from dataclasses import fields, replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from typer.testing import CliRunner

from algorithms.flaxman import GDPC
from audit import measure_loss
from audit.bounds.citations import ESTIMATES, REFERENCES, SOFTWARE
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.cli.report import report
from audit.estimates.residuals import _METHODS, residual_loss
from audit.methods.method import NAMED
from audit.neighbors import NeighborPair
from audit.one_run import Canaries, measure_loss_one_run
from audit.report.figures import END, MOST, loss_bar, loss_curve, privacy_profiles
from audit.report.origin import origin, public_origin, reproduction
from audit.report.page import KINDS, METHODS, SIGNATURE, build_report
from audit.report.words import LONGEST, assumptions, event_class, meaning, unseen, visible
from audit.results import ONE_RUN, REDACTED, AuditResult
from audit.results.files import write_json
from audit.results.formatting import row
from tests.audit.results.strategies import audits, estimates
from tests.benchmarks.reports import SIZE, many_results
from tests.helpers import audited, estimated

# What people have smuggled into pages through names: each would set `pwned`, ask for an address, or take over the page.
PAYLOADS = [
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "<ScRiPt>window.pwned=1</sCrIpT>",
    "<scr<script>ipt>window.pwned=1</scr</script>ipt>",
    "<script/x>window.pwned=1</script/x>",
    "<script src=//evil.invalid/x.js></script>",
    "<script src='data:text/javascript,window.pwned=1'></script>",
    "<script type=module>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<img/src=x/onerror=window.pwned=1>",
    "<img src=//evil.invalid/pixel.png>",
    "<image href=//evil.invalid/a.png>",
    "<body onload=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>",
    "<svg><set attributeName=href to=javascript:window.pwned=1></svg>",
    "<svg><use href='data:image/svg+xml,<svg id=a onload=window.pwned=1>#a'/></svg>",
    "<svg><foreignObject><iframe src=javascript:window.pwned=1></foreignObject></svg>",
    "</title><script>window.pwned=1</script>",
    "</desc></svg><script>window.pwned=1</script>",
    "</style><script>window.pwned=1</script>",
    "</textarea><script>window.pwned=1</script>",
    "</details></section></main><script>window.pwned=1</script>",
    "<style>@import '//evil.invalid/a.css';</style>",
    "<style>*{background:url(//evil.invalid/b.png)}</style>",
    "<link rel=stylesheet href=//evil.invalid/a.css>",
    "<link rel=prefetch href=//evil.invalid/>",
    "<p style='position:fixed;inset:0;background:url(//evil.invalid/c.png)'>covered</p>",
    "<meta http-equiv=refresh content='0;url=//evil.invalid/'>",
    "<meta http-equiv=Content-Security-Policy content='script-src *'>",
    "<base href=//evil.invalid/>",
    "<form action=//evil.invalid/><button>send</button></form>",
    "<input autofocus onfocus=window.pwned=1>",
    "<select autofocus onfocus=window.pwned=1>",
    "<button formaction=javascript:window.pwned=1>press</button>",
    "<iframe src=javascript:window.pwned=1></iframe>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<object data=javascript:window.pwned=1></object>",
    "<embed src=//evil.invalid/x.swf>",
    "<video><source onerror=window.pwned=1></video>",
    "<audio src=x onerror=window.pwned=1>",
    "<details open ontoggle=window.pwned=1>",
    "<marquee onstart=window.pwned=1>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>",
    "<math href=javascript:window.pwned=1 xlink:href=javascript:window.pwned=1>m</math>",
    "<a href=javascript:window.pwned=1>here</a>",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    '" onmouseover="window.pwned=1',
    "' onmouseover='window.pwned=1",
    '"><script>window.pwned=1</script>',
    "'><script>window.pwned=1</script>",
    "` onmouseover=`window.pwned=1",
    "x onmouseover=window.pwned=1 y",
    "<!--><script>window.pwned=1</script>-->",
    "--><script>window.pwned=1</script><!--",
    "<![CDATA[<script>window.pwned=1</script>]]>",
    "<?xml version='1.0'?><?php echo 1 ?>",
    "<noscript><p title='</noscript><img src=x onerror=window.pwned=1>'>",
    "<template><script>window.pwned=1</script></template>",
    "<slot name=pwned></slot><x-pwned is=x-y></x-pwned>",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "&#60;script&#62;window.pwned=1&#60;/script&#62;",
    "&#x3c;img src=x onerror=window.pwned=1&#x3e",
    "{{ 7 * 191 }}{% for x in y %}{# pwned #}",
    "${window.pwned=1} #{window.pwned=1} <%= window.pwned=1 %>",
    "{{ self.__init__.__globals__ }}",
    "\\u003cscript\\u003ewindow.pwned=1\\u003c/script\\u003e",
    "\N{FULLWIDTH LESS-THAN SIGN}script\N{FULLWIDTH GREATER-THAN SIGN}window.pwned=1",
    "+ADw-script+AD4-window.pwned=1+ADw-/script+AD4-",
    "<scr\x00ipt>window.pwned=1</script>",
    "\ufeff<script>window.pwned=1</script>",
    "total\u202egnp.stnuoc\u2066 \u200b\u2028",
    "<a\x0chref=\x01javascript:window.pwned=1>\r\nx</a>\x1b[2J",
    "a\u0300" + "\u0301" * 40,
    "\ud800<script>window.pwned=1</script>",
    "A" * (LONGEST + 500) + "<script>window.pwned=1</script>",
]
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer", "nav", "article"),
    *("h1", "h2", "h3", "h4", "p", "a", "b", "small", "strong", "code", "pre", "bdi", "span", "div", "ul", "ol", "li"),
    *("dl", "dt", "dd", "figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "details"),
    *("summary", "svg", "desc", "rect", "line", "path", "text", "polygon", "polyline"),
}


KEYWORDS = {"size", "selection", "confidence", "rng", "share", "event", "relation", "distance", "unit"}


class Page(HTMLParser):
    """What a page consists of: its tags and attributes, its text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.pieces = set(), set(), []
        self.feed(page)
        self.close()
        self.text = "".join(self.pieces)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {(name, value) for name, value in attrs}

    def handle_data(self, data):
        self.pieces.append(data)

    def values(self, name):
        return {value for key, value in self.attributes if key == name}


def planted(words, **changes):
    """An audit in which every text is `words`, down to the keys."""
    result = audited(
        **{name: words for name in ("mechanism", "event", "searched", "pair", "bound")},
        claim=PureDP(1.0),
        measured=PureDP(2.0),
        verdict="violated",
        counts={side: {"runs": 9, words: 3, "guessed_y": 2} for side in ("x", "y", words)},
        support={"order": words, "probability": 0.25},
        provenance={
            "software": {"plaudit": words, words: words},
            "python": words,
            "platform": words,
            "created": words,
            "command": words,
            "parameters": {"size": words, words: {words: [words]}, "stop": words},
            words: words,
        },
        basis={words: words},
    )
    return replace(result, **changes)


def planted_estimate(words):
    return estimated(method=words, statistic=words, assumptions=(words, words), settings={words: words, "lag": [words]})


def hostile_page(payloads, **options):
    """A page in which every payload is in every text of audits and estimates, with and without a command."""
    given = [(words, planted(words)) for words in payloads]
    given += [
        (words, planted(words, provenance={"parameters": {"share": words}}, bound=ONE_RUN)) for words in payloads[::3]
    ]
    others = [(words, planted_estimate(words)) for words in payloads]
    return build_report(given, others, **{"title": " ".join(payloads)[:4000]} | options)


def body(page):
    return page.partition("</style>")[2]


@pytest.fixture(scope="module")
def hostile():
    return hostile_page(PAYLOADS)


@pytest.fixture(scope="module")
def parsed(hostile):
    return Page(hostile)


# What is shown


def test_every_number_is_that_of_the_other_renderings():
    results = [
        audited(),
        audited(claim=ApproxDP(2.0, 1e-6), measured=ApproxDP(0.123456789, 1e-6), detectable=2.000001),
        audited(claim=ZCDP(0.5), measured=ZCDP(0.500001), verdict="violated", detectable=math.inf),
        audited(
            claim=GaussianDP(0.8), measured=GaussianDP(0.0), detectable=1e9, verdict="no power", confidence=0.999999
        ),
    ]
    page = Page(build_report([(f"audit-{k}", result) for k, result in enumerate(results)], title="t"))
    for result in results:
        said = row(result.summary())
        for key in ("promised", "measured", "detectable", "ceiling", "confidence", "verdict"):
            assert said[key] in page.text


def test_the_verdict_comes_first_and_counts_audits():
    violated = audited(claim=PureDP(0.5), verdict="violated")
    page = build_report(
        [("a", audited()), ("b", violated), ("c", audited(verdict="no power", detectable=3.0))], title="t"
    )
    assert "1 of 3 audits shows a broken promise of privacy." in page
    assert page.index("broken promise") < page.index("All audits</h2>") < page.index("Each audit</h2>")
    assert page.index('<a href="#audit-1"><bdi>b</bdi></a>') < page.index('<a href="#audit-2"><bdi>c</bdi></a>')
    passed = build_report([("a", audited())], title="t")
    assert "No promise of privacy was refuted, which proves none." in passed
    assert "with a probability of up to 0.05" in passed
    empty = build_report([("a", audited(verdict="no power", detectable=3.0))], title="t")
    assert "1 of 1 audit had no power to refute one." in empty


def test_neighbors_and_event_stand_wherever_a_result_does():
    result = audited(relation="replace_one", unit="household", distance=3, adjacency="declared", verdict="violated")
    result = replace(result, claim=PureDP(0.5, "replace_one"), measured=PureDP(0.875, "replace_one"))
    page = build_report([("a", result)], title="t")
    words = "one household replaced, 3 steps apart (declared)"
    verdict, table, details = page.split("<h2>")[0:3]
    for part in (verdict, table, details):
        assert words in part
        assert "a rule that guesses the database" in part


@pytest.mark.parametrize(
    ("claim", "measured", "promised", "forced"),
    [
        (PureDP(math.log(3)), PureDP(math.log(9)), "75.0", "90.0"),
        (ApproxDP(math.log(3), 1e-6), ApproxDP(math.log(9), 1e-6), "75.0", "90.0"),
        (GaussianDP(1.0), GaussianDP(2.0), f"{100 * norm.cdf(0.5):.1f}", f"{100 * norm.cdf(1.0):.1f}"),
        (PureDP(1.0), PureDP(1.00001), "73.1059", "73.1060"),
    ],
)
def test_right_guesses_are_those_of_theory(claim, measured, promised, forced):
    words = " ".join(meaning(audited(claim=claim, measured=measured, verdict="violated")))
    found = [
        float(number)
        for number in re.findall(r"at most ([\d.]+) times|(?:at least|allows) ([\d.]+) times", words)
        for number in number
        if number
    ]
    assert found[0] == pytest.approx(float(promised), abs=0.11)
    assert found[1] == pytest.approx(float(forced), abs=0.11)
    assert found[0] < found[1]  # the verdict follows from what is said
    assert ("failures of probability 1e-06 set aside" in words) == isinstance(claim, ApproxDP)


def test_an_unbounded_loss_is_said_to_be_one():
    result = audited(support={"order": "possible on x only", "probability": 0.25}, verdict="violated")
    assert "an output of probability 0.25 is possible on only one of the two databases" in " ".join(meaning(result))
    assert "no count shows it" in " ".join(assumptions(result))


def test_words_follow_the_result():
    assert "120" not in " ".join(unseen(audited(verdict="violated", claim=PureDP(0.5))))
    assert "A loss below 1.250 (125.0% of the promise)" in unseen(audited())[0]
    assert "however large" in unseen(audited(detectable=math.inf))[0]
    assert "a lower bound never says" in unseen(audited(ceiling=math.inf))[-1]
    assert "within the promised 1" in meaning(audited())[1]
    assert "say nothing for the promise or against it" in meaning(audited(verdict="no power", detectable=3.0))[1]
    assert "which of two values" in meaning(audited(relation="replace_one"))[0]
    assert "declared by the auditor" in assumptions(audited(adjacency="declared"))[0]
    assert "made elsewhere" in assumptions(audited(adjacency="declared", mechanism="given outputs"))[1]
    assert "one run" in assumptions(audited(bound=ONE_RUN))[1]
    assert "fixed before any run" in assumptions(audited(selection=0))[2]
    assert event_class(audited(bound="a theorem of mine")) == "an event of another kind"


def test_every_bound_and_promise_is_cited():
    used = {key for one in (*NAMED.values(), PureDP, ApproxDP, ZCDP, GaussianDP) for key in one.sources}
    assert used | set(ESTIMATES) == REFERENCES.keys()
    assert set(METHODS) == set(_METHODS)
    page = build_report([("a", audited())], [("e", estimated())], title="t")
    assert "Privacy Auditing with One (1) Training Run" in page
    assert "Gaussian Differential Privacy" not in page
    numbers = set(re.findall(r'href="#(ref-\d+)"', page))
    assert numbers == set(re.findall(r'<li id="(ref-\d+)"', page))


def test_the_citation_is_that_of_the_repository():
    cff = (Path(__file__).parents[3] / "CITATION.cff").read_text("utf-8")
    assert re.search(r'^title: "(.*)"$', cff, re.MULTILINE).group(1) in SOFTWARE
    assert re.search(r'^  - name: "(.*)"$', cff, re.MULTILINE).group(1) in SOFTWARE


def test_a_page_is_the_same_twice_whatever_the_order():
    given = [("a", audited()), ("b", audited(measured=PureDP(0.5)))]
    assert build_report(given, title="t") == build_report(given[::-1], title="t")


def test_estimates_are_never_called_bounds():
    page = Page(build_report([], [("residuals", residual_loss(np.arange(-9.0, 10.0), rng=1))], title="t"))
    assert "There is no audit here, only estimates, which never become a verdict." in page.text
    assert "Estimates, never bounds" in page.text
    assert "exchangeable areas" in page.text
    unknown = Page(build_report([], [("e", estimated(value=math.nan, interval=(math.nan, math.inf)))], title="t"))
    assert "unknown nats" in unknown.text


def test_a_report_needs_a_result():
    with pytest.raises(ValueError, match="at least one result, got none"):
        build_report([], title="t")


@given(audits(), estimates(), st.booleans())
@settings(max_examples=10)
def test_whatever_a_result_holds_becomes_a_page(result, estimate, public):
    page = Page(build_report([("a", result)], [("e", estimate)], title="t", public=public))
    assert page.tags <= TAGS
    for name in ("points", "d", "x", "y", "x1", "x2", "y1", "y2", "width"):
        assert not any("nan" in value or "inf" in value for value in page.values(name))


# Figures


def test_profiles_are_those_of_theory():
    drawing = privacy_profiles(audited(claim=PureDP(1.0), measured=PureDP(2.0), verdict="violated"))
    promised, forced = (
        [tuple(map(int, point.split(","))) for point in drawing.lines[name][0].split()]
        for name in ("promised", "measured")
    )
    top = 1.1 * math.tanh(1.0)
    assert promised[0] == (0, round(1000 * (1 - math.tanh(0.5) / top)))
    assert forced[0] == (0, round(1000 * (1 - math.tanh(1.0) / top)))
    assert (round(1000 / 2.3), 1000) in promised  # delta 0 from epsilon 1 on, of 2.3
    assert (round(2000 / 2.3), 1000) in forced
    assert drawing.areas
    assert "epsilon 1, is a solid line from 0.462 at epsilon 0 to 0 at epsilon 1." in drawing.words
    assert "The dashed line is above" in drawing.words
    kept = privacy_profiles(audited(claim=ZCDP(0.5), measured=ZCDP(0.4)))
    assert kept.areas == ()
    assert "nowhere above" in kept.words


def test_bars_are_in_units_of_the_promise():
    bar = loss_bar(audited(claim=ZCDP(0.5), measured=ZCDP(0.6), detectable=0.75, verdict="violated"))
    assert (bar.measured, bar.detectable, bar.beyond) == (f"{120 / END:.4g}", f"{150 / END:.4g}", False)
    far = loss_bar(audited(measured=PureDP(9.0), detectable=math.inf, verdict="violated"))
    assert (far.measured, far.detectable, far.beyond) == ("100", "", True)
    assert "Promised epsilon 1; lower bound 9" in far.words
    assert loss_bar(audited(claim=PureDP(math.inf))).measured == "0"
    assert loss_bar(audited(claim=PureDP(0.0), verdict="violated")).beyond


def test_curves_of_estimates_have_gaps_where_nothing_is_known():
    loss = np.array([1.0, 2.0, np.nan, 2.0, np.inf, 1.0])
    drawing = loss_curve(
        estimated(at=np.arange(6.0), loss=loss, low=loss - 1, high=np.where(np.isnan(loss), loss, np.inf))
    )
    assert drawing.lines["estimate"] == ("0,667 200,333", "600,333", "1000,667")
    assert len(drawing.areas) == 3
    assert "from 0 to 5 people: between 1 and 2 nats" in drawing.words
    many = loss_curve(estimated(**{name: np.linspace(0.0, 9.0, 99_999) for name in ("at", "loss", "low", "high")}))
    assert len(many.lines["estimate"][0].split()) == MOST
    assert loss_curve(
        estimated(at=np.array([2.0]), loss=np.array([1.0]), low=np.array([1.0]), high=np.array([1.0]))
    ).across
    assert loss_curve(estimated(loss=np.full(3, np.nan))).words == "No point of the curve is known."
    page = build_report(
        [],
        [("e", estimated(**{name: np.linspace(0.0, 9.0, 9999) for name in ("at", "loss", "low", "high")}))],
        title="t",
    )
    assert "more letters" not in page


def test_figures_have_words_from_the_numbers():
    page = Page(build_report([("a", audited())], title="t"))
    assert page.values("role") >= {"img"}
    assert "Promised epsilon 1; lower bound 0.8750; minimum detectable loss 1.250; not refuted." in page.text
    assert "Delta over epsilon from 0 to 1.15 nats." in page.text


# Where numbers come from


def test_origins_are_shown_whatever_they_are():
    assert origin({"one": {"two": 3, "three": {"four": 4}}, "x": [1]}) == [
        ("one", "two 3, three {'four': 4}"),
        ("x", "[1]"),
    ]
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
    assert public_origin(result) == [
        ("software", "plaudit 0.1.0, numpy 2.4.0rc1, Python 3.11.7"),
        ("made on", "2026-01-02"),
    ]
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


def test_what_files_say_stays_in_comments():
    for words in PAYLOADS:
        hostile = words + "\nimport os; os.abort()\r__import__('os')\u2028x"
        changes = {"mechanism": hostile, "pair": hostile, "event": hostile}
        given = {"size": hostile, "selection": hostile, "stop": hostile, "share": hostile}
        for more in ({"selection": 0}, {"bound": ONE_RUN}, {"mechanism": "given outputs"}):
            result = audited(**changes | more, provenance={"parameters": given})
            tree = ast.parse("\n".join(reproduction(result)[1]))
            assert [type(node) for node in tree.body] == [ast.ImportFrom, ast.Assign]
            call = tree.body[1].value
            assert [ast.unparse(argument) for argument in call.args][-1] == repr(result.claim)
            assert {keyword.arg for keyword in call.keywords} <= KEYWORDS
            assert all(isinstance(keyword.value, ast.Constant | ast.Name) for keyword in call.keywords)


# Hostile text


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
    assert (
        visible("Al Hoce\N{LATIN SMALL LETTER I WITH DIAERESIS}ma")
        == "Al Hoce\N{LATIN SMALL LETTER I WITH DIAERESIS}ma"
    )
    assert visible("abc", most=2) == "ab ... (1 more letters)"


def test_there_are_many_payloads():
    assert len(set(PAYLOADS)) >= 50


def test_hostile_text_becomes_neither_tag_nor_attribute(parsed):
    page = parsed
    assert page.tags <= TAGS
    names = {name for name, _ in page.attributes}
    assert not any(name.startswith("on") for name in names)
    assert not names & {"style", "src", "srcdoc", "action", "formaction", "xlink:href", "background", "poster"}
    assert all(value.startswith("#") for value in page.values("href"))
    assert page.values("http-equiv") == {"Content-Security-Policy"}
    for words in PAYLOADS:
        assert visible(words) in page.text


def test_every_text_of_a_result_is_shown():
    words = iter(f"<{k}>&'\"" for k in range(99))
    result = replace(planted(""), **{name: next(words) for name in ("mechanism", "event", "searched", "pair", "bound")})
    result = replace(
        result,
        counts={"x": {"runs": 9, next(words): 3}, next(words): {}},
        support={"order": next(words), "probability": 0.5},
        provenance={key: {next(words): next(words)} for key in ("software", "parameters", next(words))},
    )
    estimate = estimated(
        method=next(words), statistic=next(words), assumptions=(next(words),), settings={next(words): next(words)}
    )
    page = Page(build_report([(next(words), result)], [(next(words), estimate)], title=next(words)))
    shown = int(next(words)[1:-4])
    assert shown == 23
    for k in range(shown):
        assert f"<{k}>&'\"" in page.text


def test_hostile_text_of_a_public_page_is_not_there_at_all():
    some = PAYLOADS[::8]
    page = Page(hostile_page(some, public=True, title="t"))
    assert not [words for words in some if visible(words) in page.text]


def test_the_policy_allows_the_style_and_nothing_else(hostile, parsed):
    style = hostile.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert parsed.values("content") >= {policy}
    assert hostile.index("Content-Security-Policy") < hostile.index("<title>")  # before any text from outside


def test_no_address_from_outside_is_in_a_page():
    page = build_report([("a", audited())], [("e", estimated())], title="t")
    assert not re.search(r"https?:|//|url\(|@import|<script|javascript", page)


# What must not be told

CANARY = "CANARY-4711"


@pytest.mark.parametrize("confidential", [False, True])
def test_a_public_page_tells_nothing_that_discloses(confidential):
    result = planted(
        CANARY,
        counts={"x": {"runs": 918273, "guessed_x": 817263}, "y": {"runs": 918274, "guessed_y": 716253}},
        seed_entropy=615243,
        seconds=514.233,
        confidential=confidential,
    )
    estimate = replace(planted_estimate(CANARY), areas=413223)
    given = [(CANARY, result), (CANARY, replace(result, bound=ONE_RUN, selection=0))]
    full = build_report(given, [(CANARY, estimate)], title="t")
    page = build_report(given, [(CANARY, estimate)], title="t", public=True, published={"GDPC"})
    for secret in (CANARY, "918,273", "817,263", "716,253", "615243", "514", "413,223"):
        assert secret in full  # the canary is where it can sing
        assert secret not in page
        assert secret.replace(",", "") not in page
    assert "CONFIDENTIAL" not in body(page)
    assert "This is the public version." in page
    assert REDACTED not in page
    assert "How to reproduce it" not in page


def test_fields_of_a_result_are_all_planted():
    texts = {f.name for f in fields(AuditResult) if f.type in ("str", "dict[str, Any]", "dict[str, Any] | None")}
    literal = {"relation", "unit", "adjacency", "verdict"}
    assert all(CANARY in repr(getattr(planted(CANARY), name)) for name in texts - literal)


def test_a_public_page_names_published_mechanisms_only():
    given = [
        ("my secret region", audited(mechanism="GDPC")),
        ("other", audited(mechanism="Mine", measured=PureDP(0.5))),
    ]
    page = build_report(given, title="t", public=True, published={"GDPC"})
    assert "Audit 1: GDPC" in page
    assert "Audit 2</bdi>" in page
    assert "Mine" not in page
    assert "secret region" not in page
    estimate = estimated(method="kde", statistic="median |loss|")
    assert "kde" in build_report([], [("e", estimate)], title="t", public=True)


def test_a_confidential_page_says_so_everywhere():
    page = build_report([("a", audited(confidential=True)), ("b", audited())], [("e", estimated())], title="t")
    assert "<title>CONFIDENTIAL: t</title>" in page
    assert '<body class="confidential">' in page
    assert re.search(r"@page confidential \{ @top-center \{ content: \"CONFIDENTIAL\"", page)
    assert page.count('<strong class="secret">CONFIDENTIAL</strong>') == 3  # figure, table, details
    assert page.index("CONFIDENTIAL</strong>") < page.index("<h1>")
    assert 'class="secret"' not in build_report([("b", audited())], title="t")


def test_a_redacted_result_becomes_a_page():
    page = build_report([("a", audited(confidential=True).redact())], title="t")
    assert "rng=None" in page
    assert "CONFIDENTIAL</strong>" not in page


def test_counts_of_many_kinds_are_cut():
    bins = {f"bin {k}": k for k in range(500)}
    page = build_report([("a", audited(counts={"x": bins | {"runs": 5}, "y": {"runs": 7}}))], title="t")
    assert page.count('<th scope="row">bin ') == KINDS - 1


# The command

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(report)


def run(*arguments):
    """Return the exit code and what is printed; input errors are raised."""
    answer = CliRunner().invoke(app, [str(argument) for argument in arguments], standalone_mode=False)
    if answer.exception is not None:
        raise answer.exception
    return answer.return_value, answer.stdout


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "release 1"
    place.mkdir()
    audited().to_json(place / "sound.json")
    return place


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, 0),
        ({"verdict": "no power", "detectable": 2.5}, 3),
        ({"verdict": "violated", "measured": PureDP(1.5)}, 1),
    ],
)
def test_the_exit_code_is_that_of_check(folder, more, code):
    audited(**more).to_json(folder / "more.json")
    found, words = run(folder)
    assert found == code
    assert words.startswith(f"Wrote {folder / 'report.html'}: 2 audits, ")
    page = (folder / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>Privacy audit of release 1</title>" in page
    assert sorted(path.name for path in folder.iterdir()) == ["more.json", "report.html", "sound.json"]


def test_estimates_alone_are_within_their_claims(tmp_path):
    write_json(tmp_path / "residuals.json", estimated().to_dict())
    code, words = run(tmp_path, "--out", tmp_path / "new" / "page.html")
    assert code == 0
    assert "0 audits, 0 violated; 1 estimates" in words
    assert (tmp_path / "new" / "page.html").exists()


def test_a_public_report_has_no_names_of_folders(folder):
    audited(mechanism="RDPC", confidential=True).to_json(folder / "of us.json")
    run(folder, "--public", "--title", "Release <1>")
    page = (folder / "report.html").read_text("utf-8")
    assert "<h1><bdi>Release &lt;1&gt;</bdi></h1>" in page
    assert ": RDPC" in page  # one of ours
    assert ": count" not in body(page)
    run(folder, "--public")
    assert "release 1" not in (folder / "report.html").read_text("utf-8")


def test_a_report_replaces_reports_and_what_it_is_told_to(folder):
    run(folder, "--title", "first")
    run(folder, "--title", "second")
    path = folder / "report.html"
    assert SIGNATURE in path.read_text("utf-8")
    assert "second" in path.read_text("utf-8")
    path.write_text("<p>mine</p>")
    with pytest.raises(ValueError, match="must be a report of plaudit to be replaced: name it with --out"):
        run(folder)
    assert path.read_text() == "<p>mine</p>"
    run(folder, "--out", path)
    assert SIGNATURE in path.read_text("utf-8")


def test_results_folders_and_devices_are_never_replaced(folder):
    before = (folder / "sound.json").read_bytes()
    with pytest.raises(ValueError, match="out must not be a result"):
        run(folder, "--out", folder / "sound.json")
    assert (folder / "sound.json").read_bytes() == before
    with pytest.raises(ValueError, match="out must be a file, got the folder"):
        run(folder, "--out", folder)
    with pytest.raises(ValueError, match="out must be a file, and /dev/full is none"):
        run(folder, "--out", "/dev/full")
    assert not Path("/dev/full").is_file()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "must be a folder of saved audits"),
        ("", "must hold saved audits"),
        ("[" * 100_000, "is not a result file"),
        ('{"kind": "audit", "kind": "audit"}', "is not a result file"),
        ('{"sha256": "0", "size": 1e999}', "is not a result file|does not match"),
    ],
)
def test_folders_without_results_are_one_line(tmp_path, text, words):
    place = tmp_path / "results"
    if text is not None:
        place.mkdir()
        if text:
            (place / "a.json").write_text(text)
    with pytest.raises(ValueError, match=words) as caught:
        run(place)
    assert "\n" not in str(caught.value)
    assert not (place / "report.html").exists()


def test_a_full_disk_keeps_the_old_report(folder):
    run(folder, "--title", "old")
    before = (folder / "report.html").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            run(folder, "--title", "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (folder / "report.html").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "sound.json"]


def test_a_place_that_cannot_be_written_is_an_error(folder):
    (folder / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        run(folder, "--out", folder / "file" / "report.html")


def test_names_do_not_reach_the_terminal_as_they_are(folder):
    target = folder / "a\x1b[2J\nb.html"
    assert "\x1b" not in run(folder, "--out", target)[1]
    assert target.exists()


def test_a_folder_without_systems_names_no_mechanism(folder, monkeypatch):
    def missing(name):
        raise ValueError("the reference implementations must be installed")

    monkeypatch.setattr("audit.cli.loading.offered", missing)
    audited(mechanism="GDPC").to_json(folder / "gdpc.json")
    run(folder, "--public")
    assert "GDPC" not in (folder / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_a_thousand_results_are_small_enough():
    audits_given, estimates_given = many_results(1000)
    page = build_report(audits_given, estimates_given, title="t").encode()
    assert len(audits_given) + len(estimates_given) == 1000
    assert len(page) < SIZE
