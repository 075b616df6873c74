"""Lower bounds of plaudit and of other auditors: on the same outputs, and with published bounds on benchmarks."""

from __future__ import annotations

import json
import math
import subprocess
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.benchmarks import benchmarks
from algorithms.flaxman import GDPC
from audit import (
    ApproxDP,
    Attack,
    Canaries,
    GaussianDP,
    PureDP,
    measure_loss,
    measure_loss_from_outputs,
    measure_loss_one_run,
)
from audit.claims import Claim
from audit.results import plain_number
from audit.results.plots import BLACK, BLUE, GRAY, ORANGE, PURPLE
from experiments.audits import bounds, group_pair, kept, median, repeat, run_all
from experiments.drawing import bare_rows, column, extent, foot, head, line_key, name_rows, page
from experiments.experiment import Check, Checks, Numbers, between, down, few_misses, published
from experiments.others.peers_bounds import BOUND, RAW

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "build" / "peers" / "environment" / "bin" / "python"  # made by `make peers`
OURS = "plaudit"
CONFIDENCE, SELECTION = 0.95, 0.3  # of every bound, one-sided; share of outputs for selection
EACH, SMALL, CANARIES, PEOPLE = 600_000, 1_000, 100_000, 100  # outputs on each database; counts in one run
AUDITS, MANY, FEW = 20, 400, 2  # audits of a case; of a case with few outputs; if quick
DIGITS = 6  # of released Gaussian noise: the last bits of floats would leak more than the law
# Deltas at which the peers' bounds on epsilon are converted to mu: the best of two to five, on other seeds (for few
# outputs, on ten of these audits).
MIDDLE, SMALL_DELTA, ONE_RUN_DELTA = 0.3, 0.1, 1e-5
DELTA = 0.01
ALL, TAIL = 1.0, 3.0  # thresholds of scores in one run, fixed beforehand; TAIL was chosen on other seeds
GEOMETRIC, GAUSSIAN = "geometric", "Gaussian"
MOST_OURS, MOST_ANOTHER, AS_MUCH = "ours", "another", "neither, within 2%"
# Published bounds of others. By auditor and count: two numbers are a range or two repeats. By benchmark: DP-Sniper with
# the logistic classifier and with the network, StatDP's events, and seconds of all three.
OF_COUNTS: dict[str, dict[str, list[float]]] = published("auditors of one count")
OF_BENCHMARKS: dict[str, tuple[float, float, list[float], list[int | None]]] = published("auditors of benchmarks")

LAWS = Attack.without("precision")  # audit published algorithms, not their float noise
LIKELIHOOD, OUTPUTS = "told the likelihood", "outputs only"
SIZE, GROUP, FEWER = 1_000_000, 40, 20  # runs; people in a group; divisor of the runs if quick
SIZES = {"TruncatedGeometric": 500_000, "NoisyHist2": 4_000_000}
GROUPED = f"LaplaceParallel, {GROUP} at once"
# Targets for the median of many audits; a median of few audits may be 4 standard errors smaller.
TARGETS = {"NoisyHist2": 9.5, GROUPED: 0.058, "PrefixSum": 0.85}
UNBOUNDED = ("SVT5", "ReportNoisyMax4")


@dataclass(frozen=True)
class Case:
    """A law of outputs, the claim whose parameter is bounded, and its true value."""

    name: str
    claim: Claim
    truth: float
    law: str = GEOMETRIC
    epsilon: float = 1.0  # of geometric noise; Gaussian noise has a standard deviation of 1
    delta: float = 0.0
    each: int = EACH
    audits: int = AUDITS
    apart: int = 1  # difference of the counts
    threshold: float | None = None  # threshold of scores in one run, fixed beforehand
    cited: str = ""  # name of published bounds of others
    least: float = 0.0  # our median / truth; this and the next were set after the first 3 to 10 audits
    whose: str = ""  # auditor with the largest median

    def noisy(self, counts: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return noisy releases of counts, shape (size, counts)."""
        if self.law == GEOMETRIC:
            return GDPC(self.epsilon)(counts, size, rng)
        released: NDArray[Any] = np.round(counts + rng.normal(0, 1, (size, len(counts))), DIGITS)
        return released

    def question(self) -> dict[str, Any]:
        question = {"parameter": self.claim.parameter, "delta": self.delta, "threshold": self.threshold}
        return {**question, "confidence": CONFIDENCE, "selection": SELECTION}


COUNT = Case("geometric noise: epsilon", PureDP(1.0), 1.0, cited="geometric 1", least=0.995, whose=MOST_OURS)
NORMAL = Case("Gaussian noise: mu", GaussianDP(1.0), 1.0, GAUSSIAN, delta=MIDDLE, least=0.985, whose=AS_MUCH)
ONE_RUN: dict[str, Any] = {"each": CANARIES, "threshold": ALL, "least": 0.98, "whose": AS_MUCH}
ONCE = Case("one run, geometric noise: epsilon", PureDP(1.0), 1.0, **ONE_RUN)
OF_MU: dict[str, Any] = {"claim": GaussianDP(1.0), "law": GAUSSIAN, "delta": ONE_RUN_DELTA, "threshold": TAIL}
AT_DELTA: dict[str, Any] = {"claim": ApproxDP(1.0, DELTA), "truth": GaussianDP(1.0).epsilon_at(DELTA), "delta": DELTA}
FEW_OUTPUTS: dict[str, Any] = {"each": SMALL, "audits": MANY, "cited": ""}
NO_LOSS: dict[str, Any] = FEW_OUTPUTS | {"truth": 0.0, "apart": 0, "whose": ""}
CASES = (
    replace(COUNT, claim=PureDP(0.1), truth=0.1, epsilon=0.1, cited="geometric 0.1", least=0.95),
    COUNT,
    NORMAL,
    replace(NORMAL, name=f"Gaussian noise: epsilon at delta {DELTA}", least=0.955, **AT_DELTA),
    ONCE,
    replace(ONCE, name="one run, Gaussian noise: mu", least=0.76, whose=MOST_OURS, **OF_MU),
    replace(COUNT, least=0.85, **FEW_OUTPUTS),
    replace(NORMAL, least=0.7, whose=MOST_ANOTHER, **FEW_OUTPUTS | {"delta": SMALL_DELTA}),
    replace(COUNT, **NO_LOSS),
    replace(NORMAL, **NO_LOSS | {"delta": SMALL_DELTA}),
)


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit every case with all auditors, and benchmarks 20 or 5 times (quick: only ours, with fewer runs)."""
    if not quick and not PYTHON.exists():
        raise FileNotFoundError(f"{PYTHON} must be there: run `make peers`")
    streams = np.random.SeedSequence(seed).spawn(len(CASES))
    tasks = [delayed(_row)(number, quick, stream) for number, stream in enumerate(streams)]
    rows = run_all(tasks, 1, "auditors", unit="cases")  # sequentially, since seconds are compared
    (versions, *_) = [row.pop("versions") for row in rows]
    return {"rows": rows, "benchmarks": _benchmarks(quick, seed, jobs), "versions": versions, "quick": quick}


def _row(number: int, quick: bool, stream: np.random.SeedSequence) -> dict[str, Any]:
    case = CASES[number]
    ours: dict[str, Any] = {"kind": BOUND, "values": [], "seconds": []}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for audit, of_audit in enumerate(stream.spawn(FEW if quick else case.audits)):
            x, y, bound, seconds = (repeated if case.threshold is None else one_run)(case, of_audit)
            ours["values"].append(bound)
            ours["seconds"].append(seconds)
            np.savez(folder / f"{audit:04}.npz", x=x, y=y)
        script = HERE / "peers_bounds.py"
        answers = {"versions": {}, "rows": {}} if quick else ask(folder, case.question(), PYTHON, script)
    about = {"name": case.name, "parameter": case.claim.parameter, "truth": case.truth, "delta": case.delta}
    about |= {"outputs": case.each * (1 if case.threshold else 2), "one_run": bool(case.threshold), "cited": case.cited}
    return {**about, "auditors": {OURS: ours, **answers["rows"]}, "versions": answers["versions"]}


def ask(folder: Path, question: dict[str, Any], python: Path, script: Path) -> dict[str, Any]:
    (folder / "question.json").write_text(json.dumps(question), encoding="utf-8")
    # -P: do not import modules from the folder of the script.
    ended = subprocess.run([python, "-P", script, folder], capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no word"])[-1]
        raise RuntimeError(f"peers must answer, and ended with exit code {ended.returncode}: {last}; run `make peers`")
    answer: dict[str, Any] = json.loads((folder / "bounds.json").read_text(encoding="utf-8"))
    return answer


def repeated(case: Case, stream: np.random.SeedSequence) -> tuple[NDArray[Any], NDArray[Any], float, float]:
    """Return the outputs of an audit, our bound and its processor seconds, like `one_run`."""
    outputs, own = stream.spawn(2)
    rng = np.random.default_rng(outputs)
    x, y = (case.noisy(np.array([count]), case.each, rng).ravel() for count in (0, case.apart))
    begun = time.process_time()
    options: dict[str, Any] = {"selection": SELECTION, "confidence": CONFIDENCE, "rng": own}
    result = measure_loss_from_outputs(x, y, case.claim, relation="add_remove", **options)
    return x, y, result.measured.budget, time.process_time() - begun


def one_run(case: Case, stream: np.random.SeedSequence) -> tuple[NDArray[Any], NDArray[Any], float, float]:
    counts, releases = np.full(CANARIES, PEOPLE), []

    def release(data: Any, size: int, rng: np.random.Generator) -> Any:
        began = time.process_time()
        releases.append((data != counts, case.noisy(data, size, rng), time.process_time() - began))
        return releases[-1][1]

    begun = time.process_time()
    result = measure_loss_one_run(release, Canaries(counts), case.claim, confidence=CONFIDENCE, rng=stream)
    [(inside, released, noise)] = releases
    scores = released[0] - counts
    return scores[~inside], scores[inside], result.measured.budget, time.process_time() - begun - noise


def _benchmarks(quick: bool, seed: int, jobs: int) -> list[dict[str, Any]]:
    """Audit the benchmarks of the literature, one also on a group, with the likelihood and once without."""
    cases = []
    for name, known in benchmarks().items():
        cases.append((name, known, 1))
        cases += [(GROUPED, known, GROUP)] if name == "LaplaceParallel" else []
    rows, tasks = [], []
    streams = np.random.SeedSequence(seed).spawn(4)[2:]  # the first two were for peers' outputs
    for mode, root in zip((LIKELIHOOD,) if quick else (LIKELIHOOD, OUTPUTS), streams, strict=False):
        for (name, known, people), stream in zip(cases, root.spawn(len(cases)), strict=True):
            size = min(SIZES.get(name, SIZE), SIZE if mode == OUTPUTS else math.inf)
            size = size // FEWER if quick else size
            row = {"name": name, "mode": mode, "claim": known.mechanism.claim.budget}
            rows.append({**row, "loss": plain_number(known.loss), "size": size})
            often = 1 if quick or mode == OUTPUTS else 20 if name in TARGETS else 5
            tasks.append(((mode, known, people, size), stream, often))
    audits = repeat(_audit, *zip(*tasks, strict=True), jobs=jobs, words="benchmarks")
    return [{**row, "audits": own} for row, own in zip(rows, audits, strict=True)]


def _audit(mode: str, known: Any, people: int, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    mechanism = known.mechanism if mode == LIKELIHOOD else partial(known.mechanism)  # `partial` hides the likelihood
    options: dict[str, Any] = {"attack": LAWS, "size": size, "confidence": CONFIDENCE, "rng": stream}
    result = measure_loss(mechanism, group_pair(known, people), known.mechanism.claim, **options)
    return {**kept(result), "seconds": result.seconds}


def above(row: dict[str, Any], who: str) -> tuple[int, int]:
    values = row["auditors"][who]["values"]
    return sum(value > row["truth"] for value in values), len(values)


def middle(row: dict[str, Any], who: str) -> float:
    return float(np.median(row["auditors"][who]["values"])) / (row["truth"] or 1.0)


def best(row: dict[str, Any]) -> tuple[str, float]:
    peers = [name for name, entry in row["auditors"].items() if name != OURS and entry["kind"] == BOUND]
    return max(((name, middle(row, name)) for name in peers), key=lambda pair: pair[1], default=("", 0.0))


def row_of(numbers: Numbers, name: str) -> dict[str, Any]:
    return next(row for row in numbers["benchmarks"] if (row["name"], row["mode"]) == (name, LIKELIHOOD))


def check(numbers: Numbers) -> Checks:
    quick = numbers["quick"]
    for case, row in zip(CASES, numbers["rows"], strict=True):
        where, value = label(row), middle(row, OURS)
        for who, entry in row["auditors"].items():
            if entry["kind"] == BOUND:
                yield few_misses(f"{where}: {who}", *above(row, who), CONFIDENCE)
        times = len(row["auditors"]) - 1
        if case.whose:
            yield between(f"{where}: median of ours / truth", value, 0.9 * case.least if quick else case.least, 1.0)
        if not quick:
            yield Check(f"{where}: {times} bounds and estimates beside ours, expected 3 or more", times >= 3)
        if case.whose and not quick:
            peer, most = best(row)
            close = min(value, most) >= 0.98 * max(value, most)
            holds = {MOST_OURS: value > most, MOST_ANOTHER: value < most, AS_MUCH: close}[case.whose]
            words = (
                f"ours {down(value, 4)}, the best of the others ({peer}) {down(most, 4)}, expected more: {case.whose}"
            )
            yield Check(f"{where}: {words}", holds)
    if not quick:
        raw = [above(row, RAW) for row in numbers["rows"] if RAW in row["auditors"]]
        times, audits = map(sum, zip(*raw, strict=True))
        words = f"{RAW}, an estimate: {times} of {audits} above the truth, expected more than half"
        yield Check(words, times > audits / 2)
    for name, target in () if quick else TARGETS.items():
        row = row_of(numbers, name)
        values = bounds(row["audits"])
        error = 1.2533 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
        what = f"{name}: median of {len(values)}, standard error {error:.2g}; many must reach {target:g}"
        yield between(what, float(np.median(values)), target - 4 * error, float(row["loss"]))
    misses = [value > float(row["loss"]) for row in numbers["benchmarks"] for value in bounds(row["audits"])]
    yield few_misses("benchmarks", sum(misses), len(misses), CONFIDENCE)


def label(row: dict[str, Any]) -> str:
    truth = f"{row['truth']:.4g}" if row["truth"] else "0, the same law twice"
    unit = "canaries" if row["one_run"] else "outputs"
    return f"{row['name']} (truth {truth}), {row['outputs']:,} {unit}"


def cited(name: str) -> list[float]:
    logistic, network, verified, _ = OF_BENCHMARKS[name.partition(",")[0]]
    return [logistic, network, *verified]


def facts(numbers: Numbers) -> dict[str, Any]:
    rows: list[tuple[str, ...]] = []
    own = [down(middle(numbers["rows"][place], OURS)) for place in (0, 1, 2, 5)]
    *theirs, last = (down(best(numbers["rows"][place])[1]) for place in (0, 1, 2, 5))
    others = "" if numbers["quick"] else f"; the best of the others {', '.join(theirs)} and {last}"
    for row in (row for row in numbers["rows"] if row["truth"]):
        peer, most = best(row)
        took = " and ".join(f"{np.median(row['auditors'][who]['seconds']):.2g}" for who in (OURS, peer) if who)
        rows.append((label(row), down(middle(row, OURS)), down(most) if peer else "", peer, took))
    for name, words in (("PrefixSum", "prefix sums"), (GROUPED, f"20 noises at once, {GROUP} people")):
        row = row_of(numbers, name)
        shares = median(row["audits"]) / float(row["loss"]), max(cited(name)) / float(row["loss"])
        took = f"{np.median([audit['seconds'] for audit in row['audits']]):.2g}"
        rows.append((f"{words}, {row['size']:,} runs", *map(down, shares), "published, 200 million runs, 90%", took))
    counted: dict[Any, list[tuple[int, int]]] = {OURS: [], True: [(0, 0)], False: [(0, 0)]}
    for row in numbers["rows"]:
        for who, entry in row["auditors"].items():
            counted[OURS if who == OURS else entry["kind"] == BOUND].append(above(row, who))
    wrong = {who: tuple(map(sum, zip(*pairs, strict=True))) for who, pairs in counted.items()}
    ours, their_bounds, estimates = (f"{wrong[who][0]:,} of {wrong[who][1]:,}" for who in (OURS, True, False))
    finite = [name for name in OF_BENCHMARKS if name not in UNBOUNDED]
    more = sum(median(row_of(numbers, name)["audits"]) > max(cited(name)) for name in finite)
    return locals()


LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    OURS: ("plaudit", {"marker": "o", "color": BLUE, "markersize": 6, "zorder": 5}),
    "another": ("bounds of others", {"marker": "D", "color": PURPLE}),
    "estimate": ("estimates of others", {"marker": "x", "color": ORANGE}),
    "cited": ("published bounds of others", {"marker": "s", "color": GRAY, "markersize": 4}),
}
LOW, HIGH = 0.2, 1.1  # ends of the axis; values beyond are arrows


def draw(numbers: Numbers) -> Figure:
    rows = [row for row in numbers["rows"] if row["truth"]]
    figure, (ax,) = page(2.2 + 0.3 * len(rows))
    for at, row in enumerate(rows):
        for who, entry in row["auditors"].items():
            kind = OURS if who == OURS else "another" if entry["kind"] == BOUND else "estimate"
            _draw(ax, at, kind, [middle(row, who)])
        of_counts = [bound for one in OF_COUNTS.values() for bound in one.get(row["cited"], ())]
        _draw(ax, at, "cited", [bound / row["truth"] for bound in of_counts])
        column(ax, at, down(middle(row, OURS)), 40)
    name_rows(ax, [label(row).replace("), ", ")\n") for row in rows], top=-0.9)
    ax.set(xlim=(LOW, HIGH), xticks=(0.2, 0.4, 0.6, 0.8, 1.0))
    ax.axvline(1, color=BLACK, linewidth=0.8, zorder=0)
    ax.grid(axis="y", color=GRAY, alpha=0.25, linewidth=0.6)
    bare_rows(ax)
    column(ax, -0.6, "plaudit", 40, style="italic")
    head(ax, f"the same outputs: medians of {AUDITS} audits, {MANY} of few outputs", x=-0.4)
    ax.set_xlabel("bound at 95% / truth (vertical line: all of it; an arrow lies beyond the axis)")
    words = "others: jax-privacy, privacy-estimates; cited: StatDP, DP-Sniper, and more"
    foot(figure, [line_key(name, linestyle="none", **look) for name, look in LOOKS.values()], words=words)
    return figure


def _draw(ax: Axes, at: int, kind: str, values: list[float]) -> None:
    if kind == "cited" and values:
        extent(ax, np.clip(values, LOW, HIGH), at, GRAY)
    for value in values:
        beyond = {"marker": "<"} if value < LOW else {"marker": ">"} if value > HIGH else {}
        look: dict[str, Any] = {"markersize": 5, "zorder": 4, "linestyle": "none", **LOOKS[kind][1], **beyond}
        ax.plot(np.clip(value, LOW, HIGH), at, clip_on=False, **look)
