"""Values and statuses that templates of `papers.toml` name, computed from saved numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

from algorithms.bugs.budget import NotebookGDPC
from algorithms.ons.deaths import PLAUSIBLE
from experiments.audits import opened, share
from experiments.experiment import NAMES, Numbers, down, violations
from experiments.flaxman import audit, direct, equation
from experiments.ons import printed, shares

ROUNDING = 1e-9
MODELS = {"VAL": "in valid data", "DER": "in the paper's model", "API": "as the production code declares neighbors"}
Saved = Callable[[str], Numbers]  # name of an experiment -> its saved numbers


def values(saved: Saved) -> dict[str, Any]:
    named: dict[str, Any] = {name: saved(name) for name in NAMES}
    named["how"] = statuses(named)
    for of_paper in (_flaxman, _phsafe, _ons, _bottom_up, _nist):
        named |= of_paper(named)
    return named


def _listed(numbers: Iterable[Any], form: str) -> str:
    return ", ".join(form.format(number) for number in numbers)


def _flaxman(n: Numbers) -> dict[str, Any]:
    moved = next(row for row in n["neighbor_relation"]["rows"] if row["case"] == "moved")
    one_person = n["flaxman_direct"]["one_person"]
    return {
        "moved": {"GDPC": moved["exact"] / moved["epsilon"], "RDPC": audit.facts(n["flaxman_audit"])["lost"]},
        "notebook": {parts: parts * NotebookGDPC(direct.EPSILON / parts).spent for parts in (1, 4)},
        "exact": {row["system"]: float(row["exact"]) for row in n["all_systems"]["rows"]},
        "one_person": {
            "runs": opened(one_person["GDPC"]).size,
            "bounds": ", ".join(down(share(audit)) for audit in one_person.values()),
        },
        "apart": {name: f"{most:.2g}" for name, most in equation.facts(n["flaxman_equation"])["apart"].items()},
        "whole_table": down(share(n["flaxman_audit"]["rows"]["auto"]["audit"])),
    }


def _phsafe(n: Numbers) -> dict[str, Any]:
    audits = {key: (opened(row["audit"]), float(row["spent"])) for key, row in n["phsafe_audits"]["rows"].items()}
    table10 = n["phsafe_table10"]
    joint, ledger = n["phsafe_spent"]["joint"], table10["ledgers"]["us"]
    covered = {name: [row["coverage"][name] for row in table10["rows"]] for name in ("printed", "target")}
    same = {
        name: sum(f"{row['formula'][name]:.6f}" == f"{float(row['unbounded']):.6f}" for row in table10["rows"])
        for name in ("printed", "production")
    }
    return {
        "phsafe_bound": {
            key: f"lower bound {down(audit.measured.budget)}, spent {spent:.3f}, promised {audit.claim.budget:g}"
            for key, (audit, spent) in audits.items()
        },
        "phsafe_joint": {
            model: f"{joint[f'{model} add_remove']['rho'] / ledger['unbounded']:.1%} of rho {words}"
            for model, words in MODELS.items()
        },
        "replaced": {name: f"{joint[f'{name} replace_one']['rho'] / ledger['bounded']:.1%}" for name in MODELS},
        "coverage_of": {
            "least": min(covered["printed"]),
            "most": max(covered["printed"]),
            "targets": min(covered["target"]),
        },
        "empty": {sigma: 100 * curve[0] for sigma, curve in n["phsafe_intervals"]["curves"].items()},
        "same_digits": {name: f"{rows} of {len(table10['rows'])} budgets" for name, rows in same.items()},
    }


def _ons(n: Numbers) -> dict[str, Any]:
    kinds = n["ons_utility"]["kinds"]
    laplace, pilot, equal = (kinds[kind]["1"] for kind in ("laplace", "top-down, pilot", "top-down, equal"))
    ratio, fit, (lack, total, limits) = np.divide(pilot["l1"], laplace["l1"]), n["ons_regions"], printed.total_share()
    a_table = [np.divide(pilot[measure], kinds["epsilon a table"]["1"][measure]) for measure in ("l1", "l2")]
    areas = sum(map(len, PLAUSIBLE["areas"].values()))
    fewer = np.divide(equal["l1"], pilot["l1"])
    (kept,) = [row["audits"] for row in n["ons_zeros"]["zeros"] if row["name"] == "zeros kept: synthetic people"]
    named: dict[str, Any] = {
        "zeros_kept": f"{violations(kept)} of {len(kept)}",
        "lift": {name: float(laplace[name]) for name in ("lift", "expected")},
        "pilot_mean": {
            f"{kind}, {measure}": ", ".join(
                f"{np.mean(np.array(kinds[kind][epsilon][measure], float)):,.2f} at {epsilon}"
                for epsilon in ("0.1", "1", "10")
            )
            for kind in ("gaussian", "top-down, pilot")
            for measure in ("on_diagonal", "l1", "l2", "hellinger")
        },
        "top_down_ratio": f"{ratio.min():.2f} to {ratio.max():.0f} times, above 1 in {(ratio > 1).sum()} of 14 tables",
        "a_table": [f"{own.min():.1f} to {own.max():.0f} times" for own in a_table],
        "square_roots": _listed(0.99 * (roots := np.sqrt([1, len(printed.NAMES), areas])) / roots.sum(), "{:.3f}"),
        "equal_shares": _listed(fewer[10:], "{:.2f}"),
        "fewer_below": f"{fewer.min():.2f} to {fewer.max():.2f}",
        "agreement": printed.agreement(fit["printed"]),
        "best_shares": ", ".join(fit["best"]["shares"]),
        "totals": f"with {lack} added to each, a share of {total:.2f}, 95% limits {limits[0]:.2f} and {limits[1]:.2f}",
        "factors": printed.factors(),
        **{"nearest": {}, "regions": {}, "areas": {}},
    }
    for number, method in product(printed.CELLS, ("laplace", "printed", "best")):
        epsilon, apart = shares.nearest(fit, number, method)
        ways = {"printed": "printed shares", "best": f"shares {named['best_shares']}", "laplace": "method 1"}
        named["nearest"][f"{number}, {method}"] = f"{apart:.2f} with {ways[method]}, epsilon {epsilon:g}"
    for words, number in (("with", 8), ("without", 10)):
        for key, table in (("regions", number), ("areas", number + 1)):
            _, there, here = printed.beside(fit["printed"], table)
            named[key][words] = f"{np.nanmin(here / there):.2f} to {np.nanmax(here / there):.2f}"
    return named


def _bottom_up(n: Numbers) -> dict[str, Any]:
    inverse = n["bottom_up_curve"]["inverse"][::6]
    return {
        "inverse": {
            "witness": _listed((row["witness"] for row in inverse), "{:.0e}"),
            "epsilon": _listed((row["epsilon"] for row in inverse), "{:g}"),
        },
        "reported": ", ".join(f"{state} {part:.0%}" for state, part in n["bottom_up_curve"]["reported"].items()),
    }


def _nist(n: Numbers) -> dict[str, Any]:
    numbers = n["nist_rows"]
    return {
        "distances": ", ".join(
            f"{np.mean(own):.3f} at {epsilon}" for epsilon, own in numbers["distance"]["grouped"].items()
        ),
        "domain_audits": sum(audit["what"] == "domain from the data" for audit in numbers["audits"]),
    }


def statuses(parts: dict[str, Any]) -> dict[str, str]:
    """Return the status of every condition; it is "differs" if the condition does not hold."""
    conditions = {
        "same": {
            **_flaxman_holds(parts),
            **_phsafe_holds(parts),
            **_ons_holds(parts),
            "groups compose": abs(parts["nist_rows"]["composed"]["laplace"] - 1) < 1e-6,
            "rows": parts["nist_rows"]["rows"] == 800_000,
        },
        "close": {
            "GDPC in figure 1": abs(np.median(parts["flaxman_residuals"]["medians"]["GDPC"]) - 0.025) <= 0.002,
            "table 7": printed.misfits(parts["ons_regions"]["printed"])[7] <= 0.1,
        },
        "direction": _direction_holds(parts["ons_utility"]["kinds"]),
    }
    return {name: how if holds else "differs" for how, own in conditions.items() for name, holds in own.items()}


def _flaxman_holds(n: dict[str, Any]) -> dict[str, bool]:
    events = n["flaxman_direct"]["paper"].values()
    intervals = [(own["at_least"]["curve"]["low"], own["at_least"]["curve"]["high"]) for own in events]
    low, high = np.array(intervals, float).swapaxes(0, 1)
    return {
        "too noisy": min(np.median(own["equal"]["largest"]) for own in events) > 4 * direct.EPSILON,
        "consistent": bool(((low <= direct.EPSILON) & (high >= -direct.EPSILON)).all()),
    }


def _phsafe_holds(n: dict[str, Any]) -> dict[str, bool]:
    def ordered(key: str) -> bool:
        """Return whether lower bound <= exact loss of the pair <= promise."""
        row = n["phsafe_audits"]["rows"][key]
        audit = opened(row["audit"])
        return bool(audit.measured.budget <= float(row["spent"]) <= audit.claim.budget)

    rows, ledgers = n["phsafe_table10"]["rows"], n["phsafe_table10"]["ledgers"]
    states = sum(float(row["unbounded"]) for row in rows if row["level"].startswith("state"))
    return {
        "sensitivity": ordered("VAL"),
        "composition": ordered("all DER"),
        "Puerto Rico": abs(ledgers["pr"]["unbounded"] - states) < ROUNDING,
        "table 10": all(row["preset"] == float(row["unbounded"]) for row in rows),
    }


def _ons_holds(n: dict[str, Any]) -> dict[str, bool]:
    kinds = n["ons_utility"]["kinds"]
    laplace, pilot, equal = (kinds[kind]["1"] for kind in ("laplace", "top-down, pilot", "top-down, equal"))
    (zeros,) = [row["audits"] for row in n["ons_zeros"]["zeros"] if row["name"] == "zeros kept: synthetic people"]
    return {
        "zeros": violations(zeros) == len(zeros),
        "lift": abs(laplace["lift"] / laplace["expected"] - 1) < 0.05,
        "high levels": bool((np.array(equal["l1"]) < pilot["l1"])[10:].all()),
    }


def _direction_holds(kinds: dict[str, Any]) -> dict[str, bool]:
    """Return which statements on directions hold in each of the 14 tables, over the pilot's epsilons."""
    own = kinds["top-down, pilot"]
    epsilons = sorted((key for key in own if 0.1 <= float(key) <= 10), key=float)
    at_1, equal, independent = own["1"], kinds["top-down, equal"]["1"], kinds["epsilon a table"]["1"]
    return {
        **{
            f"{measure} falls": bool((np.diff([own[key][measure] for key in epsilons], axis=0) <= 0).all())
            for measure in ("l1", "l2", "hellinger")
        },
        "much greater": all((np.array(at_1[name]) > independent[name]).all() for name in ("l1", "l2")),
        "lower levels": bool((np.array(equal["l1"]) < at_1["l1"]).all()),
    }
