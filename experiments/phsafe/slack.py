"""The exact loss that one person can cause in each query of the 2020 S-DHC, compared with its budget."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, cast, get_args

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.phsafe.budget import Config, read_config
from algorithms.phsafe.neighbors.pairs import HouseholdPair, Model
from algorithms.phsafe.neighbors.stability import stability_change
from algorithms.phsafe.neighbors.worst import joint_pair, worst_pair
from algorithms.phsafe.tables import QUERIES
from algorithms.release.frames import Frame
from audit.claims import ZCDP, Relation
from audit.results.plots import BLACK, BROWN, GRAY, GREEN, PURPLE, RED
from experiments.drawing import foot, head, name_rows, own_keys, page, promise, rule
from experiments.experiment import Check, Checks, Numbers, between, load_data, near

DELTA = 1e-10
MODELS: tuple[Model, ...] = get_args(Model)
RELATIONS: tuple[Relation, ...] = get_args(Relation)
TIMES = {"add_remove": 1, "replace_one": 2}  # promise of a run, in units of its budget

KNOWN = load_data("phsafe/known.toml")
EXPECTED: dict[str, dict[str, list[int]]] = KNOWN["squared"]  # by model and relation, then by table
JOINT: dict[str, float] = KNOWN["joint"]


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Compute the changes of every pair; nothing is random, and quick makes no difference."""
    config = read_config("us")
    counted: dict[HouseholdPair, Frame] = {}

    def change(pair: HouseholdPair) -> Frame:
        if pair not in counted:
            counted[pair] = stability_change(pair.x, pair.y, config=config)
        return counted[pair]

    rows = []
    for table, level, budget in config.budgets():
        row: dict[str, Any] = {"table": table, "level": level, "budget": budget, "stability": config.stability(table)}
        row |= {"tau": config.tau.get(table), "squared": {}, "rows": {}, "pair": {}}
        for model, relation in product(MODELS, RELATIONS):
            pair, case = worst_pair(table, level, model, relation, config), f"{model} {relation}"
            changes = change(pair)
            place = list(zip(changes["TABLE"], changes["LEVEL"], strict=True)).index((table, level))
            row["squared"][case], row["rows"][case] = (int(changes[name][place]) for name in ("L2_SQUARED", "ROWS"))
            row["pair"][case] = pair.label
        rows.append(row)
    joint = {}
    for case in JOINT:
        key, _, where = case.partition(", ")
        model, relation = cast(tuple[Model, Relation], key.split())
        pair = joint_pair(model, relation, config, in_place=bool(where))
        joint[case] = {"rho": rho_spent(change(pair), config), "pair": pair.label}
    return {"rows": rows, "joint": joint}


def rho_spent(change: Frame, config: Config) -> float:
    """Return the rho that a pair spends in a run, the sum over queries: for Gaussian noise its exact loss."""
    shares = zip(config.budgets(), change["SHARE"].tolist(), strict=True)
    return sum((budget * share for (_, _, budget), share in shares), 0.0)


def check(numbers: Numbers) -> Checks:
    rows, joint = numbers["rows"], numbers["joint"]
    for case, tables in EXPECTED.items():
        wrong = [row for row in rows if row["squared"][case] != _expected(tables, row)]
        words = f"{case}: largest squared L2 changes as expected: {len(rows) - len(wrong)} of {len(rows)}"
        yield Check(words, len(rows) == 46 and not wrong)
    for case, rho in JOINT.items():
        yield near(f"{case}: rho of one pair", joint[case]["rho"], rho, 5e-6)
    for case, rho in KNOWN["maxima"].items():
        times = TIMES[case.split()[1]]
        maxima = math.fsum(times * share * row["budget"] for share, row in zip(_shares(rows, case), rows, strict=True))
        yield near(f"{case}: rho of maxima", maxima, rho, 5e-4)
    for model in ("VAL", "DER"):
        most = max(row["rows"][f"{model} add_remove"] / (2 * row["tau"]) for row in rows if row["tau"])
        yield near(f"{model}: rows of the truncated and joined view / 2 tau", most, 1, 0)
    most = max(row["rows"]["API add_remove"] / row["stability"] for row in rows)
    yield near("API: rows of the truncated and joined view / (2 tau + 2)", most, 1, 0)
    over = 0
    for case, row in product(EXPECTED, rows):
        derived = 2 * (not case.startswith("API") and bool(row["tau"]))
        over += row["rows"][case] > TIMES[case.split()[1]] * (row["stability"] - derived)
    yield Check(f"rows of a view above what its stability allows: {over}", over == 0)
    for case, (low, high) in {"DER replace_one": (0.999, 1), "API replace_one": (1.999, 2)}.items():
        yield between(f"{case}: largest share of twice rho", max(_shares(rows, case)), low, high)
    numerators = [share for share, row in zip(_shares(rows, "API replace_one"), rows, strict=True) if row["tau"]]
    yield near("API replace_one: largest share of twice rho, numerators", max(numerators), 1.8264, 5e-5)
    for tau, factor in ((10, 2.42), (6, 2.72)):
        yield near(f"saving at tau {tau}", _saving(tau), factor, 5e-3)
    yield near("rho with the tight sensitivity", _tight(rows), 0.48841, 5e-5)


def _expected(tables: dict[str, list[int]], row: dict[str, Any]) -> int:
    values = tables[row["table"]]
    if row["level"] == "state_*" and len(values) == 3:
        return values[2]
    return values[0 if row["level"].endswith("*") else 1]


def _shares(rows: list[dict[str, Any]], case: str) -> list[float]:
    times = TIMES[case.split()[1]]
    return [row["squared"][case] / row["stability"] ** 2 / times for row in rows]


def _saving(tau: int) -> float:
    """Return the factor by which rho of the same noise falls if the L2 sensitivity is sqrt(2) tau."""
    return (2 * tau + 2) ** 2 / (2 * tau**2)


def _tight(rows: list[dict[str, Any]]) -> float:
    """Return rho of the same noise in the paper's model: L2 sensitivity sqrt(2) tau, or sqrt(2) for households."""
    return math.fsum(row["budget"] / (_saving(row["tau"]) if row["tau"] else 2) for row in rows)


def spelled(words: str) -> str:
    """Spell out the models of neighbors."""
    for model, look in STYLES.items():
        words = words.replace(model, look["label"])
    return words


def facts(numbers: Numbers) -> dict[str, Any]:
    share, total, tight = _joint_shares(numbers), _total(numbers), _tight(numbers["rows"])
    words = {
        "VAL": "VAL: both databases are valid; a lower bound",
        "DER": "DER: a household's row is any function of its members",
        "API": "API: one row of persons, any two of households",
    }
    rows = [
        (spelled(what), *(f"{share[f'{model} {relation}']:.1%}" for relation in RELATIONS))
        for model, what in words.items()
    ]
    promised, needed = (f"{ZCDP(rho).epsilon_at(DELTA):.2f}" for rho in (total, tight))
    return locals()


def _joint_shares(numbers: Numbers) -> dict[str, float]:
    total = _total(numbers)
    return {case: one["rho"] / total / TIMES[case.split(",")[0].split()[1]] for case, one in numbers["joint"].items()}


def _total(numbers: Numbers) -> float:
    return math.fsum(row["budget"] for row in numbers["rows"])


SCOPE = "exact loss of the worst pair; code's model: neighbors as the production code declares them"
STYLES: dict[str, dict[str, Any]] = {
    "VAL": {
        **{"label": "valid data", "color": GREEN, "marker": "o", "markersize": 7.5, "zorder": 4},
        **{"markerfacecolor": "none", "markeredgewidth": 1.5},
    },
    "DER": {"label": "paper's model", "color": PURPLE, "marker": "s", "markersize": 4.5},
    "API": {"label": "code's model", "color": BROWN, "marker": "^", "markersize": 5},
}
WORDS: dict[str, str] = KNOWN["words"]


def draw(numbers: Numbers) -> Figure:
    figure, axes = page(5.2, 1, 2)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in numbers["rows"]:
        groups.setdefault(_label(row), []).append(row)
    titles = ("(a) one added or removed", "(b) one person replaced")
    for ax, relation, title in zip(axes, RELATIONS, titles, strict=True):
        _dots(ax, groups, numbers, relation)
        head(ax, title)
        ax.set_xlabel("spent / promised" + (" (twice rho)" if relation == "replace_one" else " rho"))
    name_rows(axes[1], [""] * (len(groups) + 1), half=0.37)
    name_rows(axes[0], [*groups, "whole run, one pair"], half=0.37)
    axes[0].get_yticklabels()[-1].set_fontweight("bold")
    for ax in axes:
        ax.set_ylim(bottom=len(groups) + 1.1)
    foot(figure, own_keys(axes[0]), ncols=2, words=SCOPE)
    return figure


def _dots(ax: Axes, groups: dict[str, list[dict[str, Any]]], numbers: Numbers, relation: str) -> None:
    top = 1.1 if relation == "add_remove" else 2.1
    ax.axvspan(1, top, color=RED, alpha=0.08, linewidth=0, zorder=0)
    promise(ax, label="promised; beyond it: violated")
    joint = _joint_shares(numbers)
    below: dict[str, Any] = {"xytext": (0, -13), "textcoords": "offset points", "va": "top"}
    for (model, style), off in zip(STYLES.items(), (-0.22, 0.0, 0.22), strict=True):
        case = f"{model} {relation}"
        shares = [max(_shares(rows, case)) for rows in groups.values()]
        shares.append(joint[case])
        ax.plot(shares, [at + off for at in range(len(shares))], linestyle="none", **style)
        below["ha"] = "right" if off < 0 else "center"
        ax.annotate(f"{shares[-1]:.0%}", (shares[-1], len(groups)), fontsize=8, **below)
    for place in range(len(groups) + 1):
        ax.axhline(place, color=GRAY, linewidth=0.4, alpha=0.5, zorder=0)
    rule(ax, len(groups), color=BLACK, linewidth=0.8)
    ax.set_xlim(-0.03 * top, top)
    ax.set_xticks([0, 0.5, 1] if top < 2 else [0, 1, 2])
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def _label(row: dict[str, Any]) -> str:
    alone = QUERIES[row["table"]].race is None or row["table"] in ("PH3", "PH8_denom")
    return WORDS[row["table"]] + ("" if alone else ": all" if row["level"].endswith("*") else ": by race, origin")
