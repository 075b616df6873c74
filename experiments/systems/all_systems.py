"""Promise, exact loss, lower bound and estimates of every system, and of variants that violate the promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure

from algorithms.noise import DiscreteGaussian, Gaussian
from algorithms.ons.laws import PILOT_DELTA
from audit import ApproxDP, measure_loss, residual_loss
from audit.claims import claim_from_dict
from audit.estimates.running import estimate_loss
from audit.results import plain_number
from audit.results.plots import ESTIMATE, GRAY
from experiments import drawing
from experiments.audits import event_class, kept, none_above, promised, run_all
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, load_data, near
from experiments.systems.subjects import SYSTEMS, VARIANTS, Subject, rounded_delta

ABOUT = load_data("systems/systems.toml")
MOST_DIRECT, LEAST_DIRECT = 20_000, 1_000  # runs of a direct estimate, over both databases: a tenth of the audit's
LEVEL = 0.95  # of estimates' intervals
WAYS = {"direct": "direct", "lag_tail": "lag tail", "kde": "KDE", "histogram": "histogram", "slope": "slope"}
NO_RHO = "noise is not Gaussian: its log-ratio is no line"
NO_LIMIT = "the log-ratio of Gaussian noise has no limit: rho is its slope"
PILOT_EPSILONS = (0.1, 1.0, 2.0, 5.0, 10.0)  # of Table 2 of the pilot
KNOWN_RHO, RESIDUALS, SIMULATIONS, MEDIANS = (0.05, 0.5, 2.0), 1_000, 200, 20


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit thirteen systems and four variants, and estimate losses and known rhos (quick: two systems; 20 times)."""
    known = list(SYSTEMS)
    subjects = [known[0], known[6]] if quick else known
    simulations = MEDIANS if quick else SIMULATIONS
    own, calibrated = np.random.SeedSequence(seed).spawn(2)
    streams = dict(zip(known, own.spawn(len(known)), strict=True))
    tasks = [delayed(_row)(name, streams[name], quick) for name in subjects]
    for name, (_, place) in () if quick else VARIANTS.items():
        tasks.append(delayed(_audited)(name, np.random.SeedSequence(seed, spawn_key=(place, 0)), quick))
    audits = len(tasks)
    tasks += [
        delayed(_calibrated)(rho, whole, simulations, stream)
        for rho, streams_of_rho in zip(KNOWN_RHO, (stream.spawn(2) for stream in calibrated.spawn(3)), strict=True)
        for whole, stream in zip((True, False), streams_of_rho, strict=True)
    ]
    rows = run_all(tasks, jobs, "all systems", unit="systems")
    return {"rows": rows[:audits], "known_rho": rows[audits:], "confidence": CONFIDENCE, "level": LEVEL}


def _subject(name: str) -> Subject:
    return SYSTEMS[name]() if name in SYSTEMS else VARIANTS[name][0]()


def _audited(name: str, stream: np.random.SeedSequence, quick: bool) -> dict[str, Any]:
    subject = _subject(name)
    size = subject.size // (40 if quick else 1)
    options: dict[str, Any] = {"size": size, "confidence": CONFIDENCE, "rng": stream}
    result = measure_loss(subject.mechanism, subject.pair, subject.claim, **options)
    return {
        "system": name,
        "promise": subject.claim.to_dict(),
        "pair": subject.pair.label,
        "exact": plain_number(subject.exact()),
        "audit": {"size": size, "class": event_class(result.event), **kept(result)},
        "ways": {},
    }


def _row(name: str, stream: np.random.SeedSequence, quick: bool) -> dict[str, Any]:
    audits, estimates = stream.spawn(2)
    row, subject = _audited(name, audits, quick), _subject(name)
    of_rho = subject.claim.parameter == "rho"
    for method, own in zip(WAYS, estimates.spawn(len(WAYS)), strict=True):
        foreign = "" if of_rho == (method == "slope") else NO_LIMIT if of_rho else NO_RHO
        why = subject.silent.get(method) or foreign
        row["ways"][method] = {"why": why} if why else _estimated(subject, method, own)
    return row


def _estimated(subject: Subject, method: str, stream: np.random.SeedSequence) -> dict[str, Any]:
    mechanism, pair = subject.errors or subject.mechanism, subject.where or subject.pair
    options: dict[str, Any] = {"confidence": LEVEL, "rng": stream}
    if method == "direct":  # needs many runs, so only areas that differ
        mechanism, pair = subject.mechanism, subject.pair
        options["runs"] = min(MOST_DIRECT, max(LEAST_DIRECT, subject.size // 10))
    try:
        estimate = estimate_loss(mechanism, pair, method=method, data=subject.data, **options)
    except ValueError as error:
        return {"why": str(error)}
    low, high = estimate.interval
    return {"value": estimate.value, "low": low, "high": high}


def _calibrated(rho: float, integers: bool, simulations: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    law = (DiscreteGaussian if integers else Gaussian)(math.sqrt(0.5 / rho))
    made = []
    for own in stream.spawn(simulations):
        noise, resampling = own.spawn(2)
        errors = law.sample((RESIDUALS,), np.random.default_rng(noise))
        made.append(residual_loss(errors, method="slope", resamples=100, confidence=LEVEL, rng=resampling))
    values = [estimate.value for estimate in made]
    return {
        "rho": rho,
        "whole": integers,
        "residuals": RESIDUALS,
        "simulations": simulations,
        "median_of_20": float(np.median(values[:MEDIANS])),
        "mean": float(np.mean(values)),
        "covered": sum(estimate.interval[0] <= rho <= estimate.interval[1] for estimate in made),
    }


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        exact, system, verdict = float(row["exact"]), row["system"], row["audit"]["verdict"]
        yield none_above(system, [row["audit"]], exact)
        if system in VARIANTS:
            yield Check(f"{system}: {verdict}, expected violated", verdict == "violated")
            yield Check(f"{system}: exact loss {exact:.4g} beyond the promise", exact > promised(row))
            continue
        yield Check(f"{system}: {verdict}, expected no violation", verdict != "violated")
        yield between(f"{system}: exact loss / promise", exact / promised(row), 0, 1 + 1e-9)
        values = {way: estimate["value"] for way, estimate in row["ways"].items() if "value" in estimate}
        known = all("value" in estimate or estimate.get("why") for estimate in row["ways"].values())
        yield Check(f"{system}: every way has a number or a reason", known)
        if system in ("RDPC", "ADPC"):
            yield between(f"{system}: KDE / exact loss", values["kde"] / exact, 0.1, 0.5)
        for way in ("lag_tail", "slope"):
            if way in values and system not in TIED:
                yield near(f"{system}: {WAYS[way]} / exact loss", values[way] / exact, 1, 0.1)
    for known in numbers["known_rho"]:
        words = f"slope of {'discrete ' * known['whole']}Gaussian noise of rho {known['rho']:g}"
        yield near(f"{words}, median of 20 / rho", known["median_of_20"] / known["rho"], 1, 0.1)
        if known["simulations"] == SIMULATIONS:
            yield between(f"{words}, intervals that cover", known["covered"] / SIMULATIONS, 0.85, 0.99)


TIED = ("RDPC", "ADPC", "TopDown, rounded tables", "ONS, synthetic people", "NistDp3, rows")


def facts(numbers: Numbers) -> dict[str, Any]:
    def shares(*ways: str) -> list[float]:
        rows = [row for row in numbers["rows"] if row["system"] not in (*TIED, *VARIANTS)]
        estimates = ((row, row["ways"].get(way, {})) for row in rows for way in ways)
        return [estimate["value"] / float(row["exact"]) for row, estimate in estimates if "value" in estimate]

    detected, fine = ([row["audit"] for row in numbers["rows"] if (row["system"] in VARIANTS) == bad] for bad in (1, 0))
    after = [rounded_delta(epsilon) for epsilon in PILOT_EPSILONS]
    deltas = {"delta": PILOT_DELTA, "least": min(after), "most": max(after)}  # after the rounding of the pilot
    rows: list[tuple[str, ...]] = []
    for row in numbers["rows"]:
        audit = row["audit"]
        system, promise, who, loss, bound = promised_and_lost(row)
        cells = [system, promise + ", replaced" * (who == "replaced"), loss]
        witness = "" if audit["witness"] is None else ", a witness"
        share = "" if promised(row) == 1 else f"{down(audit['lower_bound'] / promised(row))} of the promise; "
        cells.append(f"{bound} ({share}{audit['class']}, {audit['size']:,})")
        cells.append(f"{audit['verdict']}{witness}")
        estimates = [row["ways"].get(way, {"why": ""}) for way in ("slope", "lag_tail")]  # Gaussian noise has a slope
        estimate = next((one for one in estimates if "value" in one), estimates[-1])
        cells.append(estimate["why"] if "why" in estimate else "{value:.3g} [{low:.3g}, {high:.3g}]".format(**estimate))
        rows.append((*cells, ABOUT[row["system"]]["lesson"].format(**deltas)))
    worst = max(abs(one["mean"] / one["rho"] - 1) for one in numbers["known_rho"])
    return {
        "near": shares("lag_tail", "slope"),
        **{way: shares(way) for way in ("direct", "kde", "histogram")},
        "detected": detected,
        "fine": fine,
        "worst": f"{math.ceil(worst * 1000) / 10:g}%",
        "covered": [one["covered"] / one["simulations"] for one in numbers["known_rho"]],
        "rows": rows,
    }


def promised_and_lost(row: dict[str, Any]) -> list[str]:
    claim, name, exact = claim_from_dict(row["promise"]), row["system"], float(row["exact"])
    who = {"add_remove": "added or removed", "replace_one": "replaced"}[claim.relation]
    delta = f", delta {claim.delta:g}" if isinstance(claim, ApproxDP) else ""
    system = f"{'variant: ' * (name in VARIANTS)}{name} ({ABOUT[name]['on']})"
    loss = "infinite" if math.isinf(exact) else f"{exact:.3g}"
    return [system, f"{claim.parameter} {claim.budget:.4g}{delta}", who, loss, down(row["audit"]["lower_bound"])]


LIMIT = 2.0  # end of the axis, in units of the promise
POINT = ESTIMATE | {"markersize": 4, "linestyle": "none"}
ONE_RELEASE: dict[str, Any] = POINT | {"marker": "^"}
DIRECT: dict[str, Any] = POINT | {"marker": "s", "markerfacecolor": "white"}
ESTIMATES: dict[str, tuple[float, dict[str, Any]]] = {
    **{way: (-0.36, ONE_RELEASE) for way in ("lag_tail", "slope")},
    "direct": (0.36, DIRECT),
}


def draw(numbers: Numbers) -> Figure:
    rows = numbers["rows"]
    figure, (ax,) = drawing.page(1.6 + 0.34 * len(rows))
    for at, row in enumerate(rows):
        budget, audit = promised(row), row["audit"]
        exact, bound = float(row["exact"]) / budget, float(audit["lower_bound"]) / budget
        drawing.losses(ax, at, [bound], exact, end=LIMIT, violated=audit["verdict"] == "violated" and bound > 1)
        if audit["witness"] is not None:
            ax.plot(LIMIT, at, **drawing.WITNESS, clip_on=False, zorder=6)
        drawing.beside(ax, at, down(bound), x=1.03, size=8)
        drawing.rule(ax, at, color=GRAY, linewidth=0.4)
        for way, (off, look) in ESTIMATES.items():
            if "value" in (estimate := row["ways"].get(way, {})):
                value, *ends = np.minimum([estimate[key] / budget for key in ("value", "low", "high")], LIMIT)
                drawing.extent(ax, ends, at + off, look["color"])
                ax.plot(value, at + off, **look, zorder=4)
    drawing.promise(ax)
    drawing.beside(ax, -0.9, "share", x=1.03, size=8, style="italic")
    drawing.name_rows(ax, [row["system"] for row in rows])
    ax.set(xlim=(0, LIMIT), xticks=(0, 0.5, 1, 1.5, 2), xlabel="privacy loss in units of the promise")
    drawing.bare_rows(ax)
    handles: list[Any] = drawing.keys(
        bound="lower bound",
        violated="the same: violated",
        exact="exact loss",
        infinite="exact loss infinite",
        promise="promise",
    )
    handles.append(drawing.line_key("infinite, by a witness: violated", **drawing.WITNESS))
    handles.append(drawing.line_key("residuals of one release: lag tail, or slope for rho", **ONE_RELEASE))
    handles.append(drawing.line_key(f"direct estimate, at most {MOST_DIRECT:,} runs", **DIRECT))
    drawing.foot(figure, handles, ncols=3, words=f"lines: {LEVEL:.0%} intervals of estimates, cut where the axis ends")
    return figure
