"""The systems of the five papers, and TopDown, in one table: what each promises, what it loses, what audits prove."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.figure import Figure

from algorithms.bottom_up import BottomUp
from algorithms.bugs.systems.nist import DomainFromData
from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.ons.laws import PILOT_DELTA
from algorithms.phsafe.budget import read_config
from algorithms.phsafe.measurement import PHSafe, tabulated
from algorithms.phsafe.neighbors.worst import joint_pair
from algorithms.systems import systems
from audit.claims import ZCDP, ApproxDP, GaussianDP, PureDP, claim_from_dict
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from audit.results import plain_number
from audit.results.plots import EXACT, PROMISE
from experiments import nist_synthesis, ons_unchanged, ons_zeros, topdown_audit, topdown_bugs
from experiments.audits import all_or_none, down, event_class, kept, none_above, run_all, violations
from experiments.drawing import INFINITE, bar, bar_key, beside, column, foot, line_key, page, promise
from experiments.experiment import CONFIDENCE, Check, MarkdownTable, between

QUESTION = (
    "What do the systems of the five papers, and TopDown, promise, what do they lose, and what do audits show of it?"
)
EXPECTATION = (
    "Each system as it is implemented here keeps its promise: its exact law does not exceed it, and no audit reports a "
    "violation. Four variants do not keep the promise of the system that they are variants of, and that is found, by "
    "counts or by a witness: zeros without noise, a scale beyond its theorem, an inverse distribution function in "
    "floating point, a domain read from the data. What of them is the papers' and what is assumed stands beside them."
)

TREE = Hierarchy.regular(3, 2)
PEOPLE = np.array([50, 3, 12, 41, 7, 0, 28, 16, 5])
LIMIT, GAP = 1.75, 0.8  # of the axis, in promises; between systems and variants, in rows
AUDITS = 100  # of the systems that are quick to run


@dataclass(frozen=True)
class Case:
    """A system, or a variant that does not keep its promise: whose it is, what runs, on whom, what is known of it."""

    system: str
    source: str
    measured: Callable[[], Any]  # makes the part whose exact law bounds all that is released
    pair: Callable[[], NeighborPair]
    on: str  # what is audited: the part that is released, and how large it is
    lesson: str
    released: Callable[[], Any] | None = None  # makes what is audited by runs; None: the same
    claim: PureDP | ZCDP | ApproxDP | None = None
    assumed: Callable[[], str] | None = None  # of a variant, whose it is and what is not in the paper; None: a system
    size: int = 200_000
    times: int = 1  # audits; those after the first have a tenth of the runs

    @property
    def sound(self) -> bool:
        """Whether it should keep its promise."""
        return self.assumed is None


def added() -> NeighborPair:
    """Return counts of nine areas, and one person more in the first."""
    return NeighborPair.add_people(PEOPLE, 0)


def deaths(cell: tuple[int, int] = ons_zeros.AMONG) -> NeighborPair:
    """Return counts of four areas, and one person more, among others or alone in a cell."""
    return NeighborPair.add_people(ons_zeros.FEW.histogram, cell)


def inferred() -> str:
    """Say what of the Gaussian scale is the pilot's, and what rounding, which it applies, makes of the true delta."""
    deltas = [ons_unchanged.deltas(epsilon)["after"] for epsilon in ons_unchanged.EPSILONS]
    return (
        f"Delta {PILOT_DELTA:g} and the scale are inferred from the pilot's Table 2, which prints neither and is of "
        "rounded noise. Noise is not rounded here. Rounded, the true delta at its five epsilons is "
        f"{min(deltas):.4f} to {max(deltas):.4f}, within {PILOT_DELTA:g}."
    )


def cases() -> list[Case]:
    """Return all systems, paper by paper, each with its variants."""
    flaxman, pilot, clark, gardner = "Flaxman 2019", "ONS pilot", "Clark and Dajani 2019", "Gardner 2019"
    promise, nist = PureDP(1.0, "replace_one"), nist_synthesis.mechanism
    nine, four = "9 areas", "4 areas by 32 cells"
    return [
        Case("GDPC", flaxman, lambda: GDPC(1.0), added, nine, "One threshold shows the whole loss."),
        Case(
            "RDPC",
            flaxman,
            lambda: RDPC(1.0, TREE),
            added,
            nine,
            "One count shows a part; with raking undone, the leaves show nearly all.",
        ),
        Case("ADPC", flaxman, lambda: ADPC(1.0), added, nine, "The whole loss is in errors too rare to count."),
        Case(
            "TopDown",
            "Census Bureau; none of the five papers",
            lambda: topdown_audit.release(promise, "replace_one").stage("measurements"),
            lambda: topdown_audit.neighbors("replace_one"),
            f"rounded tables of {topdown_bugs.TREE.n_leaves} areas by {topdown_bugs.SCHEMA.cells} cells",
            "The root's total cannot change; in published tables these attacks find little.",
            released=lambda: topdown_audit.release(promise, "replace_one"),
            claim=promise,
        ),
        Case(
            "PHSafe, all 46 answers",
            "Sexton et al. 2024",
            lambda: PHSafe(read_config("us"), None),
            lambda: tabulated(joint_pair("DER"), read_config("us")),
            "noisy counts of one household",
            "No valid pair found spends all that is declared.",
        ),
        Case(
            "ONS, 14 tables",
            pilot,
            lambda: ons_zeros.method_1(1.0),
            deaths,
            four,
            "Fourteen small shares need very rare events to be seen together.",
            times=AUDITS,
        ),
        Case(
            "ONS, top-down",
            pilot,
            lambda: ons_zeros.method_2(1.0).stage("measurements"),
            deaths,
            f"synthetic people, {four}",
            "In synthetic people these attacks find little of what levels show.",
            released=lambda: ons_zeros.method_2(1.0),
            times=AUDITS,
        ),
        Case(
            "ONS, top-down, zeros kept",
            pilot,
            lambda: ons_zeros.method_2(1.0, perturb_zeros=False).stage("measurements"),
            lambda: deaths(ons_zeros.ALONE),
            f"synthetic people, {four}",
            "Whoever appears in a cell is there: less bias, and no promise at all.",
            released=lambda: ons_zeros.method_2(1.0, perturb_zeros=False),
            claim=PureDP(1.0),
            assumed=lambda: "The pilot's own (Tables 10 and 11), which says that zeros have to be perturbed.",
        ),
        Case(
            "ONS, Gaussian, inferred scale",
            pilot,
            systems()["bug-ons-classical-gaussian"].mechanism,
            deaths,
            "one count",
            "The scale's theorem ends at epsilon 1. Rounding mends it at 10, not at 7.",
            assumed=inferred,
            size=8_000_000,
        ),
        Case(
            "bottom-up, exact noise",
            clark,
            lambda: BottomUp(1.0),
            added,
            nine,
            "Margins add up noisy cells and cost nothing more.",
            times=AUDITS,
        ),
        Case(
            "bottom-up, inverse CDF",
            clark,
            lambda: BottomUp(1.0, noise="inverse_cdf"),
            added,
            nine,
            "Noise stops at 37, which only the exact law shows.",
            assumed=lambda: "The method is the authors'. That uniforms have 53 bits is assumed: they name no number.",
        ),
        Case(
            "NistDp3",
            gardner,
            lambda: nist().stage("measurements"),
            nist_synthesis.neighbors,
            f"histograms after the cut, {nist_synthesis.PEOPLE} records of 37 fields; not the rows",
            "Of 18 small shares, behind a cut, 20,000 runs show nothing.",
            released=lambda: nist().stage("thresholded"),
            size=20_000,
            times=AUDITS,
        ),
        Case(
            "NistDp3, domain from data",
            gardner,
            lambda: DomainFromData(nist(), nist_synthesis.OBSERVED),
            nist_synthesis.from_another_state,
            f"histograms after the cut, {nist_synthesis.PEOPLE} records of 37 fields",
            "A level that nobody else has adds bins, with certainty.",
            assumed=lambda: "The contest allowed it for five state-dependent fields; here it is one field.",
            size=500,
        ),
    ]


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Audit thirteen systems, most with 200,000 runs, four of them 100 times (quick: two, a tenth of the runs)."""
    known = [case for case in cases() if not quick or case.system in ("GDPC", "ONS, top-down, zeros kept")]
    times = [1 if quick else case.times for case in known]
    tasks = []
    for case, own, number in zip(known, np.random.SeedSequence(seed).spawn(len(known)), times, strict=True):
        sizes = [case.size // (10 if quick or place else 1) for place in range(number)]
        tasks += [delayed(_audit)(case.system, *task) for task in zip(sizes, own.spawn(number), strict=True)]
    audits = iter(run_all(tasks, jobs, "systems of the papers"))
    rows = [{**_about(case), "audits": list(islice(audits, number))} for case, number in zip(known, times, strict=True)]
    return {"rows": rows, "confidence": CONFIDENCE}


def _about(case: Case) -> dict[str, Any]:
    """Return what is known of a system before any run."""
    claim, pair = _claim(case), case.pair()
    return {
        "system": case.system,
        "promise": claim.to_dict(),
        "relation": claim.relation,
        "pair": pair.label,
        "exact": plain_number(_exact(case, claim, pair)),
        "sound": case.sound,
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
    mechanism = (case.released or case.measured)()
    result = measure_loss(mechanism, case.pair(), _claim(case), size=size, confidence=CONFIDENCE, rng=stream)
    about = {"size": size, "class": event_class(result.event), "detectable": plain_number(result.detectable)}
    return {**about, **kept(result)}


def check(numbers: dict[str, Any]) -> Iterator[Check]:
    """Hold exact laws and verdicts against what each system should keep."""
    for row in numbers["rows"]:
        promise, exact = claim_from_dict(row["promise"]).budget, float(row["exact"])
        if row["sound"]:
            yield between(f"{row['system']}: exact loss / promise", exact / promise, 0, 1 + 1e-9)
        else:
            yield Check(f"{row['system']}: exact loss {exact:.4g} beyond the promise", exact > promise)
        yield all_or_none(row["system"], row["audits"], violated=not row["sound"])
        yield none_above(row["system"], row["audits"], exact)


def finding(numbers: dict[str, Any]) -> str:
    """Return how many systems keep their promise, and how many variants are found that do not."""
    keep, break_it = (_rows(numbers, sound=sound) for sound in (True, False))
    fine, found = ([audit for row in rows for audit in row["audits"]] for rows in (keep, break_it))
    return (
        f"By their exact law {len(keep)} systems keep their promise for one person added or removed (TopDown: "
        f"replaced), and {violations(fine)} of {len(fine)} audits report a violation. {len(break_it)} variants do not "
        f"keep it, and {violations(found)} of {len(found)} audits find that, at confidence 1 - 1e-6. An audit that "
        "finds none proves nothing: it is of one pair."
    )


def table(numbers: dict[str, Any]) -> MarkdownTable:
    """Return a row a system, and then a row a variant, with its first audit."""
    known, rows = {case.system: case for case in cases()}, []
    for row in (*_rows(numbers, sound=True), *_rows(numbers, sound=False)):
        case, claim, audit = known[row["system"]], claim_from_dict(row["promise"]), row["audits"][0]
        delta = f", delta {claim.delta:g}" if isinstance(claim, ApproxDP) else ""
        verdict = audit["verdict"] if audit["witness"] is None else f"{audit['verdict']}, a witness"
        loss = "infinite" if np.isinf(float(row["exact"])) else f"{float(row['exact']):.3g}"
        rows.append(
            (
                f"{'' if case.sound else 'variant: '}{case.system} ({case.source})",
                f"{claim.parameter} {claim.budget:.4g}{delta}",
                case.on,
                loss,
                f"{down(audit['lower_bound'])} ({audit['class']})",
                verdict,
                case.lesson if case.assumed is None else f"{case.lesson} {case.assumed()}",
            )
        )
    heads = ("system", "promise", "audited", "exact loss", "lower bound", "verdict", "what to know, what is assumed")
    return MarkdownTable(heads, rows)


def _rows(numbers: dict[str, Any], *, sound: bool) -> list[dict[str, Any]]:
    return [row for row in numbers["rows"] if row["sound"] == sound]


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw lower bounds and exact losses in units of the promise: one row a system."""
    sound = _rows(numbers, sound=True)
    rows = [*sound, *_rows(numbers, sound=False)]
    figure, (ax,) = page(5.0)
    places = [place + 2 * GAP * (place >= len(sound)) for place in range(len(rows))]
    for at, row in zip(places, rows, strict=True):
        budget, audit = claim_from_dict(row["promise"]).budget, row["audits"][0]
        exact, bound = float(row["exact"]) / budget, float(audit["lower_bound"]) / budget
        bar(ax, at, bound, violated=audit["verdict"] == "violated", end=LIMIT)
        if np.isfinite(exact):
            ax.plot(exact, at, **EXACT, zorder=4)
        else:
            ax.plot(LIMIT, at, **INFINITE, clip_on=False, zorder=5)
        column(ax, at, down(bound), 52)
        column(ax, at, "" if audit["witness"] is None else f"{audit['witness']:.1g}", 96)
    promise(ax)
    for words, points in (("lower\nbound", 52), ("witness", 96)):
        column(ax, -1.2, words, points, style="italic")
    for words, place in (("systems", -1.0), ("variants with a known bug", places[len(sound)] - 1.0)):
        beside(ax, place, words, x=-0.02, size=9, ha="right", weight="bold")
    ax.set_yticks(places, [row["system"] for row in rows], fontsize=8)
    ax.set_ylim(places[-1] + 0.6, -1.6)
    ax.set_xlim(0, LIMIT)
    ax.set_xlabel("privacy loss in units of the promise\n(TopDown: one person replaced, others: added or removed)")
    handles: list[Any] = [
        bar_key("lower bound, not refuted"),
        bar_key("lower bound, violated", violated=True),
        line_key("exact loss of the pair", **EXACT),
        line_key("exact loss infinite", **INFINITE),
        line_key("promise", **PROMISE),
    ]
    words = "witness: probability of outputs that are impossible on the other database"
    foot(figure, handles, ncols=5, words=words)
    return figure
