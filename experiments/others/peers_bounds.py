"""Bounds by other auditors, run in their own environment on outputs in a folder, and saved there as JSON.

``make peers`` makes the environment from ``peers.txt``; this file needs numpy and those packages, but not plaudit.
The folder has ``question.json``, with the parameters of `Question`, and one file of outputs for each audit; this script
writes ``bounds.json``. Every bound is one-sided. Seconds are processor time, from the outputs to the bound.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("jax-privacy", "privacy-estimates", "dp-accounting")
RAW = "jax-privacy, raw counts"
BOUND, ESTIMATE = "bound", "estimate"  # whether the documentation of the auditor claims a guarantee
THRESHOLDS = 200  # number of candidates, if the auditor leaves the choice to the user
LEAST_DELTA = 1e-12  # if an auditor requires a positive delta


@dataclass(frozen=True)
class Question:
    """Parameters of all audits of a case, and the outputs or scores of one audit."""

    parameter: str  # epsilon or mu
    delta: float  # of the bound on epsilon, which may be converted to mu
    threshold: float | None  # fixed beforehand, in one run; `x` and `y` are then scores of canaries out and in
    confidence: float
    selection: float  # share of outputs for selection, if we split them
    seed: int
    x: Any
    y: Any

    @property
    def error(self) -> float:
        return 1 - self.confidence


Bound = Callable[[Question], float]


def auditors(parameter: str, one_run: bool) -> dict[str, tuple[str, Bound]]:
    """Return auditors by name: whether each gives a bound or an estimate, and its function."""
    jax, counts, of_mu = "jax-privacy", "privacy-estimates", parameter == "mu"
    rules = {"all": "all thresholds", "half": "half chooses", "given": "threshold given"}
    bounds: dict[str, Bound] = {}
    estimates: dict[str, Bound] = {}
    if one_run and of_mu:
        bounds |= {f"{jax}, f-DP, {words}": partial(by_jax, "epsilon_one_run_fdp", r) for r, words in rules.items()}
        rules = {"given": rules["given"]}
    if one_run:
        bounds |= {f"{jax}, {words}": partial(by_jax, "epsilon_one_run", r) for r, words in rules.items()}
    else:
        bounds |= {f"{jax}, Gaussian": partial(by_jax, "epsilon_from_gdp", "")} if of_mu else {}
        for rule in ("all", "half"):
            bounds[f"{jax}, {rules[rule]}"] = partial(by_jax, "epsilon_clopper_pearson", rule, one_sided=False)
        bounds |= {f"{counts}, Clopper-Pearson": partial(by_counts, "beta")}
        estimates |= {} if of_mu else {f"{counts}, Jeffreys": partial(by_counts, "jeffreys"), RAW: jax_raw}
    return {name: (BOUND, converted(bound) if of_mu else bound) for name, bound in bounds.items()} | {
        name: (ESTIMATE, estimate) for name, estimate in estimates.items()
    }


def by_jax(method: str, rule: str, question: Question, **options: Any) -> float:
    """Return a bound of jax-privacy; `rule`: correct for all thresholds, choose one on half, or use the given one."""
    module: Any = importlib.import_module("jax_privacy.auditing")
    if rule:
        rules = {"all": module.Bonferroni, "half": partial(module.Split, seed=question.seed)}
        options["threshold_strategy"] = rules.get(rule, partial(module.Explicit, question.threshold))()
    delta = max(question.delta, LEAST_DELTA) if "one_run" in method else question.delta
    return float(getattr(module.CanaryScoreAuditor(question.y, question.x), method)(question.error, delta, **options))


def jax_raw(question: Question) -> float:
    """Return the plain ratio of counts, an estimate according to its documentation."""
    module: Any = importlib.import_module("jax_privacy.auditing")
    scores = module.CanaryScoreAuditor(question.y, question.x)
    return float(scores.epsilon_raw_counts(delta=question.delta, one_sided=False))


def by_counts(method: str, question: Question) -> float:
    """Return epsilon from counts at the threshold that has the largest bound on the selection outputs."""
    package: Any = importlib.import_module("privacy_estimates")
    rng = np.random.default_rng(question.seed)
    choosing, counting = zip(*(parted(side, question.selection, rng) for side in (question.x, question.y)), strict=True)

    def bound(outputs: tuple[Any, Any], at: float) -> float:
        rates = errors(package, *outputs, at)
        return float(package.compute_eps_lo(rates, question.delta, question.error, method))

    tried = np.unique(np.quantile(np.concatenate(choosing), np.linspace(0, 1, THRESHOLDS), method="higher"))
    sorted_once = np.sort(choosing[0]), np.sort(choosing[1])
    return bound((np.sort(counting[0]), np.sort(counting[1])), max(tried, key=partial(bound, sorted_once)))


def parted(outputs: Any, share: float, rng: np.random.Generator) -> tuple[Any, Any]:
    shuffled, choosing = rng.permutation(outputs), round(share * len(outputs))
    return shuffled[:choosing], shuffled[choosing:]


def errors(package: Any, x: Any, y: Any, at: float) -> Any:
    """Return the numbers of right and wrong guesses by a threshold; outputs are sorted."""
    below_x, below_y = (int(np.searchsorted(side, at)) for side in (x, y))
    return package.utils.AttackResults(FN=below_y, TP=len(y) - below_y, TN=below_x, FP=len(x) - below_x)


def converted(bound: Bound) -> Bound:
    """Convert a bound on epsilon at a delta to the mu of Gaussian noise with this epsilon and delta."""

    def mu(question: Question) -> float:
        accounting: Any = importlib.import_module("dp_accounting")
        epsilon = bound(question)
        if epsilon <= 0:  # no loss is proved, though some mu has this delta at epsilon 0
            return 0.0
        return 1 / float(accounting.get_sigma_gaussian(epsilon, question.delta))

    return mu


def answers(folder: Path) -> dict[str, Any]:
    path = folder / "question.json"
    if not path.exists():
        raise SystemExit(f"peers: error: {path} must be there: run `make peers`")
    question = json.loads(path.read_text(encoding="utf-8"))
    build = partial(Question, **question)
    named = auditors(question["parameter"], question["threshold"] is not None)
    rows: dict[str, Any] = {name: {"kind": kind, "values": [], "seconds": []} for name, (kind, _) in named.items()}
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise SystemExit(f"peers: error: {folder} must hold outputs: run `make peers`")
    for number, path in enumerate(files):
        with np.load(path, allow_pickle=False) as saved:
            audit = build(seed=number, x=saved["x"], y=saved["y"])
        for name, (_, bound) in named.items():
            if number == 0:  # warm-up: imports and compilation are not timed
                bound(audit)
            begun = time.process_time()
            rows[name]["values"].append(bound(audit))
            rows[name]["seconds"].append(time.process_time() - begun)
    return {"versions": {name: version(name) for name in PACKAGES}, "rows": rows}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    place = Path(sys.argv[1])
    (place / "bounds.json").write_text(json.dumps(answers(place)), encoding="utf-8")
