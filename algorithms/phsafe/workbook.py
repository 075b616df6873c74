"""PHSafe's sheet as a workbook of formulas: margins from budgets, and budgets from margins if no budget is set.

The paper's PHExplore is such a workbook too (Sexton et al., 2024, section 7.3). Every input, result and step has a
name: its key with underscores, after ``in_`` for inputs. In spreadsheets -x^2 is (-x)^2, so powers have brackets.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from algorithms.phsafe.tables import QUERIES
from audit.explorer.sheet import Input, Sheet

__all__ = ["build_workbook", "formulas", "name_of"]

Cells = dict[str, str]

PURE, TOTAL = '(in_phsafe_all_all_privacy="puredp")', "phsafe_total_all_spent"
SUMMED = 50  # up to this sigma, tails of the discrete Gaussian are summed; above it an expansion is exact to 1e-10
NUMBERS = f"(ROW(steps!$A$1:$A${13 * SUMMED + 1})-1)"  # 0, 1, 2, ...
TIMES_PURE, TIMES_TIGHT, TIMES_GAUSSIAN, TIMES_ORDER = 6, 9, 14, 12  # Newton steps: each doubles the digits


def name_of(key: str) -> str:
    """Return the cell name of a key."""
    return re.sub(r"\W", "_", key)


def formulas() -> Cells:
    """Return by name the formulas of all results, except those of the curve and of users' totals, and of all steps."""
    cells: Cells = {}
    for table, query in QUERIES.items():
        own, levels = f"phsafe_{table}_all", [name_of(f"phsafe/{table}/{level}") for level in query.levels]
        for level in levels:
            cells |= _level(level, f"(2*in_{own}_tau+2)" if query.truncated else "2")
        cells |= {
            f"{own}_spent": f"SUM({','.join(f'{level}_spent' for level in levels)})",
            f"{own}_share": f'IF({TOTAL}>0,{own}_spent/{TOTAL},"")',
            f"{own}_rho": f'IF({PURE},"",{own}_spent)',
            f"{own}_epsilon": f'IF({PURE},{own}_spent,"")',
        }
    cells[TOTAL] = f"SUM({','.join(f'phsafe_{table}_all_spent' for table in QUERIES)})"
    for prefix, times in (("", 1), ("bounded_", 2)):
        total, budget = f"phsafe_total_all_{prefix}", f"phsafe_total_all_{prefix}budget"
        cells[budget] = f"{times}*{TOTAL}"
        cells |= {f"{total}rho": f'IF({PURE},"",{budget})', f"{total}epsilon": f'IF({PURE},{budget},"")'}
        cells |= _conversions(total, budget) | _guessed(total, budget)
    return cells


def _level(place: str, stability: str) -> Cells:
    """Return the formulas of a query at a level, steps included; cells are empty if it is not released."""
    spent, sigma, wanted, near = f"{place}_spent", f"{place}_sigma", f"in_{place}_margin", f"{place}_near"
    epsilon = f"({spent}/{stability})"  # epsilon per unit of a count
    missed = f"({wanted}+1)*{{x}}+LN(0.1/2)+LN(1+EXP(-{{x}}))"
    step = f"{{x}}-({missed})/({wanted}+1-1/(1+EXP({{x}})))"
    steps, least = _newton(f"{place}_epsilon_a_unit", f"-LN(0.1/2*1.5)/({wanted}+1)", step, TIMES_PURE)
    half = f"({epsilon}/2)"
    series = f"SQRT(2)*{half}*(1+{half}^2/6*(1+{half}^2/20*(1+{half}^2/42)))"
    geometric = f"IF({epsilon}<0.1,1/({series}),SQRT(2*EXP(-{epsilon}))/(1-EXP(-{epsilon})))"

    def beyond(margin: str) -> str:
        normal = _gaussian_beyond(margin, sigma, f"{place}_normalizer")
        return f"IF({PURE},2*EXP(-{epsilon}*({margin}+1))/(1+EXP(-{epsilon})),{normal})"

    tried = f"IF({place}_beyond_less<=1-0.9,{near}-1,IF({place}_beyond_near<=1-0.9,{near},{near}+1))"
    cells = {
        spent: f'IF({PURE},IF(in_{place}_epsilon="",{stability}*{least}/(1-1E-10),in_{place}_epsilon),'
        f'IF(in_{place}_rho="",(1.645*{stability}/{wanted})^2/2,in_{place}_rho))',
        f"{place}_rho": f'IF({PURE},"",{spent})',
        f"{place}_epsilon": f'IF({PURE},{spent},"")',
        f"{place}_share": f"{spent}/{TOTAL}",
        sigma: f"IF({PURE},{geometric},{stability}/SQRT(2*{spent}))",
        f"{place}_margin": f"INT(1.645*{sigma}*(1+1E-12))",
        f"{place}_normalizer": f'IF(OR({PURE},{sigma}>{SUMMED}),"",2*SUMPRODUCT(EXP(-(({NUMBERS}/{sigma})^2)/2))-1)',
        near: f"MAX(0,IF({PURE},ROUNDUP(-(LN(0.1/2)+LN(1+EXP(-{epsilon})))/{epsilon},0)-1,"
        f"ROUND(-NORMSINV(0.05)*{sigma}-0.5,0)))",
        f"{place}_beyond_less": beyond(f"({near}-1)"),
        f"{place}_beyond_near": beyond(near),
        f"{place}_coverage": f"1-{beyond(f'{place}_margin')}",
        f"{place}_exact": tried,  # least margin that covers 90%, among three near the normal one
        f"{place}_tenth": f"10*{place}_exact",
    }
    return steps | {name: f'IF(in_{place}_on="yes",{formula},"")' for name, formula in cells.items()}


def _newton(name: str, start: str, step: str, times: int) -> tuple[Cells, str]:
    """Return the steps of Newton's method, given the formula `step` in ``{x}``, and the name of the last step."""
    cells = {f"{name}_0": start}
    for time in range(1, times + 1):
        cells[f"{name}_{time}"] = step.replace("{x}", f"{name}_{time - 1}")
    return cells, f"{name}_{times}"


def _gaussian_beyond(margin: str, sigma: str, normalizer: str) -> str:
    """Return the formula of P(|noise| > margin) for discrete Gaussian noise: a sum, or its expansion."""
    x = f"({margin}+0.5)"
    slope = f"({x}/{sigma}^2)"
    corrections = f"(-{slope}/24-7/5760*{slope}*(3/{sigma}^2-{slope}^2))"
    density = f"EXP(-(({x}/{sigma})^2)/2)/(SQRT(2*PI())*{sigma})"
    summed = f"SUMPRODUCT(({NUMBERS}>{margin})*EXP(-(({NUMBERS}/{sigma})^2)/2))/{normalizer}"
    return f"2*IF({sigma}<={SUMMED},{summed},NORMSDIST(-{x}/{sigma})+{corrections}*{density})"


def _guessed(total: str, budget: str) -> Cells:
    """Return formulas of the largest probability of a right guess between two neighbors, as `ZCDP` has it."""
    rho, above = f"MIN({budget},300)", f"EXP({total}log_order_{TIMES_ORDER})"
    step = f"{{x}}-({rho}*(2*EXP({{x}})+1)-LN(1+EXP(-{{x}})))/(2*{rho}*EXP({{x}})+1/(1+EXP({{x}})))"
    start = f"IF({budget}>1,-{rho},IF({budget}>0,-LN(2*{budget})/2,0))"
    cells, _ = _newton(f"{total}log_order", start, step, TIMES_ORDER)
    delta = f"EXP(MIN(0,{above}*(({above}+1)*{rho}-LN(1+1/{above}))-LN(1+{above})))"
    guess = f"IF({PURE},1/(1+EXP(-MIN({budget},700))),IF({budget}>0,(1+MIN({delta},SQRT({budget}/2)))/2,0.5))"
    return cells | {f"{total}guessed": guess}


def _conversions(total: str, budget: str) -> Cells:
    """Return the formulas of epsilon at delta: tight, simple and by the Gaussian profile, steps included."""
    delta, mu = "in_phsafe_all_all_delta", f"{total}mu"
    high = f"-LN({delta})"
    step = f"{{x}}-({budget}*{{x}}^2+LN(1+{{x}})-({high}))/(2*{budget}*{{x}}+1/(1+{{x}}))"
    start = f"IF({budget}>0,MIN(SQRT({high}/{budget}),1/{delta}-1),1)"  # above the root, so no Newton step goes below 0
    orders, above = _newton(f"{total}order_less_1", start, step, TIMES_TIGHT)
    tight = f"MAX(0,{budget}*(1+{above})-LN(1+1/{above})+({high}-LN(1+{above}))/{above})"

    x = f"({{x}}+{mu})"  # `far` is P(N > x) / density(x)
    series = f"(1-(1-(3-(15-(105-945/{x}^2)/{x}^2)/{x}^2)/{x}^2)/{x}^2)/{x}"
    far = f"IF({x}<25,NORMSDIST(-{x})*SQRT(2*PI())*EXP(MIN({x},25)^2/2),{series})"
    density = "(EXP(-(({x})^2)/2)/SQRT(2*PI()))"
    reached = f"(NORMSDIST(-{{x}})-{density}*{far})"
    shift = f"{{x}}+(LN({reached})-LN({delta}))/({density}*{far}*{mu}/{reached})"
    quantile = f"IF({mu}>0,-NORMSINV({delta}),0)"
    quantiles, near = _newton(f"{total}quantile", quantile, f"IF({mu}>0,{shift},0)", TIMES_GAUSSIAN)
    odds = f"({delta}/(1-{delta})*EXP(-{budget}))"
    at_zero = f"1-2*NORMSDIST(-{mu}/2)"
    return {mu: f"SQRT(2*{budget})", **orders, **quantiles} | {
        f"{total}epsilon_tight": f"IF({PURE},IF({odds}<1,MAX(0,{budget}+LN(1-{delta})+LN(1-{odds})),0),"
        f"IF({budget}>0,{tight},0))",
        f"{total}epsilon_simple": f'IF({PURE},"",{budget}+2*SQRT({budget}*{high}))',
        f"{total}epsilon_gaussian": f'IF({PURE},"",IF({at_zero}<={delta},0,{mu}*({near}+{mu}/2)))',
    }


# The cells

FORMATS = {
    "number": "[>=1000]#,##0;[>=0.001]0.0000;0.00E+00",
    "whole": "#,##0",
    "share": "0.00%",
    "budget": "[>=0.000001]0.000000;0.00E+00",
    "epsilon": "0.000",
    "guess": "0.0%",
}
STYLES: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 15},
    "head": {"bold": True, "text_wrap": True, "valign": "bottom"},
    "label": {"valign": "top"},
    "note": {"text_wrap": True, "font_color": "#555555", "valign": "top"},
    "input": {"bg_color": "#fff4cc", "border": 1, "align": "right", "valign": "top"},
}
WIDTHS, LAST = (32, 42, *[16] * 12), 7  # column widths in characters; last column of notes
EPOCH = datetime(2024, 1, 1)  # fixed date: the same settings give the same bytes


Cell = Input | tuple[str, str] | None  # an input; (words, style) or (key of a result, format); an empty cell


def build_workbook(explored: Any, words: Mapping[str, str]) -> bytes:
    """Return the workbook: settings, totals and the table of levels, and a hidden worksheet of the steps."""
    import xlsxwriter  # in the extra `xlsx`

    content = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(content, options) as book:
        book.set_properties({"title": words["page.title"], "created": EPOCH})
        page = _Page(book, explored)
        for cells in (*_settings(explored.sheet, words), *_levels(explored.sheet, words)):
            page.write(*cells)
        steps = book.add_worksheet("steps")
        for row, (name, formula) in enumerate(page.formulas.items()):
            steps.write_string(row, 0, name)
            steps.write_formula(row, 1, f"={formula}")
            book.define_name(name, f"=steps!$B${row + 1}")
        steps.hide()
    return content.getvalue()


def _settings(sheet: Sheet, words: Mapping[str, str]) -> Iterator[Sequence[Cell]]:
    inputs = {setting.key: setting for setting in sheet.inputs}
    yield [(words[sheet.title], "title")]
    confidential = ("page.confidential",) * sheet.confidential
    for about in (*confidential, *sheet.about, *(f"workbook.{place}" for place in range(1, 4))):
        yield [(words[about], "note")]
    yield [(words["page.settings"], "head")]
    for setting in (inputs[f"phsafe/all/all/{name}"] for name in ("privacy", "delta")):
        yield (words[setting.label], "label"), None, setting, (words[f"{setting.label}.help"], "note")
    yield [(words["page.totals"], "head")]
    for total in sheet.totals:
        note = words.get(f"{total.label}.help", "")
        yield (words[total.label], "label"), None, (total.key, total.shown), (note, "note") if note else None


def _levels(sheet: Sheet, words: Mapping[str, str]) -> Iterator[Sequence[Cell]]:
    """Yield a row for each query, with threshold and share, then rows of its levels: inputs first, then results."""
    table, inputs = sheet.tables[0], {setting.key: setting for setting in sheet.inputs}
    entries = [column for column in table.columns if column.entry]
    numbers = [column for column in table.columns if not column.entry or column.quantity in ("rho", "epsilon")]
    yield [(words[table.label], "head")]
    names = [f"{words[column.label]} ({words['workbook.set']})" for column in entries]
    names += [words[column.label] for column in numbers]
    yield [(name, "head") for name in (words[table.names], words[table.rows], *names)]
    for group in table.groups:
        share, tau = group.results[0], inputs[group.inputs[0]] if group.inputs else None
        threshold = (words[tau.label], "label") if tau else None
        yield (words[group.label], "head"), threshold, tau, (words[share.label], "label"), (share.key, share.shown)
        for row in group.rows:
            yield (
                *((words[group.label], "label"), (words[row.label], "label")),
                *(inputs[f"{row.place}/{column.quantity}"] for column in entries),
                *((f"{row.place}/{column.quantity}", column.shown) for column in numbers),
            )


class _Page:
    """The visible worksheet, written row by row; `formulas` are those not yet in a cell."""

    def __init__(self, book: Any, explored: Any) -> None:
        self.book, self.page, self.row = book, book.add_worksheet("PHSafe"), -1
        self.values, self.results, self.formulas = explored.values, explored.results, formulas()
        self.styles = {name: book.add_format(style) for name, style in STYLES.items()}
        self.styles |= {shown: book.add_format({"num_format": number}) for shown, number in FORMATS.items()}
        for column, width in enumerate(WIDTHS):
            self.page.set_column(column, column, width)

    def write(self, *cells: Cell) -> None:
        self.row += 1
        for column, cell in enumerate(cells):
            if isinstance(cell, Input):
                self._enter(column, cell)
            elif cell and cell[1] in FORMATS:
                value, name = self.results[cell[0]], self._name(name_of(cell[0]), column)
                formula, style = f"={self.formulas.pop(name)}", self.styles[cell[1]]
                self.page.write_formula(self.row, column, formula, style, "" if value is None else value)
            elif cell and cell[1] == "note":
                self.page.merge_range(self.row, column, self.row, LAST, cell[0], self.styles["note"])
                lines = math.ceil(1.3 * len(cell[0]) / sum(WIDTHS[column : LAST + 1]))  # other fonts may be wider
                self.page.set_row(self.row, 15 * lines)
            elif cell:
                self.page.write_string(self.row, column, cell[0], self.styles[cell[1]])

    def _enter(self, column: int, setting: Input) -> None:
        self._name(f"in_{name_of(setting.key)}", column)
        value = self.values[setting.key]
        value = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
        self.page.write(self.row, column, value, self.styles["input"])
        rule = {"ignore_blank": setting.optional, "error_title": "plaudit", "error_message": f"{setting.rule}."[:255]}
        if setting.kind in ("flag", "choice"):
            rule |= {"validate": "list", "source": list(setting.choices) or ["yes", "no"]}
        else:
            rule |= {"validate": "integer" if setting.kind == "integer" else "decimal", "criteria": "between"}
            rule |= {"minimum": setting.least, "maximum": setting.most}
        self.page.data_validation(self.row, column, self.row, column, rule)

    def _name(self, name: str, column: int) -> str:
        self.book.define_name(name, f"=PHSafe!${chr(ord('A') + column)}${self.row + 1}")
        return name
