"""Every system by every way of asking: its promise, its exact loss, a lower bound from runs, and estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure

from algorithms.noise import DiscreteGaussian, Gaussian
from audit.claims import claim_from_dict
from audit.estimates.components import estimate_loss
from audit.estimates.residuals import residual_loss
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import ESTIMATE, EXACT, GRAY, PROMISE
from experiments.asked import Asked, cases
from experiments.audits import down, event_class, kept, none_above, run_all, violations
from experiments.drawing import bar, bar_key, column, foot, line_key, name_rows, page, promise
from experiments.experiment import CONFIDENCE, Check, MarkdownTable, between, near

QUESTION = (
    "What does each way of asking say of the same promise: exact loss, lower bound, direct and residual estimates?"
)
EXPECTATION = (
    "No lower bound exceeds the exact loss of its pair, and no audit reports a violation. Where noise is independent "
    "and of one law, the lag tail is within 10% of the exact loss, and the slope within 10% of rho. Of raked and "
    "averaged counts residuals show less than half of the loss. The slope of Gaussian noise of known rho has a median "
    "within 10% in 20 simulations, and 85 to 99% of 200 intervals cover it."
)

MOST_DIRECT, LEAST_DIRECT = 20_000, 1_000  # runs of a direct estimate, over both databases: a tenth of the audit's
LEVEL = 0.95  # of estimates' intervals
WAYS = {"direct": "direct", "lag_tail": "lag tail", "kde": "KDE", "histogram": "histogram", "slope": "slope"}
NO_RHO = "noise is not Gaussian: its log-ratio is no line"
NO_LIMIT = "the log-ratio of Gaussian noise has no limit: rho is its slope"
KNOWN_RHO, RESIDUALS, SIMULATIONS, MEDIANS = (0.05, 0.5, 2.0), 1_000, 200, 20


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Ask thirteen systems in every way, and the slope 200 times of each known rho (quick: two, and 20 times)."""
    known = [case.system for case in cases()]
    wanted = [known[0], known[6]] if quick else known
    simulations = MEDIANS if quick else SIMULATIONS
    own, calibrated = np.random.SeedSequence(seed).spawn(2)
    streams = own.spawn(len(known))
    tasks = [delayed(_row)(name, streams[known.index(name)], quick) for name in wanted]
    tasks += [
        delayed(_calibrated)(rho, whole, simulations, stream)
        for rho, streams in zip(KNOWN_RHO, (stream.spawn(2) for stream in calibrated.spawn(3)), strict=True)
        for whole, stream in zip((True, False), streams, strict=True)
    ]
    found = run_all(tasks, jobs, "ways of asking", unit="systems")
    return {"rows": found[: len(wanted)], "known_rho": found[len(wanted) :], "confidence": CONFIDENCE, "level": LEVEL}


def _row(name: str, stream: np.random.SeedSequence, quick: bool) -> dict[str, Any]:
    """Ask one system in every way."""
    case = next(case for case in cases() if case.system == name)
    asked = case.built()
    claim = asked.promise or asked.mechanism.claim
    audits, estimates = stream.spawn(2)
    size = asked.size // (40 if quick else 1)
    result = measure_loss(asked.mechanism, asked.pair, claim, size=size, confidence=CONFIDENCE, rng=audits)
    zcdp = claim.parameter == "rho"
    ways = {}
    for method, own in zip(WAYS, estimates.spawn(len(WAYS)), strict=True):
        why = asked.silent.get(method) or _foreign(method, zcdp=zcdp)
        ways[method] = {"why": why} if why else _estimated(asked, method, own)
    return {
        "system": name,
        "promise": claim.to_dict(),
        "pair": asked.pair.label,
        "exact": plain_number(_exact(asked.measured or asked.mechanism, asked.pair, zcdp=zcdp)),
        "audit": {"size": size, "class": event_class(result.event), **kept(result)},
        "ways": ways,
    }


def direct_runs(size: int) -> int:
    """Return how many runs a direct estimate gets where an audit has so many."""
    return min(MOST_DIRECT, max(LEAST_DIRECT, size // 10))


def _foreign(method: str, *, zcdp: bool) -> str:
    """Return why a way is not for a promise, if it is not."""
    if method == "slope":
        return "" if zcdp else NO_RHO
    return NO_LIMIT if zcdp else ""


def _exact(mechanism: Any, pair: NeighborPair, *, zcdp: bool) -> float:
    """Return the largest loss of a pair, or its rho: of whole changes Renyi divergence is linear in its order."""
    if hasattr(mechanism, "spent"):
        return float(mechanism.spent(pair))
    law = mechanism.exact_loss(pair)
    return float(law.renyi(2) / 2) if zcdp else max(float(law.maximum), float(law.reverse().maximum))


def _estimated(asked: Asked, method: str, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Return an estimate with its interval, or why there is none."""
    mechanism, pair = asked.errors or asked.mechanism, asked.where or asked.pair
    direct = method == "direct"
    if direct:  # which needs many runs, and of the areas that differ alone
        mechanism, pair = asked.mechanism, asked.pair
    options: dict[str, Any] = {"confidence": LEVEL, "rng": stream} | (
        {"runs": direct_runs(asked.size)} if direct else {}
    )
    try:
        found = estimate_loss(mechanism, pair, method=method, data=asked.data, **options)
    except ValueError as error:
        return {"why": str(error)}
    low, high = found.interval
    return {"value": found.value, "low": low, "high": high}


def _calibrated(rho: float, whole: bool, simulations: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Return slopes of Gaussian noise of a known rho, and how many intervals hold it."""
    law = (DiscreteGaussian if whole else Gaussian)(math.sqrt(0.5 / rho))
    made = []
    for own in stream.spawn(simulations):
        noise, resampling = own.spawn(2)
        errors = law.sample((RESIDUALS,), np.random.default_rng(noise))
        made.append(residual_loss(errors, method="slope", resamples=100, confidence=LEVEL, rng=resampling))
    values = [estimate.value for estimate in made]
    return {
        "rho": rho,
        "whole": whole,
        "residuals": RESIDUALS,
        "simulations": simulations,
        "median_of_20": float(np.median(values[:MEDIANS])),
        "mean": float(np.mean(values)),
        "covered": sum(estimate.interval[0] <= rho <= estimate.interval[1] for estimate in made),
    }


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold lower bounds against exact laws, estimates of single laws against them, and the slope against known rho."""
    for row in numbers["rows"]:
        exact, system = float(row["exact"]), row["system"]
        yield none_above(system, [row["audit"]], exact)
        yield Check(f"{system}: {row['audit']['verdict']}, expected no violation", not violations([row["audit"]]))
        asked = {way: told for way, told in row["ways"].items() if "value" in told}
        known = all("value" in told or told.get("why") for told in row["ways"].values())
        yield Check(f"{system}: every way has a number or a reason", known)
        if system in ("RDPC", "ADPC"):
            yield between(f"{system}: KDE / exact loss", asked["kde"]["value"] / exact, 0.1, 0.5)
        for way in ("lag_tail", "slope"):
            if way in asked and system not in TIED:
                yield near(f"{system}: {WAYS[way]} / exact loss", asked[way]["value"] / exact, 1, 0.1)
    for known in numbers["known_rho"]:
        words = f"slope of {'discrete ' * known['whole']}Gaussian noise of rho {known['rho']:g}"
        yield near(f"{words}, median of 20 / rho", known["median_of_20"] / known["rho"], 1, 0.1)
        if known["simulations"] == SIMULATIONS:
            yield between(f"{words}, intervals that cover", known["covered"] / SIMULATIONS, 0.85, 0.99)


TIED = ("RDPC", "ADPC", "TopDown, rounded tables", "ONS, synthetic people", "NistDp3, rows")


def finding(numbers: dict[str, Any]) -> str:
    """Return where residuals show the whole loss, and where they do not."""
    near = [
        row["ways"][way]["value"] / float(row["exact"])
        for row in numbers["rows"]
        for way in ("lag_tail", "slope")
        if row["system"] not in TIED and "value" in row["ways"][way]
    ]
    return (
        "Residuals of one release show the whole loss where noise is independent and of one law: the lag tail and the "
        f"slope are {min(near):.2f} to {max(near):.2f} of the exact loss in {len(near)} systems. Where errors are "
        "raked, averaged or made consistent only runs on neighboring databases (one person added or removed; in "
        "TopDown replaced) show it."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return what every way says of every system, with the reasons of ways that cannot see below it."""
    rows: list[tuple[str, ...]] = []
    reasons: list[str] = []
    known = {case.system: case for case in cases()}
    for row in numbers["rows"]:
        audit, case = row["audit"], known[row["system"]]
        cells = [*promised_and_lost(row, case), f"{audit['class']}, {audit['size']:,} runs"]
        for told in row["ways"].values():
            if "why" in told and told["why"] not in reasons:
                reasons.append(told["why"])
            cells.append(
                f"({chr(97 + reasons.index(told['why']))})"
                if "why" in told
                else f"{told['value']:.3g} [{told['low']:.3g}, {told['high']:.3g}]"
            )
        rows.append((*cells, case.lesson))
    known_rho = numbers["known_rho"]
    worst = max(abs(one["mean"] / one["rho"] - 1) for one in known_rho)
    covered = [one["covered"] / one["simulations"] for one in known_rho]
    words = (
        "Exact losses are of the pair that is audited; those of tables, people and rows are of the measurements behind "
        f"them. Lower bounds hold at confidence 1 - 1e-6. Estimates have {LEVEL:.0%} intervals and are sums over the "
        f"answers that the person changes: the direct one from {LEAST_DIRECT:,} to {MOST_DIRECT:,} runs, the others "
        f"from one release, or 10,000 errors. In {known_rho[0]['simulations']} simulations the slope's bias is at most "
        f"{up_percent(worst)}, and {min(covered):.0%} to {max(covered):.0%} of its intervals cover rho."
    )
    no_number = "; ".join(f"({chr(97 + place)}) {why}" for place, why in enumerate(reasons))
    heads = ("system", "promise", "one person", "exact loss", "lower bound", "by", *WAYS.values(), "what to know")
    return MarkdownTable(heads, rows, f"{words} No number: {no_number}.")


def up_percent(share: float) -> str:
    """Return a share as percent, rounded up to a tenth."""
    return f"{math.ceil(share * 1000) / 10:g}%"


def promised_and_lost(row: dict[str, Any], case: Any) -> list[str]:
    """Return the cells that say what a system promises, about whom, what is lost and what is proved."""
    claim = claim_from_dict(row["promise"])
    who = {"add_remove": "added or removed", "replace_one": "replaced"}[claim.relation]
    exact, lower = f"{float(row['exact']):.3g}", down(row["audit"]["lower_bound"])
    return [f"{case.system} ({case.on})", f"{claim.parameter} {claim.budget:.4g}", who, exact, lower]


def short_table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return the table without the estimates."""
    known = {case.system: case for case in cases()}
    rows = [promised_and_lost(row, known[row["system"]]) for row in numbers["rows"]]
    return MarkdownTable(("system", "promise", "one person", "exact loss", "lower bound"), rows)


STYLES: dict[str, dict[str, Any]] = {
    "direct": {**ESTIMATE, "marker": "s"},
    "lag_tail": {**ESTIMATE, "marker": "^"},
    "kde": {**ESTIMATE, "marker": "o"},
    "histogram": {**ESTIMATE, "marker": "x"},
    "slope": {**ESTIMATE, "marker": "v"},
}
LIMIT = 3.0  # of the axis, in promises


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw all ways in units of the promise: one row a system."""
    rows = numbers["rows"]
    figure, (ax,) = page(1.4 + 0.6 * len(rows))
    for at, row in enumerate(rows):
        budget = claim_from_dict(row["promise"]).budget
        bound = float(row["audit"]["lower_bound"]) / budget
        bar(ax, at - 0.3, bound, height=0.22, violated=row["audit"]["verdict"] == "violated")
        ax.plot(float(row["exact"]) / budget, at - 0.3, **EXACT, zorder=5)
        column(ax, at - 0.3, down(bound), 62)
        for place, (way, style) in enumerate(STYLES.items()):
            told, height = row["ways"][way], at - 0.1 + 0.13 * place
            if "why" in told:
                continue
            value, low, high = (told[key] / budget for key in ("value", "low", "high"))
            ax.plot(np.minimum([low, high], LIMIT), [height, height], color=style["color"], linewidth=1)
            if high > LIMIT:
                ax.plot(LIMIT, height, **style | {"marker": ">"}, markersize=4, clip_on=False)
            if value > LIMIT:
                column(ax, height, f"{WAYS[way]}: {value:.3g}", 62)
            else:
                ax.plot(value, height, **style, markersize=4, linestyle="none")
        ax.axhline(at + 0.52, color=GRAY, linewidth=0.4)
    promise(ax)
    column(ax, -0.75, "lower bound", 62, style="italic")
    name_rows(ax, [row["system"] for row in rows], size=8)
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("privacy loss in units of the promise, epsilon or rho (an arrow: beyond the axis)")
    handles: list[Any] = [
        bar_key("lower bound"),
        line_key("exact loss", **EXACT),
        line_key("promise", **PROMISE),
        *(line_key(f"estimate: {WAYS[way]}", linestyle="none", markersize=4, **style) for way, style in STYLES.items()),
    ]
    words = f"estimates with their intervals at {LEVEL:.0%}; KDE: kernel density"
    foot(figure, handles, words=words)
    return figure
