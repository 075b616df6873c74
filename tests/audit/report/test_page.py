"""The page of results: what it shows, what it must not tell, and that nothing in a name is obeyed."""

import math
import re
from base64 import b64encode
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.bounds.citations import ESTIMATES, REFERENCES, SOFTWARE
from audit.claims import ZCDP, GaussianDP, PureDP
from audit.claims.families import FAMILIES
from audit.estimates.curves import CURVES
from audit.estimates.residuals import residual_loss
from audit.methods.method import NAMED
from audit.report.page import KINDS, METHODS, READERS
from audit.report.words import UNSEEN, meaning, promise, quotable, visible
from audit.results import ONE_RUN, REDACTED, AuditResult
from audit.results.formatting import row
from tests.audit.report.hostile import PAYLOADS, TAGS, Page, body, by_kind, hostile_page, page_of, planted
from tests.audit.results.strategies import audits, estimates
from tests.helpers import audited, estimated, replayed


@pytest.fixture(scope="module")
def hostile():
    return hostile_page(PAYLOADS)


@pytest.fixture(scope="module")
def parsed(hostile):
    return Page(hostile)


IDLE, BROKEN = audited(verdict="no power", detectable=3.0), audited(claim=PureDP(0.5), verdict="violated")
FAULTY = replayed(violations=({"kind": "order", "sentence": "draw 1 is of <b> on x"},), confidential=True)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ({"audits": [audited(), BROKEN, IDLE]}, "1 of 3 audits shows a broken promise of privacy."),
        ({"audits": [audited(), IDLE]}, "No violation found, but 1 of 2 audits had too few runs."),
        ({"audits": [audited()], "replays": [FAULTY, replayed()]}, "1 of 2 replays shows a violation."),
        ({"audits": [BROKEN], "replays": [FAULTY]}, "The promise of privacy is broken."),
        ({"replays": [FAULTY]}, "1 of 1 replay shows a violation."),
        ({"replays": [replayed(evaluated=False)]}, "No replay shows a violation, but 1 of 1 had nothing to compare."),
        ({"replays": [replayed()]}, "No replay shows a violation, which proves no promise."),
        ({"estimates": [estimated()]}, "There is no audit here, only estimates, which never become a verdict."),
    ],
)
def test_the_headline_counts_verdicts(results, words):
    page = page_of(**{kind: [(f"{kind} {k}", one) for k, one in enumerate(some)] for kind, some in results.items()})
    assert words in page.partition("<h1")[2].partition("</h1>")[0]


def test_the_verdict_comes_first_and_the_worst_audit_which_alone_is_open():
    page = page_of([("a", audited()), ("b", BROKEN), ("c", IDLE)])
    assert page.index("broken promise") < page.index("What to do now</h2>") < page.index("What each audit found</h2>")
    assert page.index('<a href="#audit-1"><bdi>b</bdi></a>') < page.index('<a href="#audit-2"><bdi>c</bdi></a>')
    audits = page.split('<details class="audit')[1:]
    assert [details.startswith(' violated" open>') for details in audits] == [True, False, False]
    assert promise(BROKEN) not in "".join(audits)  # it stands above, with the verdict
    assert [promise(audited()) in details for details in audits] == [False, True, True]  # another promise
    assert "with probability 0.05 at most" in page_of([("a", audited())])
    with pytest.raises(ValueError, match="at least one result, got none"):
        page_of([])


def test_neighbors_and_event_stand_wherever_a_result_does():
    result = audited(relation="replace_one", unit="household", distance=3, adjacency="declared", verdict="violated")
    result = replace(result, claim=PureDP(0.5, "replace_one"), measured=PureDP(0.875, "replace_one"))
    page = page_of([("a", result)])
    words = "one household replaced, the databases 3 steps apart (declared)"
    verdict, _, audits = page.partition("What each audit found</h2>")
    for part in (verdict, *audits.split("<details", 1)):
        assert words in part
        assert "a rule that guesses the database" in part


def test_every_bound_and_promise_is_cited():
    used = {key for one in (*NAMED.values(), *FAMILIES.values()) for key in one.sources if " " not in key}
    assert used | set(ESTIMATES) == REFERENCES.keys()  # other sources are references in full
    assert set(METHODS) == {"direct", *CURVES}
    page = page_of([("a", audited())], [("e", estimated())])
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
    assert page_of(given) == page_of(given[::-1])


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (residual_loss(np.arange(-9.0, 10.0), rng=1), ("Estimates, never bounds", "exchangeable areas", "in people")),
        (estimated(value=math.nan, interval=(math.nan, math.inf)), ("unknown nats for one person",)),
        (
            estimated(statistic="rho", value=0.25, settings={"components": 3}),  # no nats, and not over errors
            ("0.25 for one person", "component of the output", "in rho"),
        ),
    ],
)
def test_an_estimate_says_what_it_is_of(estimate, words):
    text = Page(page_of([], [("e", estimate)])).text
    assert [part for part in words if part not in text] == []
    assert ("error of a count, in people" in text) == ("components" not in estimate.settings)


def test_replays_have_a_section_of_their_own():
    page = page_of([("a", audited())], [], [("r", FAULTY), ("s", replayed())])
    assert "order: draw 1 is of &lt;b&gt; on x" in page
    assert "<title>CONFIDENTIAL: t</title>" in page
    public = page_of([], [], [("secret", FAULTY)], public=True, published={"GDPC"})
    assert "Replay 1: GDPC" in public
    assert not any(words in public for words in ("secret</bdi>", "draw 1", "person added to cell", "one run only"))
    assert "CONFIDENTIAL" not in body(public)
    assert "Replay 1</bdi>" in page_of([], [], [("secret", FAULTY)], public=True)


@given(audits(), estimates(), st.booleans())
@settings(max_examples=10)
def test_whatever_a_result_holds_becomes_a_page(result, estimate, public):
    page = Page(page_of([("a", result)], [("e", estimate)], public=public))
    assert page.tags <= TAGS
    for name in ("points", "d", "x", "y", "x1", "x2", "y1", "y2", "width"):
        assert not any("nan" in value or "inf" in value for value in page.values(name))
    keys = ("promised", "measured", "detectable", "ceiling", "confidence", "verdict")
    assert [key for key in keys if row(result.summary())[key] not in page.text] == []


@pytest.mark.reliability(row=9)
def test_hostile_text_becomes_neither_tag_nor_attribute(parsed, record_property):
    record_property("tried", len(by_kind(PAYLOADS)))
    assert parsed.tags <= TAGS
    names = {name for name, _ in parsed.attributes}
    assert not any(name.startswith("on") for name in names)
    assert not names & {"style", "src", "srcdoc", "action", "formaction", "xlink:href", "background", "poster"}
    assert all(value.startswith("#") for value in parsed.values("href"))
    assert parsed.values("http-equiv") == {"Content-Security-Policy"}
    for words in PAYLOADS:
        assert visible(words) in parsed.text


@pytest.mark.reliability(row=9)
def test_no_letter_of_a_page_hides_turns_or_covers(hostile):
    """No control, no mark of direction, nothing without width or ink, nowhere."""
    assert {letter for letter in hostile if letter in UNSEEN or not (letter.isprintable() or letter == "\n")} == set()
    assert not re.search("[\u0300-\u036f]{4}", hostile)


def test_every_text_of_a_result_is_shown():
    given = [f"<{k}>&'\"" for k in range(23)]
    words = iter(given)
    result = planted(
        "",
        **{name: next(words) for name in ("mechanism", "event", "searched", "pair", "bound")},
        counts={"x": {"runs": 9, next(words): 3}, next(words): {}},
        support={"order": next(words), "probability": 0.5},
        provenance={key: {next(words): next(words)} for key in ("software", "parameters", next(words))},
    )
    settings = {"settings": {next(words): next(words)}}
    estimate = estimated(method=next(words), statistic=next(words), assumptions=(next(words),), **settings)
    page = Page(page_of([(next(words), result)], [(next(words), estimate)], title=next(words)))
    assert [*words, *(text for text in given if text not in page.text)] == []


@pytest.mark.reliability(row=9)
def test_hostile_text_of_a_public_page_is_not_there_at_all(record_property):
    some = PAYLOADS[::8]
    record_property("tried", len(by_kind(some)))
    page = Page(hostile_page(some, public=True, title="t"))
    assert not [words for words in some if visible(words) in page.text]


def test_the_policy_allows_the_style_and_nothing_else(hostile, parsed):
    style = hostile.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert parsed.values("content") >= {policy}
    assert hostile.index("Content-Security-Policy") < hostile.index("<title>")  # before any text from outside


@pytest.mark.reliability(row=9)
def test_no_address_from_outside_is_in_a_page():
    page = page_of([("a", audited())], [("e", estimated())])
    assert not re.search(r"https?:|//|url\(|@import|<script|javascript", page)


CANARY = "CANARY-4711"


def test_a_public_page_of_one_run_tells_nothing_that_discloses():
    """What is left out of others is looked for in `tests.reliability.test_canaries`."""
    given = [(CANARY, replace(planted(CANARY), bound=ONE_RUN, selection=0))]
    page = page_of(given, public=True, published={"GDPC"})
    assert CANARY in page_of(given)  # the canary is where it can sing
    assert not [words for words in (CANARY, "CONFIDENTIAL", REDACTED, "How to reproduce it") if words in body(page)]
    assert "This is the public version." in page


def test_fields_of_a_result_are_all_planted():
    kinds = ("str", "tuple[str, ...]", "dict[str, Any]", "dict[str, Any] | None")
    texts = {f.name for f in fields(AuditResult) if f.type in kinds}
    literal = {"relation", "unit", "adjacency", "verdict"}
    assert all(CANARY in repr(getattr(planted(CANARY), name)) for name in texts - literal)


def test_a_public_page_names_published_mechanisms_only():
    given = [("my secret", audited(mechanism="GDPC")), ("other", audited(mechanism="Mine", measured=PureDP(0.5)))]
    page = page_of(given, public=True, published={"GDPC"})
    assert "Audit 1: GDPC" in page
    assert "Audit 2</bdi>" in page
    assert not [words for words in ("Mine", "my secret") if words in page]
    assert "kde" in page_of([], [("e", estimated(method="kde", statistic="median |loss|"))], public=True)


def test_an_estimate_of_confidential_data_says_so():
    secret = [("e", estimated(settings={"confidential": True})), ("f", estimated(settings={"confidential": "yes"}))]
    page = page_of([], secret)
    assert "<title>CONFIDENTIAL: t</title>" in page
    assert page.count('<strong class="secret">CONFIDENTIAL</strong>') == 1
    assert "CONFIDENTIAL" not in body(page_of([], secret, public=True))
    assert "CONFIDENTIAL" not in body(page_of([], secret[1:]))


def test_a_confidential_page_says_so_everywhere():
    page = page_of([("a", audited(confidential=True)), ("b", audited())], [("e", estimated())])
    assert "<title>CONFIDENTIAL: t</title>" in page
    assert '<body class="confidential">' in page
    assert re.search(r"@page confidential \{ @top-center \{ content: \"CONFIDENTIAL\"", page)
    assert page.count('<strong class="secret">CONFIDENTIAL</strong>') == 4  # verdict, figure, table, details
    assert page.index("CONFIDENTIAL</strong>") < page.index("<h1 ")
    assert 'class="secret"' not in page_of([("b", audited())])
    redacted = page_of([("a", audited(confidential=True).redact())])
    assert "rng=None" in redacted
    assert "CONFIDENTIAL</strong>" not in redacted


def test_counts_of_many_kinds_are_cut():
    bins = {f"bin {k}": k for k in range(500)}
    page = page_of([("a", audited(counts={"x": bins | {"runs": 5}, "y": {"runs": 7}}))])
    assert page.count('<th scope="row">bin ') == KINDS - 1
    assert f"{500 - KINDS + 1} more, together</th><td>{sum(range(KINDS - 1, 500)):,}</td><td>0</td>" in page


@pytest.mark.slow
def test_a_thousand_results_are_small_enough():
    bins = {f"bin {k}": 5_750 for k in range(12)}
    rho = audited(claim=ZCDP(0.5), measured=ZCDP(0.4), counts={side: {"runs": 69_000} | bins for side in "xy"})
    mu = audited(claim=GaussianDP(0.8), measured=GaussianDP(0.7), event="y if joint shift of counts >= 0.5" * 4)
    curve = {name: np.arange(5000.0) for name in ("at", "loss", "low", "high")}
    given = [(f"audit-{k}", (rho, mu)[k % 2]) for k in range(980)]
    page = page_of(given, [(f"residuals-{k}", estimated(**curve)) for k in range(20)])
    assert len(page.encode()) < 10 * 2**20


def head_of(page):
    facts = page.partition('<dl class="facts head">')[2].partition("</dl>")[0]
    return dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", facts))


def test_a_date_stands_at_the_top_and_question_author_and_readers_with_the_verdict():
    days = [{"created": f"{day}T12:30:00+00:00", "parameters": {}} for day in ("2026-03-04", "2026-02-01")]
    page = page_of([(day["created"], audited(provenance=day)) for day in days], author="A <b>", question="Q?")
    head = head_of(page)
    assert (head["Question"], head["Author"]) == ("Q?", "A &lt;b&gt;")
    assert head["Who may read it"].startswith("Anyone who may see the names and commands in it: no data behind it are")
    assert page.index(" · 2026-02-01 to 2026-03-04</p>") < page.index('id="verdict"') < page.index("Who may read it")
    secret = [("a", audited(confidential=True))]
    assert head_of(page_of(secret))["Who may read it"].startswith("Only those who may see the confidential data")
    assert head_of(page_of(secret, public=True)) == {"Who may read it": READERS["public"]}


def test_a_paragraph_to_quote_follows_the_verdicts():
    broken = audited(measured=PureDP(1.5), verdict="violated", confidence=0.999)
    end = " confidence. A promise that is not refuted is not proved: smaller or rarer losses stay hidden."
    one = quotable([("a", audited())])
    assert one.startswith(" ".join(["No violation found.", promise(audited()), *meaning(audited())]))
    two = quotable([("a", audited()), ("b", IDLE)])
    assert (promise(audited()) in two, two.endswith(f" 95%{end}")) == (False, True)
    words = quotable([("b", broken), ("a", audited())])
    assert words.startswith("1 of 2 audits shows a broken promise of privacy. The clearest violation is that of b. ")
    assert " ".join([promise(broken), *meaning(broken)]) in words
    assert words.endswith(f" 95% to 99.9%{end}")
    alone = quotable([("b", broken)])
    assert alone.startswith("The promise of privacy is broken. An attacker who knows everyone else, ")
    assert alone.endswith("99.9% confidence.")
    assert f"<blockquote>{words}</blockquote>" in page_of([("a", audited()), ("b", broken)])
    assert "<blockquote>" not in page_of([], [("e", estimated())])
