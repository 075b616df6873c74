"""TopDown's formulas: shares of the budget by level and query, and the noise that each leaves."""

from __future__ import annotations

from algorithms.noise.formulas import Cells, conversions, drawn_row, geometric_sigma, margins, whole_numbers
from audit.explorer.sheet import Sheet

__all__ = ["cells"]

ALL = "topdown/all/all"


def cells(sheet: Sheet) -> Cells:
    """Return a formula for every result, and the steps to it."""
    levels, queries = list(sheet.data["levels"]), list(sheet.data["queries"])
    pure, replaced = f'([in {ALL}/privacy]="puredp")', f'([in {ALL}/relation]="replace_one")'
    promised = f"[in {ALL}/budget]"
    formulas, numbers = whole_numbers("topdown")
    for level in levels:
        asked = "+".join(f"[in topdown/{query}/{level}/parts]" for query in queries)
        parts = f"[in topdown/all/{level}/parts]"
        formulas[f"topdown/all/{level}/asked"] = asked
        formulas[f"topdown/all/{level}/measured"] = f"IF([topdown/all/{level}/asked]>0,{parts},0)"
    whole = f"SUM([topdown/all/{levels[0]}/measured:topdown/all/{levels[-1]}/measured])"
    formulas["topdown/all/levels/measured"] = whole
    rows = [(query, level) for level in levels for query in queries]
    for level in levels:
        measured = f"[topdown/all/{level}/measured]"
        formulas[f"topdown/all/{level}/share"] = f'IF({measured}>0,{measured}/[topdown/all/levels/measured],"")'
    for query, level in rows:
        formulas |= _of_query(query, level, pure, replaced, promised, numbers)
    formulas |= _curve(sheet, [f"topdown/{query}/{level}" for query, level in rows], pure, replaced, promised, numbers)
    for prefix, same, other in (("replaced", replaced, "2"), ("added", f"NOT({replaced})", "0.5")):
        budget = f"({promised}*IF({same},1,{other}))"
        steps, ways = conversions(f"topdown/{prefix}/all", pure, budget, f"[in {ALL}/delta]")
        formulas |= steps
        formulas[f"topdown/total/all/{prefix}_rho"] = f'IF({pure},"",{budget})'
        formulas[f"topdown/total/all/{prefix}_epsilon"] = f'IF({pure},{budget},"")'
        formulas |= {f"topdown/total/all/{prefix}_epsilon_{way}": formula for way, formula in ways.items()}
    return formulas


def _noise(place: str, budget: str, pure: str, replaced: str, numbers: str, there: str) -> Cells:
    """Return sigma and margin of a query with so much budget, where it is asked and the law exists."""
    epsilon = f"[{place}/epsilon a count]"
    scale = f"SQRT(1/IF({replaced},{budget},2*{budget}))"
    exists = f"IF({pure},[{place}/epsilon a count]>=1E-12,AND([{place}/scale]>=1E-12,[{place}/scale]<=1E12))"
    cells: Cells = {
        f"{place}/epsilon a count": f'IF({there},{budget}/IF({replaced},2,1),"")',
        f"{place}/scale": f'IF({there},{scale},"")',
        f"{place}/noisy": f"IF({there},{exists},FALSE)",
        f"{place}/sigma": f"IF({pure},{geometric_sigma(epsilon)},[{place}/scale])",
    }
    cells |= margins(place, (f"NOT({pure})", f"[{place}/sigma]", epsilon), "", numbers)
    cells[f"{place}/margin"] = cells.pop(f"{place}/exact")
    plain = {"epsilon a count", "scale", "noisy"}
    return {
        key: formula if key.rpartition("/")[2] in plain else f'IF([{place}/noisy],{formula},"")'
        for key, formula in cells.items()
    }


def _of_query(query: str, level: str, pure: str, replaced: str, promised: str, numbers: str) -> Cells:
    place = f"topdown/{query}/{level}"
    asked = f"[topdown/all/{level}/measured]*[in {place}/parts]"
    part = f"[in {place}/parts]/[topdown/all/{level}/asked]"
    cells: Cells = {
        f"{place}/name": f'"{query}/{level}"',
        f"{place}/part": f'IF({asked}>0,[topdown/all/{level}/share]*{part},"")',
        f"{place}/share": f"[{place}/part]",
        f"{place}/budget": f'IF([{place}/part]="","",{promised}*[{place}/part])',
    }
    return cells | _noise(place, f"[{place}/budget]", pure, replaced, numbers, f'[{place}/budget]<>""')


def _curve(sheet: Sheet, places: list[str], pure: str, replaced: str, promised: str, numbers: str) -> Cells:
    """Return the margins of one query for budgets around the current one."""
    share = "[topdown/curve/row/share]"
    cells, at = drawn_row("topdown", places)
    cells["topdown/curve/row/share"] = at("part")
    for key in sheet.compute(sheet.published):
        place, _, name = key.rpartition("/")
        if not place.startswith("topdown/curve/") or name != "budget":
            continue
        step = place.rpartition("/")[2]
        budget = f"({promised}*{20 if step == 'now' else int(step)}/20)"
        cells |= _noise(place, f"({budget}*{share})", pure, replaced, numbers, f'{share}<>""')
        cells[f"{place}/budget"] = f'IF([{place}/noisy],{budget},"")'
    return cells
