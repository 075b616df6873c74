"""Coverage of the 90% intervals in PHSafe's published tables, compared with intervals of the noisy counts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.phsafe.budget import noise_law, read_config
from algorithms.phsafe.explore import choose
from algorithms.phsafe.layout import lay_out
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.population import load_households
from algorithms.phsafe.postprocessing.postprocess import Z_MARGIN, interval_coverage, postprocess
from algorithms.phsafe.tables import QUERIES
from algorithms.phsafe.tabulation.tabulate import Tabulation, tabulation
from audit.results.plots import BLACK, PROMISE
from experiments.audits import run_all
from experiments.drawing import CIRCLE, column, foot, head, line_key, name_rows, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, near

RELEASES, MARGIN = 100, 41  # people
LEVELS = {"state_*": "states", "state_A-G": "states by race"}
SIZES = {0: "0", 1: "1 to 2", 3: "3 to 9", 10: "10 to 99", 100: "100 or more"}  # people in a cell, by the smallest
AVERAGES = {"PH1": ("PH1_num", "PH1_denom"), "PH5": ("PH4", "PH5_denom"), "PH8": ("PH7", "PH8_denom")}
TRUTHS = [0, *sorted({round(10 ** (step / 10)) for step in range(34)})]  # true counts of the curves, up to 2,000 people
PRODUCTION = (("PH3", "state_A-G"), ("PH2", "state_*"), ("PH2", "usa_*"))  # queries whose noise has a curve
ERRORS = 4.5  # standard errors: error probability 1e-5 for each comparison
Values = NDArray[np.float64]
COLUMNS = ("published", "noisy", "bias", "noisy bias", "predicted")
IN_TABLE = ("cells", "totals of PH2", "totals of PH6", "totals of PH3, states by", "averages of PH5")
KNOWN = {"cells": 5, "totals": 4, "averages": 1}  # number of columns, by the first word of a name


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Publish the tables of the bundled households 100 times (quick: only states without race, 20 times)."""
    config = choose("us", margins={name: dict.fromkeys(query.levels, MARGIN) for name, query in QUERIES.items()})
    homes, levels = load_households(), list(LEVELS)[: 1 if quick else 2]
    exact, releases = tabulation(homes.persons, homes.units, homes.geo, config=config), 20 if quick else RELEASES
    streams = np.random.SeedSequence(seed).spawn(len(levels))
    mechanisms = [PHSafe(config, [query for query in exact.counts if query[1] == level]) for level in levels]
    work = [delayed(_releases)(*one, exact, releases) for one in zip(mechanisms, levels, streams, strict=True)]
    sums: dict[str, Values] = defaultdict(lambda: np.zeros((releases, 1 + len(COLUMNS))))
    for name, added in (item for found in run_all(work, jobs, "published tables", "levels") for item in found.items()):
        sums[name] = sums[name] + added
    rows = []
    for name, added in sorted(sums.items(), key=lambda item: list(KNOWN).index(item[0].split()[0])):
        shares = added[:, 1:] / added[:, :1]
        errors = shares.std(axis=0, ddof=1) / math.sqrt(releases)
        summary = np.stack([shares.mean(axis=0), errors], axis=1)[: KNOWN[name.split()[0]]].tolist()
        rows.append({"name": name, "values": int(added[0, 0]), **dict(zip(COLUMNS, summary, strict=False))})
    laws = [*(noise_law(read_config("us"), *query) for query in PRODUCTION), noise_law(config, "PH2", "state_*")]
    curves = {
        f"{math.sqrt(law.variance):.3g}": [interval_coverage(truth, law.variance) for truth in TRUTHS] for law in laws
    }
    return {"rows": rows, "curves": curves, "noise": list(curves)[-1], "releases": releases}


def _releases(
    phsafe: PHSafe, level: str, stream: np.random.SeedSequence, exact: Tabulation, releases: int
) -> dict[str, Values]:
    """Return sums for each kind of numbers, shape (releases, 6): see `_sums`."""
    rng, sums = np.random.default_rng(stream), defaultdict[str, Values](lambda: np.zeros((releases, 1 + len(COLUMNS))))
    for release in range(releases):
        for name, added in _release(phsafe, level, exact, phsafe.measured(exact, rng)):
            sums[name][release] += added
    return dict(sums)


def _release(phsafe: PHSafe, level: str, exact: Tabulation, noisy: Tabulation) -> Iterator[tuple[str, Values]]:
    for name, frame in postprocess(lay_out(noisy, phsafe.config)).items():
        codes, where = list(dict.fromkeys(frame[f"{name}_DATA_CELL"])), f"of {name}, {LEVELS[level]}"
        published = np.stack([frame[end] for end in ("ESTIMATE", "LOWER", "UPPER")]).reshape(3, -1, len(codes))
        if name in AVERAGES:
            people, homes = (exact.counts[query, level].sum(axis=-1).ravel() for query in AVERAGES[name])
            some = homes > 0
            yield f"averages {where}", _sums(published[:, some, 0], people[some] / homes[some])
            continue
        cells, sigma = QUERIES[name].cells, math.sqrt(phsafe.laws[name, level].variance)
        true, y = (one.counts[name, level].reshape(-1, len(cells)) for one in (exact, noisy))
        of_sum = sigma * math.sqrt(len(cells))
        yield f"totals {where}", _sums(published[:, :, 0], true.sum(axis=1), y.sum(axis=1), of_sum)
        published = published[:, :, [code in cells for code in codes]]
        predicted = np.vectorize(lambda truth, variance=sigma**2: interval_coverage(truth, variance))(true)
        for least, words in SIZES.items():
            own = (true >= least) & (true < min((size for size in SIZES if size > least), default=math.inf))
            if own.any():
                yield f"cells of {words} people", _sums(published[:, own], true[own], y[own], sigma, predicted[own])


def _sums(published: Values, true: NDArray[Any], noisy: Any = 0, sigma: float = 1, predicted: Any = 0) -> Values:
    """Return the number of values, then sums over them in the order of `COLUMNS`."""
    # Sums: published and noisy intervals that cover the truth; biases of both, in standard deviations of the noise; the
    # probability that the published interval covers the truth.
    estimate, low, high = published
    inside = (low <= true) & (true <= high), np.abs(noisy - true) <= math.ceil(Z_MARGIN * sigma)
    values = (1, *inside, (estimate - true) / sigma, (noisy - true) / sigma, predicted)
    return np.array([np.sum(np.broadcast_to(one, true.shape)) for one in values])


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        (share, error), words = row["published"], f"published, {row['name']}"
        if "predicted" in row:
            yield near(words, share, row["predicted"][0], ERRORS * error)
        if "noisy" in row:
            covered, error = row["noisy"]
            yield between(f"noisy, {row['name']}", covered, 0.9 - ERRORS * error, 0.91 + ERRORS * error)
            if "predicted" not in row:
                yield Check(f"{words}: {share:.3f}, expected less than of the noisy sum", share < covered)
    for sigma, curve in numbers["curves"].items():
        yield between(f"sigma {sigma}, a count of 0", curve[0], 0, 0.65)
        large = [covered for truth, covered in zip(TRUTHS, curve, strict=True) if truth >= float(sigma) / 2]
        yield between(f"sigma {sigma}, least of counts from half of it on", min(large), 0.9, 0.91)


def facts(numbers: Numbers) -> dict[str, Any]:
    rows = []
    for row in (row for row in numbers["rows"] if row["name"].startswith(IN_TABLE)):
        shares = [
            f"{100 * row[words][0]:.1f} ± {100 * row[words][1]:.1f}" if words in row else "" for words in COLUMNS[:2]
        ]
        rows.append((row["name"], f"{row['values']}", *shares, f"{row['bias'][0]:+.2f}" if "bias" in row else ""))
    covered = {row["name"]: 100 * row["published"][0] for row in numbers["rows"]}
    totals = [share for name, share in covered.items() if name.startswith("totals")]
    sigmas = sorted(numbers["curves"], key=float)
    empty = [100 * numbers["curves"][sigma][0] for sigma in sigmas]
    return {"rows": rows, "covered": covered, "totals": totals, "sigmas": sigmas, "empty": empty}


def draw(numbers: Numbers) -> Figure:
    figure, (top, bottom) = page(6.4, 2, 1, heights=(1, 1.3))
    looks = styles(sorted(numbers["curves"], key=float), marker="")
    for sigma, look in looks.items():
        top.plot(TRUTHS, numbers["curves"][sigma], label=f"$\\sigma$ = {sigma} people", **look)
    top.set_xscale("symlog", linthresh=1)
    top.set(xlabel="true count of a cell (people; log scale above 1)", ylabel="covered", xlim=(0, TRUTHS[-1]))
    head(top, "(a) the published interval of a cell, by its noise (exact)", own_keys(top), ncols=4)
    noise: dict[str, Any] = {"marker": "D", "color": BLACK, "linestyle": "none", "markersize": 4}
    for at, row in enumerate(numbers["rows"]):
        for words, look in (("published", CIRCLE | {"markersize": 4}), ("noisy", noise)):
            if words in row:
                share, error = row[words]
                bottom.errorbar(share, at, xerr=2 * error, **look)
        if "bias" in row:
            column(bottom, at, f"{row['bias'][0]:+.2f}", 34)
    column(bottom, -1, "bias/$\\sigma$", 34)
    name_rows(bottom, [row["name"] for row in numbers["rows"]])
    top.axhline(0.9, **PROMISE, zorder=0)
    bottom.axvline(0.9, **PROMISE, zorder=0)
    for axis in (top.yaxis, bottom.xaxis):
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    bottom.set(xlim=(0, 1.02), xlabel="covered (lines: two standard errors)")
    head(bottom, f"(b) whole tables, noise of {numbers['noise']} people, {numbers['releases']} releases", x=-0.3)
    handles = [line_key("published interval", **CIRCLE), line_key("noisy count or sum", **noise)]
    foot(figure, [*handles, line_key("90%", **PROMISE)])
    return figure
