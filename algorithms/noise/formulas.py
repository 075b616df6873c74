"""Laws of noise and conversions of promises as formulas that Excel and LibreOffice both know, without macros.

A minus before a power belongs to what is raised, so that powers stand in brackets of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = [
    "Cells",
    "conversions",
    "drawn_row",
    "expm1",
    "gaussian_budget",
    "geometric_margin",
    "geometric_sigma",
    "guessed",
    "log1p",
    "margin_around",
    "margins",
    "newton",
    "pure_budget",
    "whole_numbers",
]

Cells = dict[str, str | float]

SUMMED = 50  # sigma up to which tails of the discrete Gaussian are summed: beyond it their expansion is exact to 1e-10
REACH = 13 * SUMMED
TIMES_PURE, TIMES_TIGHT, TIMES_GAUSSIAN, TIMES_ORDER = 6, 9, 14, 12  # steps of Newton, each of which doubles the digits
TIMES_SIGMA, SLOPE = 10, 3.3929  # of the log of what lies beyond a 90% margin by the log of sigma, for a normal law


def whole_numbers(system: str) -> tuple[Cells, str]:
    """Return steps that are the whole numbers from 0 on, and the range of their cells."""
    cells: Cells = {f"{system}/whole number/{number}/n": float(number) for number in range(REACH + 1)}
    return cells, f"[{system}/whole number/0/n:{system}/whole number/{REACH}/n]"


def newton(place: str, name: str, start: str, step: str, times: int) -> tuple[Cells, str]:
    """Return the steps of Newton's method, where `step` is of ``{x}``, and the cell of the last one."""
    cells: Cells = {f"{place}/{name} 0": start}
    for time in range(1, times + 1):
        cells[f"{place}/{name} {time}"] = step.replace("{x}", f"[{place}/{name} {time - 1}]")
    return cells, f"[{place}/{name} {times}]"


def drawn_row(system: str, places: Sequence[str]) -> tuple[Cells, Callable[[str], str]]:
    """Return the step that tells which row is drawn, by its name, and the formula of any quantity of that row."""
    names, number = f"[{places[0]}/name:{places[-1]}/name]", f"{system}/curve/row/number"
    row = f"SUMPRODUCT(({names}=[in {system}/curve/all/row])*(ROW({names})-ROW([{places[0]}/name])+1))"
    return {number: row}, lambda name: f"INDEX([{places[0]}/{name}:{places[-1]}/{name}],[{number}])"


def log1p(x: str) -> str:
    """Return log(1 + x), which keeps the digits of a small x; in arrays too."""
    series = f"({x})*(1-({x})*(1/2-({x})*(1/3-({x})*(1/4-({x})*(1/5-({x})/6)))))"
    return f"(ABS({x})<0.001)*({series})+(ABS({x})>=0.001)*LN(1+({x}))"


def expm1(x: str) -> str:
    """Return exp(x) - 1 of an x of 0 or less in the same way."""
    series = f"({x})*(1+({x})*(1/2+({x})*(1/6+({x})*(1/24+({x})/120))))"
    return f"(ABS({x})<0.001)*({series})+(ABS({x})>=0.001)*(EXP({x})-1)"


def geometric_sigma(epsilon: str) -> str:
    """Return the standard deviation of two-tailed geometric noise."""
    half = f"({epsilon}/2)"
    series = f"SQRT(2)*{half}*(1+{half}^2/6*(1+{half}^2/20*(1+{half}^2/42)))"
    return f"IF({epsilon}<0.1,1/({series}),SQRT(2*EXP(-{epsilon}))/(1-EXP(-{epsilon})))"


def geometric_margin(epsilon: str, missed: str) -> str:
    """Return the least margin that two-tailed geometric noise exceeds no oftener than a share; -1 may stand for 0."""
    return f"ROUNDUP(-(LN({missed}/2)+LN(1+EXP(-{epsilon})))/{epsilon},0)-1"


def margins(place: str, law: tuple[str, str, str], normal_margin: str, numbers: str) -> Cells:
    """Return the steps and results of noise on a count: what a margin covers, and the exact 90% margin.

    The law is a condition for the discrete Gaussian, its sigma, and epsilon of the geometric one otherwise. Either is
    tried at three margins about that of the normal law, of which the least that covers 90% is the exact one.
    """
    gaussian, sigma, epsilon = law

    def beyond(margin: str) -> str:
        normal = gaussian_beyond(margin, sigma, f"[{place}/normalizer]", numbers)
        return f"IF({gaussian},{normal},2*EXP(-{epsilon}*({margin}+1))/(1+EXP(-{epsilon})))"

    near = f"[{place}/near]"
    geometric = geometric_margin(epsilon, "(1-0.9)")
    sum_of_all = f"2*SUMPRODUCT(EXP(-(({numbers}/{sigma})^2)/2))-1"
    cells: Cells = {
        f"{place}/normalizer": f'IF({gaussian},IF({sigma}<={SUMMED},{sum_of_all},""),"")',
        f"{place}/near": f"MAX(0,IF({gaussian},ROUND(-NORMSINV(0.05)*{sigma}-0.5,0),{geometric}))",
        f"{place}/beyond near - 1": beyond(f"({near}-1)"),
        f"{place}/beyond near": beyond(near),
    }
    if normal_margin:
        cells[f"{place}/coverage"] = f"1-{beyond(normal_margin)}"
    tried = f"IF([{place}/beyond near - 1]<=1-0.9,{near}-1,IF([{place}/beyond near]<=1-0.9,{near},{near}+1))"
    return cells | {f"{place}/exact": tried}


def margin_around(now: str, place: int) -> str:
    """Return one of `algorithms.noise.budgets.margins_around`."""
    return f"MAX(1,INT({now}*2/5))+INT({place}*MAX(22,INT({now}*21/10))/22)"


def pure_budget(place: str, margin: str, stability: str, missed: str = "(1-0.9)") -> tuple[Cells, str]:
    """Return the least epsilon whose exact margin, of 90%, is no larger: steps of Newton, and the formula."""
    step = f"{{x}}-(({margin}+1)*{{x}}+LN({missed}/2)+LN(1+EXP(-{{x}})))/({margin}+1-1/(1+EXP({{x}})))"
    cells, result = newton(place, "epsilon a unit", f"-LN({missed}/2*1.5)/({margin}+1)", step, TIMES_PURE)
    return cells, f"{stability}*{result}/(1-1E-10)"


def gaussian_budget(place: str, margin: str, stability: str, numbers: str) -> tuple[Cells, str]:
    """Return the least rho whose exact 90% margin is no larger: steps with the slope of the normal law, the formula."""
    normalizer = f"(2*SUMPRODUCT(EXP(-(({numbers}/{{x}})^2)/2))-1)"
    step = f"{{x}}*EXP((LN(1-0.9)-LN({gaussian_beyond(margin, '{x}', normalizer, numbers)}))/{SLOPE!r})"
    cells, sigma = newton(place, "sigma a unit", f"({margin}+0.5)/1.645", step, TIMES_SIGMA)
    return cells, f"({stability}/({sigma}*(1-1E-10)))^2/2"


def gaussian_beyond(margin: str, sigma: str, normalizer: str, numbers: str) -> str:
    """Return how often discrete Gaussian noise is larger than a margin: summed, or by the expansion of the sum."""
    x = f"({margin}+0.5)"
    slope = f"({x}/{sigma}^2)"
    corrections = f"(-{slope}/24-7/5760*{slope}*(3/{sigma}^2-{slope}^2))"
    density = f"EXP(-(({x}/{sigma})^2)/2)/(SQRT(2*PI())*{sigma})"
    summed = f"SUMPRODUCT(({numbers}>{margin})*EXP(-(({numbers}/{sigma})^2)/2))/{normalizer}"
    return f"2*IF({sigma}<={SUMMED},{summed},NORMSDIST(-{x}/{sigma})+{corrections}*{density})"


def guessed(place: str, pure: str, budget: str) -> tuple[Cells, str]:
    """Return how often a guess between two neighbors is right, at most: steps to the best order less 1, the formula."""
    rho, above = f"MIN({budget},300)", f"EXP([{place}/log order {TIMES_ORDER}])"
    step = f"{{x}}-({rho}*(2*EXP({{x}})+1)-LN(1+EXP(-{{x}})))/(2*{rho}*EXP({{x}})+1/(1+EXP({{x}})))"
    start = f"IF({budget}>1,-{rho},IF({budget}>0,-LN(2*{budget})/2,0))"
    cells, _ = newton(place, "log order", start, step, TIMES_ORDER)
    delta = f"EXP(MIN(0,{above}*(({above}+1)*{rho}-LN(1+1/{above}))-LN(1+{above})))"
    return cells, f"IF({pure},1/(1+EXP(-MIN({budget},700))),IF({budget}>0,(1+{delta})/2,0.5))"


def conversions(place: str, pure: str, budget: str, delta: str) -> tuple[Cells, dict[str, str]]:
    """Return steps, and a promise as epsilon at a delta: tight, simple and by the Gaussian profile."""
    high, mu = f"-LN({delta})", f"[{place}/mu]"
    step = f"{{x}}-({budget}*{{x}}^2+LN(1+{{x}})-({high}))/(2*{budget}*{{x}}+1/(1+{{x}}))"
    start = f"IF({budget}>0,MIN(SQRT({high}/{budget}),1/{delta}-1),1)"  # above the order, and no step goes below 0
    cells, above = newton(place, "order - 1", start, step, TIMES_TIGHT)
    cells[f"{place}/mu"] = f"SQRT(2*{budget})"
    tight = f"MAX(0,{budget}*(1+{above})-LN(1+1/{above})+({high}-LN(1+{above}))/{above})"

    def mills(x: str) -> str:  # P(N > x) over the density at x
        series = f"(1-(1-(3-(15-(105-945/{x}^2)/{x}^2)/{x}^2)/{x}^2)/{x}^2)/{x}"
        return f"IF({x}<25,NORMSDIST(-{x})*SQRT(2*PI())*EXP(MIN({x},25)^2/2),{series})"

    density, far = "(EXP(-(({x})^2)/2)/SQRT(2*PI()))", mills(f"({{x}}+{mu})")
    reached = f"(NORMSDIST(-{{x}})-{density}*{far})"
    slope = f"({density}*{far}*{mu}/{reached})"
    shift = f"{{x}}+(LN({reached})-LN({delta}))/{slope}"
    moved, near = newton(place, "quantile", f"IF({mu}>0,-NORMSINV({delta}),0)", f"IF({mu}>0,{shift},0)", TIMES_GAUSSIAN)
    cells |= moved
    at_zero = f"1-2*NORMSDIST(-{mu}/2)"
    odds = f"({delta}/(1-{delta})*EXP(-{budget}))"
    return cells, {
        "tight": f"IF({pure},IF({odds}<1,MAX(0,{budget}+LN(1-{delta})+LN(1-{odds})),0),IF({budget}>0,{tight},0))",
        "simple": f'IF({pure},"",{budget}+2*SQRT({budget}*{high}))',
        "gaussian": f'IF({pure},"",IF({at_zero}<={delta},0,{mu}*({near}+{mu}/2)))',
    }
