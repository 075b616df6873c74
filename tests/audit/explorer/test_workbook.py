"""The workbook: its formulas give the numbers of Python, its inputs take what the page takes, its steps are hidden."""

from __future__ import annotations

import importlib.util
import io
import itertools
import re
import zipfile

import numpy as np
import openpyxl
import pytest

from algorithms.systems import sheets
from audit.explorer import layout, views, workbook
from audit.explorer.printed import words_in
from audit.explorer.sheet import Explored
from experiments.phsafe import table10 as phsafe_table10
from tests.audit.explorer.office import needs_office, recomputed
from tests.audit.explorer.settings import TOTALS_OF_TABLE_10, differing, random_state
from tests.helpers import contents, refuses

SHEETS = sheets()
LAYOUTS = {one.name: layout.lay_out(Explored(one), words_in("en")) for one in SHEETS}
FILES = 70  # with random settings


@pytest.fixture(scope="module")
def content():
    return workbook.build_workbook(Explored(SHEETS[0]), SHEETS)


@pytest.fixture(scope="module")
def book(content):
    return openpyxl.load_workbook(io.BytesIO(content))


def cell(book, place):
    return book[place.worksheet].cell(place.row + 1, place.column + 1)


def read(computed, place):
    """What stands in a cell of worksheets whose rows end where nothing follows."""
    rows = computed[place.worksheet]
    row = rows[place.row] if place.row < len(rows) else ()
    return row[place.column] if place.column < len(row) else None


def book_of(sheets, **options):
    content = workbook.build_workbook(Explored(sheets[0]), sheets)
    return openpyxl.load_workbook(io.BytesIO(content), **options)


def written(value):
    """What stands in an input cell of a value."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


# What is in it


def test_table_10_both_totals_and_the_printed_epsilons_stand_in_it():
    sheet, numbers = LAYOUTS["phsafe"].sheet, LAYOUTS["phsafe"].numbers
    values = book_of([sheet], data_only=True)
    printed = phsafe_table10.printed_table()
    assert len(printed) == 46
    for row in printed:
        value = cell(values, numbers[f"phsafe/{row['table']}/{row['level']}/rho"]).value
        assert f"{value:.6f}".rstrip("0") == row["unbounded"].rstrip("0")
    for name, text in TOTALS_OF_TABLE_10.items():
        digits = len(text.partition(".")[2])
        assert f"{cell(values, numbers[f'phsafe/total/all/{name}']).value:.{digits}f}" == text


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda one: one.name)
def test_every_result_is_a_formula_and_every_input_a_cell(book, sheet):
    found = LAYOUTS[sheet.name]
    empty = {key for key, value in found.results.items() if key not in found.formulas and value is None}
    assert found.results.keys() - found.numbers.keys() == empty
    assert all(str(cell(book, found.numbers[key]).value).startswith("=") for key in found.results if key not in empty)
    silent = {one.key for one in sheet.inputs if one.kind in ("codes", "numbers") or one.key.endswith("/preset")}
    assert found.inputs.keys() == {one.key for one in sheet.inputs} - silent
    assert all(cell(book, found.inputs[key]).value == written(sheet.published[key]) for key in found.inputs)


def test_inputs_take_what_the_page_takes(book):
    kinds = {"flag": "list", "choice": "list", "number": "decimal", "integer": "whole"}
    of_inputs = {one.key: one for sheet in SHEETS for one in sheet.inputs}
    rules = {page.title: page.data_validations.dataValidation for page in book}
    for key, place in itertools.chain(*(found.inputs.items() for found in LAYOUTS.values())):
        one = of_inputs[key]
        (rule,) = [rule for rule in rules[place.worksheet] if place.address in rule.cells]
        assert rule.type == kinds[one.kind]
        if one.kind in ("number", "integer"):
            assert (float(rule.formula1), float(rule.formula2)) == (one.least, one.most)
        elif not rule.formula1.startswith("'"):
            assert rule.formula1 == f'"{",".join(["yes", "no"] if one.kind == "flag" else one.choices)}"'


def test_three_worksheets_are_read_steps_are_hidden_and_nothing_runs(content, book):
    hidden = {page.title: page.sheet_state == "hidden" for page in book}
    assert hidden == {name: name.endswith((" steps", " numbers")) for name in book.sheetnames}
    assert len(book.sheetnames) - sum(hidden.values()) == len(SHEETS) == 3
    for page in book:
        assert not any(row.hidden for row in page.row_dimensions.values())
        assert not any(column.hidden for column in page.column_dimensions.values())
        assert page.freeze_panes is not None
        assert not page.protection.sheet
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert not [name for name in names if "vba" in name.lower() or "external" in name.lower()]
    formulas = {str(one.value) for page in book for row in page for one in row if one.data_type == "f"}
    assert not [text for text in formulas if re.search(r"INDIRECT|OFFSET|NOW\(|RAND|WEBSERVICE|HYPERLINK|_xlfn", text)]


def test_five_sentences_come_first(book):
    words = words_in("en")
    sentences = [words[f"workbook.{place}"] for place in range(1, 6)]
    assert all(text.count(".") == 1 and text.endswith(".") for text in sentences)
    for found in LAYOUTS.values():
        front = book[found.worksheets[0].name]
        assert " ".join(sentences) in [front.cell(row, 1).value for row in range(1, 6)]


@pytest.mark.reliability(11)
def test_text_is_never_a_formula(monkeypatch):
    words = words_in("en")
    hostile = {key: f'{first}HYPERLINK("http://x")' for key, first in zip(words, itertools.cycle("=+-@"), strict=False)}
    hostile |= {key: text for key, text in words.items() if key.endswith(".short")}
    monkeypatch.setattr(workbook, "words_in", lambda language: hostile)
    cells = [
        one for page in book_of([LAYOUTS["topdown"].sheet]) for row in page for one in row if one.value is not None
    ]
    assert {one.data_type for one in cells} == {"s", "n", "f"}
    assert {str(one.value)[0] for one in cells if one.data_type == "s"} >= set("=+-@")
    shown = [one.value for one in cells if one.data_type == "f"]
    assert any('HYPERLINK(""http://x"")"' in text for text in shown)  # a sentence that is shown
    assert not [text for text in shown if "HYPERLINK" in re.sub(r'"(""|[^"])*"', "", text)]


def test_the_same_settings_give_the_same_bytes():
    one, two = (workbook.build_workbook(Explored(SHEETS[0]), SHEETS[:2]) for _ in range(2))
    assert one == two


# How it is written


def test_it_is_written_where_nothing_is(tmp_path, monkeypatch):
    explored, path = Explored(SHEETS[0]), tmp_path / "new" / "book.xlsx"
    monkeypatch.setattr(views, "build_workbook", lambda explored, sheets: b"a workbook")
    explored.to_xlsx(path)
    (tmp_path / "file").write_text("kept")
    written = contents(tmp_path)
    assert written == {"new/book.xlsx": b"a workbook", "file": b"kept"}
    other = tmp_path / "book.csv"
    refuses(ValueError, f"--xlsx must name a file that ends in .xlsx, got {other}", explored.to_xlsx, other)
    with pytest.raises(OSError, match="file"):
        explored.to_xlsx(tmp_path / "file" / "book.xlsx")
    page = tmp_path / "page.html"  # it is not written if the workbook cannot be
    with pytest.raises(FileExistsError, match="is there: it stays"):
        explored.show(html=page, xlsx=path)
    assert contents(tmp_path) == written


def test_without_the_extra_one_line_says_which(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(workbook, "find_spec", lambda name: None if name == "xlsxwriter" else found(name))
    message = "a workbook needs the extra xlsx: pip install 'plaudit[xlsx]'"
    refuses(ValueError, message, Explored(SHEETS[0]).to_xlsx, tmp_path / "book.xlsx")


# What it computes


def computed_at(states, book, layouts, folder):
    """Cells of copies of a workbook whose inputs have other values."""
    for number, state in enumerate(states):
        for name, found in layouts.items():
            for key, place in found.inputs.items():
                cell(book, place).value = written(state[name][key])
        book.save(folder / f"{number:03}.xlsx")
    return recomputed(folder)


def results(computed, found, wanted):
    """What stands where the results of a sheet are, by key; texts by their keys."""
    keys = {found.words[text]: text for text in wanted.values() if isinstance(text, str) and text in found.words}
    values = {key: read(computed, found.numbers[key]) if key in found.numbers else None for key in wanted}
    return {key: None if value == "" else keys.get(value, value) for key, value in values.items()}


@pytest.mark.slow
@needs_office
def test_libreoffice_computes_the_numbers_of_python(tmp_path):
    rng = np.random.default_rng(4)
    states = [{one.name: random_state(one, rng) for one in SHEETS} for _ in range(FILES)]
    lists = {one.key for sheet in SHEETS for one in sheet.inputs if one.kind == "numbers"}  # no cell takes them
    for state in states:
        for values in state.values():
            values |= dict.fromkeys(lists & values.keys())
    states[0] = {one.name: one.published for one in SHEETS}
    made = computed_at(states, book_of(SHEETS), LAYOUTS, tmp_path)
    for number, (state, computed) in enumerate(zip(states, made, strict=True)):
        for name, found in LAYOUTS.items():
            wanted = found.sheet.compute(state[name])
            assert differing(results(computed, found, wanted), wanted) == [], (number, name)


@pytest.mark.slow
@needs_office
def test_a_formula_with_an_error_is_noticed(tmp_path):
    found, key = LAYOUTS["counts"], "counts/sum/all/geometric"
    book = book_of([found.sheet])
    wrong = cell(book, found.numbers[key])
    wrong.value = f"{wrong.value}*1.00000001"
    wanted = found.sheet.compute(found.sheet.published)
    (computed,) = computed_at([{"counts": found.sheet.published}], book, {"counts": found}, tmp_path)
    assert key in differing(results(computed, found, wanted), wanted)
