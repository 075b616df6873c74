"""The systems of the five papers, and TopDown, in one table: what each promises, what it loses, what audits prove."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
from audit import ZCDP, ApproxDP, GaussianDP, NeighborPair, PureDP, measure_loss
from audit.claims import claim_from_dict
from audit.results import plain_number
from experiments.audits import all_or_none, event_class, kept, none_above, repeat
from experiments.drawing import beside, column, foot, keys, losses, page, promise
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down
from experiments.nist import synthesis as nist_synthesis
from experiments.ons import unchanged as ons_unchanged
from experiments.ons import zeros as ons_zeros
from experiments.topdown import audits as topdown_audit

TREE = Hierarchy.regular(3, 2)
PEOPLE = np.array([50, 3, 12, 41, 7, 0, 28, 16, 5])
LIMIT, GAP = 1.75, 0.8  # of the axis, in promises; between systems and variants, in rows
ABOUT: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("systems.toml").read_text(encoding="utf-8"))[
    "audited"
]


@dataclass(frozen=True)
class Case:
    """A system, or a variant that does not keep its promise: what runs, on whom, and what `systems.toml` says of it."""

    system: str
    measured: Callable[[], Any]  # makes the part whose exact law bounds all that is released
    pair: Callable[[], NeighborPair]
    released: Callable[[], Any] | None = None  # makes what is audited by runs; None: the same
    claim: PureDP | ZCDP | ApproxDP | None = None

    @property
    def about(self) -> dict[str, Any]:
        """Its source, on what it is audited, the lesson; of a variant, what is assumed; how many runs and audits."""
        return {"size": 200_000, "times": 1} | ABOUT[self.system]

    @property
    def sound(self) -> bool:
        """Whether it should keep its promise."""
        return "assumed" not in self.about


def added() -> NeighborPair:
    """Return counts of nine areas, and one person more in the first."""
    return NeighborPair.add_people(PEOPLE, 0)


def deaths(cell: tuple[int, int] = ons_zeros.AMONG) -> NeighborPair:
    """Return counts of four areas, and one person more, among others or alone in a cell."""
    return NeighborPair.add_people(ons_zeros.FEW.histogram, cell)


def cases() -> list[Case]:
    promise, nist = PureDP(1.0, "replace_one"), nist_synthesis.mechanism
    tables, levels = ons_zeros.method_1, ons_zeros.method_2

    def top_down() -> Any:
        return topdown_audit.release(promise, "replace_one")

    def kept() -> Any:
        return levels(1.0, perturb_zeros=False)

    return [
        Case("GDPC", lambda: GDPC(1.0), added),
        Case("RDPC", lambda: RDPC(1.0, TREE), added),
        Case("ADPC", lambda: ADPC(1.0), added),
        Case(
            "TopDown",
            lambda: top_down().stage("measurements"),
            lambda: topdown_audit.neighbors(promise.relation),
            top_down,
            promise,
        ),
        Case(
            "PHSafe, all 46 answers",
            lambda: PHSafe(read_config("us"), None),
            lambda: tabulated(joint_pair("DER"), read_config("us")),
        ),
        Case("ONS, 14 tables", lambda: tables(1.0), deaths),
        Case("ONS, top-down", lambda: levels(1.0).stage("measurements"), deaths, lambda: levels(1.0)),
        Case(
            "ONS, top-down, zeros kept",
            lambda: kept().stage("measurements"),
            lambda: deaths(ons_zeros.ALONE),
            kept,
            PureDP(1.0),
        ),
        Case("ONS, Gaussian, inferred scale", systems()["bug-ons-classical-gaussian"].mechanism, deaths),
        Case("bottom-up, exact noise", lambda: BottomUp(1.0), added),
        Case("bottom-up, inverse CDF", lambda: BottomUp(1.0, noise="inverse_cdf"), added),
        Case(
            "NistDp3",
            lambda: nist().stage("measurements"),
            nist_synthesis.neighbors,
            lambda: nist().stage("thresholded"),
        ),
        Case(
            "NistDp3, domain from data",
            lambda: DomainFromData(nist(), nist_synthesis.OBSERVED),
            nist_synthesis.from_another_state,
        ),
    ]


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit thirteen systems, most with 200,000 runs, four of them 100 times (quick: two, a tenth of the runs)."""
    known = [case for case in cases() if not quick or case.system in ("GDPC", "ONS, top-down, zeros kept")]
    times = [1 if quick else case.about["times"] for case in known]
    streams = np.random.SeedSequence(seed).spawn(len(known))
    found = repeat(
        _audit, [(case.system, quick) for case in known], streams, times, jobs=jobs, words="systems of the papers"
    )
    rows = [{**_about(case), "audits": audits} for case, audits in zip(known, found, strict=True)]
    return {"rows": rows, "confidence": CONFIDENCE}


def _about(case: Case) -> dict[str, Any]:
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


def _audit(system: str, quick: bool, stream: np.random.SeedSequence) -> dict[str, Any]:
    case = next(case for case in cases() if case.system == system)
    size = case.about["size"] // (10 if quick or stream.spawn_key[-1] else 1)  # of audits after the first a tenth
    mechanism = (case.released or case.measured)()
    result = measure_loss(mechanism, case.pair(), _claim(case), size=size, confidence=CONFIDENCE, rng=stream)
    about = {"size": size, "class": event_class(result.event), "detectable": plain_number(result.detectable)}
    return {**about, **kept(result)}


def check(numbers: Numbers) -> Checks:
    for row in numbers["rows"]:
        promise, exact = claim_from_dict(row["promise"]).budget, float(row["exact"])
        if row["sound"]:
            yield between(f"{row['system']}: exact loss / promise", exact / promise, 0, 1 + 1e-9)
        else:
            yield Check(f"{row['system']}: exact loss {exact:.4g} beyond the promise", exact > promise)
        yield all_or_none(row["system"], row["audits"], violated=not row["sound"])
        yield none_above(row["system"], row["audits"], exact)


def facts(numbers: Numbers) -> dict[str, Any]:
    keep, break_it = (_rows(numbers, sound=sound) for sound in (True, False))
    fine, found = ([audit for row in rows for audit in row["audits"]] for rows in (keep, break_it))
    known, rows = {case.system: case for case in cases()}, []
    for row in (*_rows(numbers, sound=True), *_rows(numbers, sound=False)):
        case, claim, audit = known[row["system"]], claim_from_dict(row["promise"]), row["audits"][0]
        delta = f", delta {claim.delta:g}" if isinstance(claim, ApproxDP) else ""
        verdict = audit["verdict"] if audit["witness"] is None else f"{audit['verdict']}, a witness"
        loss = "infinite" if np.isinf(float(row["exact"])) else f"{float(row['exact']):.3g}"
        rows.append(
            (
                f"{'' if case.sound else 'variant: '}{case.system} ({case.about['source']})",
                f"{claim.parameter} {claim.budget:.4g}{delta}",
                case.about["on"],
                loss,
                f"{down(audit['lower_bound'])} ({audit['class']})",
                verdict,
                " ".join(filter(None, (case.about["lesson"], case.about.get("assumed", "").format(**_deltas())))),
            )
        )
    return locals()


def _deltas() -> dict[str, Any]:
    """Return what rounding, which the pilot applies, makes of the true delta of its Gaussian scale."""
    deltas = [ons_unchanged.deltas(epsilon)["after"] for epsilon in ons_unchanged.EPSILONS]
    return {"delta": PILOT_DELTA, "least": min(deltas), "most": max(deltas)}


def _rows(numbers: Numbers, *, sound: bool) -> list[dict[str, Any]]:
    return [row for row in numbers["rows"] if row["sound"] == sound]


def draw(numbers: Numbers) -> Figure:
    sound = _rows(numbers, sound=True)
    rows = [*sound, *_rows(numbers, sound=False)]
    figure, (ax,) = page(5.0)
    places = [place + 2 * GAP * (place >= len(sound)) for place in range(len(rows))]
    for at, row in zip(places, rows, strict=True):
        budget, audit = claim_from_dict(row["promise"]).budget, row["audits"][0]
        exact, bound = float(row["exact"]) / budget, float(audit["lower_bound"]) / budget
        losses(ax, at, [bound], exact, end=LIMIT, violated=audit["verdict"] == "violated")
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
    handles: list[Any] = keys(
        bound="lower bound, not refuted",
        violated="lower bound, violated",
        exact="exact loss of the pair",
        infinite="exact loss infinite",
        promise="promise",
    )
    words = "witness: probability of outputs that are impossible on the other database"
    foot(figure, handles, ncols=5, words=words)
    return figure
