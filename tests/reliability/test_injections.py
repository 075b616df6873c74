"""Injections: hostile names in SVG figures, SQL, paths, terminals and spreadsheets are text, and nothing else.

Pages, Markdown and CSV of results have theirs in `tests/audit/report`.
"""

import csv
import sys
import tomllib
import unicodedata
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib import cbook

from algorithms.bottom_up import BottomUp
from algorithms.release.intake import read_histogram
from algorithms.schema import Schema
from audit.io.text import from_cell, printable, shown
from audit.results.folder import name_in_files, read_audits, save_result
from audit.results.plots import house_style, new_figure, plot_audits, save_figure
from tests.audit.report.hostile import PAYLOADS, by_kind
from tests.audit.report.test_formats import NAMES
from tests.helpers import audited, contents, in_full, rows_of, system_module

release = system_module("bottom_up").release

SQL, PATHS, FORMULAS = tomllib.loads(Path(__file__).with_name("payloads.toml").read_text("utf-8")).values()
PATHS += ["x" * 300, "é" * 200]
ACTIVE = {"script", "foreignObject", "iframe", "image", "a", "animate", "set", "handler", "audio", "video", "object"}
OBEYED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # categories of letters that no terminal shows as a letter


def wrong_with(root):
    """Elements and attributes of a drawing that do anything."""
    for one in root.iter():
        tag = one.tag.rpartition("}")[2]
        names = {name.rpartition("}")[2].lower(): value for name, value in one.attrib.items()}
        if tag in ACTIVE or any(name.startswith("on") for name in names):
            yield tag
        if not names.get("href", "#").startswith("#") or "url(" in names.get("style", "").replace("url(#", ""):
            yield f"{tag} {names}"


@pytest.mark.reliability(row=9)
@pytest.mark.parametrize("step", in_full(9, 1))
@pytest.mark.parametrize("fonttype", ["path", "none"])
def test_a_figure_holds_names_as_text_and_draws_them(fonttype, step, tmp_path, record_property):
    given = (*PAYLOADS, *NAMES)[::step]
    record_property("tried", len(by_kind(given)))
    with house_style():
        figure, (axes,) = new_figure(9, 40)
        plot_audits([audited().summary(words) for words in given], axes)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == len(given)
    assert all(words.isprintable() and cbook.is_math_text(words) is False for words in labels)
    with matplotlib.rc_context({"svg.fonttype": fonttype}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of letters that the font does not have
        save_figure(figure, tmp_path / "a.svg")
    assert list(wrong_with(ElementTree.parse(tmp_path / "a.svg").getroot())) == []


def test_a_drawing_that_does_something_is_found_out():
    for words in ("<script/>", "<a href='javascript:x'/>", "<g onload='x'/>", "<g style='fill:url(//x)'/>"):
        assert list(wrong_with(ElementTree.fromstring(f"<svg>{words}</svg>")))
    assert not list(wrong_with(ElementTree.fromstring("<svg><use href='#a' style='clip-path: url(#b)'/></svg>")))


def distinct(words):
    """Those that are other names, whatever their case, once blanks around them are gone."""
    return list({one.strip().upper(): one.strip() for one in words}.values())


@pytest.mark.reliability(row=9)
@pytest.mark.parametrize("step", in_full(9, 1))
@pytest.mark.parametrize("kind", ["columns", "levels", "codes", "paths"])
def test_no_name_is_sql(kind, step, tmp_path):
    """Each is a column, a level, a code or a file, and counted as such."""
    words = [word for word in distinct(SQL)[::step] if kind != "columns" or "*" not in word]  # a schema refuses those
    before = contents(tmp_path)
    if kind in ("levels", "codes"):
        levels, codes = (words, ["a"]) if kind == "levels" else (["a", "b"], words)
        rows = [("area", "kind"), *((code, level) for code in codes for level in levels)]
        write(tmp_path / "t.csv", rows)
        tree, histogram = read_histogram(tmp_path / "t.csv", Schema({"kind": tuple(levels)}), ["area"])
        assert {tree.label(leaf) for leaf in range(tree.n_leaves)} == set(codes)
        assert (histogram == 1).all()
        before = contents(tmp_path)
    else:
        for number, name in enumerate(words):
            column, file = (name, "t.csv") if kind == "columns" else ("kind", f"{name.replace('/', ' ')} {number}.csv")
            area = "area" if column != "area" else "place"
            write(tmp_path / file, [(area, column), ("x", "f"), ("x", "m"), ("y", "m")])
            tree, histogram = read_histogram(tmp_path / file, Schema({column: ("f", "m")}), [area])
            assert histogram.tolist() == [[1, 1], [0, 1]], name
            (tmp_path / file).unlink()
    assert contents(tmp_path) == before


def write(path, rows):
    """Write rows as a spreadsheet does."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)


@pytest.mark.reliability(row=9)
def test_no_name_is_a_path(tmp_path):
    """Each result is a file in its folder, and says what it is called."""
    folder = tmp_path / "above" / "results"
    for words in PATHS:
        path = save_result(audited(pair=printable(words)), folder, words)
        assert path.parent == folder
        assert path.name.startswith(name_in_files(words))
        assert path.suffix == ".json"
    assert len(list(folder.iterdir())) == len(PATHS) == len(read_audits(folder))
    assert [one for one in tmp_path.rglob("*") if one.is_file() and one.parent != folder] == []


@pytest.mark.reliability(row=9)
def test_nothing_of_unicode_commands_a_terminal():
    """Every letter of every category that a terminal may obey, between two that are shown."""
    obeyed = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in OBEYED[:3]]
    obeyed += ["\u2028", "\u2029", "\ue000", "\U0010ffff"]
    kept = [letter for letter in obeyed if shown(f"a{letter}b") not in ("a b", "a\nb")]
    assert kept == []
    assert all(printable(f"a{letter}b") == "a b" for letter in obeyed)
    assert shown("a\nb") == "a\nb"  # the one that is kept


@pytest.mark.reliability(row=9)
def test_tables_of_a_release_are_computed_by_no_spreadsheet(tmp_path, record_property):
    """Levels and codes that look like formulas are text in the tables, and given back letter by letter."""
    words = distinct(FORMULAS)
    record_property("tried", 2)  # places: levels and codes
    write(tmp_path / "t.csv", [("area", "kind"), *((one, level) for one in words for level in words)])
    schema = Schema({"kind": tuple(words)})
    tree, histogram = read_histogram(tmp_path / "t.csv", schema, ["area"])
    release(BottomUp(1.0, tree, schema), histogram, out=tmp_path / "out", rng=np.random.default_rng(1), areas=["area"])
    rows = rows_of(tmp_path / "out" / "level_1.csv")
    cells = [row[name] for row in rows for name in row if name.lower() in ("area", "kind") and row[name]]
    assert {from_cell(cell) for cell in cells} <= set(words) | set(tree.labels)
    texts = [unicodedata.normalize("NFKC", shown(cell)).lstrip(' "`') for cell in cells]
    assert not [cell for cell in texts if cell[:1] in "=+-@" and cell not in ("-1",)]
