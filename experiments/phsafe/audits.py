"""Audits of noisy household tables, for several pairs and models of neighbors, and of three known bugs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from algorithms.bugs.systems.households import SharedNoise, TwoTauStability, UnitCountedTwice
from algorithms.phsafe.budget import Config, read_config
from algorithms.phsafe.measurement import PHSafe, tabulated
from algorithms.phsafe.neighbors.pairs import HouseholdPair
from algorithms.phsafe.neighbors.worst import joint_pair, worst_pair
from algorithms.phsafe.tabulation.rules import InvalidHouseholds
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.release.frames import Frame
from audit import ZCDP, AuditResult
from audit.claims import Relation
from audit.results import plain_number
from experiments.audits import audited, opened, share
from experiments.drawing import column, foot, group_rows, keys, losses, name_rows, page, promise
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down
from experiments.phsafe.slack import spelled

PH3, PH8 = ("PH3", "state_A-G"), ("PH8_denom", "state_A-G")
SHARED = (("PH1_num", "usa_*"), ("PH1_num", "usa_A-G"))
PH1 = ("PH1_num", "state_A-G")
LARGE = 0.5  # rho of PH1_num and PH8_denom alone; a million runs prove little of the production rho
LIMIT = 2.35  # end of the axis, in units of the promise
SIZE, JOINT, NARROW = 1_000_000, 400_000, 4_000_000  # runs: of one or two levels; of all 46; of a small violation


@dataclass(frozen=True)
class Case:
    """An audit: its mechanism and pair, and whether the exact law violates the promise."""

    words: str
    mechanism: type[PHSafe]
    pair: Callable[[], HouseholdPair]  # a function, since building a pair is slow
    only: Sequence[tuple[str, str]] | None
    violated: bool = False
    size: int = SIZE
    route: str = ""


def cases() -> dict[str, Case]:
    replaced: Relation = "replace_one"
    state, joint, rows, two = "PH3, State x A-G", "all 46", "noise for 2 tau rows", TwoTauStability
    vector, variance = "one noise vector for two levels: VAL", "the API pair, and the variance of the noise"
    places, witness = "the DER pair, and the validation of places", "the witness in the exact law, and counting"
    return {
        "VAL": Case(f"{state}: VAL, a person leaves", PHSafe, lambda: worst_pair(*PH3, "VAL"), [PH3]),
        "DER": Case(f"{state}: DER, a person leaves", PHSafe, lambda: worst_pair(*PH3, "DER"), [PH3]),
        "API": Case(f"{state}: API, a person leaves", PHSafe, lambda: worst_pair(*PH3, "API"), [PH3]),
        "all VAL": Case(f"{joint}: VAL, a person leaves", PHSafe, lambda: joint_pair("VAL"), None, size=JOINT),
        "all DER": Case(f"{joint}: DER, a person leaves", PHSafe, lambda: joint_pair("DER"), None, size=JOINT),
        "all DER replaced": Case(
            f"{joint}: DER, a person is replaced", PHSafe, lambda: joint_pair("DER", replaced), None, size=JOINT
        ),
        "DER replaced": Case(
            "PH8_denom, State x A-G: DER, replaced", PHSafe, lambda: worst_pair(*PH8, "DER", replaced), [PH8]
        ),
        "API replaced": Case(f"{state}: API, replaced", PHSafe, lambda: worst_pair(*PH3, "API", replaced), [PH3], True),
        "2 tau DER": Case(f"{rows}: DER", two, lambda: worst_pair(*PH1, "DER"), [PH1]),
        "2 tau API": Case(f"{rows}: API", two, lambda: worst_pair(*PH1, "API"), [PH1], True, NARROW, variance),
        "twice": Case(
            "a unit counted twice: DER", UnitCountedTwice, lambda: worst_pair(*PH8, "DER"), [PH8], True, SIZE, places
        ),
        "shared": Case(vector, SharedNoise, lambda: worst_pair(*SHARED[1], "VAL"), SHARED, True, SIZE, witness),
    }


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit twelve times, with 400,000 to 4,000,000 runs (quick: an eighth)."""
    us = read_config("us")
    raised = {table: dict.fromkeys(us.privacy_budget[table], LARGE) for table, _ in (PH1, PH8)}
    config = replace(us, privacy_budget={**us.privacy_budget, **raised})
    rows, streams = {}, np.random.SeedSequence(seed).spawn(len(cases()) + 1)
    for (key, case), stream in zip(cases().items(), streams, strict=False):
        settings = us if case.only is None else config
        mechanism = case.mechanism(settings, case.only)
        pair = tabulated(case.pair(), settings, case.only)
        # For a replaced person, Appendix A promises twice the budget; general zCDP would give four times.
        factor = 2 if pair.relation == "replace_one" else 1
        claim = ZCDP(factor * mechanism.claim.budget, relation=pair.relation)
        saved = audited(mechanism, pair, claim, size=case.size // (8 if quick else 1), rng=stream, jobs=jobs)
        rows[key] = {"spent": plain_number(mechanism.spent(pair)), "audit": saved}
    return {
        "rows": rows,
        "variance": _variance(config, 200_000 // (8 if quick else 1), np.random.default_rng(streams[-1])),
        "validation": _repeated_places(),
    }


def _variance(config: Config, runs: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the ratio of the noise variance to that of the budget, with an interval, without and with the bug."""
    exact = tabulation(*worst_pair(*PH1, "DER").x, config=config, validation="none")
    variances = {}
    for name, kind in (("sound", PHSafe), ("2 tau", TwoTauStability)):
        noise = kind(config, [PH1])(exact, runs, rng) - kind(config, [PH1]).exact(exact)
        expected = config.stability(PH1[0]) ** 2 / (2 * config.budget(*PH1))
        squares, error = float(np.sum(noise.astype(np.float64) ** 2)) / expected, (1 - CONFIDENCE) / 2
        # chi2 is valid: at sigma 22 the fourth moment of the discrete Gaussian is practically that of the normal law.
        lower, upper = (squares / stats.chi2.ppf(q, noise.size) for q in (1 - error, error))
        variances[name] = {"ratio": squares / noise.size, "lower": lower, "upper": upper}
    return variances


def _repeated_places() -> str:
    """Return the error message of validation for a geo file that lists every unit twice."""
    persons, units, geo = worst_pair(*PH8, "VAL").x
    try:
        tabulation(persons, units, Frame.concatenate([geo, geo]))
    except InvalidHouseholds as error:
        return str(error)
    return "nothing"


def check(numbers: Numbers) -> Checks:
    for key, case in cases().items():
        row = numbers["rows"][key]
        audit, spent = opened(row["audit"]), float(row["spent"])
        bound, promised = audit.measured.budget, audit.claim.budget
        if np.isfinite(spent):
            least = 0.6 if audit.size < case.size else 0.9 if case.size > JOINT else 0.8
            yield between(f"{key}: lower bound on rho / rho spent", bound / spent, least, 1.0)
            yield Check(f"{key}: spends {spent / promised:.3f} of the promise", (spent > promised) == case.violated)
        else:
            yield Check(f"{key}: a witness in the exact law", audit.support is not None)
            yield between(f"{key}: lower bound on rho / promise, by counting", bound / promised, 2.0, np.inf)
        expected = f"violated, by {case.route}" if case.route else "violated" if case.violated else "not refuted"
        yield Check(f"{key}: {audit.verdict}, expected {expected}", (audit.verdict == "violated") == case.violated)
    correct, bug = numbers["variance"]["sound"], numbers["variance"]["2 tau"]
    yield Check(f"variance of correct noise: {correct['ratio']:.4f}", correct["lower"] <= 1 <= correct["upper"])
    yield Check(f"variance of noise for 2 tau rows: {bug['ratio']:.4f}", bug["upper"] < 1)
    twice = "geo: no MAFID may stand twice"
    yield Check(f"places listed twice: {numbers['validation']}", twice in numbers["validation"])


def facts(numbers: Numbers) -> dict[str, Any]:
    row, bugs = numbers["rows"]["all VAL"], ("2 tau API", "twice", "shared")
    spent, proved = float(row["spent"]) / opened(row["audit"]).claim.budget, down(100 * share(row["audit"]))
    over = [share(numbers["rows"][key]["audit"]) for key in bugs]
    rows = []
    for key in ("all VAL", "all DER", "DER replaced", "API replaced", "2 tau DER", *bugs):
        audit, lost = opened(numbers["rows"][key]["audit"]), float(numbers["rows"][key]["spent"])
        loss = "infinite" if np.isinf(lost) else f"{lost / audit.claim.budget:.3f}"
        bound = down(audit.measured.budget / audit.claim.budget)
        rows.append((spelled(cases()[key].words).partition(", a person")[0], loss, bound, audit.verdict))
    n_found = sum(bound > 1 for bound in over)
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (ax,) = page(5.0)
    known = cases()
    bugs = [key for key, case in known.items() if case.mechanism is not PHSafe]
    promise(ax)
    heights = {key: place + 1.6 + 1.2 * (key in bugs) for place, key in enumerate(known)}
    for name, height in heights.items():
        _row(ax, opened(numbers["rows"][name]["audit"]), float(numbers["rows"][name]["spent"]), height)
    name_rows(ax, [spelled(case.words) for case in known.values()], at=list(heights.values()), top=0)
    for words, first in (("correct noise", next(iter(heights))), ("known bugs", bugs[0])):
        group_rows(ax, heights[first] - 1, words, size=9, weight="bold")
    column(ax, 0.6, "bound", 38, style="italic")
    column(ax, 0.6, "spent", 70, style="italic")
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("share of the promised $\\rho$: of the budget,\nor of twice the budget where a person is replaced")
    handles: list[Any] = keys(
        bound="lower bound, not refuted",
        violated="lower bound, violated",
        exact="exact loss: spent by the exact law",
        infinite="exact loss infinite",
        promise="promise",
    )
    words = "code's model: neighbors as the production code declares them"
    foot(figure, handles, ncols=3, words=words)
    return figure


def _row(ax: Axes, audit: AuditResult, spent: float, height: float) -> None:
    promised, bound = audit.claim.budget, audit.measured.budget / audit.claim.budget
    losses(ax, height, [bound], spent / promised, end=LIMIT, violated=audit.verdict == "violated")
    column(ax, height, down(bound, 2 if bound < 1 else 3), 38)
    column(ax, height, f"{spent / promised:.2f}" if np.isfinite(spent) else "$\\infty$", 70)
