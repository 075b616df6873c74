"""Formulas that interpolate in the table of simulated plans, `audit.explorer.plans`."""

from __future__ import annotations

import re

from audit.explorer.plans import CONFIDENCE, POWERS
from audit.explorer.sheet import Sheet

__all__ = ["CLAIM", "PLAN", "STEPS", "Cells", "column", "interpolation", "row"]

Cells = dict[str, str | float]

CLAIM, PLAN, STEPS = "audit/claim/all", "audit/plan/all", "audit/plan/steps"
LINE, NODES = "audit/line/all", "audit/node"
NAMES = [str(power) for power in POWERS]
QUANTILES, AT_RUNS = (
    f"[audit/line/{name}/{NAMES[0]}:audit/line/{name}/{NAMES[-1]}]" for name in ("quantile", "at runs")
)


def row(place: str, formulas: dict[str, str], *, filled: bool = False) -> Cells:
    """Return cells of one row, with keys in place of names; `filled` leaves those of a row without a size empty."""
    pattern = 'IF(<size>="","",{})' if filled else "{}"

    def key(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "@":
            return f"[in {CLAIM if name in ('family', 'budget', 'delta') else PLAN}/{name}]"
        return f"[{STEPS if kind else place}/{name}]"

    return {
        f"{place}/{name}": re.sub(r"<([@#]?)([a-z][\w ]*)>", key, pattern.format(formula))
        for name, formula in formulas.items()
    }


def column(rows: str, first: object, last: object, name: str) -> str:
    """Return the cells of one name from a row to another."""
    return f"[{rows}/{first}/{name}:{rows}/{last}/{name}]"


def interpolation(sheet: Sheet, losses: dict[str, str]) -> Cells:
    """Return the table, its entries at the group's budget and the runs, and what they say of each true loss.

    The first of the losses is the one whose runs are searched for.
    """
    tables, families = sheet.data["tables"], sheet.data["families"]
    sizes = len(tables[0]["runs"])
    formulas: Cells = {}
    first, rows = [], []
    for table in tables:
        chosen = f'AND(<@family>="{table["family"]}",<@selection>={table["selection"]:g})'
        first.append(f"{chosen}*{len(formulas) // (2 + len(NAMES))}")
        rows.append(f"{chosen}*{len(table['budgets']) * sizes}")
        for i, budget in enumerate(table["budgets"]):
            for k, runs in enumerate(table["runs"]):
                place = f"audit/simulated/{table['family']} {table['selection']}/{i}/{k}"
                formulas |= {f"{place}/budget": float(budget), f"{place}/runs": float(runs)}
                entries = zip(NAMES, table["excess"][i][k], strict=True)
                formulas |= {f"{place}/{power}": '""' if entry is None else entry for power, entry in entries}
    places = [key.rpartition("/")[0] for key in (next(iter(formulas)), list(formulas)[-1])]
    columns = {name: f"[{places[0]}/{name}:{places[1]}/{name}]" for name in ("budget", "runs", *NAMES)}
    growth = "".join(
        f'+{family["growth"] - 1}*(<@family>="{name}")' for name, family in families.items() if family["growth"] > 1
    )
    formulas |= row(LINE, {"budget of group": f"<@budget>*<@distance>^(1{growth})"})
    formulas |= row(LINE, {"first": "+".join(first), "rows": "+".join(rows)})
    formulas |= _line(columns["budget"], sizes) | _nodes(columns, sizes, losses[PLAN])
    for place, times in losses.items():
        formulas |= _power_at(f"audit/line/{place}", times)
    return formulas


def _interpolated(first: str, second: str, part: str) -> str:
    """Return what lies between two entries, of which only those that count must be there."""
    both = f'IF(OR({first}="",{second}=""),"",{first}+{part}*({second}-{first}))'
    return f"IF({part}=0,{first},IF({part}=1,{second},{both}))"


def _two(cells: str, place: str) -> tuple[str, str]:
    """Return two neighbors among cells beside or below each other, the first of which has a number."""
    return f"INDEX({cells},{place}+0)", f"INDEX({cells},{place}+1)"


def _line(budgets: str, sizes: int) -> Cells:
    """Return where in the table the group's budget, the runs and the power wanted lie, and what stands there."""
    last, quantile = "<first>+<rows>", "NORMSINV(<@power>)"
    near, far = (f"INDEX({budgets},<first>+{sizes}*(<row>+{step}))" for step in (0, 1))
    place = f"MATCH(<budget of group>,INDEX({budgets},<first>+1):INDEX({budgets},{last}),1)/{sizes}"
    below, above = _two(QUANTILES, "<power>")
    runs = column(NODES, 0, sizes - 1, "runs")
    low, high = _two(runs, "<column>")
    inside = f"AND(<#interpolated>,<@runs>>=INDEX({runs},1),<@runs><=INDEX({runs},{sizes}))"
    formulas = row(
        LINE,
        {
            "least budget": f"INDEX({budgets},<first>+1)",
            "largest budget": f"INDEX({budgets},MAX(1,{last}))",
            "row": f'IF(<#interpolated>,MIN(<rows>/{sizes}-1,{place}),"")',
            "across": f'IF(<#interpolated>,LN(<budget of group>/{near})/LN({far}/{near}),"")',
            "power": "+".join(f"({quantile}>=[audit/line/quantile/{power}])" for power in NAMES[:-1]),
            "between powers": f"({quantile}-{below})/({above}-{below})",
            "column": f'IF({inside},MIN({sizes - 1},MATCH(<@runs>,{runs},1)),"")',
            "along": f'IF(<column>="","",LN(<@runs>/{low})/LN({high}/{low}))',
            "excess": _at_power(AT_RUNS),
            "smallest": 'IF(<excess>="","",1+EXP(<excess>))',
        },
    )
    group, least, largest = (f"[{LINE}/{name}]" for name in ("budget of group", "least budget", "largest budget"))
    inside = f"[{LINE}/rows]>0,<@confidence>={CONFIDENCE!r},{group}>={least},{group}<={largest}"
    formulas |= row(STEPS, {"interpolated": f"AND(NOT(<computed>),{inside})"})
    for power in NAMES:
        near, far = _two(column(NODES, 0, sizes - 1, power), f"[{LINE}/column]")
        formulas[f"audit/line/quantile/{power}"] = f"NORMSINV({power})"
        formulas[f"audit/line/at runs/{power}"] = (
            f'IF([{LINE}/column]="","",{_interpolated(near, far, f"[{LINE}/along]")})'
        )
    return formulas


def _at_power(line: str) -> str:
    """Return the entry of a line at the power wanted."""
    return f'IF(<#interpolated>,{_interpolated(*_two(line, f"[{LINE}/power]"), f"[{LINE}/between powers]")},"")'


def _nodes(columns: dict[str, str], sizes: int, times: str) -> Cells:
    """Return the entries of the group's budget at each number of runs, and the runs that see a loss (three digits)."""
    formulas: Cells = {}
    limit = f"LN({times}-1)"
    for node in range(sizes):
        entries = {"runs": f"INDEX({columns['runs']},{node + 1})"}
        for power in NAMES:
            near, far = (
                f"INDEX({columns[power]},[{LINE}/first]+{sizes}*([{LINE}/row]-{1 - step})+{node + 1})"
                for step in (0, 1)
            )
            entries[power] = f'IF(<#interpolated>,{_interpolated(near, far, f"[{LINE}/across]")},"")'
        entries["at power"] = _at_power(f"[{NODES}/{node}/{NAMES[0]}:{NODES}/{node}/{NAMES[-1]}]")
        entries["enough"] = f'IF(<at power>="",0,IF(<at power><={limit},1,0))'
        formulas |= row(f"{NODES}/{node}", entries)
    runs, at_power, enough = (column(NODES, 0, sizes - 1, name) for name in ("runs", "at power", "enough"))
    here = f"INDEX({at_power},<node>)"
    part = f'IF(<node before>="",1,({limit}-<node before>)/({here}-<node before>))'
    digits = "10^(INT(LOG10(<size>))-2)"
    steps = {
        "node": f'IF(SUM({enough})=0,"",MATCH(1,{enough},0))',
        "node before": f'IF(<node>="","",IF(<node>=1,"",INDEX({at_power},<node>-1)))',
        "last runs": f'IF(<node>="","",INDEX({runs},MAX(1,<node>-1)))',
        "size": f'IF(<node>="","",EXP(LN(<last runs>)+{part}*(LN(INDEX({runs},<node>))-LN(<last runs>))))',
        "runs": f'IF(<node>="","",ROUNDUP(<size>/{digits}*(1-1E-9),0)*{digits})',
    }
    return formulas | row(LINE, steps)


def _power_at(place: str, times: str) -> Cells:
    """Return how often the runs see a loss, or the largest power of the table where it is more."""
    number = "0"
    for count, power in enumerate(NAMES, 1):
        entry = f"[audit/line/at runs/{power}]"
        number = f'IF(IF({entry}="",FALSE,{entry}<=<excess>),{count},{number})'
    (below, above), (low, high) = _two(AT_RUNS, "<place>"), _two(QUANTILES, "<place>")
    between = f'IF({above}="","",NORMSDIST({low}+(<excess>-{below})/({above}-{below})*({high}-{low})))'
    empty = f'OR([audit/line/at runs/{NAMES[0]}]="",<place>=0)'
    last = f"NORMSDIST([audit/line/quantile/{NAMES[-1]}])"
    steps = {
        "excess": f"LN({times}-1)",
        "place": number,
        "power": f'IF({empty},"",IF(<place>={len(NAMES)},{last},{between}))',
    }
    return row(place, steps)
