"""The numbers are the same in every form, and no form obeys a name."""

import csv
import itertools
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from audit.claims import PureDP
from audit.io.text import printable
from audit.report.formats import FORMS, to_annotations, to_csv, to_github, to_json, to_lines, to_markdown
from audit.results.formatting import COLUMNS, texts
from tests.audit.report.hostile import by_kind
from tests.helpers import audited, replayed

NUMBERS = ("promised", "delta", "distance", "measured", "confidence", "detectable", "ceiling", "size", "selection")
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u2028\u2029\u0085\u180e"
NAMES = [
    # terminals
    "\x1b[2J\x1b[1;1Hall is well",
    "\x1b]0;title\x07",
    "\x1bP1$r0m\x1b\\",
    "\x9d0;title\x9c",
    "violated\x08\x08\x08\x08\x08\x08\x08\x08fine",
    "\x1b]8;;http://example.org\x1b\\click\x1b]8;;\x1b\\",
    "violated\rnot refuted",
    "two\nlines\r\nand\x0bthree\x0cmore",
    "tab\tinside",
    "\x00nul\x7fdel",
    f"bidi {BIDI} end",
    f"unseen {UNSEEN} end",
    "\ud800 alone",
    "\U000e0041 tag",
    "a" + "\u0301" * 50,
]
NAMES += ["![x](http://example.org/x.png)", "[x](javascript:alert(1))", "<script>alert(1)</script>", "[^1] <!-- x -->"]
NAMES += [
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &#124; &copy;",
    "a\\|b\\\\|c\\",
    "`",
    "` ` |` `",
    "- list\n# head\n> quote\n---",
]
NAMES += ["http://example.org www.example.org me@example.org", "@team #1 :tada: $x$ ~~no~~ **b** __b__"]
NAMES += ["[x]: http://example.org", "=1+1", "-2+3", "@SUM(A1)", "' =1+1", "\uff20SUM(A1)", "\u22121+1"]
NAMES += ["a;=1+1;@x", 'a","=1+1', 'say "no", twice']
NAMES += ["", "'", "None"]


def hostile(name):
    return audited(mechanism=name, event=name, pair=name, searched=name, support={"order": name, "probability": 0.5})


def parsed(text):
    """Every cell of a Markdown table as a renderer sees it: its text, and the kinds of its tokens."""
    cells = []
    tokens = MarkdownIt("commonmark", {"linkify": False}).enable(["table"]).parse(text)
    for before, token in itertools.pairwise(tokens):
        if before.type in ("td_open", "th_open"):
            cells.append(("".join(child.content for child in token.children), {child.type for child in token.children}))
    return cells


def clean(text, allowed="\n"):
    return all(letter.isprintable() or letter in allowed for letter in text)


def read_back(named):
    """The cells of one audit by their columns, as readers of CSV and Markdown find them, in whole tables."""
    (record,) = csv.DictReader(to_csv(named).splitlines())
    markdown = to_markdown(named)
    assert [line.count("|") for line in markdown.splitlines()] == [len(COLUMNS) + 1] * 3
    return record, dict(zip(COLUMNS, parsed(markdown)[len(COLUMNS) :], strict=True))


def one(result, name="count"):
    return [(name, result)]


def test_json_has_all_of_a_result():
    results = {"\x1b[2J\u202e": audited(), "b": audited(detectable=math.inf, verdict="no power")}
    text = to_json(list(results.items()))
    assert json.loads(text) == {name: result.to_dict() for name, result in results.items()}
    assert clean(text)


def test_a_line_begins_with_the_name_unless_it_is_the_mechanism_s():
    assert to_lines(one(audited())) == f"{audited()}\n"
    assert to_lines(one(audited(), "first")) == f"first: {audited()}\n"


@pytest.mark.reliability(row=9)
@pytest.mark.parametrize("kind", by_kind(NAMES))
def test_no_form_obeys_a_name(kind, record_property):
    record_property("tried", len(FORMS))
    for name in by_kind(NAMES)[kind]:
        result = hostile(name)
        shown = printable(name)
        for form in FORMS:
            text = FORMS[form](one(result, name))
            assert clean(text, "\r\n" if form == "csv" else "\n")
            assert len(text.splitlines()) == {"markdown": 3, "csv": 2, "line": 1}.get(form, text.count("\n"))

        body = to_csv(one(result, name)).split("\r\n")[1]
        record, markdown = read_back(one(result, name))
        for key in ("name", "mechanism", "event", "pair"):
            assert record[key].replace("'", "") == shown.replace("'", "")  # nothing but apostrophes is added
            for semicolons in (record[key].split(";"), body.split(";")):  # either end of a cell
                assert not any(
                    part.lstrip(" \"'").startswith(tuple("=+-@")) and "'" not in part[:3] for part in semicolons
                )

        for title in ("name", "mechanism", "event", "pair"):
            text, kinds = markdown[title]
            assert text.strip() == shown
            assert kinds <= {"code_inline", "text", "text_special"}
            assert "text" not in kinds or set(shown) & {"|"} or not shown  # outside of code nothing stands but pipes


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(";='\"|`\\ -+@&{}[]", max_size=8))
def test_no_name_breaks_a_table(name):
    result = hostile(name)
    record, markdown = read_back(one(result, name))
    assert {key: record[key] for key in NUMBERS} == {key: texts(result.summary())[key] for key in NUMBERS}
    assert record["name"].replace("'", "") == printable(name).replace("'", "")
    assert markdown["name"][0].strip() == printable(name)
    assert clean("".join(form(one(result, name)) for form in (to_markdown, to_lines)))


def test_every_form_says_what_is_confidential():
    named = [("open", audited()), ("secret", audited(confidential=True))]
    for form in FORMS:
        assert ("CONFIDENTIAL" in FORMS[form](named)) == (form != "json")
        assert "CONFIDENTIAL" not in FORMS[form](named[:1])
    assert json.loads(to_json(named))["secret"]["confidential"] is True
    assert to_markdown(named).startswith("**CONFIDENTIAL: results of")
    assert len(parsed(to_markdown(named))) == 3 * len(COLUMNS)
    assert [record["confidential"] for record in csv.DictReader(to_csv(named).splitlines())] == ["", "CONFIDENTIAL"]


BROKEN = audited(measured=PureDP(1.5), verdict="violated")


def test_annotations_are_of_what_a_reader_must_see():
    results = [("sound", audited()), ("a: b, c", BROKEN), ("few", audited(verdict="no power", detectable=3.0))]
    record = replayed(violations=({"kind": "output", "sentence": "100% of it"},))
    error, warning, of_replay = to_annotations([*results, ("told", record)]).splitlines()
    assert error.startswith("::error title=violated%3A a%3A b%2C c::count: violated: promised epsilon 1 (add/remove), ")
    assert "lower bound 1.500 at 95%25 confidence" in error
    assert warning.startswith("::warning title=no power%3A few::count: no power: ")
    assert warning.endswith(" What would help: about 9,600 runs in all (--size).")
    assert of_replay.endswith("violated: output: 100%25 of it; 1 note")
    assert to_annotations([("sound", audited()), ("bug", BROKEN)], {"bug"}) == ""


@pytest.mark.parametrize("name", NAMES)
def test_no_name_is_a_command_of_github(name):
    hostile = f"{name}\r\n::set-output name=x::y\n"
    text = to_annotations([(hostile, replace(BROKEN, mechanism=hostile, event=hostile))])
    assert text.removesuffix("\n").isprintable()
    title = text.removeprefix("::error title=").partition("::")[0]
    assert not {",", ":"} & set(title)
    assert title.endswith("%3A%3Aset-output name=x%3A%3Ay")


def test_a_summary_has_a_heading_a_table_and_lines():
    text = to_github([("sound", audited()), ("bad", BROKEN), ("told", replayed())])
    assert text.startswith("### Privacy audits: 2 not refuted, 1 violated\n\n")
    assert to_markdown([("sound", audited()), ("bad", BROKEN)]) in text
    assert text.splitlines()[-1].startswith("- `told: GDPC, 1 person added to cell 0, promised epsilon 1 (add")
    assert "| name |" not in to_github([("told", replayed())])
