"""The page of the explorer as a file: one, small, whole, and nobody else's; and the same words in every language."""

import itertools
import json
import re
from dataclasses import is_dataclass
from html import unescape
from importlib import resources
from pathlib import Path

import pytest

import audit
from algorithms.systems import sheets
from audit.explorer.page import LANGUAGES, SCRIPTS, build_page, words_in
from audit.explorer.sheet import Chart, Column, Total
from tests.audit.report.hostile import PAYLOADS, Page, by_kind
from tests.helpers import contents, plaudit, refuses

MOST_PAGE, MOST_SCRIPT = 450_000, 60_000  # bytes
SHEETS = sheets()
PAGE = build_page(SHEETS[0], {}, SHEETS)


def test_the_page_is_small_and_asks_for_nothing():
    assert len(PAGE.encode()) <= MOST_PAGE
    assert len(re.search(r"<script>(.*)</script>", PAGE, re.DOTALL)[1].encode()) <= MOST_SCRIPT
    known = Page(PAGE)
    names = {name for name, _ in known.attributes}
    assert not names & {"src", "srcset", "data", "action", "ping", "style"}
    assert not any(name.startswith("on") for name in names)
    assert known.values("href") == {"#main", *(f"#{one.name}" for one in SHEETS)}
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|innerHTML|eval\(|new Function", PAGE)


@pytest.mark.reliability(row=9)
def test_the_description_cannot_end_its_script(record_property):  # two pages
    """A payload is a value of the page's JSON and nothing else; of the page, no tag and no attribute is other."""
    record_property("tried", 2 * len(by_kind(PAYLOADS)))  # places: the page, and its JSON
    texts = [words.encode(errors="replace").decode() for words in PAYLOADS]
    hostile = {f"phsafe/all/all/states {number}": words for number, words in enumerate(texts)}
    sheet = next(one for one in SHEETS if one.name == "phsafe")
    changed = type(sheet)(**{**vars(sheet), "data": {**sheet.data, **hostile}})
    pages = [build_page(one, {}, [one]) for one in (sheet, changed)]
    assert len({len(re.findall("<[a-z!/]", page.partition("<script")[0])) for page in pages}) == 1
    assert Page(pages[0]).attributes == Page(pages[1]).attributes
    (text,) = re.findall(r'<script id="book" type="application/json">(.*?)</script>', pages[1], re.DOTALL)
    assert all(json.dumps(words).strip('"') in json.dumps(json.loads(text)) for words in texts)


def test_every_language_has_the_same_words_with_the_same_gaps():
    words = {language: words_in(language) for language in LANGUAGES}
    first = words[LANGUAGES[0]]
    for language, known in words.items():
        assert known.keys() == first.keys()
        for key, text in known.items():
            assert text.strip() == text, (language, key)
            assert re.findall(r"\{\w+\}", text) == re.findall(r"\{\w+\}", first[key]), (language, key)


def parts(value):
    """Everything that a sheet consists of and that has a name."""
    if is_dataclass(value):
        yield from [value] if hasattr(value, "label") else []
        value = tuple(vars(value).values())
    if isinstance(value, tuple):
        yield from itertools.chain.from_iterable(map(parts, value))


def labels(sheet):
    """Keys of the words that a sheet names."""
    yield from (sheet.title, f"{sheet.title}.short", *sheet.about)
    yield from (part.label for part in parts(sheet))
    yield from (table.rows for table in sheet.tables)
    yield from (table.action for table in sheet.tables if table.action)
    yield from (label for chart in sheet.charts for label, _ in chart.axes)
    presets = [one for one in sheet.inputs if one.key.endswith("/preset")]
    yield from (f"{one.label}.{choice}" for one in presets for choice in one.choices)


def test_every_word_that_a_sheet_or_the_page_names_is_there():
    words = words_in("en")
    own = {"on", "row", "preset"}  # of inputs that need no name of their own: checked below
    for sheet in SHEETS:
        assert [key for key in labels(sheet) if key not in words and key.rpartition(".")[2] not in own] == []
    static = resources.files("audit.explorer") / "static"
    named = {key for name in SCRIPTS for key in re.findall(r'"(page\.[\w.]+)"', (static / name).read_text("utf-8"))}
    named |= set(re.findall(r'data-word="([\w.-]+)"', PAGE))
    assert named <= words.keys()


def test_every_term_has_a_sentence_beside_it():
    words = words_in("en")
    for sheet in SHEETS:
        terms = [part.label for part in parts(sheet) if isinstance(part, Chart | Column | Total)]
        terms += [one.label for one in sheet.inputs if one.key in sheet.settings or one.key.endswith("/tau")]
        assert [term for term in terms if f"{term}.help" not in words] == []


def test_without_a_script_the_published_table_is_read():
    lines = re.findall(r"<tr.*?</tr>", PAGE, re.DOTALL)
    found = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in lines)
    rows = [[unescape(re.sub(r"<[^>]+>", "", one)).strip() for one in row] for row in found]
    table = [row for row in rows if len(row) > 8 and row[0].startswith("PH")]
    assert len(table) == 46
    assert [words_in("en")["phsafe.total.rho"], "1.257281"] in rows
    names = [words_in("en")[f"phsafe.{name}"] for name in ("PH3", "state_A-G")]
    assert [*names, "yes", "20", "0.662976"] in [row[:5] for row in table]
    assert "JavaScript is switched off" in PAGE


def test_the_command_writes_a_page_over_a_page(tmp_path, monkeypatch, capsys):  # pages with all sheets
    monkeypatch.chdir(tmp_path)
    for name in ("counts", "topdown"):
        assert plaudit("explore", name, "--html", "new/page.html") == 0
        assert capsys.readouterr().out == "Wrote new/page.html.\n"
        assert f'"opened":"{name}"' in Path("new/page.html").read_text("utf-8")
    before = contents(tmp_path)
    assert plaudit("explore", "phsafe", "--html", "page.txt") == 2
    assert capsys.readouterr().err == "plaudit: error: --html must name a file that ends in .html, got page.txt\n"
    assert contents(tmp_path) == before


def test_the_page_in_python(tmp_path, monkeypatch):  # a page with all sheets
    monkeypatch.chdir(tmp_path)
    state = {"phsafe/PH3/state_A-G/margin": 10, "phsafe/PH3/state_A-G/rho": None}
    explored = audit.explore("phsafe", state)
    explored.to_html("page.html")
    assert '"phsafe/PH3/state_A-G/margin":10' in Path("page.html").read_text("utf-8")
    assert explored.results["phsafe/PH3/state_A-G/margin"] == 10
    refuses(ValueError, "sheet must be one of phsafe, topdown, counts, got 'ons'", audit.explore, "ons")
    wrong = "phsafe/PH3/all/tau must be a whole number from 1 to 99999, got 0"
    refuses(ValueError, wrong, audit.explore, "phsafe", {"phsafe/PH3/all/tau": 0})


def test_the_page_opens_at_the_settings_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--margin", "PH3:state_A-G=10", "--tau", "PH3=4")
    assert plaudit("explore", "phsafe", *options, "--html", "page.html") == 0
    text = re.search(r'<script id="book" type="application/json">(.*?)</script>', Path("page.html").read_text("utf-8"))
    start = json.loads(text[1])["start"]
    assert start["phsafe/PH3/all/tau"] == 4
    assert start["phsafe/PH3/state_A-G/rho"] == pytest.approx((1.645 * 10 / 10) ** 2 / 2)
    assert start["phsafe/PH1_num/usa_*/on"] is False
