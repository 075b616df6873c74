"""Formulas of the sheet `audit`: refusals, power, its curve, and the smallest loss that the runs detect."""

from __future__ import annotations

from audit.explorer.formulas.guesses import CLAIM, PLAN, STEPS, Cells, needed, power, right, runs, settings
from audit.explorer.formulas.search import search
from audit.explorer.formulas.simulated import simulated
from audit.explorer.sheet import Sheet
from audit.methods.game import Game
from audit.methods.method import LEAST_EXCESS
from audit.planning.sizes import SMALLEST_SHARE

__all__ = ["cells"]

HALVINGS = 45  # of the range of the logarithm of what is lost beyond the promise: it is less than 30 wide
COMPUTED, INTERPOLATED = f"[{STEPS}/computed]", f"[{STEPS}/interpolated]"
ASKED = f"[{STEPS}/asked]"


def cells(sheet: Sheet) -> Cells:
    """Return a formula for every result, and the steps to it.

    Parameters
    ----------
    sheet : Sheet
        The sheet `audit`, whose `data` has the losses of the curve and the table of simulated plans.

    Returns
    -------
    dict of str to str or float
        Formulas and numbers by key.
    """
    curve = {f"audit/curve/{round(100 * times)}%": times for times in sheet.data["times"]}
    found = _states(sheet) | settings()
    found |= runs(STEPS, f"[in {PLAN}/runs]") | needed(STEPS)
    found |= simulated(sheet, {PLAN: f"[in {PLAN}/violation]"} | {place: f"[{place}/times]" for place in curve})
    found |= _of_loss(PLAN, f"[in {PLAN}/violation]", sheet.data["least_power"], "power_found")
    for place, times in curve.items():
        found[f"{place}/times"] = f"{times!r}"
        found |= _of_loss(place, f"[{place}/times]", sheet.data["least_power"], "power")
    steps, smallest = _smallest()
    found |= steps
    searched, size, far = search()
    found |= searched
    found[f"{PLAN}/times"] = f'IF({ASKED},{smallest},IF({INTERPOLATED},[audit/line/all/smallest],""))'
    found[f"{PLAN}/detectable"] = f'IF([{PLAN}/times]="","",[{PLAN}/times]*[in {CLAIM}/budget])'
    found[f"{PLAN}/runs_needed"] = f'IF({ASKED},{size},IF({INTERPOLATED},[audit/line/all/runs],""))'
    found[f"{PLAN}/known"] = (
        f"IF({COMPUTED},[words audit.known.computed],"
        f"IF({INTERPOLATED},[words audit.known.interpolated],[words audit.known.simulated]))"
    )
    found[f"{PLAN}/refused"] = (
        f"IF([{STEPS}/share too small],[words audit.refused.selection],"
        f'IF([{STEPS}/too few],[words audit.refused.few],IF({far},[words audit.refused.far],"")))'
    )
    return found


def _states(sheet: Sheet) -> Cells:
    """Return what kind of plan it is, and whether it is refused."""
    share, family = f"[in {PLAN}/selection]", f"[in {CLAIM}/family]"
    return {
        f"{STEPS}/computed": f'OR({family}="pure",{family}="approx")',
        f"{STEPS}/share too small": f"AND({COMPUTED},{share}>0,{share}<{SMALLEST_SHARE:G})",
        f"{STEPS}/too few": f"AND({COMPUTED},{share}>0,[{STEPS}/choosing]<8)",
        f"{STEPS}/asked": f"AND({COMPUTED},NOT([{STEPS}/share too small]),NOT([{STEPS}/too few]))",
    }


def _of_loss(place: str, times: str, least: float, name: str) -> Cells:
    """Return a true loss, and the power that the runs have at it."""
    found = {f"{place}/loss": f"{times}*[in {CLAIM}/budget]", f"{place}/right": right(times)} | power(
        place, STEPS, f"[{place}/right]"
    )
    computed = f"IF([{place}/power at loss]<{least:G},0,MIN(1,[{place}/power at loss]))"
    found[f"{place}/{name}"] = f'IF({ASKED},{computed},IF({INTERPOLATED},[audit/line/{place}/power],""))'
    return found


def _smallest() -> tuple[Cells, str]:
    """Return steps that halve the range in which the smallest violation lies, and its formula."""
    place = "audit/smallest"
    most = f"LN(MAX({Game.largest!r}/[{STEPS}/budget]-1,{LEAST_EXCESS:G}))"
    found = _tried(f"{place}/bottom", f"LN({LEAST_EXCESS:G})") | _tried(f"{place}/top", most)
    low, high = f"[{place}/bottom/excess]", f"[{place}/top/excess]"
    for step in range(1, HALVINGS + 1):
        here = f"{place}/{step}"
        found |= {f"{here}/low": low, f"{here}/high": high} | _tried(here, f"([{here}/low]+[{here}/high])/2")
        low = f"IF([{here}/enough],[{here}/low],[{here}/excess])"
        high = f"IF([{here}/enough],[{here}/excess],[{here}/high])"
    return found, f'IF([{place}/top/enough],IF([{place}/bottom/enough],1,1+EXP({high})),"")'


def _tried(place: str, excess: str) -> Cells:
    """Return whether a violation is seen so often; what it has beyond the promise is given as a logarithm."""
    return {
        f"{place}/excess": excess,
        f"{place}/right": right(f"(1+EXP([{place}/excess]))"),
        **power(place, STEPS, f"[{place}/right]"),
        f"{place}/enough": f"[{place}/power at loss]>=[in {PLAN}/power]",
    }
