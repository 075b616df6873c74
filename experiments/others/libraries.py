"""Audits of public libraries, from their outputs."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure

from audit import ApproxDP, Attack, GaussianDP, PureDP, measure_loss_from_outputs
from audit.adapters import opendp
from audit.claims import Claim, claim_from_dict, parse_claim
from audit.results.formatting import nearest
from audit.results.plots import BLUE, PALE
from experiments.audits import kept, promised, run_all
from experiments.drawing import bar, bare_rows, column, foot, head, keys, name_rows, page, promise
from experiments.experiment import CONFIDENCE, DATA, Check, Checks, Numbers, down

OUTPUTS = Path(__file__).resolve().parents[2] / "build" / "libraries" / "outputs"  # made by `make libraries`
FILES = ("diffprivlib", "python-dp", "pipeline-dp", "multi-freq-ldpy", "opendp")
OPTIONAL = ("opacus",)  # made by `make libraries TORCH=1`
RUNS, MANY, SMALL = 50_000, 2_000_000, 20_000  # over both databases
LOOKS = {"everything": Attack(), "no precision": Attack.without("precision")}
BITS, ANY = "by its last bits", "by any look"
REFUTED = {  # expected violations, and by which attacks
    (library, name): how for how, refuted in DATA["libraries"].items() for library, name in refuted
}


Outputs = Callable[[int], tuple[Any, Any]] | tuple[Any, Any]  # outputs, or a function of the runs


@dataclass(frozen=True)
class Case:
    """A mechanism of this environment, or outputs of one from another environment."""

    library: str
    version: str
    mechanism: str
    claim: Claim
    outputs: Outputs
    runs: int = RUNS
    seconds: float = 0.0  # of runs in another environment


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit every mechanism with all attacks, and without the one on precision (quick: only this environment)."""
    cases = ([] if quick else _of_files()) + [*_of_opendp(), *_of_numpy()]
    streams = np.random.SeedSequence(seed).spawn(len(cases))
    tasks = [delayed(_row)(case, quick, stream) for case, stream in zip(cases, streams, strict=True)]
    return {"rows": run_all(tasks, 1, "libraries", unit="mechanisms"), "confidence": CONFIDENCE}


def _row(case: Case, quick: bool, stream: np.random.SeedSequence) -> dict[str, Any]:
    begun = time.perf_counter()
    size = SMALL if quick and case.runs == RUNS else case.runs
    x, y = case.outputs(size) if callable(case.outputs) else case.outputs
    audits = {}
    for (name, attack), own in zip(LOOKS.items(), stream.spawn(len(LOOKS)), strict=True):
        options: dict[str, Any] = {"attack": attack, "confidence": CONFIDENCE, "rng": own}
        result = measure_loss_from_outputs(x, y, case.claim, relation=case.claim.relation, **options)
        audits[name] = kept(result) | {"attack": result.attack, "event": result.event}
    return {
        "library": case.library,
        "version": case.version,
        "mechanism": case.mechanism,
        "promise": case.claim.to_dict(),
        "runs": len(x) + len(y),
        "seconds": float(f"{case.seconds + time.perf_counter() - begun:.2g}"),
        "audits": audits,
    }


def _of_files() -> list[Case]:
    """Return cases with outputs of libraries that ran in their own environments."""
    cases = []
    for name in FILES + OPTIONAL:
        path = OUTPUTS / f"{name}.npz"
        if not path.exists():
            if name in OPTIONAL:
                continue
            raise FileNotFoundError(f"{path} must hold outputs: run `make libraries`")
        with np.load(path, allow_pickle=False) as saved:
            header = json.loads(str(saved["told"]))
            for number, row in enumerate(header["rows"]):
                pair = saved[f"x{number}"], saved[f"y{number}"]
                library = "opendp 0.3.0" if header["library"] == "opendp" else header["library"]
                claim = parse_claim(row["promise"], row["relation"])
                case = partial(Case, library, header["version"], row["mechanism"], claim, seconds=row["seconds"])
                cases.append(case(outputs=pair))
    return cases


def _of_opendp() -> list[Case]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers, real = dp.atom_domain(T=int), dp.atom_domain(T=float, nan=False)
    counts, floats = dp.vector_domain(integers), dp.vector_domain(real)
    keys, rows = dp.map_domain(dp.atom_domain(T=str), integers), (floats, dp.symmetric_distance())
    apart = dp.l01inf_distance(dp.absolute_distance(T=int))
    each, pure, largest = {"entrywise": True}, dp.max_divergence(), dp.linf_distance(T=float)
    cut = [float(bin) for bin in range(10)]
    entries: list[tuple[str, Any, Any, Any, Any, dict[str, Any]]] = [
        ("Laplace, float", dp.m.make_laplace(floats, dp.l1_distance(T=float), 1.0), 0.0, 1.0, 1.0, each),
        ("Laplace, int", dp.m.make_laplace(counts, dp.l1_distance(T=int), 1.0), 0, 1, 1, each),
        ("Gaussian, float", dp.m.make_gaussian(floats, dp.l2_distance(T=float), 2.0), 0.0, 1.0, 1.0, each),
        ("Gaussian, int", dp.m.make_gaussian(counts, dp.l2_distance(T=int), 2.0), 0, 1, 1, each),
        ("randomized response", dp.m.make_randomized_response([1, 2, 3], 0.6), 1, 2, 1, {}),
        ("noisy max", dp.m.make_noisy_max(floats, largest, pure, 2.0), [0.0] * 3, [1.0, 0, 1], 1.0, {}),
        ("quantile", dp.m.make_private_quantile(*rows, pure, cut, 0.5, 1.0), [1.0, 8], [1.0, 8, 8], 1, {}),
        ("threshold", dp.m.make_laplace_threshold(keys, apart, 1.0, 4), {}, {"a": 1}, (1, 1, 1), {}),
    ]
    cases = []
    for name, measurement, x, y, d_in, options in entries:
        mechanism: Any = opendp.mechanism(measurement, d_in, **options)
        case = partial(Case, outputs=_both(mechanism, x, y), runs=RUNS if options else SMALL)
        cases.append(case("opendp", version("opendp"), name, mechanism.claim))
    return cases


def _of_numpy() -> list[Case]:
    """Return textbook noise on counts 0 and 1, and rounded Gaussian noise calibrated by two rules."""
    import dp_accounting  # type: ignore[import-untyped]
    from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]

    def laplace(count: float, size: int, rng: np.random.Generator) -> Any:
        return count + rng.laplace(0, 1, size)

    def gaussian(sigma: float, count: float, size: int, rng: np.random.Generator) -> Any:
        return count + rng.normal(0, sigma, size)

    def rounded(sigma: float, count: float, size: int, rng: np.random.Generator) -> Any:
        return gaussian(sigma, count, size, rng).round(3)

    exact = dp_accounting.calibrate_dp_mechanism(PLDAccountant, dp_accounting.GaussianDpEvent, 1.0, 0.01)
    classical = math.sqrt(2 * math.log(1.25 / 0.1)) / 8  # proved only for epsilon up to 1
    textbook = partial(Case, "textbook", version("numpy"))
    calibrated = partial(Case, "dp-accounting", version("dp-accounting"), "calibrated Gaussian", ApproxDP(1.0, 0.01))
    return [
        textbook("Laplace", PureDP(1.0), _both(laplace)),
        textbook("Gaussian", GaussianDP(1.0), _both(partial(gaussian, 1.0))),
        calibrated(_both(partial(rounded, exact))),
        textbook("Gaussian, epsilon 8", ApproxDP(8.0, 0.1), _both(partial(rounded, classical)), MANY),
    ]


def _both(mechanism: Any, x: Any = 0.0, y: Any = 1.0) -> Outputs:

    def outputs(runs: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(7)
        return mechanism(x, runs // 2, rng), mechanism(y, runs // 2, rng)

    return outputs


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        how, refuted = REFUTED.get((row["library"], row["mechanism"]), ""), _refuted(row)
        lost = float(row["audits"]["everything"]["lower_bound"])
        words = f"{row['library']} {row['mechanism']}: {refuted or 'not refuted'}, expected {how or 'not refuted'}"
        yield Check(f"{words}; lower bound {down(lost)} of {promised(row):g}", refuted == how)
    mechanisms = {(row["library"], row["mechanism"]) for row in numbers["rows"]}
    libraries = {library for library, _ in mechanisms}
    missing = {(library, name) for library, name in REFUTED.keys() - mechanisms if library in libraries}
    yield Check(f"{len(missing)} of the mechanisms that are refuted are missing, expected 0", not missing)


def _refuted(row: dict[str, Any]) -> str:
    values, less = (row["audits"][name]["verdict"] == "violated" for name in LOOKS)
    return ANY if less else BITS if values else ""


def facts(numbers: Numbers) -> dict[str, Any]:
    sound, bits, broken = ([row for row in numbers["rows"] if _refuted(row) == how] for how in ("", BITS, ANY))
    rows = []
    for library in dict.fromkeys(row["library"] for row in numbers["rows"]):
        own = [row for row in numbers["rows"] if row["library"] == library]
        names = (
            ", ".join(re.sub(", (.*)", r" (\1)", row["mechanism"]) for row in own if _refuted(row) == how)
            for how in (BITS, ANY)
        )
        rows.append((library, str(len(own)), *names))
    of_one = [row for row in bits if row["promise"].get("epsilon") == 1]
    most = max((float(row["audits"]["everything"]["lower_bound"]) for row in of_one), default=0.0)
    seconds = [row["seconds"] for row in numbers["rows"]]
    libraries = {row["library"].split()[0] for row in numbers["rows"]} - {"textbook"}
    return locals()


def draw(numbers: Numbers) -> Figure:
    refuted = [row for row in numbers["rows"] if _refuted(row)]
    figure, (ax,) = page(1.6 + 0.33 * len(refuted))
    for place, row in enumerate(refuted):
        for name, shift, color in (("everything", -0.2, BLUE), ("no precision", 0.2, PALE)):
            violated = row["audits"][name]["verdict"] == "violated"
            style: dict[str, Any] = {} if violated else {"color": color}
            bar(ax, place + shift, _share(row, name), violated=violated, height=0.36, **style)
        promised = [f"{key} {nearest(number)}" for key, number in claim_from_dict(row["promise"]).parameters.items()]
        replaced = [] if row["promise"]["relation"] == "add_remove" else ["replace one"]
        column(ax, place, ", ".join(promised + replaced), 8, ha="left")
    column(ax, -1, "promised", 8, ha="left", style="italic")
    name_rows(ax, [f"{row['library']}: {row['mechanism']}" for row in refuted], top=-1.4, half=0.42)
    ax.set_xlim(0, 1.05 * max(_share(row, "everything") for row in refuted))
    handles = keys(violated="violated", pale="lower bar: without attacks on precision, not refuted")
    head(ax, f"{len(refuted)} mechanisms that are refuted; upper bar: all attacks", handles, x=-0.4)
    promise(ax)
    bare_rows(ax)
    ax.set_xlabel("lower bound, in units of the promise")
    foot(figure, keys(promise="promise"), words="one person added or removed, unless the promise is for one replaced")
    return figure


def _share(row: dict[str, Any], attacks: str) -> float:
    return float(row["audits"][attacks]["lower_bound"]) / promised(row)
