"""Formulas of the sheet `counts`: three laws, two systems, and mean errors by an integral over a table of nodes."""

from __future__ import annotations

from algorithms.noise.formulas import (
    Cells,
    expm1,
    geometric_margin,
    geometric_sigma,
    log1p,
    margin_around,
    newton,
    pure_budget,
)
from audit.explorer.sheet import Sheet

__all__ = ["cells"]

ALL, ONS, DRAWN = "counts/all/all", "counts/ons/all", "counts/bottom_up/all"
STEP, FIRST, LAST = 1 / 16, -54, 38  # of the integral: what lies outside is below 1e-16 of the whole
NODES = round((LAST - FIRST) / STEP) + 1
TERMS, WIDE, TIMES = 41, 3.5, 12
EPSILON, MISSED = f"[in {ALL}/epsilon]", f"(1-[in {ALL}/confidence])"
LAWS = ("geometric", "laplace", "gaussian")


def cells(sheet: Sheet) -> Cells:
    """Return a formula for every result, and the steps to it."""
    formulas: Cells = {
        f"counts/node/{place}/{name}": value
        for place in range(NODES)
        for name, value in (
            ("n", float(place)),
            ("x", FIRST + STEP * place),
            ("1 - cos", f"2/(1+EXP(-2*[counts/node/{place}/x]))"),
            ("half angle", f"ATAN(EXP([counts/node/{place}/x]))"),
        )
    }
    formulas |= {f"counts/mass/{term}/n": float(term) for term in range(1, TERMS + 1)}
    shares = {"whole": EPSILON, "pilot": f"[{ONS}/epsilon]"}
    formulas[f"{ONS}/epsilon"] = f"{EPSILON}/[in {ONS}/tables]"
    formulas["counts/scale/pilot/gaussian"] = f"SQRT(2*LN(1.25/[in {ONS}/delta]))/[{ONS}/epsilon]"
    steps, formulas["counts/scale/whole/gaussian"] = _tight("counts/scale/steps", EPSILON, f"[in {ALL}/delta]")
    formulas |= steps
    formulas[f"{ONS}/kept_delta"] = _delta("(1/[counts/scale/pilot/gaussian])", f"[{ONS}/epsilon]")
    for kind, epsilon in shares.items():
        formulas |= _nodes(kind, epsilon, f"[counts/scale/{kind}/gaussian]")
        for law in LAWS:
            place = f"counts/{law}/all" if kind == "whole" else f"counts/ons/{law}"
            formulas |= _described(place, law, kind, epsilon)
    for law in LAWS:
        for number in sheet.data["cells"]:
            formulas[f"counts/sum/cells_{number}/{law}"] = _error("whole", law, str(number))
        formulas[f"counts/sum/all/{law}"] = _error("whole", law, f"[in {ALL}/cells]")
        for row, published in enumerate(sheet.data["published"]):
            scale = f"(SQRT(2*LN(1.25/{sheet.data['pilot_delta']!r}))/{published!r})"
            formulas[f"counts/pilot/epsilon_{row}/{law}"] = _unchanged(law, repr(published), scale)
    return formulas | _drawn() | _curves(sheet)


def _unchanged(law: str, epsilon: str, scale: str) -> str:
    if law == "geometric":
        return f"TANH({epsilon}/2)"
    return f"1-EXP(-{epsilon}/2)" if law == "laplace" else f"1-2*NORMSDIST(-0.5/{scale})"


def _margin(law: str, epsilon: str, scale: str) -> str:
    if law == "geometric":
        return f"MAX(0,{geometric_margin(epsilon, MISSED)})"
    if law == "laplace":
        return f"MAX(0,ROUNDUP(-LN({MISSED})/{epsilon}-0.5,0))"
    return f"MAX(0,ROUNDUP(-NORMSINV({MISSED}/2)*{scale}-0.5,0))"


def _described(place: str, law: str, kind: str, epsilon: str) -> Cells:
    scale, margin = f"[counts/scale/{kind}/gaussian]", f"[{place}/margin]"
    sigma = {"geometric": geometric_sigma(epsilon), "laplace": f"SQRT(2)/{epsilon}", "gaussian": scale}
    beyond = {
        "geometric": f"2*EXP(-{epsilon}*({margin}+1))/(1+EXP(-{epsilon}))",
        "laplace": f"EXP(-{epsilon}*({margin}+0.5))",
        "gaussian": f"2*NORMSDIST(-({margin}+0.5)/{scale})",
    }
    return {
        f"{place}/sigma": sigma[law],
        f"{place}/unchanged": _unchanged(law, epsilon, scale),
        f"{place}/margin": _margin(law, epsilon, scale),
        f"{place}/covers": f"1-{beyond[law]}",
        f"{place}/error": _error(kind, law, "1"),
    }


def _nodes(kind: str, epsilon: str, scale: str) -> Cells:
    """Return logs of characteristic functions at every node, as in `algorithms.counts.rounded`."""
    law = f"counts/law/{kind}"
    q, square, root = f"[{law}/q]", f"[{law}/(1-q)^2]", f"[{law}/root]"
    cells: Cells = {f"{law}/q": f"EXP(-{epsilon})", f"{law}/(1-q)^2": f"(1-{q})^2", f"{law}/root": f"SQRT({q})*(1+{q})"}
    for term in range(1, TERMS + 1):
        tails = (f"NORMSDIST(-({term}-0.5)/{scale})", f"NORMSDIST(-({term}+0.5)/{scale})")
        cells[f"counts/mass/{term}/{kind}"] = f"IF({scale}<={WIDE},{tails[0]}-{tails[1]},0)"
    masses = f"[counts/mass/1/{kind}:counts/mass/{TERMS}/{kind}]"
    terms = f"[counts/mass/1/n:counts/mass/{TERMS}/n]"
    for place in range(NODES):
        node = f"counts/node/{place}"
        turned, half = f"[{node}/1 - cos]", f"[{node}/half angle]"
        moved = {law: f"[{node}/{kind} {law} less 1]" for law in LAWS}
        cells[f"{node}/{kind} geometric less 1"] = f"2*{q}*{turned}/{square}"  # of the inverse
        cells[f"{node}/{kind} laplace less 1"] = f"-{root}*{turned}/({square}+2*{q}*{turned})"
        narrow = f"-MIN(4*SUMPRODUCT({masses}*SIN({terms}*{half})^2),1-1E-13)"
        cells[f"{node}/{kind} gaussian less 1"] = f"IF({scale}<={WIDE},{narrow},0)"
        series = f"-({half}^2)/6*(1+{half}^2/30*(1+{half}^2*4/63*(1+{half}^2*3/40)))"
        wide = f"-2*{scale}^2*{half}^2+IF({half}<0.05,{series},LN(SIN({half})/{half}))"
        cells[f"{node}/{kind} geometric"] = f"-({log1p(moved['geometric'])})"
        cells[f"{node}/{kind} laplace"] = log1p(moved["laplace"])
        cells[f"{node}/{kind} gaussian"] = f"IF({scale}<={WIDE},{log1p(moved['gaussian'])},{wide})"
    return cells


def _error(kind: str, law: str, cells: str) -> str:
    """Return the mean absolute error of a sum: `algorithms.noise.quadrature.mean_magnitude` on the table of nodes."""
    logs = f"({cells}*[counts/node/0/{kind} {law}:counts/node/{NODES - 1}/{kind} {law}])"
    x = f"[counts/node/0/x:counts/node/{NODES - 1}/x]"
    return f"-{STEP!r}/PI()*SUMPRODUCT(({expm1(logs)})*EXP(-{x}))"


def _delta(mu: str, epsilon: str) -> str:
    """Return the delta of two normal laws so far apart (Balle and Wang, 2018, theorem 8)."""
    return f"(NORMSDIST({mu}/2-{epsilon}/{mu})-EXP({epsilon})*NORMSDIST(-{mu}/2-{epsilon}/{mu}))"


def _tight(place: str, epsilon: str, delta: str) -> tuple[Cells, str]:
    """Return the least scale of normal noise that keeps (epsilon, delta): steps of Newton in the log of mu."""
    z = f"(-NORMSINV({delta}))"
    mu = "EXP({x})"
    slope = f"({mu}*EXP(-(({epsilon}/{mu}-{mu}/2)^2)/2)/SQRT(2*PI())/{_delta(mu, epsilon)})"
    step = f"{{x}}+(LN({delta})-LN({_delta(mu, epsilon)}))/{slope}"
    cells, log_mu = newton(place, "log mu", f"LN(SQRT({z}^2+2*{epsilon})-{z})", step, TIMES)
    return cells, f"EXP(-{log_mu})*(1+1E-12)"


def _drawn() -> Cells:
    """Return what the inverse distribution function gives at so many bits: uniforms of each magnitude are counted."""
    q, whole = f"EXP(-{EPSILON})", f"2^[in {DRAWN}/bits]"
    place = "counts/bottom_up/steps"

    def at_least(m: str) -> str:
        return f"INT({whole}*EXP(-{EPSILON}*{m})/(1+{q})+0.5)"

    one, two = at_least("1"), at_least("2")
    half = f"({whole}/2)"
    m = f"([{place}/first]+[counts/node/0/n:counts/node/{NODES - 1}/n])"
    of = [at_least(f"({m}{shift})") for shift in ("-1", "", "+1", "+2")]
    before = f"IF([{place}/first]=1,1,0)"
    some = f"SUMPRODUCT(({of[1]}-{of[2]})*((({m}>1)*({of[0]}={of[1]}))+({of[2]}={of[3]})))"
    return {
        f"{place}/first": f"MAX(1,INT((LN({whole}*(1-{q})/(1+{q}))-LN(4))/{EPSILON})-2)",
        f"{place}/of 0": f"{half}-{one}",
        f"{place}/from 0": f"{before}*(2*[{place}/of 0]*({one}={two})+({one}-{two})*([{place}/of 0]=0))",
        f"{DRAWN}/unchanged": f"2*[{place}/of 0]/{whole}",
        f"{DRAWN}/reach": f"INT((LN(2)+[in {DRAWN}/bits]*LN(2)-LN(1+{q}))/{EPSILON})",
        f"{DRAWN}/beyond": f"2*EXP(-{EPSILON}*([{DRAWN}/reach]+1))/(1+{q})",
        f"{DRAWN}/infinite": f"({some}+[{place}/from 0])/{whole}",
        f"{DRAWN}/sum_error": "[counts/sum/all/geometric]",
    }


def _curves(sheet: Sheet) -> Cells:
    cells: Cells = {}
    for step in ("now", *(f"{step:02}" for step in sheet.data["steps"])):
        place, times = f"counts/curve/{step}", 20 if step == "now" else int(step)
        cells[f"{place}/cells"] = f"MAX(1,INT([in {ALL}/cells]*{times}/20))"
        cells[f"{place}/error"] = _error("whole", "geometric", f"[{place}/cells]")
    now = "counts/curve/now"
    cells |= {f"{now}/epsilon": f"{EPSILON}*1", f"{now}/margin": "[counts/geometric/all/margin]*1"}
    for number in sheet.data["points"]:
        place = f"counts/curve/point {number:02}"
        cells[f"{place}/margin"] = margin_around(f"[{now}/margin]", number)
        steps, cells[f"{place}/epsilon"] = pure_budget(place, f"[{place}/margin]", "1", MISSED)
        cells |= steps
    return cells | {f"{ALL}/guessed": f"1/(1+EXP(-{EPSILON}))"}
