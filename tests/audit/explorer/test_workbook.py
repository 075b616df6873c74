"""The workbook: its formulas give the numbers of Python, its inputs take what the page takes, and nothing is hidden."""

from __future__ import annotations

import importlib.util
import io
import re
import shutil
import subprocess
import zipfile

import numpy as np
import openpyxl
import pytest

from algorithms.systems import sheets
from audit.explorer import layout, workbook
from audit.explorer.printed import words_in
from audit.explorer.sheet import Explored
from experiments import phsafe_table10
from tests.audit.explorer.settings import differing, random_state
from tests.helpers import refuses

SHEETS = sheets()
LIVE = [one for one in SHEETS if one.formulas]
LAYOUTS = {one.name: layout.lay_out(Explored(one), words_in("en")) for one in SHEETS}
SOFFICE = shutil.which("soffice")
FILES = 70  # with random settings of every sheet that has formulas
ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>
"""


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


def written(value):
    """What stands in an input cell of a value."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


# What is in it


def test_table_10_both_totals_and_the_printed_epsilons_stand_in_it(content):
    values = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
    numbers = LAYOUTS["phsafe"].numbers
    printed = phsafe_table10.printed_table()
    assert len(printed) == 46
    for row in printed:
        value = cell(values, numbers[f"phsafe/{row['table']}/{row['level']}/rho"]).value
        assert f"{value:.6f}".rstrip("0") == row["unbounded"].rstrip("0")
    wanted = {"rho": 1.257281, "bounded_rho": 2.514562, "epsilon_tight": 11.412, "bounded_epsilon_tight": 16.980}
    wanted |= {"epsilon_simple": 12.018, "bounded_epsilon_simple": 17.733}
    wanted |= {"epsilon_gaussian": 10.944, "bounded_epsilon_gaussian": 16.308}
    for name, number in wanted.items():
        digits = 6 if name.endswith("rho") else 3
        assert round(cell(values, numbers[f"phsafe/total/all/{name}"]).value, digits) == number


@pytest.mark.parametrize("sheet", LIVE, ids=lambda one: one.name)
def test_every_result_is_a_formula_and_every_input_a_cell(book, sheet):
    found = LAYOUTS[sheet.name]
    empty = {key for key, value in found.results.items() if key not in found.formulas and value is None}
    assert found.results.keys() - found.numbers.keys() == empty
    assert all(str(cell(book, found.numbers[key]).value).startswith("=") for key in found.results if key not in empty)
    silent = {one.key for one in sheet.inputs if one.kind == "codes" or one.key.endswith("/preset")}
    assert found.inputs.keys() == {one.key for one in sheet.inputs} - silent
    assert all(cell(book, found.inputs[key]).value == written(sheet.published[key]) for key in found.inputs)


def test_a_sheet_that_is_searched_for_has_values_marked_as_such(book):
    found = LAYOUTS["audit"]
    assert found.inputs == {}
    assert cell(book, found.numbers["audit/plan/all/runs_needed"]).value == 4631
    told = [one.value for row in book["Audit"].iter_rows(max_row=6) for one in row if one.value]
    assert any("values that plaudit computed" in text for text in told)
    assert not any(str(one.value).startswith("=") for row in book["Audit"].iter_rows() for one in row)


def test_inputs_take_what_the_page_takes(book):
    for sheet in LIVE:
        for one in sheet.inputs:
            place = LAYOUTS[sheet.name].inputs.get(one.key)
            if place is None:
                continue
            rules = [
                rule for rule in book[place.worksheet].data_validations.dataValidation if place.address in rule.cells
            ]
            assert len(rules) == 1
            kinds = {"flag": "list", "choice": "list", "number": "decimal", "integer": "whole"}
            assert rules[0].type == kinds[one.kind]
            if one.kind in ("number", "integer"):
                assert (float(rules[0].formula1), float(rules[0].formula2)) == (one.least, one.most)
            elif not rules[0].formula1.startswith("'"):
                choices = ["yes", "no"] if one.kind == "flag" else one.choices
                assert rules[0].formula1 == f'"{",".join(choices)}"'


def test_nothing_is_hidden_and_nothing_runs(content, book):
    assert [page.sheet_state for page in book] == ["visible"] * len(book.sheetnames)
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
    assert book.sheetnames[0] == "Read me"
    sentences = [book["Read me"].cell(row, 1).value for row in range(3, 8)]
    assert all(text.count(".") == 1 and text.endswith(".") for text in sentences)
    assert "Neighboring databases" in sentences[1]


def test_text_is_never_a_formula(monkeypatch):
    for first in "=+-@":
        hostile = {key: f'{first}HYPERLINK("http://x")' for key in words_in("en")}
        hostile |= {key: text for key, text in words_in("en").items() if key.endswith((".short", "workbook.title"))}
        monkeypatch.setattr(workbook, "words_in", lambda language, hostile=hostile: hostile)
        audits = SHEETS[-1]
        made = openpyxl.load_workbook(io.BytesIO(workbook.build_workbook(Explored(audits), [audits])))
        kinds = {one.data_type for page in made for row in page for one in row if one.value is not None}
        assert kinds == {"s", "n"}


def test_the_same_settings_give_the_same_bytes():
    audits = SHEETS[-1]
    one, two = (workbook.build_workbook(Explored(audits), [audits]) for _ in range(2))
    assert one == two


# How it is written


def test_it_is_written_where_nothing_is(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workbook, "build_workbook", lambda explored, sheets: content)
    path = tmp_path / "new" / "book.xlsx"
    Explored(SHEETS[0]).to_xlsx(path)
    assert path.read_bytes() == content
    refuses(ValueError, f"--xlsx must name a new file, got {path}", Explored(SHEETS[0]).to_xlsx, path)
    assert path.read_bytes() == content
    named = f"--xlsx must name a file that ends in .xlsx, got {tmp_path / 'book.csv'}"
    refuses(ValueError, named, Explored(SHEETS[0]).to_xlsx, tmp_path / "book.csv")
    assert not (tmp_path / "book.csv").exists()


def test_nothing_is_left_where_it_cannot_be_written(tmp_path, monkeypatch, content):
    monkeypatch.setattr(workbook, "build_workbook", lambda explored, sheets: content)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(OSError, match="file"):
        Explored(SHEETS[0]).to_xlsx(tmp_path / "file" / "book.xlsx")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_page_is_not_written_if_the_workbook_cannot_be(tmp_path):
    taken, page = tmp_path / "book.xlsx", tmp_path / "page.html"
    taken.write_text("kept")
    refuses(ValueError, f"--xlsx must name a new file, got {taken}", Explored(SHEETS[0]).show, html=page, xlsx=taken)
    assert not page.exists()
    assert taken.read_text() == "kept"


def test_without_the_extra_one_line_says_which(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(workbook, "find_spec", lambda name: None if name == "xlsxwriter" else found(name))
    message = "a workbook needs the extra xlsx: pip install 'plaudit[xlsx]'"
    refuses(ValueError, message, Explored(SHEETS[0]).to_xlsx, tmp_path / "book.xlsx")


# What it computes


@pytest.mark.slow
@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_computes_the_numbers_of_python(tmp_path, content):
    """Inputs are changed in the file, and every formula is computed anew: results that were saved do not count."""
    rng, settings, made = np.random.default_rng(4), [], openpyxl.load_workbook(io.BytesIO(content))
    for number in range(FILES):
        state = {one.name: random_state(one, rng) if number else one.published for one in LIVE}
        for sheet in LIVE:
            for key, place in LAYOUTS[sheet.name].inputs.items():
                cell(made, place).value = written(state[sheet.name][key])
        made.save(tmp_path / f"{number:03}.xlsx")
        settings.append(state)
    (tmp_path / "profile/user").mkdir(parents=True)
    (tmp_path / "profile/user/registrymodifications.xcu").write_text(ALWAYS)
    command = [SOFFICE, f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "xlsx"]
    command += ["--outdir", str(tmp_path / "computed"), *map(str, sorted(tmp_path.glob("*.xlsx")))]
    subprocess.run(command, check=True, capture_output=True, timeout=3600)
    for number, state in enumerate(settings):
        saved = openpyxl.load_workbook(tmp_path / f"computed/{number:03}.xlsx", data_only=True, read_only=True)
        computed = {page.title: list(page.iter_rows(values_only=True)) for page in saved}
        for sheet in LIVE:
            wanted = sheet.compute(state[sheet.name])
            places = LAYOUTS[sheet.name].numbers
            found = {key: read(computed, places[key]) if key in places else None for key in wanted}
            found = {key: None if value == "" else value for key, value in found.items()}
            assert differing(found, wanted) == [], (number, sheet.name)
