"""Flaxman's equation, which replaces the second database by a shift of the error, and when it holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.population import uniform_population
from audit import LossEstimate, direct_loss
from audit.results import plain_number
from audit.results.plots import PROMISE
from experiments.audits import run_all
from experiments.drawing import foot, head, line_key, own_keys, page, styles
from experiments.experiment import Check, Checks, Numbers, between, up
from experiments.flaxman.audit import paths_only

Floats = NDArray[np.float64]

EPSILON, PARTS = 1.0, 4
LARGE, SMALL, FAR = 100, 3, 12  # people in an area (both); largest error drawn
OUTPUTS = np.arange(-60, 200)  # integer counts of the area
REACH = 60  # largest error enumerated for RDPC; the probability beyond it is 1e-13
PAPER: dict[str, Any] = {"people": 1_000_000, "levels": 3, "people_per_leaf": 100}
PAPER_EPSILON, AT = 0.1, (0, 25, 50)
RUNS, CHUNK = 4_000_000, 100_000
CONFIDENCE = 1 - 1e-4  # of each interval in the paper's setting
LABELS = {
    "GDPC": f"GDPC, {LARGE} people",
    "ADPC": f"ADPC of {PARTS} parts, {LARGE} people",
    "RDPC, large": f"RDPC, two areas of {LARGE}",
    "RDPC, small": f"RDPC, two areas of {SMALL}",
    "raised": f"GDPC raised to 0, {SMALL} people",
    "pooled": "the same, errors of all areas",
}
HOLDS = ("GDPC", "ADPC")


def unraked(mechanism: GDPC | ADPC, count: int) -> Floats:
    """Return the log-probabilities of `OUTPUTS` on one database, like the next two functions."""
    return mechanism.log_likelihood(OUTPUTS[:, None], [count])


def raised(count: int) -> Floats:
    """Return those of GDPC if negative counts are raised to 0."""
    law = np.exp(unraked(GDPC(EPSILON), count))
    law[OUTPUTS == 0] += law[OUTPUTS < 0].sum()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(OUTPUTS < 0, 0, law)))


def rdpc(count: int, other: int) -> Floats:
    """Return those of a raked and rounded count of RDPC, by enumeration of errors of the total and two areas."""
    tree = Hierarchy.regular(2, 1)
    errors = np.arange(-REACH, REACH + 1)
    chances = np.exp(RDPC(EPSILON, tree).noise.logpmf(errors))
    areas = np.stack(np.meshgrid(count + errors, other + errors, indexing="ij"), axis=-1).reshape(-1, 2)
    both, law = np.multiply.outer(chances, chances).ravel(), np.zeros(OUTPUTS.size)
    for error, chance in zip(errors, chances, strict=True):
        total = np.full((len(areas), 1), count + other + error)
        released = np.floor(tree.rake(np.hstack([total, areas]))[:, 1] + 0.5)
        place = np.clip(released - OUTPUTS[0], 0, OUTPUTS.size - 1).astype(np.int64)
        law += chance * np.bincount(place, both, OUTPUTS.size)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(law))


def losses(law: Callable[[int], Floats], count: int, errors: Floats | None = None) -> dict[str, list[Any]]:
    """Return the exact loss at every error, and the loss by the equation, which shifts the law of the error."""
    # As in the equation, the neighbor has one person less if the error is positive, else one more. `errors` are
    # log-probabilities of errors, aligned with the outputs, if they are not those of the area itself.
    own, fewer, more = law(count), law(count - 1), law(count + 1)
    by = own if errors is None else errors
    rows: dict[str, list[Any]] = {"error": list(range(-FAR, FAR + 1)), "exact": [], "equation": []}
    for error in rows["error"]:
        place = int(count + error - OUTPUTS[0])
        second, step = (fewer, 1) if error > 0 else (more, -1)
        with np.errstate(invalid="ignore"):  # outputs impossible on both databases have no loss
            pairs = {"exact": own[place] - second[place], "equation": by[place] - by[place + step]}
        for name, loss in pairs.items():
            rows[name].append(None if math.isnan(loss) else plain_number(float(loss)))
    return rows


def pooled() -> Floats:
    """Return the law of the pooled errors of many areas with Poisson counts."""
    counts = range(30)
    laws = [np.roll(np.exp(raised(count)), SMALL - count) for count in counts]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.average(laws, axis=0, weights=stats.poisson(SMALL).pmf(counts))))


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Enumerate both losses, and run RDPC 4 million times on each database of the paper's setting (quick: 200,000)."""
    curves = {
        "GDPC": losses(partial(unraked, GDPC(EPSILON)), LARGE),
        "ADPC": losses(partial(unraked, ADPC(EPSILON, PARTS)), LARGE),
        "RDPC, large": losses(partial(rdpc, other=LARGE), LARGE),
        "RDPC, small": losses(partial(rdpc, other=SMALL), SMALL),
        "raised": losses(raised, SMALL),
        "pooled": losses(raised, SMALL, pooled()),
    }
    return {"curves": curves, "paper": _in_the_papers_setting(200_000 if quick else RUNS, seed, jobs)}


def _in_the_papers_setting(runs: int, seed: int, jobs: int) -> dict[str, Any]:
    """Return direct estimates for one leaf: of its loss, and of the difference between shift and second database."""
    first, *streams = np.random.SeedSequence(seed).spawn(1 + 2 * (runs // CHUNK))
    tree, counts = uniform_population(rng=first, **PAPER)
    cut, people, (place,) = paths_only(tree, counts, (0,))
    fewer = people - (np.arange(people.size) == place)
    data = [own for own in (people, fewer) for _ in range(runs // CHUNK)]
    mechanism = RDPC(PAPER_EPSILON, cut)
    tasks = [delayed(_leaf)(mechanism, own, place, stream) for own, stream in zip(data, streams, strict=True)]
    x, y = np.array(run_all(tasks, jobs, "runs of RDPC", "blocks")).reshape(2, -1)
    exact = int(people[place])
    options: dict[str, Any] = {"at": AT, "confidence": CONFIDENCE}
    shift = direct_loss(x - 1, y, exact, **options)  # 0 if the equation holds
    return {"runs": runs, "loss": direct_loss(x, y, exact, **options).to_dict(), "shift": shift.to_dict()}


def _leaf(mechanism: RDPC, data: NDArray[np.int64], place: int, stream: np.random.SeedSequence) -> Floats:
    return mechanism(data, CHUNK, np.random.default_rng(stream))[:, place]


def _curve(numbers: Numbers, name: str) -> Floats:
    """Return errors, exact losses and the equation's losses at possible errors, shape (3, errors)."""
    rows = zip(*numbers["curves"][name].values(), strict=True)
    return np.array([row for row in rows if None not in row], dtype=float).T


def check(numbers: Numbers) -> Checks:
    for name in LABELS:
        _, exact, equation = _curve(numbers, name)
        apart = np.abs(equation - exact).max()
        if name in HOLDS:
            yield between(f"{name}: largest difference of the losses", apart, 0, 1e-9)
        elif name == "RDPC, large":
            yield between(f"{name}: largest difference of the losses", apart, 1e-3, 0.1)
            below = (exact - equation).max()
            yield Check(f"{name}: the equation is below the exact loss by {below:.3f} somewhere", below > 0.01)
        else:
            yield Check(f"{name}: largest difference of the losses {apart:.3g}, expected above 0.3", apart > 0.3)
    _, exact, equation = _curve(numbers, "raised")
    edge = f"raised: exact loss {exact[0]:g} of 0, the equation's {equation[0]}, expected {EPSILON:g} and infinity"
    yield Check(edge, math.isclose(exact[0], EPSILON) and equation[0] == math.inf)
    loss, shifts = _estimates(numbers)
    for error, value, low, high in shifts:
        words = f"the paper's setting, errors of {error:g} or more: {value:.4f} apart [{low:.4f}, {high:.4f}]"
        yield Check(f"{words}, expected an interval that holds 0", low <= 0 <= high)
    _, value, low, high = loss[0]
    words = f"the paper's setting, any shift would show in {numbers['paper']['runs']:,} runs: loss {value:.4f}"
    yield Check(f"{words} [{low:.4f}, {high:.4f}], expected above 0", low > 0 or numbers["paper"]["runs"] < RUNS)


def _estimates(numbers: Numbers) -> list[list[tuple[float, ...]]]:
    estimates = [LossEstimate.from_dict(numbers["paper"][name]) for name in ("loss", "shift")]
    return [list(zip(own.at, own.loss, own.low, own.high, strict=True)) for own in estimates]


def facts(numbers: Numbers) -> dict[str, Any]:
    rows, apart, below = [], {}, {}
    for name, words in LABELS.items():
        error, exact, equation = _curve(numbers, name)
        apart[name], below[name] = np.abs(equation - exact).max(), (exact - equation).max()
        worst = int(np.argmax(np.abs(equation - exact)))
        cells = [f"{exact.min():.2f} to {exact.max():.2f}", f"{apart[name]:.2g}"]
        at = "nowhere" if name in HOLDS else f"{error[worst]:+g}: {exact[worst]:.2f}, not {equation[worst]:.2f}"
        rows.append([words, *cells, at])
    (loss, *_), (shift, *_) = _estimates(numbers)
    off = f"less than {up(max(-shift[2], shift[3]), 2)}"
    rows.append([f"RDPC, the paper's setting, epsilon {PAPER_EPSILON}", f"{loss[1]:.4f}", off, ""])
    return {"rows": rows, "apart": apart, "below": below}


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(3.5, 1, 3, stacked=True)
    panels = (
        ("(a) one law of errors: it holds", HOLDS),
        ("(b) raked: large areas only", ("RDPC, large", "RDPC, small")),
        ("(c) raised to 0: it fails", ("raised", "pooled")),
    )
    for ax, (title, names) in zip(axes, panels, strict=True):
        for name, look in styles(names, markersize=3.5).items():
            error, exact, equation = _curve(numbers, name)
            ax.plot(error, exact, color=look["color"], linestyle=look["linestyle"], linewidth=1.3)
            ax.plot(error, equation, **look | {"linestyle": "none"}, label=LABELS[name])
            infinite = error[np.isinf(equation)]
            ax.plot(infinite, np.full(infinite.size, 1.95), "^", color=look["color"], markersize=6)
        ax.axhline(EPSILON, **PROMISE, zorder=0)
        ax.set(ylim=(-0.5, 2), xlim=(-FAR - 0.5, FAR + 0.5), xlabel="error, people")
        head(ax, title, own_keys(ax), ncols=1, x=-0.1)
    axes[0].set_ylabel("privacy loss of one error")
    handles = [
        line_key("exact, from both databases", color="black"),
        line_key("by the equation, from one", color="black", marker="o", linestyle="none", markersize=4),
        line_key("infinite", color="black", marker="^", linestyle="none", markersize=6),
        line_key("$\\epsilon$, the promise", **PROMISE),
    ]
    foot(figure, handles)
    return figure
