"""The workbook: all sheets of the explorer as live formulas; inputs are marked and limited, steps are hidden."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from audit.explorer.layout import Cell, Layout, Place, Worksheet, cell_value, lay_out, resolved
from audit.explorer.printed import words_in
from audit.explorer.sheet import Explored, Input, Sheet

__all__ = ["build_workbook", "check_workbook"]

NUMBERS = {
    "number": "[>=1000]#,##0;[>=0.001]0.0000;0.00E+00",
    "whole": "#,##0",
    "share": "0.00%",
    "budget": "[>=0.000001]0.000000;0.00E+00",
    "epsilon": "0.000",
    "guess": "0.0%",
    "text": "General",
}
STYLES: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 15},
    "heading": {"bold": True, "font_size": 11, "font_color": "#1b4f8a", "valign": "top"},
    "name": {"bold": True, "valign": "bottom", "bottom": 1},
    "head": {"bold": True, "text_wrap": True, "align": "right", "valign": "bottom", "bottom": 1},
    "label": {"valign": "top"},
    "beside": {"text_wrap": True, "align": "right", "font_color": "#555555", "valign": "top"},
    "note": {"text_wrap": True, "font_color": "#555555", "valign": "top"},
    "help": {"text_wrap": True, "font_color": "#555555", "align": "left", "valign": "top", "indent": 1},
    "input": {
        "bg_color": "#fff4cc",
        "border": 1,
        "border_color": "#b08900",
        "align": "right",
        "valign": "top",
        "shrink": True,
    },
    "result": {"align": "right", "valign": "top"},
    "sentence": {"align": "right", "valign": "top", "text_wrap": True},
    "warning": {"bold": True, "font_color": "#a40000", "text_wrap": True, "valign": "top"},
    "step": {"align": "right", "font_color": "#555555"},
}
CHANGED = {"bold": True, "font_color": "#0b3d91"}  # of inputs that are not as published
WIDTHS = (32, 42, 16)  # of names, of levels, of everything else, in characters
EPOCH = datetime(2024, 1, 1)  # the same settings give the same bytes
LINE, LINES = 15, 3  # points of height of a line; lines that a sentence which is computed may take
RUN_TO = {"warning": 7, "note": 7, "help": 7, "sentence": 2}  # columns up to which texts run
LONGEST_LIST = 255  # characters of choices that a cell may list by itself


def check_workbook(path: Path) -> None:
    """Refuse a path that no workbook has, or to go on without the extra `xlsx`."""
    if path.suffix.lower() != ".xlsx":
        raise ValueError(f"--xlsx must name a file that ends in .xlsx, got {path}")
    if find_spec("xlsxwriter") is None:
        raise ValueError("a workbook needs the extra xlsx: pip install 'plaudit[xlsx]'")


def build_workbook(explored: Explored, sheets: Sequence[Sheet]) -> bytes:
    """Return the workbook of all sheets, the state of one of which is given: the same for the same settings."""
    import xlsxwriter

    words = {**words_in("en"), **explored.sheet.words}
    states = [explored if sheet.name == explored.sheet.name else Explored(sheet) for sheet in sheets]
    layouts = [lay_out(state, words) for state in states]
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        book.set_properties({"title": words["page.title"], "created": EPOCH})
        book.set_calc_mode("auto")
        styles = Styles(book)
        for layout in layouts:
            for worksheet in layout.worksheets:
                _write(book, styles, layout, worksheet)
    return content.getvalue()


class Styles:
    """Formats of a workbook by what a cell is and how a number in it is written, each made once."""

    def __init__(self, book: Any) -> None:
        self.book, self.made = book, dict[tuple[str, str], Any]()
        self.changed = book.add_format(CHANGED)

    def of(self, cell: Cell) -> Any:
        """Return the format of a cell."""
        key = (cell.kind, "text" if cell.kind in ("input", "step") else cell.shown)
        if key not in self.made:
            self.made[key] = self.book.add_format({**STYLES[cell.kind], "num_format": NUMBERS[key[1]]})
        return self.made[key]


def _write(book: Any, styles: Styles, layout: Layout, worksheet: Worksheet) -> None:
    page = book.add_worksheet(worksheet.name)
    columns = max(column for _, column in worksheet.cells)
    for column in range(columns + 1):
        page.set_column(column, column, WIDTHS[min(column, 2)])
    for row, height in _heights(worksheet).items():
        page.set_row(row, height)
    for (row, column), cell in worksheet.cells.items():
        if cell.kind in RUN_TO:
            page.merge_range(row, column, row, RUN_TO[cell.kind], "", styles.of(cell))
        _write_cell(page, styles, layout, worksheet.name, (row, column), cell)
    if front := worksheet is layout.worksheets[0]:
        _draw(book, page, layout, worksheet.row + 2)
    page.freeze_panes(*worksheet.frozen)
    if worksheet.hidden:
        page.hide()
    _set_print(page, worksheet.frozen, front=front)


def _draw(book: Any, page: Any, layout: Layout, row: int) -> None:
    """Draw the curves of a sheet below its cells, from cells that stand below each other."""
    curves = [chart for chart in layout.sheet.charts if chart.kind == "curve"]
    for place, chart in enumerate(curves):
        across, up = ([layout.numbers[point[axis]] for point in chart.points] for axis in (0, 1))
        plot = book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
        plot.add_series({"categories": _range(across), "values": _range(up), "marker": {"type": "circle", "size": 4}})
        plot.set_title({"name": layout.words[chart.label], "name_font": {"size": 12}})
        for axis, (label, shown) in zip((plot.set_x_axis, plot.set_y_axis), chart.axes, strict=True):
            axis({"name": layout.words[label], "num_format": "0%" if shown == "share" else "General", "min": 0})
        plot.set_legend({"none": True})
        plot.set_size({"width": 560, "height": 300})
        page.insert_chart(row, 0 if place == 0 else 3, plot, {"description": layout.words[chart.label]})


def _range(places: Sequence[Place]) -> str:
    from xlsxwriter.utility import xl_range_abs

    first, last = places[0], places[-1]
    return f"='{first.worksheet}'!{xl_range_abs(first.row, first.column, last.row, last.column)}"


def _heights(worksheet: Worksheet) -> dict[int, int]:
    """Return the heights of rows in which text is wrapped, in points."""
    lines: dict[int, int] = {}
    for (row, column), cell in worksheet.cells.items():
        if cell.kind == "sentence":
            lines[row] = max(lines.get(row, 1), LINES)
        elif cell.kind in ("warning", "note", "help", "head", "beside"):
            spare = 1.3 if cell.kind in RUN_TO else 1.1  # other fonts may be wider
            room = sum(WIDTHS[min(at, 2)] for at in range(column, RUN_TO.get(cell.kind, column) + 1))
            lines[row] = max(lines.get(row, 1), math.ceil(spare * len(cell.content) / room))
    return {row: LINE * number for row, number in lines.items() if number > 1}


def _write_cell(page: Any, styles: Styles, layout: Layout, worksheet: str, at: tuple[int, int], cell: Cell) -> None:
    """Write a cell. Text is written as text, whatever it begins with: only what a sheet computes is a formula."""
    style, content, (row, column) = styles.of(cell), cell.content, at
    if cell.kind in ("result", "sentence", "step") and isinstance(content, str):
        value = "" if cell.known is None else cell.known
        page.write_formula(row, column, resolved(content, layout, worksheet), style, value)
    elif content is None or content == "":
        page.write_blank(row, column, None, style)
    elif isinstance(content, str):
        page.write_string(row, column, content, style)
    else:
        page.write_number(row, column, content, style)
    if cell.kind == "input":
        page.conditional_format(row, column, row, column, {**_differs(cell.known), "format": styles.changed})
        _limit(page, layout, row, column, cell.known)


def _differs(setting: Input) -> dict[str, Any]:
    """Return the condition that an input is not as published."""
    value = cell_value(setting.value)
    if value is None:
        return {"type": "no_blanks"}
    return {"type": "cell", "criteria": "!=", "value": f'"{value}"' if isinstance(value, str) else value}


def _limit(page: Any, layout: Layout, row: int, column: int, setting: Input) -> None:
    """Let a cell take what the page takes."""
    rule: dict[str, Any] = {"ignore_blank": setting.optional}
    rule |= {"error_title": "plaudit", "error_message": f"{setting.rule}."[:255]}
    if setting.kind in ("flag", "choice"):
        choices = ["yes", "no"] if setting.kind == "flag" else list(setting.choices)
        if len(",".join(choices)) > LONGEST_LIST:
            first, last = (layout.numbers[f"{layout.sheet.name}/{place}/name"] for place in (choices[0], choices[-1]))
            rule |= {"validate": "list", "source": _range([first, last])}
        else:
            rule |= {"validate": "list", "source": choices}
    else:
        rule["validate"] = "integer" if setting.kind == "integer" else "decimal"
        if math.isinf(setting.most):
            rule |= {"criteria": ">=", "value": setting.least}
        else:
            rule |= {"criteria": "between", "minimum": setting.least, "maximum": setting.most}
    page.data_validation(row, column, row, column, rule)


def _set_print(page: Any, frozen: tuple[int, int], *, front: bool) -> None:
    """Set how a worksheet is printed: as wide as a page."""
    page.set_portrait() if front else page.set_landscape()
    page.set_paper(9)  # A4
    page.fit_to_pages(1, 0)
    page.set_footer("&L&A&R&P / &N")
    page.repeat_rows(0, frozen[0] - 1)
