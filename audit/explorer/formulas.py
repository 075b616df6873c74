"""Formulas of the sheet `audit` that Excel and LibreOffice both know: `audit.methods.game` and the plans in cells.

Keys in brackets name cells as `audit.explorer.layout` says; ``<name>`` is a cell of the same row, ``<@name>`` an input,
and ``<#name>`` a step that holds for all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audit.explorer.interpolation import CLAIM, PLAN, STEPS, Cells, column, interpolation, row
from audit.explorer.sheet import Sheet
from audit.methods.game import Game
from audit.methods.method import LEAST_EXCESS
from audit.planning.sizes import SMALLEST_SHARE, WINDOW

__all__ = ["CLOSE", "MOST", "NEAR", "ROWS", "at_least", "cells"]

SEARCH = "audit/search/all"
BITS = 2**22  # of a share: times them, numbers of runs up to 2**30 are exact
NEAR = (-2, 3)  # from the guess at a quantile: at least as far as the exact one is at random laws (a test)
HALVINGS = 45  # of the range of the logarithm of what is lost beyond the promise: it is less than 30 wide

MOST = 10**9  # runs: the comparisons of more are too close for a cell
ROWS = {"grown": 51, "halved": (MOST // 3).bit_length() + 1, "back": WINDOW.bit_length() + 1, "tooth": 100}
CLOSE = (1e-10, 2e-15)  # difference of two probabilities that a cell cannot tell apart: in all, and for each run
MARGIN = f"({CLOSE[0]:G}+{CLOSE[1]:G}*<counting>)"
REFINED = 3  # times that the next tooth is estimated better
SLACK = 0.01  # of a run: estimates of the next tooth are better


def cells(sheet: Sheet) -> Cells:
    """Return a formula for every result of the sheet `audit`, and the steps to it, by key."""
    curve = {f"audit/curve/{place}": times for place, times in sheet.data["times"].items()}
    losses = {PLAN: "<@violation>"} | {place: f"[{place}/times]" for place in curve}
    formulas = _settings(sheet.data) | _runs(STEPS, "<@runs>") | _needed(STEPS) | interpolation(sheet, losses)
    for place, times in losses.items():
        formulas |= {f"{place}/times": repr(curve[place])} if place in curve else {}
        formulas |= row(place, {"loss": f"{times}*<@budget>", "right": _right(times)}) | _power(place, STEPS, "<right>")
        computed = f"IF(<power at loss><{sheet.data['least_power']:G},0,MIN(1,<power at loss>))"
        name = "power" if place in curve else "power_found"
        formulas |= row(place, {name: f'IF(<#asked>,{computed},IF(<#interpolated>,[audit/line/{place}/power],""))'})
    formulas |= _smallest() | _search() | _guessed()
    results = {
        "times": 'IF(<#asked>,[audit/smallest/all/times],IF(<#interpolated>,[audit/line/all/smallest],""))',
        "detectable": 'IF(<times>="","",<times>*<@budget>)',
        "runs_needed": f'IF(<#asked>,[{SEARCH}/found],IF(<#interpolated>,[audit/line/all/runs],""))',
        "known": "IF(<#computed>,[words audit.known.computed],"
        "IF(<#interpolated>,[words audit.known.interpolated],[words audit.known.simulated]))",
        "refused": f"IF(<#share too small>,[words audit.refused.selection],"
        f'IF(<#too few>,[words audit.refused.few],IF([{SEARCH}/far],[words audit.refused.far],"")))',
    }
    return formulas | row(PLAN, results)


# Guesses at coins


def at_least(successes: str, runs: str, chance: str) -> str:
    """Return the probability of so many successes or more, from 1 to all."""
    return f"BETADIST({chance},{successes},{runs}-{successes}+1)"


def _settings(data: Mapping[str, Any]) -> Cells:
    """Return what needs neither the runs nor the true loss: the kind of plan, the promise for the pair, its error."""
    computed = ",".join(f'<@family>="{name}"' for name, family in data["families"].items() if family["computed"])
    delta = ",".join(f'<@family>="{name}"' for name, family in data["families"].items() if family["delta"])
    steps = {
        "computed": f"OR({computed})",
        "has delta": f"OR({delta})",
        "share too small": f"AND(<computed>,<@selection>>0,<@selection><{SMALLEST_SHARE:G})",
        "too few": "AND(<computed>,<@selection>>0,<choosing><8)",
        "asked": "AND(<computed>,NOT(<share too small>),NOT(<too few>))",
        "budget": "<@distance>*<@budget>",
        "forgiven": _forgiven("1"),
        "limit of pure privacy": "1/(1+EXP(-<budget>))",
        "error of guesses": f"(1-<@confidence>)*IF(<@selection>>0,{data['main']!r},1)",
        "error": "IF(<forgiven>>0,0.9,1)*<error of guesses>",
        "quantile": "-NORMSINV(<error>)",
        "share in bits": f"INT(<@selection>*{BITS})/{BITS}",
        "rest of share": "<@selection>-<share in bits>",
    }
    return row(STEPS, steps)


def _forgiven(times: str) -> str:
    """Return the delta of the pair, if the true loss is so many times the promise."""
    people = f"(<@distance>-1)*{times}*<@budget>"
    factor = f"LN((1-EXP(-{times}*<#budget>))/(1-EXP(-{times}*<@budget>)))"
    return f"IF(<#has delta>,EXP(MIN(0,LN(<@delta>)+{people}+{factor})),0)"


def _right(times: str) -> str:
    """Return how often a guess is right, if the true loss is so many times the promise."""
    return f"1-(1-{_forgiven(times)})/(1+EXP(MIN(700,{times}*<#budget>)))"


def _guessed() -> Cells:
    """Return how often a guess is right, at most, under the promise: of rho by Newton's steps to the best order."""
    steps = {"rho": "MIN(<@budget>,300)", "order 0": "IF(<rho>>1,-<rho>,-LN(2*<rho>)/2)"}
    for step in range(12):
        y = f"<order {step}>"
        slope = f"(2*<rho>*EXP({y})+1/(1+EXP({y})))"
        steps[f"order {step + 1}"] = f"{y}-(<rho>*(2*EXP({y})+1)-LN(1+EXP(-{y})))/{slope}"
    above = "EXP(<order 12>)"
    steps["delta"] = f"EXP(MIN(0,{above}*(({above}+1)*<rho>-LN(1+1/{above}))-LN(1+{above})))"
    logistic = 'IF(<@family>="gaussian",NORMSDIST(<@budget>/2),1/(1+EXP(-<@budget>)))'
    found = f'IF(<@family>="zcdp",(1+[audit/guess/all/delta])/2,{logistic})'
    return row("audit/guess/all", steps) | row(CLAIM, {"guessed": found})


def _limit(counting: str) -> str:
    """Return what right guesses are held against; with a delta it depends on the runs that count."""
    pure, rate = "<#limit of pure privacy>", f"EXP(LN(0.1*<#error of guesses>)/{counting})"
    return f"IF(<#forgiven>>0,MIN(1,{pure}+<#forgiven>*(1-{pure})/{rate}),{pure})"


def _runs(place: str, size: str = "<size>", *, filled: bool = False) -> Cells:
    """Return the runs that choose the event and those that count it: halves go to even numbers, as in binary floats.

    The product of size and share is compared with a half before it is rounded, because a spreadsheet takes for a half
    what is very near.
    """
    product = f"{size}*<@selection>"
    near = f"2^(INT(LN(MAX({product},0.5))/LN(2))-53)"
    steps = {
        "whole": f"INT({product})",
        "beyond half": f"{size}*<#share in bits>-<whole>-0.5+{size}*<#rest of share>",
        "choosing": f"<whole>+IF(ABS(<beyond half>)<={near},MOD(<whole>,2),IF(<beyond half>>0,1,0))",
        "counting": f"{size}-<choosing>",
    }
    return row(place, steps, filled=filled)


def _needed(place: str, *, filled: bool = False) -> Cells:
    """Return the fewest right guesses that refute the promise: about the normal law's number, whose tails are tried."""
    more = "+".join(
        f"((<counting>><guess>{at:+})*BETADIST(<limit>,<guess>{at + 1:+},MAX(1,<counting>-(<guess>{at:+})))><#error>)"
        for at in range(NEAR[0], NEAR[1] + 1)
    )
    beyond = "<#quantile>*SQRT(<counting>*<limit>*(1-<limit>))+(<#quantile>^2-1)*(1-2*<limit>)/6"
    steps = {
        "limit": _limit("<counting>"),
        "guess": f"MAX(2,INT(<counting>*<limit>+{beyond}))",
        "needed": f"IF(<limit><1,MIN(<counting>,<guess>{NEAR[0]:+}+{more})+1,<counting>+1)",
    }
    return row(place, steps, filled=filled)


def _power(place: str, runs: str, chance: str, *, filled: bool = False) -> Cells:
    """Return the power of runs whose numbers stand in a row, where guesses are right with some probability.

    Of an even number, selection runs name the right side as often as one less.
    """
    needed, choosing, counting = (f"[{runs}/{name}]" for name in ("needed", "choosing", "counting"))
    half = f"MAX(1,INT(({choosing}+1)/2))"
    steps = {
        "seen": f"IF({needed}>{counting},0,{at_least(f'MIN({needed},{counting})', counting, chance)})",
        "side": f"IF({choosing}=0,1,BETADIST({chance},{half},{half}))",
        "power at loss": "<seen>*<side>",
    }
    return row(place, steps, filled=filled)


def _smallest() -> Cells:
    """Return rows that halve the range in which the logarithm of the smallest violation less 1 lies, and its times."""
    rows = "audit/smallest"
    ends = {"bottom": f"LN({LEAST_EXCESS:G})", "top": f"LN(MAX({Game.largest!r}/<#budget>-1,{LEAST_EXCESS:G}))"}
    low, high = (f"[{rows}/{end}/excess]" for end in ends)
    formulas: Cells = {}
    for step in (*ends, *range(1, HALVINGS + 1)):
        place = f"{rows}/{step}"
        formulas |= {} if step in ends else {f"{place}/low": low, f"{place}/high": high}
        tried = {"excess": ends.get(str(step), "(<low>+<high>)/2"), "right": _right("(1+EXP(<excess>))")}
        formulas |= row(place, tried) | _power(place, STEPS, "<right>")
        formulas |= row(place, {"enough": "<power at loss>>=<@power>"})
        if step not in ends:
            low = f"IF([{place}/enough],[{place}/low],[{place}/excess])"
            high = f"IF([{place}/enough],[{place}/excess],[{place}/high])"
    times = f'IF([{rows}/top/enough],IF([{rows}/bottom/enough],1,1+EXP({high})),"")'
    return formulas | {f"{rows}/all/times": times}


# The fewest runs, as `audit.planning` finds them: runs grow by half until they are enough, and the range between is
# halved. As power rises in teeth, the first that are enough may be fewer: they are searched for in a window before.
# Where a cell cannot tell two probabilities apart, or rows do not suffice, `plaudit plan` is to be asked.


def _search() -> Cells:
    """Return the steps to the runs needed: empty where none are enough, and a sentence where a cell cannot tell."""
    least = '""'
    for number in (3, 2, 1):
        least = f"IF([audit/least/{number}/enough],[audit/least/{number}/size],{least})"
    parts = [(part, "unclear") for part in ("grown", "halved", "tooth")]
    unclear = "+".join(f"SUM({_all(*cells)})" for cells in (*parts, ("tooth", "too far")))
    window = f"ROUNDUP(8/MAX([{PLAN}/right]-({_right('1')}),1E-9)/(1-<@selection>),0)+20"
    steps = {
        "far": "AND(<#asked>,1-(<#limit of pure privacy>+<#forgiven>*(1-<#limit of pure privacy>))<=0)",
        "least": f'IF(AND(<#asked>,NOT(<far>)),{least},"")',
        "reached": f"SUM({_all('grown', 'enough')})=1",
        "not enough": f'IF(<reached>,MAX({_all("grown", "before")}),"")',
        "enough": f"[audit/halved/{ROWS['halved']}/up to]",
        "before window": f'IF(<enough>="","",MAX(<least>,<enough>-MIN({WINDOW},{window}))-1)',
        "size": f"MAX({_all('tooth', 'size')})",
        "found": f'IF(<far>,"",IF(AND(SUM({_all("tooth", "enough")})=1,{unclear}=0),<size>,[words workbook.ask]))',
    }
    up_to = f'IF([{SEARCH}/reached],MAX({_all("grown", "size")}),"")'
    formulas = row(SEARCH, steps) | _least() | _grown() | _halved("halved", f"[{SEARCH}/not enough]", up_to)
    return formulas | _halved("back", f"[{SEARCH}/before window]", f"[{SEARCH}/enough]", " by coin") | _teeth()


def _all(part: str, name: str) -> str:
    return column(f"audit/{part}", 1, ROWS[part], name)


def _least() -> Cells:
    """Return the fewest runs that choose and count an event: rows of the numbers about those that shares give."""
    formulas: Cells = {}
    size = "IF(<@selection>>0,MAX(2,INT(7.5/<@selection>),INT(1.5/(1-<@selection>))),2)"
    for number in (1, 2, 3):
        place = f"audit/least/{number}"
        formulas |= row(place, {"size": size}) | _runs(place)
        formulas |= row(place, {"enough": "AND(OR(<@selection>=0,<choosing>>=8),<counting>>=2)"})
        size = f"[{place}/size]+1"
    return formulas


def _trial(place: str, more: dict[str, str]) -> Cells:
    """Return the power of a number of runs, whether it is enough, and whether that is too close to tell."""
    some = at_least("MIN(<needed>,<counting>)", "<counting>", "<limit>")
    apart = "ABS(<power at loss>-<@power>)", "<#error>-<refuted by error>", "<with one less>-<#error>"
    steps = {
        "refuted by error": f"IF(<needed>><counting>,0,{some})",
        "with one less": at_least("(<needed>-1)", "<counting>", "<limit>"),
        "enough": "IF(<power at loss>>=<@power>,1,0)",
        "unclear": f"IF(AND({','.join(f'{difference}>{MARGIN}' for difference in apart)}),0,1)",
    }
    formulas = _runs(place, filled=True) | _needed(place, filled=True)
    return formulas | _power(place, place, f"[{PLAN}/right]", filled=True) | row(place, steps | more, filled=True)


def _grown() -> Cells:
    """Return rows whose runs grow by half until they are enough."""
    formulas: Cells = {}
    size, before = f"[{SEARCH}/least]", "<size>-1"
    for number in range(1, ROWS["grown"] + 1):
        place = f"audit/grown/{number}"
        formulas |= {f"{place}/size": size} | _trial(place, {"before": before})
        before = f"[{place}/size]"
        more = f"{before}+MAX(1,INT({before}/2))"
        size = f'IF({before}="","",IF(OR([{place}/enough]=1,{more}>{MOST}),"",{more}))'
    return formulas


def _halved(part: str, low: str, high: str, how: str = "") -> Cells:
    """Return rows that halve a range of runs, of which the last are enough; the last row has it.

    They may be enough by the test that spends all of the error by a coin, or so nearly that a cell cannot tell: no
    fewer runs have more power.
    """
    spent = "(<#error>-<refuted by error>)/(<with one less>-<refuted by error>)"
    less = at_least("(<needed>-1)", "<counting>", f"[{PLAN}/right]")
    coin = {
        "power by coin": f"(<seen>+{spent}*({less}-<seen>))*<side>",
        "enough by coin": f"IF(<power by coin>>=<@power>-10*{MARGIN},1,0)",
    }
    formulas: Cells = {}
    middle = 'IF(<up to>="","",IF(<up to>-<above>>1,<above>+INT((<up to>-<above>)/2),""))'
    for number in range(1, ROWS[part] + 1):
        place = f"audit/{part}/{number}"
        formulas |= row(place, {"above": low, "up to": high, "size": middle}) | _trial(place, coin if how else {})
        above, up_to, size = (f"[{place}/{name}]" for name in ("above", "up to", "size"))
        low = f'IF({size}="",{above},IF([{place}/enough{how}]=1,{above},{size}))'
        high = f'IF({size}="",{up_to},IF([{place}/enough{how}]=1,{size},{up_to}))'
    return formulas


def _teeth() -> Cells:
    """Return rows of the runs from which on one more guess may be wrong, until they are enough."""
    formulas: Cells = {}
    size = f"[audit/back/{ROWS['back']}/up to]"
    for number in range(1, ROWS["tooth"] + 1):
        place = f"audit/tooth/{number}"
        formulas |= {f"{place}/size": size} | _trial(place, _next_tooth())
        size = f'IF([{place}/size]="","",IF([{place}/enough]=1,"",[{place}/next]))'
    return formulas


def _next_tooth() -> dict[str, str]:
    """Return the steps to the next runs that may be enough: one more guess may be wrong there, or one more run chooses.

    The former is estimated by secants: normal quantiles of the tail are nearly a line in the cube root of the runs.
    What is too low costs a row more; what is too high leaves the answer to `plaudit plan`.
    """

    def probability(runs: str) -> str:
        return f"BETADIST({_limit(runs)},{runs}-<more wrong>,<more wrong>+1)"

    density = "EXP(-(<z 0>^2)/2)/SQRT(2*PI())"
    slope = "((1-<limit>)*(<with one less>-<refuted by error>)*3*<root 0>^2)"
    formulas = {
        "more wrong": "<counting>-<needed>+1",
        "root 0": "<counting>^(1/3)",
        "z 0": "NORMSINV(<with one less>)",
        "root 1": f"<root 0>+(<z 0>+<#quantile>)*{density}/{slope}",
    }
    for time in range(1, REFINED + 1):
        z, last, root, before = f"<z {time}>", f"<z {time - 1}>", f"<root {time}>", f"<root {time - 1}>"
        formulas[f"z {time}"] = f"NORMSINV(MAX(1E-300,{probability(f'({root}^3)')}))"
        secant = f"{root}-(<#quantile>+{z})*({root}-{before})/({z}-{last})"
        formulas[f"root {time + 1}"] = f"IF({z}={last},{root},{secant})"
    reached = "ROUNDUP((<tooth>-0.5)/(1-<@selection>)-0.00001,0)"
    chosen = "ROUNDUP((<choosing>+0.5)/<@selection>-0.00001,0)"
    return formulas | {
        "tooth": f"MAX(<counting>+1,ROUNDUP(<root {REFINED + 1}>^3-{SLACK},0))",
        "too far": f"IF(<enough>=1,0,IF({probability('(<tooth>-1)')}-<#error>>{MARGIN},0,1))",
        "next": f"MAX(<size>+1,MIN([{SEARCH}/enough],{reached},IF(AND(<@selection>>0,<side><1),{chosen},{reached})))",
    }
