"""The workbook: its formulas give the numbers of Python, its inputs take what the page takes, its steps are hidden."""

from __future__ import annotations

import importlib.util
import io
import itertools
import math
import re
import zipfile
from collections import Counter

import numpy as np
import openpyxl
import pytest

from algorithms.systems import sheets
from audit.explorer import formulas, layout, views, workbook
from audit.explorer.plans import POWERS, plan_tables
from audit.explorer.printed import words_in
from audit.explorer.sheet import Explored
from experiments.phsafe import table10 as phsafe_table10
from tests.audit.explorer.office import needs_office, recomputed
from tests.audit.explorer.settings import TOTALS_OF_TABLE_10, differing, random_state
from tests.helpers import contents, refuses

SHEETS = sheets()
LAYOUTS = {one.name: layout.lay_out(Explored(one), words_in("en")) for one in SHEETS}
FILES, AUDITS = 70, 212  # with random settings of the sheets of systems, and of that of audits
ASK = "workbook.ask"


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


def test_the_table_of_simulated_plans_is_a_worksheet_of_numbers(book):
    found = LAYOUTS["audit"]
    for (family, selection), table in plan_tables().items():
        for row, lines in enumerate(table.excess):
            for column, line in enumerate(lines):
                place = f"audit/simulated/{family} {selection}/{row}/{column}"
                wanted = [table.budgets[row], table.runs[column], *('=""' if one is None else one for one in line)]
                places = [found.numbers[f"{place}/{name}"] for name in ("budget", "runs", *POWERS)]
                assert [cell(book, one).value for one in places] == wanted
                assert {one.worksheet for one in places} == {"Audit numbers"}


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


def test_four_worksheets_are_read_steps_are_hidden_and_nothing_runs(content, book):
    hidden = {page.title: page.sheet_state == "hidden" for page in book}
    assert hidden == {name: name.endswith((" steps", " numbers")) for name in book.sheetnames}
    assert len(book.sheetnames) - sum(hidden.values()) == len(SHEETS) == 4
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
    cells = [one for page in book_of([SHEETS[-1]]) for row in page for one in row if one.value is not None]
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
    keys = {
        found.words[text]: text for text in (*wanted.values(), ASK) if isinstance(text, str) and text in found.words
    }
    values = {key: read(computed, found.numbers[key]) if key in found.numbers else None for key in wanted}
    return {key: None if value == "" else keys.get(value, value) for key, value in values.items()}


@pytest.mark.slow
@needs_office
def test_libreoffice_computes_the_numbers_of_python(tmp_path):
    rng = np.random.default_rng(4)
    layouts = {name: found for name, found in LAYOUTS.items() if name != "audit"}
    of_systems = [found.sheet for found in layouts.values()]
    states = [{one.name: random_state(one, rng) for one in of_systems} for _ in range(FILES)]
    lists = {one.key for sheet in of_systems for one in sheet.inputs if one.kind == "numbers"}  # no cell takes them
    for state in states:
        for values in state.values():
            values |= dict.fromkeys(lists & values.keys())
    states[0] = {one.name: one.published for one in of_systems}
    made = computed_at(states, book_of(of_systems), layouts, tmp_path)
    for number, (state, computed) in enumerate(zip(states, made, strict=True)):
        for name, found in layouts.items():
            wanted = found.sheet.compute(state[name])
            assert differing(results(computed, found, wanted), wanted) == [], (number, name)


def audit_state(number, rng):
    """A random state of the sheet `audit`: of each family in turn, often of one person, mostly in the table."""
    sheet = LAYOUTS["audit"].sheet
    given = random_state(sheet, rng) if number else sheet.published
    given["audit/claim/all/family"] = family = ("pure", "approx", "gaussian", "zcdp")[number % 4]
    if family in ("gaussian", "zcdp") and rng.random() < 0.8:
        given |= {"audit/plan/all/confidence": 0.95, "audit/plan/all/selection": float(rng.choice([0, 0.3]))}
        given |= {"audit/plan/all/distance": int(rng.integers(1, 3))}
        given["audit/claim/all/budget"] = math.exp(rng.uniform(math.log(0.02), math.log(1.5)))
    elif rng.random() < 0.6:
        given["audit/plan/all/distance"] = 1
    return given


@pytest.mark.slow
@needs_office
def test_libreoffice_plans_as_python_does(tmp_path):
    """Runs that a cell cannot tell are a sentence: of plans for more than the search goes to, and of few others."""
    rng, found = np.random.default_rng(5), LAYOUTS["audit"]
    states = [{"audit": audit_state(number, rng)} for number in range(AUDITS)]
    made = computed_at(states, book_of([found.sheet]), {"audit": found}, tmp_path)
    known, left, told = Counter(), [], 0
    for number, (state, computed) in enumerate(zip(states, made, strict=True)):
        wanted = found.sheet.compute(state["audit"])
        shown = results(computed, found, wanted)
        known[wanted["audit/plan/all/known"]] += 1
        if shown["audit/plan/all/runs_needed"] == ASK:
            left.append(wanted.pop("audit/plan/all/runs_needed"))
            assert wanted.pop("audit/plan/all/refused") == (None if left[-1] else "audit.refused.far")
            assert shown.pop("audit/plan/all/refused") is None
            shown.pop("audit/plan/all/runs_needed")
        elif wanted["audit/plan/all/known"] == "audit.known.computed":
            told += wanted["audit/plan/all/runs_needed"] is not None
        assert differing(shown, wanted) == [], number
    assert known["audit.known.computed"] >= 100
    assert known["audit.known.interpolated"] >= 70
    assert told >= 70
    assert len([one for one in left if one is not None and one <= formulas.MOST]) <= 1


@pytest.mark.slow
@needs_office
@pytest.mark.parametrize(
    ("step", "error", "result"), [("all/seen", "*1.00000001", "power_found"), ("steps/error", "*1.2", "runs_needed")]
)
def test_a_formula_with_an_error_is_noticed(tmp_path, step, error, result):
    found = LAYOUTS["audit"]
    book = book_of([found.sheet])
    wrong = cell(book, found.numbers[f"audit/plan/{step}"])
    wrong.value = f"{wrong.value}{error}"
    wanted = found.sheet.compute(found.sheet.published)
    (computed,) = computed_at([{"audit": found.sheet.published}], book, {"audit": found}, tmp_path)
    assert f"audit/plan/all/{result}" in differing(results(computed, found, wanted), wanted)
