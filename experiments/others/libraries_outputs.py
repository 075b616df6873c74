"""Run libraries in their own environment, without plaudit, and save outputs for audits from files.

``make libraries`` runs this script. It needs numpy and the libraries of ``libraries.txt`` in the same folder; those of
``libraries_torch.txt`` are optional.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

RUNS, FEW, FEWER, FEWEST = 50_000, 20_000, 10_000, 4000  # over both databases; fewer for slow mechanisms
ZEROS, ONE = [0.0] * 5, [0.0] * 4 + [1.0]  # five people; the same with one replaced
CODES = 10  # a local randomizer reports one of them


@dataclass(frozen=True)
class Case:
    """A mechanism with its promise, two neighbors, and a function for one run."""

    mechanism: str
    promise: str
    run: Callable[[Any], Any]
    x: Any = 0.0
    y: Any = 1.0
    relation: str = "add_remove"
    runs: int = RUNS


def diffprivlib() -> list[Case]:
    from diffprivlib import mechanisms as m
    from diffprivlib import tools as t

    one, added, near = {"epsilon": 1, "sensitivity": 1}, [*ZEROS, 1.0], {"lower": -10, "upper": 10}
    replaced = partial(Case, x=np.array(ZEROS), y=np.array(ONE), relation="replace_one", runs=FEWER)
    return [
        Case("Laplace", "pure:1", m.Laplace(**one).randomise),
        Case("LaplaceTruncated", "pure:1", m.LaplaceTruncated(**one, **near).randomise),
        Case("Staircase", "pure:1", m.Staircase(**one).randomise),
        Case("GaussianAnalytic", "approx:1,0.01", m.GaussianAnalytic(**one, delta=0.01).randomise),
        Case("Snapping", "pure:1", m.Snapping(**one, **near).randomise),
        Case("Geometric", "pure:1", m.Geometric(**one).randomise, 0, 1),
        Case("Exponential", "pure:1", lambda u: m.Exponential(**one, utility=u).randomise(), [0, 0, 0], [1, 0, 1]),
        Case("PermuteAndFlip", "pure:1", lambda u: m.PermuteAndFlip(**one, utility=u).randomise(), [0] * 3, [1, 0, 1]),
        Case("Uniform", "approx:0,0.1", m.Uniform(delta=0.1, sensitivity=1).randomise),
        replaced("mean", "pure:1", lambda rows: t.mean(rows, epsilon=1, bounds=(0, 1))),
        replaced("sum", "pure:1", lambda rows: t.sum(rows, epsilon=1, bounds=(0, 1))),
        replaced("count_nonzero", "pure:1", lambda rows: t.count_nonzero(rows, epsilon=1)),
        replaced("var", "pure:1", lambda rows: t.var(rows, epsilon=1, bounds=(0, 1))),
        Case("histogram", "pure:1", lambda r: t.histogram(r, 1.0, 2, (0, 1))[0], ZEROS, added, runs=FEWER),
        replaced("mean without bounds", "pure:1", lambda rows: t.mean(rows, epsilon=1)),
    ]


def python_dp() -> list[Case]:
    from pydp.algorithms import laplacian as a
    from pydp.algorithms import numerical_mechanisms as n
    from pydp.algorithms import partition_selection as p

    one, unit = {"epsilon": 1.0, "dtype": "float"}, {"lower_bound": 0, "upper_bound": 1}
    rows, people = partial(Case, x=ZEROS, y=[*ZEROS, 1.0], runs=FEW), partial(Case, x=4, y=5)
    return [
        Case("Laplace", "pure:1", n.LaplaceMechanism(1.0, 1.0).add_noise),
        rows("count", "pure:1", a.Count(**one).quick_result),
        rows("sum", "pure:1", a.BoundedSum(**one, **unit).quick_result),
        rows("mean", "pure:1", a.BoundedMean(**one, **unit).quick_result),
        rows("variance", "pure:1", a.BoundedVariance(**one, **unit).quick_result),
        rows("median", "pure:1", a.Median(**one, **unit).quick_result),
        rows("percentile", "pure:1", a.Percentile(**one, **unit, percentile=0.9).quick_result),
        people(
            "partitions, geometric",
            "approx:1,0.01",
            p.create_truncated_geometric_partition_strategy(1, 0.01, 1).should_keep,
        ),
        people("partitions, Laplace", "approx:1,0.01", p.create_laplace_partition_strategy(1, 0.01, 1).should_keep),
        people("partitions, Gaussian", "approx:1,0.01", p.create_gaussian_partition_strategy(1, 0.01, 1).should_keep),
    ]


def pipeline_dp() -> list[Case]:
    import pipeline_dp as p

    def aggregate(metric: Any, public: list[int] | None, delta: float, values: list[float]) -> float:
        accountant = p.NaiveBudgetAccountant(total_epsilon=1, total_delta=delta)
        bounds = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1, "min_value": 0, "max_value": 1}
        query = p.AggregateParams(metrics=[metric], noise_kind=p.NoiseKind.LAPLACE, **bounds)
        of_rows = p.DataExtractors(lambda row: row[0], lambda row: 0, lambda row: row[1])
        released = p.DPEngine(accountant, p.LocalBackend()).aggregate(list(enumerate(values)), query, of_rows, public)
        accountant.compute_budgets()
        return float(dict(released).get(0, [np.nan])[0])

    known = partial(Case, promise="pure:1", x=ZEROS, y=[*ZEROS, 1.0], runs=FEWER)
    return [
        known("COUNT", run=partial(aggregate, p.Metrics.COUNT, [0], 0)),
        known("SUM", run=partial(aggregate, p.Metrics.SUM, [0], 0)),
        known("MEAN", run=partial(aggregate, p.Metrics.MEAN, [0], 0)),
        known(
            "COUNT, partition selected", promise="approx:1,0.01", run=partial(aggregate, p.Metrics.COUNT, None, 0.01)
        ),
    ]


def multi_freq_ldpy() -> list[Case]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    def chosen(value: int) -> list[bool]:
        subset = SS_Client(value, CODES, 1.0)
        return [code in subset for code in range(CODES)]

    own = partial(Case, promise="pure:1", x=0, y=1, relation="replace_one")
    return [
        own("GRR", run=lambda value: GRR_Client(value, CODES, 1.0)),
        own("OUE", run=lambda value: UE_Client(value, CODES, 1.0, True)),
        own("SUE", run=lambda value: UE_Client(value, CODES, 1.0, False)),
        own("SS", run=chosen),
    ]


def opendp() -> list[Case]:
    from opendp.meas import make_base_gaussian, make_base_laplace
    from opendp.mod import enable_features

    enable_features("contrib", "floating-point")
    return [
        Case("base_laplace", "pure:1", make_base_laplace(1.0)),
        Case("base_gaussian", "zcdp:0.125", make_base_gaussian(2.0)),
    ]


def opacus() -> list[Case]:
    """Return a step of DP-SGD on 17 and 18 people, with batches of half of them on average."""
    # A mean over a batch leaks (issues 571 and 819 of opacus): the noisy sum is divided by the expected batch size,
    # rounded down, which is 8 on one database and 9 on the other.
    import torch
    from opacus import PrivacyEngine
    from opacus.accountants import create_accountant

    accountant = create_accountant("prv")
    accountant.step(noise_multiplier=1.0, sample_rate=0.5)

    def step(reduction: str, people: int) -> Any:
        rows, labels = torch.zeros(people, 2000), torch.ones(people, 1)
        rows[17:, 0] = 1.0  # only person 18 has a gradient
        model: Any = torch.nn.Linear(2000, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        model, descent, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, labels), batch_size=9),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            loss_reduction=reduction,
        )
        batch, labels = next(iter(loader))
        torch.nn.functional.mse_loss(model(batch), labels, reduction=reduction).backward()
        descent.step()
        return np.round(model._module.weight[0].tolist(), 4)  # coarser than leaks of float noise

    promise = f"approx:{accountant.get_epsilon(1e-5):.4f},1e-5"
    case = partial(Case, promise=promise, x=17, y=18, runs=FEWEST)
    return [case(f"DP-SGD, {reduction}", run=partial(step, reduction)) for reduction in ("mean", "sum")]


LIBRARIES: dict[str, Callable[[], list[Case]]] = {
    "diffprivlib": diffprivlib,
    "python-dp": python_dp,
    "pipeline-dp": pipeline_dp,
    "multi-freq-ldpy": multi_freq_ldpy,
    "opendp": opendp,
    "opacus": opacus,
}


def save(folder: Path) -> None:
    for library, cases in LIBRARIES.items():
        if library == "opacus" and find_spec(library) is None:  # optional: torch is large
            continue
        arrays: dict[str, Any] = {}
        rows = []
        recorded = cases()
        warnings.simplefilter("ignore")  # a library warns in every call, despite the user's settings
        for number, case in enumerate(recorded):
            begun = time.perf_counter()
            for name, data in (("x", case.x), ("y", case.y)):
                arrays[f"{name}{number}"] = np.array([case.run(data) for _ in range(case.runs // 2)], float)
            row = {"mechanism": case.mechanism, "promise": case.promise, "relation": case.relation}
            rows.append({**row, "seconds": time.perf_counter() - begun})
            print(f"{library} {case.mechanism}: {case.runs} runs in {rows[-1]['seconds']:.1f} s", flush=True)
        text = json.dumps({"library": library, "version": version(library), "rows": rows})
        np.savez_compressed(folder / f"{library}.npz", told=np.array(text), **arrays)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    save(place)
