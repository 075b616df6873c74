"""Formulas that interpolate in the table of simulated plans: `audit.explorer.plans` in cells."""

from __future__ import annotations

from collections.abc import Sequence

from audit.explorer.formulas.guesses import CLAIM, PLAN, STEPS, Cells
from audit.explorer.plans import CONFIDENCE, POWERS
from audit.explorer.sheet import Sheet

__all__ = ["simulated"]

LINE, NODES = "audit/line", "audit/node"
FAMILY, SHARE, GROUP = f"[in {CLAIM}/family]", f"[in {PLAN}/selection]", f"[{LINE}/all/budget of group]"
FIRST, ROW, IN_TABLE = f"[{LINE}/all/first]", f"[{LINE}/all/row]", f"[{STEPS}/interpolated]"


def simulated(sheet: Sheet, losses: dict[str, str]) -> Cells:
    """Return the table, what it says of the group's budget and the runs, and the steps to each result.

    Parameters
    ----------
    sheet : Sheet
        The sheet `audit`, whose `data` has the table.
    losses : dict of str to str
        True losses over the promise, as formulas by place; the first is the one whose runs are searched for.

    Returns
    -------
    dict of str to str or float
        ``audit/line/PLACE/power`` of each loss, ``audit/line/all/smallest`` and ``audit/line/all/runs``, all empty
        where they are not in the table; what they need besides.
    """
    tables, powers = sheet.data["tables"], POWERS
    found: Cells = {}
    firsts, lengths, sizes = {}, {}, tables[0]["runs"]
    for table in tables:
        key = (table["family"], table["selection"])
        firsts[key], lengths[key] = str(len(found) // (2 + len(powers))), str(len(table["budgets"]) * len(sizes))
        for row, budget in enumerate(table["budgets"]):
            for column, runs in enumerate(sizes):
                place = f"audit/simulated/{key[0]} {key[1]}/{row}/{column}"
                entries = zip(powers, table["excess"][row][column], strict=True)
                found |= {f"{place}/budget": float(budget), f"{place}/runs": float(runs)}
                found |= {f"{place}/{power}": '""' if one is None else one for power, one in entries}
    ends = next(iter(found)).rpartition("/")[0], place
    names = [str(power) for power in powers]
    found |= _where(ends, _each(firsts), _each(lengths), len(sizes))
    found |= _nodes(ends, names, len(sizes)) | _line(names, len(sizes))
    found |= _runs(next(iter(losses.values())), len(sizes))
    for loss, times in losses.items():
        found |= _power(loss, times, names)
    return found


def _each(by_table: dict[tuple[str, float], str]) -> str:
    """Return the formula that picks by family and share."""
    picks = [f"IF({SHARE}=0,{by_table[family, 0.0]},{by_table[family, 0.3]})" for family in ("gaussian", "zcdp")]
    return f'IF({FAMILY}="gaussian",{picks[0]},{picks[1]})'


def _column(ends: tuple[str, str], name: str) -> str:
    return f"[{ends[0]}/{name}:{ends[1]}/{name}]"


def _where(ends: tuple[str, str], first: str, length: str, sizes: int) -> Cells:
    """Return which rows of the table are those of the family and share, and between which the group's budget lies."""
    budgets, last = _column(ends, "budget"), f"{FIRST}+[{LINE}/all/rows]"
    least, largest = f"[{LINE}/all/least budget]", f"[{LINE}/all/largest budget]"
    below, above = f"INDEX({budgets},{FIRST}+{sizes}*{ROW})", f"INDEX({budgets},{FIRST}+{sizes}*({ROW}+1))"
    known = f"OR({SHARE}=0,{SHARE}=0.3),[in {PLAN}/confidence]={CONFIDENCE!r},{GROUP}>={least},{GROUP}<={largest}"
    place = f"MATCH({GROUP},INDEX({budgets},{FIRST}+1):INDEX({budgets},{last}),1)/{sizes}"
    return {
        f"{LINE}/all/budget of group": f'[in {CLAIM}/budget]*[in {PLAN}/distance]^IF({FAMILY}="zcdp",2,1)',
        f"{LINE}/all/first": first,
        f"{LINE}/all/rows": length,
        f"{LINE}/all/least budget": f"INDEX({budgets},{FIRST}+1)",
        f"{LINE}/all/largest budget": f"INDEX({budgets},{last})",
        f"{STEPS}/interpolated": f"AND(NOT([{STEPS}/computed]),{known})",
        f"{LINE}/all/row": f'IF({IN_TABLE},MIN([{LINE}/all/rows]/{sizes}-1,{place}),"")',
        f"{LINE}/all/across": f'IF({IN_TABLE},LN({GROUP}/{below})/LN({above}/{below}),"")',
    }


def _mixed(first: str, second: str, part: str) -> str:
    """Return what lies between two entries, of which only those that count must be there."""
    both = f'IF(OR({first}="",{second}=""),"",{first}+{part}*({second}-{first}))'
    return f"IF({part}=0,{first},IF({part}=1,{second},{both}))"


def _nodes(ends: tuple[str, str], names: Sequence[str], sizes: int) -> Cells:
    """Return the entries of the group's budget at each number of runs of the table, and that at the power wanted."""
    found: Cells = {}
    for power in names:
        found[f"{LINE}/quantile/{power}"] = f"NORMSINV({power})"
    wanted = f"NORMSINV([in {PLAN}/power])"
    quantiles = f"[{LINE}/quantile/{names[0]}:{LINE}/quantile/{names[-1]}]"
    below, above = (f"INDEX({quantiles},1,[{LINE}/all/power]+{step})" for step in (0, 1))
    inner = [f"(NORMSINV([in {PLAN}/power])>=[{LINE}/quantile/{power}])" for power in names[:-1]]
    found[f"{LINE}/all/power"] = "+".join(inner)
    found[f"{LINE}/all/between powers"] = f"({wanted}-{below})/({above}-{below})"
    for node in range(sizes):
        place = f"{NODES}/{node}"
        found[f"{place}/runs"] = f"INDEX({_column(ends, 'runs')},{node + 1})"
        for power in names:
            near, far = (
                f"INDEX({_column(ends, power)},{FIRST}+{sizes}*({ROW}-{1 - step})+{node + 1})" for step in (0, 1)
            )
            found[f"{place}/{power}"] = f'IF({IN_TABLE},{_mixed(near, far, f"[{LINE}/all/across]")},"")'
        found[f"{place}/at power"] = _at_power(place, names)
    return found


def _at_power(place: str, names: Sequence[str]) -> str:
    """Return the entry of a line at the power wanted."""
    line = f"[{place}/{names[0]}:{place}/{names[-1]}]"
    first, second = (f"INDEX({line},1,[{LINE}/all/power]+{step})" for step in (0, 1))
    return f'IF({IN_TABLE},{_mixed(first, second, f"[{LINE}/all/between powers]")},"")'


def _line(names: Sequence[str], sizes: int) -> Cells:
    """Return the entries at the runs, of each power and of the power wanted."""
    asked, nodes = f"[in {PLAN}/runs]", f"[{NODES}/0/runs:{NODES}/{sizes - 1}/runs]"
    column, along = f"[{LINE}/all/column]", f"[{LINE}/all/along]"
    inside = f"AND({IN_TABLE},{asked}>=INDEX({nodes},1),{asked}<=INDEX({nodes},{sizes}))"
    below, above = (f"INDEX({nodes},{column}+{step})" for step in (0, 1))
    found: Cells = {
        f"{LINE}/all/column": f'IF({inside},MIN({sizes - 1},MATCH({asked},{nodes},1)),"")',
        f"{LINE}/all/along": f'IF({column}="","",LN({asked}/{below})/LN({above}/{below}))',
    }
    for power in names:
        entries = f"[{NODES}/0/{power}:{NODES}/{sizes - 1}/{power}]"
        near, far = (f"INDEX({entries},{column}+{step})" for step in (0, 1))
        found[f"{LINE}/at runs/{power}"] = f'IF({column}="","",{_mixed(near, far, along)})'
    found[f"{LINE}/all/excess"] = _at_power(f"{LINE}/at runs", names)
    found[f"{LINE}/all/smallest"] = f'IF([{LINE}/all/excess]="","",1+EXP([{LINE}/all/excess]))'
    return found


def _runs(times: str, sizes: int) -> Cells:
    """Return the runs that see a loss with the power wanted, rounded up to three digits."""
    place, before, last, size = (f"[{LINE}/all/{name}]" for name in ("node", "node before", "last runs", "size"))
    wanted, here = f"LN({times}-1)", f"INDEX([{NODES}/0/at power:{NODES}/{sizes - 1}/at power],{place})"
    nodes = f"[{NODES}/0/runs:{NODES}/{sizes - 1}/runs]"
    found: Cells = {
        f"{NODES}/{node}/enough": f'IF([{NODES}/{node}/at power]="",0,IF([{NODES}/{node}/at power]<={wanted},1,0))'
        for node in range(sizes)
    }
    enough = f"[{NODES}/0/enough:{NODES}/{sizes - 1}/enough]"
    earlier = f"INDEX([{NODES}/0/at power:{NODES}/{sizes - 1}/at power],{place}-1)"
    part = f'IF({before}="",1,({wanted}-{before})/({here}-{before}))'
    digits = f"10^(INT(LOG10({size}))-2)"
    return found | {
        f"{LINE}/all/node": f'IF(SUM({enough})=0,"",MATCH(1,{enough},0))',
        f"{LINE}/all/node before": f'IF({place}="","",IF({place}=1,"",{earlier}))',
        f"{LINE}/all/last runs": f'IF({place}="","",INDEX({nodes},MAX(1,{place}-1)))',
        f"{LINE}/all/size": f'IF({place}="","",EXP(LN({last})+{part}*(LN(INDEX({nodes},{place}))-LN({last}))))',
        f"{LINE}/all/runs": f'IF({place}="","",ROUNDUP({size}/{digits}*(1-1E-9),0)*{digits})',
    }


def _power(loss: str, times: str, names: Sequence[str]) -> Cells:
    """Return how often the runs see a loss, or the largest power of the table where it is more."""
    place, line = f"{LINE}/{loss}", f"[{LINE}/at runs/{names[0]}:{LINE}/at runs/{names[-1]}]"
    wanted, at = f"[{place}/excess]", f"[{place}/place]"
    quantiles = f"[{LINE}/quantile/{names[0]}:{LINE}/quantile/{names[-1]}]"
    found = "0"
    for number, power in enumerate(names, 1):
        entry = f"[{LINE}/at runs/{power}]"
        found = f'IF(IF({entry}="",FALSE,{entry}<={wanted}),{number},{found})'
    (below, above), (low, high) = ([f"INDEX({cells},1,{at}+{step})" for step in (0, 1)] for cells in (line, quantiles))
    between = f'IF({above}="","",NORMSDIST({low}+({wanted}-{below})/({above}-{below})*({high}-{low})))'
    first, last = f"[{LINE}/at runs/{names[0]}]", f"NORMSDIST([{LINE}/quantile/{names[-1]}])"
    return {
        f"{place}/excess": f"LN({times}-1)",
        f"{place}/place": found,
        f"{place}/power": f'IF(OR({first}="",{at}=0),"",IF({at}={len(names)},{last},{between}))',
    }
