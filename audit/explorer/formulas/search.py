"""Formulas that search for the fewest runs of guesses at coins: the search of `audit.planning` in rows of steps.

A row tries one number of runs. Runs grow by half until they are enough, and the range between is halved. As power rises
in teeth, the first number that is enough may be smaller: it is searched for in a window before that. Where two
probabilities are too close for a cell to tell apart, or the rows do not suffice, the answer is left to `plaudit plan`.
"""

from __future__ import annotations

from collections.abc import Callable

from audit.explorer.formulas.guesses import (
    ERROR,
    FORGIVEN,
    LIMIT,
    PLAN,
    SHARE,
    STEPS,
    Cells,
    at_least,
    limit,
    needed,
    power,
    right,
    runs,
)
from audit.planning.sizes import WINDOW

__all__ = ["search"]

MOST = 10**9  # runs: the comparisons of more are too close for a cell
GROWN, HALVED, BACK = 51, (MOST // 3).bit_length() + 1, WINDOW.bit_length() + 1  # rows: enough for so many runs
TEETH = 100  # rows: enough for most plans
CLOSE = (1e-10, 2e-15)  # difference of two probabilities that a cell cannot tell apart: in all, and for each run
REFINED = 3  # times that the next tooth is estimated better
SLACK = 0.01  # of a run: estimates of the next tooth are better
ALL, WANTED = "audit/search/all", f"[in {PLAN}/power]"


def search() -> tuple[Cells, str, str]:
    """Return the steps, and the formulas of the runs needed and of whether no number of runs is enough.

    The runs are empty where none are enough, and a sentence where `plaudit plan` is to be asked.
    """
    far = f"[{ALL}/far]"
    found: Cells = {f"{ALL}/far": f"AND([{STEPS}/asked],1-({LIMIT}+{FORGIVEN}*(1-{LIMIT}))<=0)"}
    found |= _least() | _grown() | _halved() | _back() | _teeth()
    unclear = "+".join(f"SUM({_column(part, 'unclear')})" for part in ("grown", "halved", "tooth"))
    found[f"{ALL}/size"] = f"MAX({_column('tooth', 'size')})"
    known = f"AND(SUM({_column('tooth', 'enough')})=1,{unclear}=0)"
    return found, f'IF({far},"",IF({known},[{ALL}/size],[words workbook.ask]))', far


def _column(part: str, name: str) -> str:
    last = {"grown": GROWN, "halved": HALVED, "back": BACK, "tooth": TEETH}[part]
    return f"[audit/{part}/1/{name}:audit/{part}/{last}/{name}]"


def _least() -> Cells:
    """Return the fewest runs that choose and count an event: rows of the numbers about those that shares give."""
    start = f"IF({SHARE}>0,MAX(2,INT(7.5/{SHARE}),INT(1.5/(1-{SHARE}))),2)"
    found: Cells = {}
    least = '""'
    for row in (3, 2, 1):
        least = f"IF([audit/least/{row}/enough],[audit/least/{row}/size],{least})"
    for row in (1, 2, 3):
        place = f"audit/least/{row}"
        found[f"{place}/size"] = start if row == 1 else f"[audit/least/{row - 1}/size]+1"
        found |= runs(place, f"[{place}/size]")
        found[f"{place}/enough"] = f"AND(OR({SHARE}=0,[{place}/choosing]>=8),[{place}/counting]>=2)"
    return found | {f"{ALL}/least": f'IF(AND([{STEPS}/asked],NOT([{ALL}/far])),{least},"")'}


def _trial(place: str) -> Cells:
    """Return the power of a number of runs, whether it is enough, and whether that is too close to tell."""
    counting, wanted, chance = f"[{place}/counting]", f"[{place}/needed]", f"[{PLAN}/right]"
    above, less, bar = f"[{place}/refuted by error]", f"[{place}/with one less]", f"[{place}/limit]"
    close, some = _close(counting), f"MIN({wanted},{counting})"
    found = runs(place, f"[{place}/size]") | needed(place) | power(place, place, chance)
    found |= {
        f"{place}/refuted by error": f"IF({wanted}>{counting},0,{at_least(some, counting, bar)})",
        f"{place}/with one less": at_least(f"({wanted}-1)", counting, bar),
        f"{place}/enough": f"IF([{place}/power at loss]>={WANTED},1,0)",
        f"{place}/unclear": f"IF(AND(ABS([{place}/power at loss]-{WANTED})>{close},{ERROR}-{above}>{close},"
        f"{less}-{ERROR}>{close}),0,1)",
    }
    return _filled(place, found)


def _close(counting: str) -> str:
    """Return how close two probabilities of so many runs may be, so that a cell still tells them apart."""
    return f"({CLOSE[0]:G}+{CLOSE[1]:G}*{counting})"


def _filled(place: str, cells: Cells) -> Cells:
    """Return cells that are empty where the row tries nothing."""
    return {key: f'IF([{place}/size]="","",{formula})' for key, formula in cells.items()}


def _grown() -> Cells:
    """Return rows whose runs grow by half until they are enough."""
    found: Cells = {}
    for row in range(1, GROWN + 1):
        place, before = f"audit/grown/{row}", f"audit/grown/{row - 1}"
        size = f"[{before}/size]"
        more = f"{size}+MAX(1,INT({size}/2))"
        later = f'IF({size}="","",IF(OR([{before}/enough]=1,{more}>{MOST}),"",{more}))'
        found[f"{place}/size"] = f"[{ALL}/least]" if row == 1 else later
        found |= _filled(place, {f"{place}/not enough": f"[{place}/size]-1" if row == 1 else size})
        found |= _trial(place)
    return found | {f"{ALL}/reached": f"SUM({_column('grown', 'enough')})=1"}


def _between(part: str, rows: int, ends: tuple[str, str], tried: Callable[[str], Cells], enough: str) -> Cells:
    """Return rows that halve a range of runs, of which the last are enough; the last row has it."""
    found: Cells = {}
    low, high = ends
    for row in range(1, rows + 1):
        place = f"audit/{part}/{row}"
        above, up_to, size = (f"[{place}/{name}]" for name in ("above", "up to", "size"))
        middle = f'IF({up_to}="","",IF({up_to}-{above}>1,{above}+INT(({up_to}-{above})/2),""))'
        found |= {f"{place}/above": low, f"{place}/up to": high, f"{place}/size": middle} | tried(place)
        low = f'IF({size}="",{above},IF([{place}/{enough}]=1,{above},{size}))'
        high = f'IF({size}="",{up_to},IF([{place}/{enough}]=1,{size},{up_to}))'
    return found


def _halved() -> Cells:
    """Return rows that halve the range from the last runs that are not enough to the first that are."""
    low, high = (f'IF([{ALL}/reached],MAX({_column("grown", name)}),"")' for name in ("not enough", "size"))
    found = _between("halved", HALVED, (low, high), _trial, "enough")
    return found | {f"{ALL}/enough": f"[audit/halved/{HALVED}/up to]"}


def _back() -> Cells:
    """Return rows that halve the window before that, where the best test by coin is not enough for any fewer runs."""
    window = f"MIN({WINDOW},ROUNDUP(8/MAX([{PLAN}/right]-({right('1')}),1E-9)/(1-{SHARE}),0)+20)"
    enough, first = f"[{ALL}/enough]", f"[{ALL}/first]"
    found: Cells = {
        f"{ALL}/window": window,
        f"{ALL}/first": f'IF({enough}="","",MAX([{ALL}/least],{enough}-[{ALL}/window]))',
    }
    ends = (f'IF({first}="","",{first}-1)', enough)
    found |= _between("back", BACK, ends, lambda place: _trial(place) | _coin(place), "enough by coin")
    return found | {f"{ALL}/start": f"[audit/back/{BACK}/up to]"}


def _coin(place: str) -> Cells:
    """Return whether the test that spends all of the error by a coin is enough, or so close that it cannot be told."""
    above, less = f"[{place}/refuted by error]", f"[{place}/with one less]"
    one_less = at_least(f"([{place}/needed]-1)", f"[{place}/counting]", f"[{PLAN}/right]")
    spent = f"({ERROR}-{above})/({less}-{above})"
    found = f"([{place}/seen]+{spent}*({one_less}-[{place}/seen]))*[{place}/side]"
    close = f"10*{_close(f'[{place}/counting]')}"
    return _filled(
        place,
        {
            f"{place}/power by coin": found,
            f"{place}/enough by coin": f"IF([{place}/power by coin]>={WANTED}-{close},1,0)",
        },
    )


def _teeth() -> Cells:
    """Return rows of the runs from which on one more guess may be wrong, until they are enough."""
    found: Cells = {}
    for row in range(1, TEETH + 1):
        place, before = f"audit/tooth/{row}", f"audit/tooth/{row - 1}"
        later = f'IF([{before}/size]="","",IF([{before}/enough]=1,"",[{before}/next]))'
        found[f"{place}/size"] = f"[{ALL}/start]" if row == 1 else later
        trial = _trial(place)
        unclear = trial.pop(f"{place}/unclear")
        found |= trial | _filled(place, _next(place))
        found |= _filled(
            place, {f"{place}/unclear": f"IF([{place}/enough]=1,{unclear},MAX({unclear},[{place}/too far]))"}
        )
    return found


def _next(place: str) -> Cells:
    """Return the next runs that may be enough: where one more guess may be wrong, or one more run chooses.

    The former is estimated by secants: normal quantiles of the tail are nearly a line in the cube root of the runs.
    What is too low costs a row more; what is too high leaves the answer to `plaudit plan`.
    """
    counting, wrong = f"[{place}/counting]", f"[{place}/more wrong]"
    less, above = f"[{place}/with one less]", f"[{place}/refuted by error]"
    z, end = [f"[{place}/z 0]"], f"(-[{STEPS}/quantile])"
    roots = [f"[{place}/root 0]"]

    def probability(runs: str) -> str:
        return f"BETADIST({limit(runs)},{runs}-{wrong},{wrong}+1)"

    found: Cells = {
        f"{place}/more wrong": f"{counting}-[{place}/needed]+1",
        f"{place}/root 0": f"{counting}^(1/3)",
        f"{place}/z 0": f"NORMSINV({less})",
    }
    density = f"EXP(-({z[0]}^2)/2)/SQRT(2*PI())"
    found[f"{place}/root 1"] = (
        f"{roots[0]}+({z[0]}-{end})*{density}/((1-[{place}/limit])*({less}-{above})*3*{roots[0]}^2)"
    )
    for time in range(1, REFINED + 1):
        roots.append(f"[{place}/root {time}]")
        z.append(f"[{place}/z {time}]")
        found[f"{place}/z {time}"] = f"NORMSINV(MAX(1E-300,{probability(f'({roots[-1]}^3)')}))"
        secant = f"{roots[-1]}+({end}-{z[-1]})*({roots[-1]}-{roots[-2]})/({z[-1]}-{z[-2]})"
        found[f"{place}/root {time + 1}"] = f"IF({z[-1]}={z[-2]},{roots[-1]},{secant})"
    tooth = f"[{place}/tooth]"
    found[f"{place}/tooth"] = f"MAX({counting}+1,ROUNDUP([{place}/root {REFINED + 1}]^3-{SLACK},0))"
    found[f"{place}/too far"] = f"IF({probability(f'({tooth}-1)')}-{ERROR}>{_close(counting)},0,1)"
    reached = f"ROUNDUP(({tooth}-0.5)/(1-{SHARE})-0.00001,0)"
    chosen = f"IF(AND({SHARE}>0,[{place}/side]<1),ROUNDUP(([{place}/choosing]+0.5)/{SHARE}-0.00001,0),{reached})"
    found[f"{place}/next"] = f"MAX([{place}/size]+1,MIN([{ALL}/enough],{reached},{chosen}))"
    return found
