"""PHSafe's workbook: formulas give the numbers of Python, inputs take what the page takes, steps are hidden."""

import ast
import importlib.util
import io
import itertools
import math
import re
import shutil
import subprocess
import zipfile

import numpy as np
import openpyxl
import pytest
from scipy import special

from algorithms.phsafe import workbook
from algorithms.phsafe.explore import sheet
from algorithms.phsafe.workbook import build_workbook, name_of
from algorithms.systems import sheets
from audit.explorer import views
from audit.explorer.page import words_in
from audit.explorer.views import Explored
from experiments.phsafe import table10 as phsafe_table10
from tests.audit.explorer.settings import TOTALS_OF_TABLE_10, differing, random_state
from tests.helpers import contents, in_full, refuses

PHSAFE, WORDS = sheet(), words_in("en")
KEYS = {f"in_{name_of(setting.key)}": setting.key for setting in PHSAFE.inputs}
SHOWN = {  # results that the workbook has: not those of the drawing, of totals that are entered, of own households
    key
    for key in PHSAFE.compute(PHSAFE.published)
    if "/curve/" not in key and not key.endswith(("/relative", "/off", "/even", "/left_out", "/left_out_share"))
}


def book_of(state=None, words=WORDS, **options):
    content = build_workbook(Explored(PHSAFE, state or {}), words)
    return openpyxl.load_workbook(io.BytesIO(content), **options)


@pytest.fixture(scope="module")
def book():
    return book_of()


def cell(book, name):
    """The cell that has a name."""
    page, _, address = book.defined_names[name].value.partition("!")
    return book[page][address.replace("$", "")]


def written(value):
    """What stands in an input cell of a value."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


# A spreadsheet in Python


class OnlyWhatIsAsked(ast.NodeTransformer):
    """``IF(a, b, c)`` as ``b if a else c``, which computes one of them alone."""

    def visit_Call(self, node):
        self.generic_visit(node)
        return ast.IfExp(*node.args) if node.func.id == "IF" else node


FUNCTIONS = {
    **{"EXP": np.exp, "LN": np.log, "SQRT": np.sqrt, "INT": math.floor, "MIN": min, "MAX": max},
    **{"NORMSDIST": special.ndtr, "NORMSINV": special.ndtri, "SUMPRODUCT": np.sum, "PI": lambda: math.pi},
    "SUM": lambda *numbers: sum(number for number in numbers if number != ""),
    "OR": lambda *facts: any(facts),
    "ROUND": lambda x, _: math.copysign(math.floor(abs(x) + 0.5), x),
    "ROUNDUP": lambda x, _: math.copysign(math.ceil(abs(x)), x),
    "NUMBERS": np.arange(651.0),
}
PYTHON = ((r"ROW\(steps!\$A\$1:\$A\$651\)-1", "NUMBERS"), ("<>", "!="), (r"(?<![<>!])=", "=="), (r"\^", "**"))


class Computed(dict):
    """The value of every name of a workbook, by its formulas."""

    def __init__(self, book):
        super().__init__(FUNCTIONS)
        self.book = book

    def __missing__(self, name):
        value = cell(self.book, name).value
        if isinstance(value, str) and value.startswith("="):
            formula = value.removeprefix("=")
            for pattern, python in PYTHON:
                formula = re.sub(pattern, python, formula)
            tree = ast.fix_missing_locations(OnlyWhatIsAsked().visit(ast.parse(formula, mode="eval")))
            value = eval(compile(tree, name, "eval"), {}, self)
        self[name] = "" if value is None else value
        return self[name]


def plain(value):
    value = value.item() if isinstance(value, np.generic) else value
    return None if value == "" else value


def settings(book, number):
    """Set the inputs of a workbook to the published state and to random ones."""
    rng = np.random.default_rng(4)
    for state in (PHSAFE.published, *(random_state(PHSAFE, rng) for _ in range(number - 1))):
        for name in book.defined_names:
            if name.startswith("in_"):
                cell(book, name).value = written(state[KEYS[name]])
        yield state


@pytest.mark.parametrize("number", in_full(1, 3))
def test_formulas_give_the_numbers_of_python_at_random_settings(number):  # half a second for each
    book = book_of()
    for state in settings(book, number):
        computed, wanted = Computed(book), PHSAFE.compute(state)
        found = {key: plain(computed[name_of(key)]) for key in SHOWN}
        assert differing(found, {key: wanted[key] for key in SHOWN}) == []


SOFFICE = shutil.which("soffice")
ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>
"""


def recomputed(folder):
    """Every workbook in a folder, computed anew by LibreOffice: what was saved does not count."""
    (folder / "profile/user").mkdir(parents=True)
    (folder / "profile/user/registrymodifications.xcu").write_text(ALWAYS)
    files = sorted(folder.glob("*.xlsx"))
    command = [SOFFICE, f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", "xlsx"]
    command += ["--outdir", str(folder / "computed"), *map(str, files)]
    subprocess.run(command, check=True, capture_output=True, timeout=3600)
    for file in files:
        yield openpyxl.load_workbook(folder / "computed" / file.name, data_only=True)


@pytest.mark.slow
@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_computes_the_numbers_of_python(tmp_path):
    book, states = book_of(), []
    for state in settings(book, 70):
        book.save(tmp_path / f"{len(states):03}.xlsx")
        states.append(state)
    for state, computed in zip(states, recomputed(tmp_path), strict=True):
        wanted = PHSAFE.compute(state)
        found = {key: plain(cell(computed, name_of(key)).value) for key in SHOWN}
        assert differing(found, {key: wanted[key] for key in SHOWN}) == []


def test_a_formula_with_an_error_is_noticed(book):  # a workbook is computed
    key = "phsafe/total/all/epsilon_gaussian"
    wrong = cell(book, name_of(key))
    right, wrong.value = wrong.value, f"{wrong.value}*1.00000001"
    found = {key: plain(Computed(book)[name_of(key)])}
    wrong.value = right
    assert differing(found, {key: PHSAFE.compute(PHSAFE.published)[key]}) == [key]


# What is in it


def test_table_10_both_totals_and_the_printed_epsilons_stand_in_it():
    """Programs that compute nothing read the values that are saved beside the formulas."""
    values = book_of(data_only=True)
    printed = phsafe_table10.printed_table()
    assert len(printed) == 46
    for row in printed:
        value = cell(values, name_of(f"phsafe/{row['table']}/{row['level']}/rho")).value
        assert f"{value:.6f}".rstrip("0") == row["unbounded"].rstrip("0")
    for name, text in TOTALS_OF_TABLE_10.items():
        digits = len(text.partition(".")[2])
        assert f"{cell(values, name_of(f'phsafe/total/all/{name}')).value:.{digits}f}" == text


def test_every_result_is_a_formula_and_every_input_a_cell(book):
    formulas = {name for name in book.defined_names if not name.startswith("in_")}
    assert {name_of(key) for key in SHOWN} <= formulas == set(workbook.formulas())
    values = [str(cell(book, name).value) for name in formulas]
    assert all(value.startswith("=") and len(value) < 8192 for value in values)  # the most that Excel takes
    entered = {one.key for one in PHSAFE.inputs if one.kind in ("number", "integer", "flag")}
    assert {KEYS[name] for name in book.defined_names if name.startswith("in_")} == entered | {"phsafe/all/all/privacy"}
    for key in entered:
        assert cell(book, f"in_{name_of(key)}").value == written(PHSAFE.published[key])


def test_inputs_take_what_the_page_takes(book):
    kinds = {"flag": "list", "choice": "list", "number": "decimal", "integer": "whole"}
    of_inputs = {one.key: one for one in PHSAFE.inputs}
    rules = book["PHSafe"].data_validations.dataValidation
    for name in book.defined_names:
        if not name.startswith("in_"):
            continue
        one = of_inputs[KEYS[name]]
        (rule,) = [rule for rule in rules if cell(book, name).coordinate in rule.cells]
        assert rule.type == kinds[one.kind]
        if one.kind in ("number", "integer"):
            assert (float(rule.formula1), float(rule.formula2)) == (one.least, one.most)
        else:
            assert rule.formula1 == f'"{",".join(["yes", "no"] if one.kind == "flag" else one.choices)}"'


def test_one_worksheet_is_read_steps_are_hidden_and_nothing_runs(book):
    assert {page.title: page.sheet_state for page in book} == {"PHSafe": "visible", "steps": "hidden"}
    names = zipfile.ZipFile(io.BytesIO(build_workbook(Explored(PHSAFE), WORDS))).namelist()
    assert not [name for name in names if "vba" in name.lower() or "external" in name.lower()]
    formulas = {str(one.value) for page in book for row in page for one in row if one.data_type == "f"}
    assert not [text for text in formulas if re.search(r"INDIRECT|OFFSET|NOW\(|RAND|WEBSERVICE|HYPERLINK|_xlfn", text)]


@pytest.mark.reliability(row=9)
def test_text_is_never_a_formula():
    hostile = {key: f'{first}HYPERLINK("http://x")' for key, first in zip(WORDS, itertools.cycle("=+-@"), strict=False)}
    cells = [one for page in book_of(words=hostile) for row in page for one in row if one.value is not None]
    assert {one.data_type for one in cells} == {"s", "n", "f"}
    assert {str(one.value)[0] for one in cells if one.data_type == "s"} >= set("=+-@")
    assert not [one for one in cells if one.data_type == "f" and "HYPERLINK" in one.value]


# How it is written


def test_it_is_written_where_nothing_is(tmp_path):
    explored, path = Explored(PHSAFE), tmp_path / "new" / "book.xlsx"
    explored.to_xlsx(path)
    (tmp_path / "file").write_text("kept")
    before = contents(tmp_path)
    assert before.keys() == {"new/book.xlsx", "file"}
    other = tmp_path / "book.csv"
    refuses(ValueError, f"--xlsx must name a file that ends in .xlsx, got {other}", explored.to_xlsx, other)
    with pytest.raises(OSError, match="file"):
        explored.to_xlsx(tmp_path / "file" / "book.xlsx")
    page = tmp_path / "page.html"  # it is not written if the workbook cannot be
    with pytest.raises(FileExistsError, match="is there: it stays"):
        explored.show(html=page, xlsx=path)
    for one in sheets():
        if one.name != "phsafe":
            refuses(ValueError, f"{one.name} has no workbook: its page computes", Explored(one).to_xlsx, page)
    assert contents(tmp_path) == before


def test_without_the_extra_one_line_says_which(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(views, "find_spec", lambda name: None if name == "xlsxwriter" else found(name))
    message = "a workbook needs the extra xlsx: pip install 'plaudit[xlsx]'"
    refuses(ValueError, message, Explored(PHSAFE).to_xlsx, tmp_path / "book.xlsx")
