"""Cells and forms: the same numbers everywhere, honest in the direction of their rounding, and no form obeys a name."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
import shutil
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from audit.report.formatting import COLUMNS, VALUES, at_least, at_most, cells, line, nearest, percent, row, values
from audit.report.renderings import (
    FORMS,
    render,
    to_csv,
    to_frame,
    to_json,
    to_latex,
    to_lines,
    to_markdown,
    to_text,
)
from audit.results import printable, verdict_of
from tests.audit.results.test_results import audited, audits

WITNESS = {"order": "possible on x only", "probability": 0.25}
FEW = settings(max_examples=20)
NUMBERS = ("promised", "delta", "distance", "measured", "confidence", "detectable", "ceiling", "size", "selection")
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u2028\u2029\u0085\u180e"
NAMES = [
    # terminals
    "\x1b[2J\x1b[1;1Hall is well",
    "\x1b]0;title\x07",
    "\x1b]8;;http://example.org\x1b\\click\x1b]8;;\x1b\\",
    "\x1bP1$r0m\x1b\\",
    "\x9b31mred",
    "\x9d0;title\x9c",
    "violated\rnot refuted",
    "violated\x08\x08\x08\x08\x08\x08\x08\x08fine",
    "two\nlines\r\nand\x0bthree\x0cmore",
    "tab\tinside",
    "\x00nul\x7fdel",
    f"bidi {BIDI} end",
    f"unseen {UNSEEN} end",
    "\ud800 alone",
    "\U000e0041 tag",
    "a" + "\u0301" * 50,
    # Markdown
    "![x](http://example.org/x.png)",
    "[x](javascript:alert(1))",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; &#124; &copy;",
    "a|b||c",
    "a\\|b\\\\|c\\",
    "|",
    "`",
    "``a`b```",
    "` ` |` `",
    "http://example.org www.example.org me@example.org",
    "@team #1 :tada: $x$ ~~no~~ **b** __b__",
    "- list\n# head\n> quote\n---",
    "[x]: http://example.org",
    "[^1] <!-- x -->",
    # LaTeX
    "\\input{/etc/passwd}",
    "\\write18{ls} \\\\ \\end{tabular}",
    "{ } }{ {{{ }}}",
    "50% & $x_1^2$ # ~ \\",
    "[3cm] * - -- ``q'' \"r\"",
    "^^41 ^^M",
    "Tétouan, Łódź, Ærø, Şirnak, ὠ, 東京, طنجة, 🙂",
    # spreadsheets
    "=1+1",
    '=HYPERLINK("http://example.org","x")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "  =1+1",
    '"=1+1',
    "' =1+1",
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1",
    "\uff20SUM(A1)",
    "\u22121+1",
    "a;=1+1;@x",
    'a","=1+1',
    'say "no", twice',
    "=cmd|' /C calc'!A0",
    "\ufeff=1+1",
    # nothing much
    "",
    " ",
    "'",
    "1e5",
    "None",
]
# What may stand after a backslash: letters that are escaped, accents, letters of their own, and signs.
COMMANDS = set("{}$&#%_\\`'^~\"rvu=.HcoOlL") | {
    *("ss", "ae", "AE", "oe", "OE", "symbol"),
    *("textbackslash", "textasciicircum", "textasciitilde", "textless", "textgreater", "textbar"),
}


def hostile(name):
    return audited(mechanism=name, event=name, pair=name, searched=name, support={"order": name, "probability": 0.5})


def parsed(text):
    """Every cell of a Markdown table as a renderer sees it: its text, and the kinds of its tokens."""
    found = []
    tokens = MarkdownIt("commonmark", {"linkify": False}).enable(["table"]).parse(text)
    for before, token in itertools.pairwise(tokens):
        if before.type in ("td_open", "th_open"):
            found.append(("".join(child.content for child in token.children), {child.type for child in token.children}))
    return found


def in_latex(text):
    """The rows of a ``tabular``, each a list of cells."""
    body = text.split("\\hline\n")
    lines = [*body[1].splitlines(), *body[2].splitlines()]
    assert all(line.endswith(r" \\") for line in lines)
    return [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in lines]


def balanced(latex):
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    return depth == 0


def clean(text, allowed="\n"):
    return all(letter.isprintable() or letter in allowed for letter in text)


# How a number is written


@pytest.mark.parametrize(
    ("value", "low", "high", "near"),
    [
        (0.0, "0", "0", "0"),
        (1.0, "1.000", "1.000", "1"),
        (0.9843457662562988, "0.9843", "0.9844", "0.9843"),
        (0.9999, "0.9999", "0.9999", "0.9999"),
        (0.99996, "0.9999", "1.000", "1"),
        (0.1 + 0.2, "0.3000", "0.3001", "0.3"),
        (0.1, "0.1000", "0.1000", "0.1"),  # and not a bit more, although the float is
        (9.9996, "9.999", "10.00", "10"),
        (123.4567, "123.4", "123.5", "123.5"),
        (123456.7, "123456", "123457", "123457"),
        (999999.5, "999999", "1.000e+06", "1e+06"),
        (1234567.0, "1.234e+06", "1.235e+06", "1.235e+06"),
        (0.00012345, "0.0001234", "0.0001235", "0.0001234"),
        (0.000012345, "1.234e-05", "1.235e-05", "1.234e-05"),
        (1e-300, "1.000e-300", "1.000e-300", "1e-300"),
        (math.inf, "inf", "inf", "inf"),
        (-math.inf, "-inf", "-inf", "-inf"),
        (-0.123456, "-0.1235", "-0.1234", "-0.1235"),
    ],
)
def test_known_numbers(value, low, high, near):
    assert (at_least(value), at_most(value), nearest(value)) == (low, high, near)


@settings(max_examples=60)
@given(st.floats(allow_nan=False), st.integers(1, 17))
def test_a_bound_in_words_is_a_bound(value, digits):
    low, high = at_least(value, digits), at_most(value, digits)
    exact = Decimal(repr(value))
    assert Decimal(low) <= exact <= Decimal(high)
    if 0 < abs(value) < math.inf:
        unit = Decimal(10) ** (exact.adjusted() + 1 - digits)
        assert max(exact - Decimal(low), Decimal(high) - exact) < unit
        assert Decimal(nearest(value, digits)) in (Decimal(low), Decimal(high))
    if digits == 17:
        assert float(low) == float(high) == value


@settings(max_examples=40)
@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_confidence_is_never_rounded_up_or_a_certainty(confidence):
    said = Decimal(percent(confidence).removesuffix("%")) / 100
    exact = Decimal(repr(confidence))
    assert said <= exact
    assert said < 1
    assert (1 - said) <= (1 - exact) * Decimal("1.001") + Decimal("1e-27")


@pytest.mark.parametrize(
    ("confidence", "words"),
    [(0.95, "95%"), (0.999999, "99.9999%"), (1 - 1e-12, "99.9999999999%"), (0.5, "50%"), (1 - 0.05 / 3, "98.333%")],
)
def test_known_confidences(confidence, words):
    assert percent(confidence) == words


# What is said of an audit


@FEW
@given(audits())
def test_the_verdict_follows_from_the_numbers_as_they_are_written(result):
    said = cells(result)
    claim, measured = (result.claim.at(float(said[name])) for name in ("promised", "measured"))
    unbounded = result.support is not None
    assert verdict_of(claim, measured, float(said["detectable"]), unbounded) == result.verdict
    assert float(said["measured"]) <= result.measured.budget
    assert float(said["detectable"]) >= result.detectable
    assert float(said["ceiling"]) >= result.ceiling


@pytest.mark.parametrize(
    ("measured", "verdict", "said"),
    [
        (0.99996, "not refuted", "0.9999"),
        (1.0, "not refuted", "1.000"),
        (1.00004, "violated", "1.00004"),  # with four digits it would stand beside a promise of 1 as 1.000
        (math.nextafter(1, 2), "violated", "1.0000000000000002"),
        (1.5, "violated", "1.500"),
    ],
)
def test_a_number_is_on_the_side_of_the_promise_that_the_verdict_says(measured, verdict, said):
    assert cells(audited(measured=PureDP(measured), verdict=verdict))["measured"] == said


def test_a_promise_has_the_digits_that_the_verdict_needs():
    said = cells(audited(claim=PureDP(0.123456), measured=PureDP(0.1234562), verdict="violated", detectable=0.2))
    assert (said["promised"], said["measured"], said["detectable"]) == ("0.123456", "0.1234562", "0.2000")


def test_every_cell():
    result = audited(
        claim=ApproxDP(1, 1e-6, "replace_one"),
        measured=ApproxDP(0.87512, 1e-6, "replace_one"),
        relation="replace_one",
        distance=2,
        adjacency="declared",
        support=WITNESS,
        verdict="violated",
        confidential=True,
    )
    assert cells(result, "first") == {
        "name": "first",
        "mechanism": "count",
        "parameter": "epsilon",
        "promised": "1",
        "delta": "1e-06",
        "relation": "replace_one",
        "unit": "person",
        "distance": "2",
        "adjacency": "declared",
        "measured": "0.8751",
        "confidence": "0.95",
        "detectable": "1.250",
        "ceiling": "5.500",
        "verdict": "violated",
        "event": "y if output[0] >= 13",
        "witness": "unbounded by the exact law: possible on x only, probability 0.25",
        "size": "2000",
        "selection": "601",
        "pair": "1 person added to cell 0",
        "seed": "42",
        "confidential": "CONFIDENTIAL",
    }
    assert list(row(result, "first").items()) == [
        ("name", "first"),
        ("mechanism", "count"),
        ("promised", "epsilon 1, delta 1e-06"),
        ("neighbors: one ...", "person replaced, 2 steps apart (declared)"),
        ("runs force at least", "0.8751"),
        ("confidence", "95%"),
        ("would have seen from", "1.250"),
        ("ceiling", "5.500"),
        ("verdict", "violated"),
        ("event", "y if output[0] >= 13"),
        ("witness", "unbounded by the exact law: possible on x only, probability 0.25"),
        ("runs", "2000, 601 of them to choose the event"),
        ("pair", "1 person added to cell 0"),
        ("seed", "42"),
        ("confidential", "CONFIDENTIAL"),
    ]
    assert line(result) == (
        "CONFIDENTIAL: count: promised epsilon 1, delta 1e-06 (replace one), 2000 runs force at least 0.8751 at 95%: "
        "violated, 1.250 would have been seen (on the caller's word, 1 person added to cell 0; y if output[0] >= 13; "
        "unbounded by the exact law: possible on x only, probability 0.25; searched: thresholds on output[0])"
    )
    assert (tuple(cells(result)), tuple(values(result)), tuple(row(result))) == (VALUES, VALUES, COLUMNS)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (PureDP(1), "epsilon 1"),
        (ZCDP(0.5), "rho 0.5"),
        (GaussianDP(1 / 3), "mu 0.3333"),
        (PureDP(4e4), "epsilon 40000"),
    ],
)
def test_promises_of_every_family(claim, words):
    result = audited(claim=claim, measured=claim.at(0.25))
    assert row(result)["promised"] == words
    assert f"promised {words} (add/remove)" in line(result)


def test_a_line_is_what_a_result_says_of_itself():
    for result in (audited(), audited(detectable=math.inf, verdict="no power"), audited(adjacency="declared")):
        assert str(result) == line(result)
    assert "nothing would have been seen" in line(audited(detectable=math.inf, verdict="no power"))


def test_what_was_redacted_stays_so():
    public = audited(confidential=True, mechanism="count").redact()
    for form in FORMS:
        text = render([public], ["first"], form)
        assert "redacted" in text
        assert "cell 0" not in text
        assert "output[0]" not in text.replace("\\", "").replace("{", "").replace("}", "")
        assert "CONFIDENTIAL" not in text


# The same in every form


def numbers_in_forms(result):
    """The number cells of one audit, as each form shows them."""
    (record,) = csv.DictReader(to_csv([result]).splitlines())
    latex = dict(zip(COLUMNS, in_latex(to_latex([result]))[1], strict=True))
    markdown = dict(zip(COLUMNS, [text for text, _ in parsed(to_markdown([result]))][len(COLUMNS) :], strict=True))
    return record, latex, markdown, to_text([result]), to_lines([result])


@FEW
@given(audits())
def test_the_numbers_are_the_same_in_every_form(result):
    record, latex, markdown, text, said = numbers_in_forms(result)
    written, read = cells(result), row(result)
    assert {name: record[name] for name in NUMBERS} == {name: written[name] for name in NUMBERS}
    for title in ("promised", "runs force at least", "would have seen from", "ceiling"):
        assert latex[title].replace("{-}", "-") == markdown[title] == read[title]
        assert read[title] in text
    assert latex["confidence"].replace("\\", "") == markdown["confidence"] == read["confidence"]
    assert read["confidence"] in text
    forced = f"force at least {written['measured']} at {read['confidence']}"
    assert forced in said
    assert written["measured"] in record["measured"]


@pytest.mark.parametrize("library", ["pandas", pytest.param("polars", marks=pytest.mark.slow)])  # 0.4 s to import
def test_a_frame_has_the_numbers_as_they_are(library):
    results = [
        audited(measured=PureDP(0.87512345), seed_entropy=2**127, confidential=True),
        audited(claim=ApproxDP(1, 1e-6), measured=ApproxDP(0.5, 1e-6), detectable=math.inf, seed_entropy=None),
    ]
    frame = to_frame(results, ["=a", "b\x1b[2J"], library=library)
    assert tuple(frame.columns) == VALUES
    columns = {name: list(frame[name]) for name in VALUES}
    assert columns["name"] == ["=a", "b [2J"]
    assert columns["measured"] == [0.87512345, 0.5]
    assert columns["detectable"] == [1.25, math.inf]
    assert columns["size"] == [2000, 2000]
    assert columns["seed"] == [str(2**127), ""]
    assert columns["confidential"] == [True, False]
    assert columns["delta"][1] == 1e-6
    assert columns["delta"][0] is None or math.isnan(columns["delta"][0])
    assert [at_least(value) for value in columns["measured"]] == [cells(result)["measured"] for result in results]


def test_a_frame_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^a data frame needs pandas: pip install pandas$"):
        to_frame([audited()])
    with pytest.raises(ValueError, match='library must be "pandas" or "polars", got \'dask\''):
        to_frame([audited()], library="dask")


def test_json_has_all_of_a_result():
    results = [audited(), audited(detectable=math.inf, verdict="no power")]
    found = json.loads(to_json(results, ["\x1b[2J", "b"]))
    assert found == {"\x1b[2J": results[0].to_dict(), "b": results[1].to_dict()}
    assert clean(to_json(results, ["\x1b[2J\u202e", "b"]))
    with pytest.raises(ValueError, match="names must differ to be keys of JSON, got 2 results with 1 names"):
        to_json(results)


def test_a_table_of_text_is_flush():
    text = to_text([audited(), audited(event="東京", measured=PureDP(12.5), verdict="violated")], ["a", "longer"])
    head, rule, first, second = text.splitlines()
    assert head.startswith("name    mechanism  promised   neighbors: one ...")
    assert rule.startswith("------  ---------  ---------  ----")
    assert first.startswith("a       count      epsilon 1  person added or removed               0.8750         95%")
    assert second.startswith("longer  count      epsilon 1  person added or removed                12.50         95%")
    assert first.index("2000,") == second.index("2000,") + 2  # two letters, each two columns wide


def test_nothing_is_a_table_of_nothing():
    assert to_csv([]).splitlines() == [",".join(VALUES)]
    assert to_lines([]) == ""
    assert to_json([]) == "{}\n"
    assert len(to_text([]).splitlines()) == len(to_markdown([]).splitlines()) == 2
    assert in_latex(to_latex([])) == [[title.replace("-", "{-}") for title in COLUMNS]]


@pytest.mark.parametrize("form", FORMS)
def test_names_are_as_many_as_results(form):
    with pytest.raises(ValueError, match="names must be as many as results, got 1 and 2"):
        render([audited(), audited()], ["one"], form)


def test_an_unknown_form():
    with pytest.raises(ValueError, match="form must be one of text, markdown, latex, csv, line, json, got 'xml'"):
        render([audited()], None, "xml")
    assert render([audited()]) == to_text([audited()])


# What others wrote


@pytest.mark.parametrize("name", NAMES)
def test_no_form_obeys_a_name(name):
    result = hostile(name)
    shown = printable(name)
    for form in FORMS:
        text = render([result], [name], form)
        assert clean(text, "\r\n" if form == "csv" else "\n")
        assert len(text.splitlines()) == {"text": 3, "markdown": 3, "latex": 7, "csv": 2, "line": 1}.get(
            form, text.count("\n")
        )

    head, body = to_csv([result], [name]).split("\r\n")[:2]
    (cells_read,) = csv.reader([body])
    record = dict(zip(head.split(","), cells_read, strict=True))
    for key in ("name", "mechanism", "event", "pair"):
        assert record[key].replace("'", "") == shown.replace("'", "")  # nothing but apostrophes is added
        for semicolons in (record[key].split(";"), body.split(";")):  # either end of a cell
            assert not any(part.lstrip(" \"'").startswith(tuple("=+-@")) and "'" not in part[:3] for part in semicolons)

    lines = to_markdown([result], [name]).splitlines()
    assert [entry.count("|") for entry in lines] == [len(COLUMNS) + 1] * 3
    seen = dict(zip(COLUMNS, parsed("\n".join(lines))[len(COLUMNS) :], strict=True))
    for title in ("name", "mechanism", "event", "pair"):
        text, kinds = seen[title]
        assert text.strip() == shown
        assert kinds <= {"code_inline", "text", "text_special"}
        assert "text" not in kinds or set(shown) & {"|"} or not shown  # outside of code nothing stands but pipes

    latex = to_latex([result], [name])
    assert latex.isascii()
    assert balanced(latex)
    assert [len(entries) for entries in in_latex(latex)] == [len(COLUMNS)] * 2
    commands = set(re.findall(r"\\([a-zA-Z]+|.)", latex.split("\\hline\n")[2]))
    assert commands <= COMMANDS


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(";='\"|`\\ -+@&{}[]", max_size=8))
def test_no_name_breaks_a_table(name):
    result = hostile(name)
    (record,) = csv.DictReader(to_csv([result], [name]).splitlines())
    assert {key: record[key] for key in NUMBERS} == {key: cells(result)[key] for key in NUMBERS}
    assert record["name"].replace("'", "") == printable(name).replace("'", "")
    markdown = to_markdown([result], [name])
    assert [entry.count("|") for entry in markdown.splitlines()] == [len(COLUMNS) + 1] * 3
    assert parsed(markdown)[len(COLUMNS)][0].strip() == printable(name)
    latex = to_latex([result], [name])
    assert balanced(latex)
    assert [len(entries) for entries in in_latex(latex)] == [len(COLUMNS)] * 2
    assert clean(to_text([result], [name]) + markdown + latex + to_lines([result], [name]))


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        (" \t=1", "'=1"),
        ('"=1', "'\"=1"),
        ("\uff1d1", "'\uff1d1"),
        ("\ufe631", "'\ufe631"),
        ("a;-1", "a;'-1"),
        ("cell (3, -1)", "cell (3, -1)"),  # a comma is quoted, and what stands after it is no cell
        ("1e-5", "1e-5"),
        ("x = 1", "x = 1"),
    ],
)
def test_spreadsheets_compute_nothing(name, cell):
    (record,) = csv.DictReader(to_csv([audited(event=name)]).splitlines())
    assert record["event"] == cell


def test_numbers_of_spreadsheets_are_left_alone():
    claim = PureDP(1e-5)
    result = audited(claim=claim, measured=claim.at(1e-6), detectable=math.inf, verdict="no power", seed_entropy=7)
    body = to_csv([result]).splitlines()[1]
    assert body.startswith(
        '"count","count","epsilon",1e-05,,"add_remove","person",1,"verified",1.000e-06,0.95,inf,5.500'
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex, of texlive-latex-base")
@pytest.mark.parametrize("encoding", ["", r"\usepackage[T1]{fontenc}"])
def test_latex_compiles(encoding, tmp_path):
    letters = ["".join(map(chr, range(first, last))) for first, last in ((32, 127), (0xA0, 0x250), (0x370, 0x700))]
    names = NAMES + letters
    (tmp_path / "table.tex").write_text(to_latex([hostile(name) for name in names], names), "utf-8")
    document = (
        rf"\documentclass{{article}}{encoding}\usepackage[paperwidth=5000mm,paperheight=5000mm]{{geometry}}"
        r"\begin{document}\input{table}\end{document}"
    )
    (tmp_path / "report.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "report.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:]
    assert b"Output written on report.pdf (1 page" in made.stdout


def test_every_form_says_what_is_confidential():
    results, names = [audited(), audited(confidential=True)], ["open", "secret"]
    for form in FORMS:
        marked = render(results, names, form)
        assert ("CONFIDENTIAL" in marked) == (form != "json")
        assert "CONFIDENTIAL" not in render(results[:1], names[:1], form)
    assert json.loads(to_json(results, names))["secret"]["confidential"] is True
    assert to_text(results, names).startswith("CONFIDENTIAL: the databases behind")
    assert to_markdown(results, names).startswith("**CONFIDENTIAL: the databases behind")
    assert to_latex(results, names).startswith("\\textbf{CONFIDENTIAL: the databases behind")
    assert len(parsed(to_markdown(results, names))) == 3 * len(COLUMNS)
    assert [record["confidential"] for record in csv.DictReader(to_csv(results, names).splitlines())] == [
        "",
        "CONFIDENTIAL",
    ]
