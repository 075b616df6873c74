"""TopDown's formulas: shares of the budget by level and query, and the noise that each leaves."""

from __future__ import annotations

from algorithms.noise.formulas import (
    Cells,
    conversions,
    drawn_row,
    gaussian_budget,
    geometric_sigma,
    guessed,
    margin_around,
    margins,
    pure_budget,
    whole_numbers,
)
from algorithms.topdown.explorer.sheet import WIDEST
from audit.explorer.sheet import Sheet

__all__ = ["cells"]

ALL, NOW, STEPS = "topdown/all/all", "topdown/curve/now", "topdown/wanted/all"


def cells(sheet: Sheet) -> Cells:
    """Return a formula for every result, and the steps to it."""
    levels, queries = list(sheet.data["levels"]), list(sheet.data["queries"])
    pure, replaced = f'([in {ALL}/privacy]="puredp")', f'([in {ALL}/relation]="replace_one")'
    promised = f"[{ALL}/budget]"
    formulas, numbers = whole_numbers("topdown")
    formulas |= _wanted(pure, replaced, numbers)
    for level in levels:
        asked = "+".join(f"[in topdown/{query}/{level}/parts]" for query in queries)
        parts = f"[in topdown/all/{level}/parts]"
        formulas[f"topdown/all/{level}/asked"] = asked
        formulas[f"topdown/all/{level}/measured"] = f"IF([topdown/all/{level}/asked]>0,{parts},0)"
    whole = f"SUM([topdown/all/{levels[0]}/measured:topdown/all/{levels[-1]}/measured])"
    formulas["topdown/all/levels/measured"] = whole
    rows = [(query, level) for level in levels for query in queries]
    for level in levels:
        own = f"SUM([topdown/{queries[0]}/{level}/share:topdown/{queries[-1]}/{level}/share])"
        formulas[f"topdown/all/{level}/share"] = f'IF({own}>0,{own},"")'
    for query, level in rows:
        formulas |= _of_query(query, level, pure, replaced, numbers)
    formulas |= _curve(sheet, [f"topdown/{query}/{level}" for query, level in rows], pure, replaced, numbers)
    for prefix, same, other in (("replaced", replaced, "2"), ("added", f"NOT({replaced})", "0.5")):
        budget = f"({promised}*IF({same},1,{other}))"
        steps, ways = conversions(f"topdown/{prefix}/all", pure, budget, f"[in {ALL}/delta]")
        formulas |= steps
        formulas[f"topdown/total/all/{prefix}_rho"] = f'IF({pure},"",{budget})'
        formulas[f"topdown/total/all/{prefix}_epsilon"] = f'IF({pure},{budget},"")'
        formulas |= {f"topdown/total/all/{prefix}_epsilon_{way}": formula for way, formula in ways.items()}
        steps, formulas[f"topdown/total/all/{prefix}_guessed"] = guessed(f"topdown/{prefix}/all", pure, budget)
        formulas |= steps
    return formulas


def _noise(place: str, budget: str, pure: str, replaced: str, numbers: str, there: str) -> Cells:
    """Return sigma and margin of a query with so much budget, where it is asked and the law exists."""
    epsilon = f"[{place}/epsilon a count]"
    scale = f"SQRT(1/IF({replaced},{budget},2*{budget}))"
    exists = f"IF({pure},[{place}/epsilon a count]>=SQRT(2)/{WIDEST:.0E},[{place}/scale]<={WIDEST:.0E})"
    cells: Cells = {
        f"{place}/epsilon a count": f'IF({there},{budget}/IF({replaced},2,1),"")',
        f"{place}/scale": f'IF({there},{scale},"")',
        f"{place}/noisy": f"IF({there},{exists},FALSE)",
        f"{place}/sigma": f"IF({pure},{geometric_sigma(epsilon)},[{place}/scale])",
    }
    cells |= margins(place, (f"NOT({pure})", f"[{place}/sigma]", epsilon), "", numbers)
    cells[f"{place}/margin"] = cells.pop(f"{place}/exact")
    cells[f"{place}/tenth"] = f"10*[{place}/margin]"
    plain = {"epsilon a count", "scale", "noisy"}
    return {
        key: formula if key.rpartition("/")[2] in plain else f'IF([{place}/noisy],{formula},"")'
        for key, formula in cells.items()
    }


def _of_query(query: str, level: str, pure: str, replaced: str, numbers: str) -> Cells:
    place = f"topdown/{query}/{level}"
    asked = f"[topdown/all/{level}/measured]*[in {place}/parts]"
    part = (
        f"[topdown/all/{level}/measured]/[topdown/all/levels/measured]*[in {place}/parts]/[topdown/all/{level}/asked]"
    )
    drawn = f'[in topdown/curve/all/row]="{query}/{level}"'
    cells: Cells = {
        f"{place}/name": f'"{query}/{level}"',
        f"{place}/part": f'IF({asked}>0,{part},"")',
        f"{place}/share": f'IF([{place}/part]="","",IF([{STEPS}/moved],IF({drawn},[{STEPS}/own],'
        f"[{place}/part]*(1-[{STEPS}/own])/(1-[topdown/curve/row/part])),[{place}/part]))",
        f"{place}/budget": f'IF([{place}/share]="","",[{ALL}/budget]*[{place}/share])',
    }
    cells |= {f"{place}/own {name}": f"[{place}/{name}]" for name in ("share", "margin")}
    return cells | _noise(place, f"[{place}/budget]", pure, replaced, numbers, f'[{place}/budget]<>""')


def _wanted(pure: str, replaced: str, numbers: str) -> Cells:
    """Return what a margin that is wanted of the drawn query needs, and the total or the share that gives it."""
    wanted, part, needed = f"[in {ALL}/margin]", "[topdown/curve/row/part]", f"[{ALL}/needed]"
    steps, budget = _needed(STEPS, f"MAX({wanted},1)", pure, replaced, numbers)
    total = f'IF({needed}="",FALSE,[in {ALL}/pays]="total")'
    moved = f'IF({needed}="",FALSE,AND([in {ALL}/pays]="share",{part}<1,{needed}<[in {ALL}/budget]))'
    wrong = f'IF({part}="",[words topdown.refused.measured],[words topdown.refused.share])'
    return steps | {
        f"{ALL}/needed": f'IF(OR({wanted}="",{part}=""),"",{budget})',
        f"{STEPS}/by total": total,
        f"{STEPS}/moved": moved,
        f"{STEPS}/own": f"IF([{STEPS}/moved],{needed}/[in {ALL}/budget],0)",
        f"{ALL}/budget": f"IF([{STEPS}/by total],{needed}/{part},[in {ALL}/budget])",
        f"{ALL}/refused": f'IF(OR({wanted}="",[{STEPS}/by total],[{STEPS}/moved]),"",{wrong})',
        f"{ALL}/margin": f'IF(AND({wanted}<>"",[in {ALL}/pays]="share"),"",[{NOW}/margin])',
    }


def _needed(place: str, margin: str, pure: str, replaced: str, numbers: str) -> tuple[Cells, str]:
    """Return the budget of a query whose measurements have so small a margin."""
    geometric, epsilon = pure_budget(place, margin, f"IF({replaced},2,1)")
    gaussian, rho = gaussian_budget(place, margin, f"IF({replaced},SQRT(2),1)", numbers)
    return geometric | gaussian, f"IF({pure},{epsilon},{rho})"


def _curve(sheet: Sheet, places: list[str], pure: str, replaced: str, numbers: str) -> Cells:
    """Return the least total budgets for margins of one query about the current one."""
    cells, at = drawn_row("topdown", places)
    now = f"[{NOW}/margin]"
    cells |= {"topdown/curve/row/part": at("part"), "topdown/curve/row/share": at("own share")}
    cells |= {f"{NOW}/margin": at("own margin"), f"{NOW}/budget": f'IF({now}="","",[{ALL}/budget])'}
    for place, name in enumerate(sheet.data["points"]):
        point = f"topdown/curve/{name}"
        cells[f"{point}/margin"] = f'IF({now}="","",{margin_around(now, place)})'
        steps, budget = _needed(point, f"MAX([{point}/margin],1)", pure, replaced, numbers)
        cells |= steps | {f"{point}/budget": f'IF({now}="","",{budget}/[topdown/curve/row/share])'}
    return cells
