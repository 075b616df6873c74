"""What a status rests on where numbers of an experiment decide it: rows of `papers.toml` name these conditions."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.audits import opened
from experiments.experiment import violations
from experiments.flaxman import direct
from experiments.ons import printed

ROUNDING = 1e-9


def statuses(parts: dict[str, Any]) -> dict[str, str]:
    """Return the status of every condition, from the numbers of all parts: what does not hold differs."""
    conditions = {
        "same": _flaxman(parts) | _phsafe(parts) | _ons(parts) | _others(parts),
        "close": {
            "GDPC in figure 1": abs(np.median(parts["flaxman_residuals"]["medians"]["GDPC"]) - 0.025) <= 0.002,
            "table 7": printed.misfits(parts["ons_regions"]["printed"])[7] <= 0.1,
        },
        "direction": _directions(parts["ons_utility"]["kinds"]),
    }
    return {name: how if holds else "differs" for how, own in conditions.items() for name, holds in own.items()}


def _flaxman(n: dict[str, Any]) -> dict[str, bool]:
    events = n["flaxman_direct"]["paper"].values()
    intervals = [(own["at_least"]["curve"]["low"], own["at_least"]["curve"]["high"]) for own in events]
    low, high = np.array(intervals, float).swapaxes(0, 1)
    return {
        "too noisy": min(np.median(own["equal"]["largest"]) for own in events) > 4 * direct.EPSILON,
        "consistent": bool(((low <= direct.EPSILON) & (high >= -direct.EPSILON)).all()),
    }


def _phsafe(n: dict[str, Any]) -> dict[str, bool]:
    def ordered(key: str) -> bool:
        """Tell whether no more is proved than the pair spends, and no more is spent than promised."""
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


def _ons(n: dict[str, Any]) -> dict[str, bool]:
    kinds = n["ons_utility"]["kinds"]
    laplace, pilot, equal = (kinds[kind]["1"] for kind in ("laplace", "top-down, pilot", "top-down, equal"))
    (zeros,) = [row["audits"] for row in n["ons_zeros"]["zeros"] if row["name"] == "zeros kept: synthetic people"]
    return {
        "zeros": violations(zeros) == len(zeros),
        "lift": abs(laplace["lift"] / laplace["expected"] - 1) < 0.05,
        "high levels": bool((np.array(equal["l1"]) < pilot["l1"])[10:].all()),
    }


def _directions(kinds: dict[str, Any]) -> dict[str, bool]:
    """Each of the 14 tables has the direction, over the pilot's epsilons."""
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


def _others(n: dict[str, Any]) -> dict[str, bool]:
    return {
        "groups compose": abs(n["nist_rows"]["composed"]["laplace"] - 1) < 1e-6,
        "rows": n["nist_rows"]["rows"] == 800_000,
    }
