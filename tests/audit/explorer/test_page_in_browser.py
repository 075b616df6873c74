"""The explorer in Chromium: what a reader does with it, what files and addresses may do, and who can read it."""

import json
import re

import numpy as np
import pytest

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.explore import rho_for
from algorithms.systems import sheets
from tests.audit.explorer.settings import READ_BACK, differing, random_state
from tests.audit.report.hostile import PAYLOADS, by_kind

pytestmark = pytest.mark.slow
SETTINGS, BATCH = 300, 25
SHEETS = {sheet.name: sheet for sheet in sheets()}
PH3 = "phsafe/PH3/state_A-G"
CONFIG = read_config("us").to_dict()


def box(page, key):
    return page.locator(f'[data-input="{key}"]')


def cell(page, key):
    return page.locator(f'[data-cell="{key}"]').first


def number(page, key):
    return float(cell(page, key).get_attribute("data-value"))


def enter(page, key, text):
    box(page, key).fill(text)
    box(page, key).press("Enter")


def give(page, name, content):
    """Let the page read a file, until it has said what it thinks of it."""
    data = content if isinstance(content, bytes) else content.encode()
    page.evaluate("for (const id of ['problem', 'status']) document.getElementById(id).textContent = ''")
    page.set_input_files("#file-phsafe", {"name": name, "mimeType": "application/json", "buffer": data})
    page.locator("#problem:not(:empty), #status:not(:empty)").first.wait_for(state="attached")


# What a reader does


def test_a_newcomer_halves_a_margin_and_reads_what_it_costs(open_page):
    """Task: halve the margin of PH3 by state and race; what does it cost? Every step is found by words on the page."""
    page, events = open_page()
    row = page.get_by_role("row", name=re.compile("^States, race groups A.G"))
    row = row.filter(has=page.get_by_label(re.compile("PH3 Children by relationship")))
    wanted = row.get_by_role("textbox", name=re.compile("^Margin wanted"))
    assert wanted.input_value() == "20"
    wanted.fill("10")
    wanted.press("Tab")
    assert row.get_by_role("textbox", name=re.compile("^Budget .: PH3")).input_value() == "2.6519"
    bar = page.get_by_role("region", name="Key figures").inner_text()
    assert ", one person added or removed\n3.246209\npublished: 1.257281" in bar
    assert number(page, "phsafe/total/all/rho") == pytest.approx(1.257281 - 0.662976 + rho_for(10, 14))
    assert page.locator("tr:has-text('published: 20')").count() == 1  # marked in words, not by color alone
    status = page.get_by_role("status")
    status.filter(has_text=".").wait_for(state="attached")
    message = "{0}, one person added or removed: 3.246209; Guessed right: person in or out: 98.3 of 100"
    assert status.inner_text() == message.format("\N{GREEK SMALL LETTER RHO}")
    assert events == []


def test_margin_and_budget_drive_each_other(open_page):
    page, _ = open_page()
    enter(page, f"{PH3}/rho", "0.165744")
    assert box(page, f"{PH3}/margin").input_value() == "40"
    assert "computed" in box(page, f"{PH3}/margin").get_attribute("class")
    assert "computed" not in box(page, "phsafe/PH3/all/tau").get_attribute("class")
    enter(page, "phsafe/PH3/all/tau", "13")  # twice the sensitivity: the budget stays, the margin doubles
    assert box(page, f"{PH3}/margin").input_value() == "80"
    enter(page, f"{PH3}/margin", "40")
    assert number(page, f"{PH3}/rho") == pytest.approx(rho_for(40, 28))
    enter(page, f"{PH3}/rho", "")
    assert number(page, f"{PH3}/rho") == pytest.approx(rho_for(40, 28))


def test_undo_reset_and_what_is_not_released(open_page):
    page, _ = open_page()
    assert page.locator("#undo").is_disabled()
    box(page, f"{PH3}/on").uncheck()
    assert number(page, "phsafe/total/all/rho") == pytest.approx(1.257281 - 0.662976)
    enter(page, "phsafe/all/all/delta", "1e-6")
    page.locator("#undo").click()
    assert box(page, "phsafe/all/all/delta").input_value() == "1e-10"
    page.locator("h1").click()
    page.keyboard.press("Control+z")
    assert box(page, f"{PH3}/on").is_checked()
    assert page.locator("#undo").is_disabled()
    enter(page, f"{PH3}/margin", "10")
    page.locator("#reset").click()
    assert number(page, "phsafe/total/all/rho") == 1.257281
    assert page.locator("#main .changed").count() == 0


def test_scenarios_stand_side_by_side_in_the_address_and_on_the_decision_sheet(open_page):
    page, events = open_page("#topdown")
    page.get_by_role("button", name="Pin A").click()
    enter(page, "topdown/all/all/margin", "20")
    page.get_by_role("button", name="Pin B").click()
    box(page, "topdown/all/all/pays").select_option("share")
    page.wait_for_timeout(300)
    again, _ = open_page(page.evaluate("location.hash"))
    table = again.locator("[data-of=topdown] [data-scenarios]")
    assert table.locator("thead th").all_inner_texts() == ["What", "published", "Scenario A", "Scenario B", "now"]
    first = table.locator("tbody tr").first.inner_text().split("\t")
    assert [cell.split() for cell in first[1:]] == [["2.556226"], ["2.556226"], ["8.633605", "+240%"], ["2.556226"]]
    assert table.get_by_role("row", name="Guessed right: which record").count() == 1
    again.evaluate("window.print = () => {}")
    again.get_by_role("button", name="Print the decision sheet").click()
    again.emulate_media(media="print")
    assert table.is_visible()
    assert again.get_by_label("Who decides").locator("visible=true").count() == 1
    assert not again.locator("#bar").is_visible()
    assert not again.locator("[data-of=topdown] .charts").is_visible()
    enter(page, "topdown/all/all/budget", "0.5")
    enter(page, "topdown/all/all/margin", "1")
    page.get_by_role("status").filter(has_text="is out of reach: No share of this total").wait_for(state="attached")
    assert events == []


def test_a_total_is_spent_for_the_same_relative_error(open_page):
    page, events = open_page("#phsafe")
    page.locator("[data-of=phsafe] .own > summary").click()
    other = "phsafe/PH2/state_*"
    before = number(page, "phsafe/total/all/rho")
    enter(page, f"{PH3}/totals", "1,500; 300 900")
    enter(page, f"{other}/totals", "20000")
    assert box(page, f"{PH3}/totals").input_value() == "1500 300 900"
    page.locator("[data-of=phsafe] [data-spend]").click()
    assert number(page, "phsafe/total/all/rho") == pytest.approx(before, rel=1e-12)
    sizes = [number(page, f"{place}/sigma") / total for place, total in ((PH3, 900), (other, 20_000))]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-9)
    enter(page, f"{PH3}/totals", "12,34")
    assert box(page, f"{PH3}/totals").get_attribute("aria-invalid") == "true"
    assert events == []


def test_an_address_holds_all_settings(open_page):
    page, _ = open_page()
    enter(page, f"{PH3}/margin", "10")
    box(page, "phsafe/PH2/usa_*/on").uncheck()
    page.get_by_role("link", name="TopDown").click()
    page.get_by_role("button", name="End-to-end test on 1940").click()
    enter(page, "topdown/all/all/budget", "4")
    page.wait_for_timeout(300)
    address = page.evaluate("location.hash")
    state = page.evaluate("store.state")
    again, events = open_page(address)
    assert again.evaluate("store.state") == state
    assert again.get_by_role("heading", level=2, name=re.compile("TopDown")).is_visible()
    assert events == []
    broken, events = open_page("#phsafe&phsafe/PH2/all/tau=0&x=1&y&phsafe/PH3/all/tau=5&__proto__=1&%E0%A4%A=1")
    assert box(broken, "phsafe/PH3/all/tau").input_value() == "5"
    assert broken.get_by_role("alert").inner_text().endswith("does not know or allow: 5. They were left as published.")
    assert events == []


def test_what_is_saved_is_what_a_release_reads(open_page, tmp_path):
    page, events = open_page()
    enter(page, f"{PH3}/margin", "10")
    box(page, "phsafe/PH2/usa_*/on").uncheck()
    enter(page, "phsafe/PH6/all/tau", "4")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save config.json").click()
    waiting.value.save_as(tmp_path / "config.json")
    config = read_config(tmp_path / "config.json")
    assert config.budget("PH3", "state_A-G") == pytest.approx(rho_for(10, 14), rel=1e-15)
    assert config.budget("PH2", "usa_*") == 0
    assert config.tau["PH6"] == 4
    assert config.total == pytest.approx(number(page, "phsafe/total/all/rho"), rel=1e-15)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save all numbers as CSV").click()
    waiting.value.save_as(tmp_path / "phsafe.csv")
    lines = (tmp_path / "phsafe.csv").read_text("utf-8").splitlines()
    assert f"phsafe,PH3,state_A-G,rho,{rho_for(10, 14)!r}" in lines
    other, _ = open_page()
    give(other, "config.json", (tmp_path / "config.json").read_bytes())
    assert other.get_by_role("status").inner_text() == "The settings of config.json are shown."
    assert number(other, "phsafe/total/all/rho") == pytest.approx(config.total, rel=1e-15)
    assert not box(other, "phsafe/PH2/usa_*/on").is_checked()
    for key in page.evaluate("Object.keys(store.state).filter(key => key.endsWith('/on'))"):
        box(other, key).uncheck()
    other.get_by_role("button", name="Save config.json").click()
    assert other.get_by_role("alert").inner_text() == "privacy_budget must add up to a positive finite number, got 0.0"
    assert events == []


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("phsafe/PH3/all/tau", "0", "must be a whole number from 1 to 99999"),
        (f"{PH3}/margin", "twenty", "must be a whole number from 1 to 1000000000"),
        (f"{PH3}/rho", "1e999", "must be a number from 1e-13 to 1000000000"),
        ("phsafe/all/all/states", "01 01", "must be known codes, each once, with blanks between"),
    ],
)
def test_what_cannot_be_is_said_beside_the_box_and_changes_nothing(open_page, key, text, message):
    page, events = open_page()
    state = page.evaluate("store.state")
    enter(page, key, text)
    assert box(page, key).get_attribute("aria-invalid") == "true"
    assert page.locator(f"#{box(page, key).get_attribute('aria-describedby')}").inner_text() == message
    assert page.get_by_role("alert").inner_text().endswith(f": {message}")
    assert page.evaluate("store.state") == state
    assert box(page, key).input_value() == text  # nothing that was typed is lost
    page.keyboard.press("Escape")
    assert box(page, key).input_value() != text
    assert box(page, key).get_attribute("aria-invalid") is None
    assert events == []


# Who can read it


@pytest.mark.reliability(row=9)
def test_payloads_in_names_of_files_and_in_addresses_run_nothing(open_page, record_property):
    record_property("tried", len(by_kind(PAYLOADS)))
    page, events = open_page()
    for words in PAYLOADS:
        name = re.sub(r"[/\x00\ud800-\udfff]", "_", words)[:200] + ".json"
        give(page, name, "{")
        assert page.get_by_role("alert").text_content().startswith(f"{name}: a config must be JSON")
        give(page, name, json.dumps(CONFIG))
        assert page.get_by_role("status").text_content() == f"The settings of {name} are shown."
    assert still(page, events)
    for words in PAYLOADS[:50]:
        page.evaluate("words => { location.hash = '#' + words }", words)
        page.evaluate("words => { location.hash = '#phsafe&' + words + '=1&phsafe/all/all/states=' + words }", words)
        page.wait_for_timeout(10)
    assert still(page, events)


def still(page, events):
    """Whether nothing of what was given has become more than text."""
    assert page.evaluate("Object.keys(window).filter(name => /pwned/.test(name))") == []
    assert page.locator("main :is(script, iframe, object, embed, img, form, base, link, meta)").count() == 0
    assert page.locator("body > :not(a, header, section, p, noscript, main, footer, script)").count() == 0
    assert [what for what in events if not what.startswith("console Throttling")] == []
    return True


def test_numbers_are_written_and_read_as_in_the_reader_s_country(open_page):
    german, _ = open_page(locale="de-DE")
    assert german.locator("html").get_attribute("lang") == "de"
    assert cell(german, "phsafe/total/all/rho").inner_text() == "1,257281"
    assert box(german, f"{PH3}/rho").input_value() == "0,662976"
    enter(german, f"{PH3}/rho", "0,165744")
    assert box(german, f"{PH3}/margin").input_value() == "40"
    enter(german, f"{PH3}/margin", "1.000")
    assert german.evaluate(f"store.state['{PH3}/margin']") == 1000
    swiss, _ = open_page(locale="fr-CH")
    assert swiss.locator("html").get_attribute("lang") == "en"
    enter(swiss, f"{PH3}/margin", "1\N{RIGHT SINGLE QUOTATION MARK}000")
    assert swiss.evaluate(f"store.state['{PH3}/margin']") == 1000


CONTROLS = """() => { let place = 0;
    return [...document.querySelectorAll('a, button, input, select, summary, textarea')]
        .filter(e => e.checkVisibility() && !e.disabled).map(e => e.dataset.place = ++place).length }"""
FOCUSED = """() => {
    const focused = document.activeElement, box = focused.getBoundingClientRect();
    const style = getComputedStyle(focused.type === 'file' ? focused.nextElementSibling : focused);
    const bar = document.getElementById('bar').getBoundingClientRect();
    const apart = box.top >= bar.bottom - 1 || box.bottom <= bar.top + 1;
    return [Number(focused.dataset.place), style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        apart || focused.closest('#bar, .skip') !== null || focused.type === 'file'] }"""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(open_page, width):
    for name in SHEETS:
        page, _ = open_page(f"#{name}", viewport={"width": width, "height": 900})
        page.evaluate("more.showPopover(); document.querySelectorAll('details').forEach(part => part.open = true)")
        wanted, reached = page.evaluate(CONTROLS), set()
        page.keyboard.press("Escape")
        for _ in range(wanted + 2):
            page.keyboard.press("Tab")
            if page.locator("#menu:focus").count():
                page.keyboard.press("Enter")
            place, *visible = page.evaluate(FOCUSED)
            if place > 0:  # not where the page ends
                reached.add(place)
                assert visible == [True, True], (name, page.evaluate("document.activeElement.outerHTML"))
        assert len(reached) == wanted


@pytest.mark.parametrize(("width", "most"), [(390, 96), (1280, 112)])
@pytest.mark.parametrize("locale", ["en-US", "de-DE"])
def test_key_figures_stand_in_one_line_and_leave_room(open_page, width, most, locale):
    for name in SHEETS:
        page, _ = open_page(f"#{name}", viewport={"width": width, "height": 844}, locale=locale)
        enter(page, *STATES[name][0])
        tops = page.locator("#bar .much:visible").evaluate_all("all => all.map(e => e.getBoundingClientRect().top)")
        assert page.locator("#bar").bounding_box()["height"] <= most
        assert len({*tops}) == 1 < len(tops)


def test_heads_of_tables_stay_below_the_key_figures(open_page):
    page, _ = open_page()
    page.locator("[data-of=phsafe] .own > summary").click()
    assert page.locator("details.meaning[open]").count() == 0
    for table in page.locator("[data-of=phsafe] table.sheet").all():
        table.locator("tbody").nth(3).evaluate("part => part.scrollIntoView()")
        bottom = page.locator("#bar").bounding_box()["height"]
        assert table.locator("th").first.bounding_box()["y"] == pytest.approx(bottom, abs=1)
    page.set_viewport_size({"width": 844, "height": 390})  # a phone on its side, where they would take a third
    assert page.locator("#bar").evaluate("bar => bar.getBoundingClientRect().bottom") < 0


STATES = {  # what is changed, and what cannot be
    "phsafe": ((f"{PH3}/margin", "10"), ("phsafe/PH6/all/tau", "zero")),
    "topdown": (("topdown/all/nation/parts", "7"), ("topdown/all/all/budget", "0")),
    "counts": (("counts/all/all/epsilon", "0.5"), ("counts/bottom_up/all/bits", "54")),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_axe_finds_no_fault(open_page, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
    for name in SHEETS:
        options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}, "bypass_csp": True}
        page, _ = open_page(f"#{name}", **options)

        def faults(page=page):
            page.evaluate("scrollTo(0, 0)")  # where no control happens to lie half below the totals
            return axe.Axe().run(page, options=rules).response["violations"]

        assert faults() == []
        page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
        changed, wrong = STATES[name]
        enter(page, *changed)
        assert page.locator("#main .changed:visible").count() > 0
        assert faults() == []
        enter(page, *wrong)
        assert page.locator("#main .wrong:not(:empty)").count() == 1
        if name == "phsafe":
            box(page, "phsafe/PH2/usa_*/on").uncheck()
            give(page, "config.json", "{")
        assert page.locator("#problem:not(:empty)").count() == 1
        assert faults() == []
        page.get_by_role("button", name="Deutsch").click()
        assert faults() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_chart_has_words_and_a_table_of_the_same_numbers(open_page):
    for name, sheet in SHEETS.items():
        page, _ = open_page(f"#{name}")
        figures = page.locator(f"[data-of={name}] figure")
        assert figures.count() == len(sheet.charts)
        for figure, chart in zip(figures.all(), sheet.charts, strict=True):
            assert figure.locator("table.numbers tbody tr").count() == len(chart.points)
            if chart.kind == "curve":
                assert figure.locator("svg").get_attribute("aria-label")


# One source of formulas


def test_every_number_is_that_of_python(open_page, record_property):
    each = -(-SETTINGS // len(SHEETS))
    page, events = open_page()
    tried = numbers = drawn = 0
    for place, (name, sheet) in enumerate(SHEETS.items()):
        rng = np.random.default_rng(20260 + place)
        states = [sheet.checked({"phsafe/all/all/preset": "pr"} if name == "phsafe" else {}), sheet.published]
        states += [random_state(sheet, rng) for _ in range(each - len(states))]
        for first in range(0, len(states), BATCH):
            batch = states[first : first + BATCH]
            for state, (left, cells, results) in zip(batch, page.evaluate(READ_BACK, [name, batch]), strict=True):
                assert left == []
                wanted = sheet.compute(state)
                assert differing(results, wanted) == [], state
                for key, value in cells:  # what stands in the page is what was computed, with all digits
                    result = results[key]
                    text = isinstance(result, str)
                    assert value == "" if result is None else (value if text else float(value)) == result, key
                tried, numbers, drawn = tried + 1, numbers + len(results), drawn + len(cells)
    record_property("tried", tried)
    print(f"\n{tried} settings of {len(SHEETS)} sheets: {numbers:,} numbers computed, {drawn:,} cells shown")
    assert tried >= SETTINGS
    assert events == []
