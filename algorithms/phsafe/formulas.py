"""PHSafe's formulas: margins follow budgets, and budgets follow margins where none is set."""

from __future__ import annotations

from algorithms.noise.formulas import (
    Cells,
    conversions,
    drawn_row,
    geometric_sigma,
    guessed,
    margins,
    pure_budget,
    whole_numbers,
)
from algorithms.phsafe.explore import LARGEST
from audit.explorer.sheet import Sheet

__all__ = ["cells"]

ALL, NOW = "phsafe/all/all", "phsafe/curve/now"


def cells(sheet: Sheet) -> Cells:
    """Return a formula for every result, and the steps to it."""
    pure = f'([in {ALL}/privacy]="puredp")'
    formulas, numbers = whole_numbers("phsafe")
    tables = {table: list(levels) for table, levels in sheet.data["tables"].items()}
    places = [f"phsafe/{table}/{level}" for table, levels in tables.items() for level in levels]
    truncated = {table for table in tables if f"phsafe/{table}/all/tau" in sheet.published}
    for place in places:
        table = place.split("/")[1]
        formulas[f"{place}/name"] = f'"{place.removeprefix("phsafe/")}"'
        formulas[f"{place}/sensitivity"] = f"2*[in phsafe/{table}/all/tau]+2" if table in truncated else "2"
    total = "[phsafe/total/all/budget]"
    for place in places:
        steps, result = _of_level(place, pure, total, numbers)
        formulas |= steps | {key: f'IF([in {place}/on]="yes",{formula},"")' for key, formula in result.items()}
    for table, levels in tables.items():
        spent = f"SUM([phsafe/{table}/{levels[0]}/budget:phsafe/{table}/{levels[-1]}/budget])"
        formulas[f"phsafe/{table}/all/budget"] = spent
        own = f"[phsafe/{table}/all/budget]"
        formulas[f"phsafe/{table}/all/share"] = f'IF({total}>0,{own}/{total},"")'
        formulas[f"phsafe/{table}/all/rho"] = f'IF({pure},"",{own})'
        formulas[f"phsafe/{table}/all/epsilon"] = f'IF({pure},{own},"")'
    formulas["phsafe/total/all/budget"] = f"SUM([{places[0]}/budget:{places[-1]}/budget])"
    for prefix, times in (("", 1), ("bounded_", 2)):
        place = f"phsafe/{prefix or 'un'}{'' if prefix else 'bounded_'}epsilon/all"
        formulas[f"{place}/budget"] = f"{times}*{total}"
        steps, ways = conversions(place, pure, f"[{place}/budget]", f"[in {ALL}/delta]")
        formulas |= steps
        formulas[f"phsafe/total/all/{prefix}rho"] = f'IF({pure},"",{times}*{total})'
        formulas[f"phsafe/total/all/{prefix}epsilon"] = f'IF({pure},{times}*{total},"")'
        formulas |= {f"phsafe/total/all/{prefix}epsilon_{way}": formula for way, formula in ways.items()}
        steps, formulas[f"phsafe/total/all/{prefix}guessed"] = guessed(place, pure, f"[{place}/budget]")
        formulas |= steps
    return formulas | _curve(sheet, places, pure)


def _of_level(place: str, pure: str, total: str, numbers: str) -> tuple[Cells, dict[str, str]]:
    """Return the steps and results of a level, as if it were released."""
    stability, budget, sigma = f"[{place}/sensitivity]", f"[{place}/budget]", f"[{place}/sigma]"
    wanted = f"[in {place}/margin]"
    steps, needed = pure_budget(place, wanted, stability)
    gaussian = f"(1.645*{stability}/{wanted})^2/2"
    chosen = (
        f'IF({pure},IF([in {place}/epsilon]="",{needed},[in {place}/epsilon]),'
        f'IF([in {place}/rho]="",{gaussian},[in {place}/rho]))'
    )
    a_unit = f"({budget}/{stability})"
    noise = margins(place, (f"NOT({pure})", sigma, a_unit), f"[{place}/margin]", numbers)
    result: dict[str, str] = {
        f"{place}/budget": chosen,
        f"{place}/rho": f'IF({pure},"",{budget})',
        f"{place}/epsilon": f'IF({pure},{budget},"")',
        f"{place}/share": f"{budget}/{total}",
        f"{place}/sigma": f"IF({pure},{geometric_sigma(a_unit)},{stability}/SQRT(2*{budget}))",
        f"{place}/whole part": f"INT(1.645*{sigma}*(1+1E-12))",
        f"{place}/margin": f"[{place}/whole part]",
    }
    result[f"{place}/tenth"] = f"10*[{place}/exact]"
    return steps, result | {key: str(formula) for key, formula in noise.items()}


def _curve(sheet: Sheet, places: list[str], pure: str) -> Cells:
    """Return the budgets of one level for margins around the current one."""
    now = f"[{NOW}/margin]"
    cells, at = drawn_row("phsafe", places)
    cells |= {
        "phsafe/curve/row/sensitivity": at("sensitivity"),
        f"{NOW}/margin": at("whole part"),
        f"{NOW}/budget": at("budget"),
    }
    for key in sheet.compute(sheet.published):
        place, _, name = key.rpartition("/")
        step = place.rpartition("/")[2]
        if not place.startswith("phsafe/curve/") or not step.isdigit() or name != "margin":
            continue
        margin, stability = f"[{place}/margin]", "[phsafe/curve/row/sensitivity]"
        steps, needed = pure_budget(place, margin, stability)
        cells[f"{place}/margin"] = f'IF({now}="","",MIN({LARGEST},MAX(1,INT({now}*{int(step)}/20))))'
        cells |= {key: f'IF({now}="","",{formula})' for key, formula in steps.items()}
        cells[f"{place}/budget"] = f'IF({now}="","",IF({pure},{needed},(1.645*{stability}/{margin})^2/2))'
    return cells
