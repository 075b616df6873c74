"""The HTML report in a real browser: nothing that results say runs, leaves the page or hides from its readers."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.report.page import build_report
from audit.report.words import visible
from tests.audit.browsing import watched
from tests.audit.report.hostile import PAYLOADS, by_kind, hostile_page, planted
from tests.helpers import audited, contrast, estimated

ACTIVE = (
    "script, iframe, object, embed, link, base, form, input, button, select, img, image, video, audio, template, use"
)
LISTENING = """() => [...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a =>
    a.name.startsWith('on') || a.name == 'style' || /^\\s*(javascript|data):/i.test(a.value))).length"""
INKS = """() => {
    const all = (what, kind, part) => [...document.querySelectorAll(what)].map(e => [kind, getComputedStyle(e)[part]]);
    return [['paper', getComputedStyle(document.body).backgroundColor], ...all('svg text', 'text', 'fill'),
        ...all('polyline, line.promise', 'line', 'stroke'),
        ...all('rect.violated, rect.no-power, rect.not-refuted, path.detectable', 'bar', 'fill')]; }"""
LAW = {"order": "possible on x only", "probability": 0.25}
CURVE = {name: np.linspace(-2.0, 3.0, 30) + shift for name, shift in (("at", 0), ("loss", 1), ("low", 0), ("high", 2))}
AUDITS = [
    ("sound", audited()),
    ("violated", audited(claim=PureDP(0.5), verdict="violated", confidential=True)),
    ("unbounded", audited(support=LAW, verdict="violated", relation="replace_one", claim=PureDP(1.0, "replace_one"))),
    ("empty", audited(claim=ZCDP(0.5), measured=ZCDP(0.0), detectable=np.inf, verdict="no power", distance=20)),
    ("gaussian", audited(claim=GaussianDP(1.0), measured=GaussianDP(0.9), confidence=0.999999)),
    ("approximate", audited(claim=ApproxDP(1.0, 1e-6), measured=ApproxDP(0.9, 1e-6), adjacency="declared")),
    ("a-name-of-many-letters-that-no-phone-shows-in-one-line-of-its-screen", audited(unit="household")),
]
BROKEN = audited(claim=PureDP(0.5), verdict="violated", provenance={"command": "plaudit audit gdpc-half-noise"})
AUDITS = [(name, replace(r, measured=r.claim.at(r.measured.budget))) for name, r in AUDITS]
ESTIMATES = [("residuals", estimated(**CURVE)), ("few", estimated())]
PAGES = {
    "all": build_report(AUDITS, ESTIMATES, title="Audits of a release"),
    "few": build_report(AUDITS[:1], title="An audit"),
    "public": build_report(AUDITS, ESTIMATES, title="Audits of a release", public=True),
    "estimates": build_report([], ESTIMATES, title="Estimates"),
}


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a page; `seen` collects whatever it does that a page of text does not."""
    with watched(browser) as opened:

        def written(html, **options):
            (tmp_path / "report.html").write_text(html, "utf-8")
            return opened(tmp_path / "report.html", **options)

        yield written


def in_one_line(words):
    return " ".join(words.split())


def idle(page, events):
    """Whether nothing of what results say has become more than text."""
    page.mouse.move(200, 300)
    page.keyboard.press("Tab")
    assert page.evaluate("Object.keys(window).filter(name => /pwned/.test(name))") == []
    assert page.locator(ACTIVE).count() == 0
    assert page.evaluate(LISTENING) == 0
    assert page.locator("meta[http-equiv]").count() == 1
    assert events == []


@pytest.mark.slow
@pytest.mark.reliability(row=9)
def test_payloads_in_every_field_do_nothing_and_are_read_without_a_script(open_page, record_property):
    record_property("tried", len(by_kind(PAYLOADS)))
    eight = [" ".join(PAYLOADS[k : k + 8]) for k in range(0, len(PAYLOADS), 8)]  # pages are smaller; one by one below
    html = hostile_page(eight)
    idle(*open_page(html))
    still, events = open_page(html, java_script_enabled=False)
    table = in_one_line(still.locator("table.all").inner_text())
    everything = in_one_line(still.locator("body").text_content())
    for words in eight:
        assert in_one_line(visible(words)) in table  # seen, letter by letter
        assert everything.count(in_one_line(visible(words))) >= 12
    assert events == []


@pytest.mark.slow
def test_the_check_of_payloads_sees_those_that_run(open_page):
    html = hostile_page(["<script>window.pwned=1</script>", "<img src=//evil.invalid/pixel.png>", "<p onclick=x>"])
    policy = html[html.index("<meta http-equiv") : html.index(">", html.index("<meta http-equiv")) + 1]
    bare = html.replace("&lt;", "<").replace("&gt;", ">")
    page, events = open_page(bare.replace(policy, ""))
    assert page.evaluate("window.pwned") == 1
    assert page.locator(ACTIVE).count() > 0
    assert page.evaluate(LISTENING) > 0
    assert "request file://evil.invalid/pixel.png" in events
    guarded, events = open_page(bare)  # where escaping fails, the policy holds
    assert guarded.evaluate("window.pwned") is None
    assert not [what for what in events if not what.startswith("console ")]
    assert [what for what in events if "Content Security Policy" in what]


@pytest.mark.reliability(row=9)
@pytest.mark.slow
@pytest.mark.parametrize("kind", by_kind(PAYLOADS))
def test_each_payload_alone_does_nothing(open_page, kind, record_property):
    record_property("tried", 2)
    for public, words in itertools.product((False, True), by_kind(PAYLOADS)[kind]):
        page, events = open_page(build_report([(words, planted(words))], title=words, public=public))
        idle(page, events)
        assert in_one_line(page.locator(".kicker bdi").inner_text()) == in_one_line(visible(words))
        assert in_one_line(page.title()) == in_one_line(visible(words))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("name", [*PAGES, "hostile"])
def test_axe_finds_no_fault(open_page, name, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    html = hostile_page([PAYLOADS[0], *PAYLOADS[-4:-1]]) if name == "hostile" else PAGES[name]
    page, _ = open_page(html, bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    found = axe.Axe().run(page, options={"runOnly": {"type": "tag", "values": rules}})
    assert found.response["violations"] == [], found.generate_report()
    unsure = [part["target"][0] for rule in found.response["incomplete"] for part in rule["nodes"]]
    inside = page.evaluate("targets => targets.every(t => document.querySelector(t).closest('svg') !== null)", unsure)
    assert inside  # axe cannot tell what is behind the letters of a drawing
    paper, *inks = page.evaluate(INKS)
    for kind, ink in inks:
        colors = [np.array(re.findall(r"\d+", color)[:3], int) / 255 for color in (ink, paper[1])]
        assert contrast(*colors) >= (4.5 if kind == "text" else 3.0), (kind, ink)


@pytest.mark.slow
def test_a_printed_page_has_what_is_open_and_every_verdict_and_says_that_it_is_confidential(open_page):
    page, _ = open_page(build_report(AUDITS, title="t"), color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("details.audit:visible .body:visible").count() == 2  # the violations
    assert page.locator("table.all tbody tr:visible").count() == len(AUDITS)
    assert page.get_by_text("What is closed on the screen is not printed").is_visible()
    assert page.evaluate("getComputedStyle(document.body).page") == "confidential"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 33, 39)"  # ink, though the screen is dark
    assert not page.locator("nav").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("several", [AUDITS[4:], [("broken", BROKEN), *AUDITS[4:6]]])
def test_three_audits_are_short_and_two_printed_pages(open_page, several):
    for width, most in ((1280, 4500), (390, 7500)):
        page, _ = open_page(build_report(several, title="t"), viewport={"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollHeight") <= most
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) == 2
