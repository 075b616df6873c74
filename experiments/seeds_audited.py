"""Every system of the five papers in one table: what it promises, what it loses, and what runs show of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from algorithms.bottom_up import BottomUp
from algorithms.bugs.systems.nist import DomainFromData
from algorithms.bugs.systems.ons import ClassicalGaussian
from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.ons.laws import PILOT_DELTA
from algorithms.ons.tables import Table
from algorithms.phsafe.budget import read_config
from algorithms.phsafe.measurement import PHSafe, tabulated
from algorithms.phsafe.neighbors.worst import joint_pair
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP, claim_from_dict
from audit.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import BLACK, BLUE, GREEN, RED, new_figure
from audit.sampling.progress import progress_bar
from experiments import nist_synthesis, ons_zeros, topdown_audit
from experiments.experiment import CONFIDENCE, Check, between
from experiments.topdown_bugs import event_class

QUESTION = "What do the systems of the five papers promise, what do they lose, and what do audits show of it?"
EXPECTATION = (
    "Each system as it is implemented here keeps its promise: its exact law does not exceed it, and no audit accuses "
    "it. What the papers did besides breaks it and is found, by counts or by a witness: zeros without noise, a scale "
    "beyond its theorem, an inverse distribution function in floating point, a domain read from the data."
)

TREE = Hierarchy.regular(3, 2)
PEOPLE = np.array([50, 3, 12, 41, 7, 0, 28, 16, 5])
LIMIT = 1.75  # of the axis, in promises
SOUND_AUDITS = 100


@dataclass(frozen=True)
class Case:
    """A system: whose it is, what runs, on whom, and what is known of it.

    Attributes
    ----------
    measured : callable
        Makes the part whose exact law bounds all that is released.
    released : callable or None
        Makes what is audited by runs. None: the same.
    sound : bool
        Whether it should keep its promise.
    times : int
        Audits; those after the first have a tenth of the runs.
    lesson : str
        What to know, in one sentence.
    """

    system: str
    source: str
    measured: Callable[[], Any]
    pair: Callable[[], NeighborPair]
    lesson: str
    released: Callable[[], Any] | None = None
    claim: PureDP | ZCDP | ApproxDP | None = None
    sound: bool = True
    size: int = 200_000
    times: int = 1


def added() -> NeighborPair:
    """Return counts of nine areas, and one person more in the first."""
    return NeighborPair.add_people(PEOPLE, 0)


def deaths(cell: tuple[int, int] = ons_zeros.AMONG) -> NeighborPair:
    """Return counts of four areas, and one person more, among others or alone in a cell."""
    return NeighborPair.add_people(ons_zeros.PEOPLE, cell)


def classical() -> ClassicalGaussian:
    """Return one count with Gaussian noise of the textbook's scale, at the pilot's largest epsilon."""
    options: dict[str, Any] = {"law": "gaussian", "delta": PILOT_DELTA, "rounded": False}
    return ClassicalGaussian(ons_zeros.TREE, ons_zeros.SCHEMA, 10.0, [Table(0, "total")], **options)


def cases() -> list[Case]:
    """Return all systems, paper by paper."""
    promise = PureDP(1.0, "replace_one")
    return [
        Case("GDPC", "Flaxman 2019", lambda: GDPC(1.0), added, "One threshold shows the whole loss."),
        Case(
            "RDPC",
            "Flaxman 2019",
            lambda: RDPC(1.0, TREE),
            added,
            "One count shows a part; un-raked, the leaves show nearly all.",
        ),
        Case("ADPC", "Flaxman 2019", lambda: ADPC(1.0), added, "The whole loss is in errors too rare to count."),
        Case(
            "TopDown",
            "Census Bureau; Petti and Flaxman 2019",
            lambda: topdown_audit.release(promise, "replace_one").stage("measurements"),
            lambda: topdown_audit.neighbors("replace_one"),
            "The root's total cannot change; in published tables these attacks find little.",
            released=lambda: topdown_audit.release(promise, "replace_one"),
            claim=promise,
        ),
        Case(
            "PHSafe, all 46 answers",
            "Sexton et al. 2024",
            lambda: PHSafe(read_config("us"), None),
            lambda: tabulated(joint_pair("DER"), read_config("us")),
            "No valid pair found spends all that is declared.",
        ),
        Case(
            "ONS, 14 tables",
            "ONS pilot",
            lambda: ons_zeros.method_1(1.0),
            deaths,
            "Fourteen small shares need very rare events to be seen together.",
            times=SOUND_AUDITS,
        ),
        Case(
            "ONS, top-down",
            "ONS pilot",
            lambda: ons_zeros.method_2(1.0).stage("measurements"),
            deaths,
            "In synthetic people these attacks find little of what levels show.",
            released=lambda: ons_zeros.method_2(1.0),
            times=SOUND_AUDITS,
        ),
        Case(
            "ONS, top-down, zeros kept",
            "ONS pilot",
            lambda: ons_zeros.method_2(1.0, perturb_zeros=False).stage("measurements"),
            lambda: deaths(ons_zeros.ALONE),
            "Whoever appears in a cell is there: less bias, and no promise at all.",
            released=lambda: ons_zeros.method_2(1.0, perturb_zeros=False),
            claim=PureDP(1.0),
            sound=False,
        ),
        Case(
            "ONS, Gaussian of Table 2",
            "ONS pilot",
            classical,
            deaths,
            "The scale's theorem ends at epsilon 1; rounding mends it at 10, not at 7.",
            sound=False,
            size=8_000_000,
        ),
        Case(
            "bottom-up, exact noise",
            "Clark and Dajani 2019",
            lambda: BottomUp(1.0),
            added,
            "Margins add up noisy cells and cost nothing more.",
            times=SOUND_AUDITS,
        ),
        Case(
            "bottom-up, inverse CDF",
            "Clark and Dajani 2019",
            lambda: BottomUp(1.0, noise="inverse_cdf"),
            added,
            "Uniforms of 53 bits end: noise stops at 37, which only the exact law shows.",
            sound=False,
        ),
        Case(
            "NistDp3",
            "Gardner 2019",
            lambda: nist_synthesis.mechanism().stage("measurements"),
            nist_synthesis.neighbors,
            "Of 18 small shares, behind a cut, 20,000 runs show nothing.",
            released=lambda: nist_synthesis.mechanism().stage("thresholded"),
            size=20_000,
            times=SOUND_AUDITS,
        ),
        Case(
            "NistDp3, domain from data",
            "Gardner 2019",
            lambda: DomainFromData(nist_synthesis.mechanism(), nist_synthesis.OBSERVED),
            nist_synthesis.from_another_state,
            "A level that nobody else has adds bins, with certainty.",
            sound=False,
            size=500,
        ),
    ]


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit thirteen systems, most with 200,000 runs, four of them 100 times (quick: two, a tenth of the runs)."""
    known = [case for case in cases() if not quick or case.system in ("GDPC", "ONS, top-down, zeros kept")]
    streams = np.random.SeedSequence(seed).spawn(len(known))
    tasks = []
    for case, own in zip(known, streams, strict=True):
        for number, stream in enumerate(own.spawn(1 if quick else case.times)):
            tasks.append((case.system, case.size // (10 if quick or number else 1), stream))
    audits = []
    with progress_bar("systems of the papers", len(tasks), unit="audits") as advance:
        for audit in Parallel(n_jobs=jobs, return_as="generator")(delayed(_audit)(*task) for task in tasks):
            audits.append(audit)
            advance(1)
    rows = []
    for case in known:
        done = [audit for audit, (system, *_) in zip(audits, tasks, strict=True) if system == case.system]
        rows.append({**_about(case), "audits": done})
    return {"rows": rows, "confidence": CONFIDENCE}


def _about(case: Case) -> dict[str, Any]:
    """Return what is known of a system before any run."""
    claim, pair = _claim(case), case.pair()
    return {
        "system": case.system,
        "source": case.source,
        "promise": claim.to_dict(),
        "relation": claim.relation,
        "pair": pair.label,
        "exact": plain_number(_exact(case, claim, pair)),
        "sound": case.sound,
        "lesson": case.lesson,
    }


def _claim(case: Case) -> Any:
    return case.claim or case.measured().claim


def _exact(case: Case, claim: Any, pair: NeighborPair) -> float:
    """Return the largest loss by the exact law, in the parameter of the claim: of both orders the larger."""
    mechanism = case.measured()
    if isinstance(claim, ZCDP):
        return float(mechanism.spent(pair))
    if isinstance(claim, ApproxDP):
        return GaussianDP(1 / mechanism.noises[0].scale).epsilon_at(claim.delta)
    if hasattr(mechanism, "support_masses"):
        assert max(mechanism.support_masses(pair)) > 0  # there is no other law of it
        return float("inf")
    law = mechanism.exact_loss(pair)
    return max(float(law.maximum), float(law.reverse().maximum))


def _audit(system: str, size: int, stream: np.random.SeedSequence) -> dict[str, Any]:
    case = next(case for case in cases() if case.system == system)
    result = measure_loss(
        (case.released or case.measured)(),
        case.pair(),
        _claim(case),
        size=size,
        confidence=CONFIDENCE,
        rng=stream,
    )
    return {
        "size": size,
        "class": event_class(result.event),
        "forced": plain_number(result.measured.budget),
        "verdict": result.verdict,
        "detectable": plain_number(result.detectable),
        "witness": None if result.support is None else result.support["probability"],
    }


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold exact laws and verdicts against what each system should keep."""
    found = []
    for row in numbers["rows"]:
        promise, exact = claim_from_dict(row["promise"]).budget, float(row["exact"])
        if row["sound"]:
            found.append(between(f"{row['system']}: exact loss / promise", exact / promise, 0, 1 + 1e-9))
        else:
            found.append(Check(f"{row['system']}: exact loss {exact:.4g} beyond the promise", exact > promise))
        accused = sum(audit["verdict"] == "violated" for audit in row["audits"])
        wanted = 0 if row["sound"] else len(row["audits"])
        words = f"{row['system']}: {accused} of {len(row['audits'])} audits accuse, expected {wanted}"
        found.append(Check(words, accused == wanted))
        largest = max(float(audit["forced"]) for audit in row["audits"])
        words = f"{row['system']}: at most {largest:.4g} forced, expected no more than the exact loss of {exact:.4g}"
        found.append(Check(words, largest <= exact * (1 + 1e-9)))
    return found


def finding(numbers: dict[str, Any]) -> str:
    """Return how many systems keep their promise, and the table."""
    rows = numbers["rows"]
    sound, broken = ([row for row in rows if row["sound"] == kept] for kept in (True, False))
    audits = sum(len(row["audits"]) for row in sound)
    accused = sum(audit["verdict"] == "violated" for row in sound for audit in row["audits"])
    caught = sum(audit["verdict"] == "violated" for row in broken for audit in row["audits"])
    return (
        f"{len(sound)} systems keep their promise by their exact law, and {accused} of {audits} audits accuse them; "
        f"{len(broken)} practices of the papers do not, and {caught} of {sum(len(row['audits']) for row in broken)} "
        f"audits find them, at confidence 1 - 1e-6. A pass is no proof: it is of one pair, and of events that runs can "
        f"show.\n\n{table(numbers)}"
    )


def table(numbers: dict[str, Any]) -> str:
    """Return the systems as a table in Markdown.

    Parameters
    ----------
    numbers : dict
        Of a run.

    Returns
    -------
    str
        One row a system: promise, neighbors, exact loss of the pair, what the first audit forces by which kind of
        event, its verdict, and what to know.
    """
    lines = ["| system | promise | one person | exact loss | runs force | by | verdict | what to know |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in numbers["rows"]:
        claim, audit = claim_from_dict(row["promise"]), row["audits"][0]
        exact, forced = float(row["exact"]), float(audit["forced"])
        promise = f"{claim.parameter} {claim.budget:.4g}" + (
            f", delta {claim.delta:g}" if isinstance(claim, ApproxDP) else ""
        )
        verdict = audit["verdict"] if audit["witness"] is None else f"{audit['verdict']}, a witness"
        who = {"add_remove": "added or removed", "replace_one": "replaced"}[row["relation"]]
        loss = "infinite" if np.isinf(exact) else f"{exact:.3g}"
        cells = [f"{row['system']} ({row['source']})", promise, who, loss, f"{forced:.2f}"]
        cells += [audit["class"], verdict, row["lesson"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw what is forced and what is lost in units of the promise: one row a system."""
    rows = numbers["rows"]
    figure, (ax,) = new_figure(8.6, 4.6)
    for at, row in enumerate(rows):
        promise, audit = claim_from_dict(row["promise"]).budget, row["audits"][0]
        exact, forced = float(row["exact"]) / promise, float(audit["forced"]) / promise
        color = BLUE if row["sound"] else RED
        ax.barh(at, min(forced, LIMIT), color=color, height=0.62)
        if np.isfinite(exact):
            ax.plot(exact, at, marker="D", color=GREEN, markersize=5, linestyle="none", zorder=4)
        else:
            ax.plot(LIMIT, at, marker=">", color=GREEN, markersize=7, linestyle="none", clip_on=False, zorder=4)
        words = f"{forced:.2f}" + (" of $\\infty$" if np.isinf(exact) else "")
        inside = forced > 0.2
        ax.text(
            0.02 if inside else min(forced, LIMIT) + 0.02,
            at,
            words + ("" if audit["witness"] is None else f", witness {audit['witness']:.1g}"),
            va="center",
            fontsize=8,
            color="white" if inside else BLACK,
        )
    ax.axvline(1, color=BLACK, linewidth=1.2, linestyle="--")
    ax.set_yticks(range(len(rows)), [row["system"] for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("privacy loss in units of the promise; TopDown: one person replaced, others: added or removed")
    handles: list[Any] = [
        Patch(color=BLUE, label="runs force, sound"),
        Patch(color=RED, label="runs force, broken"),
        Line2D([], [], marker="D", color=GREEN, linestyle="none", label="exact loss of the pair"),
        Line2D([], [], marker=">", color=GREEN, linestyle="none", label="infinite"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
    return figure
