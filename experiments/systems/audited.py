"""The systems of the five papers, and TopDown, in one table: what each promises, what it loses, what audits prove."""

from __future__ import annotations

from collections.abc import Callable
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
from audit import ApproxDP, NeighborPair, PureDP, measure_loss
from audit.claims import claim_from_dict
from audit.results import plain_number
from experiments.audits import all_or_none, event_class, kept, none_above, repeat
from experiments.drawing import WITNESS, beside, column, foot, keys, line_key, losses, page, promise
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, load_data
from experiments.nist import synthesis as nist_synthesis
from experiments.ons import unchanged as ons_unchanged
from experiments.ons import zeros as ons_zeros
from experiments.systems.subjects import SIZE, Subject
from experiments.topdown import audits as topdown_audit

TREE, REPLACED = Hierarchy.regular(3, 2), PureDP(1.0, "replace_one")
PEOPLE = np.array([50, 3, 12, 41, 7, 0, 28, 16, 5])
LIMIT, GAP = 1.75, 0.8  # of the axis, in promises; between systems and variants, in rows
ABOUT: dict[str, dict[str, Any]] = load_data("systems/systems.toml")["audited"]


def added() -> NeighborPair:
    """Return counts of nine areas, and one person more in the first."""
    return NeighborPair.add_people(PEOPLE, 0)


def deaths(cell: tuple[int, int] = ons_zeros.AMONG) -> NeighborPair:
    """Return counts of four areas, and one person more, among others or alone in a cell."""
    return NeighborPair.add_people(ons_zeros.FEW.histogram, cell)


def released(system: Any, pair: NeighborPair, stage: str = "", promise: Any = None) -> Subject:
    """Return what a system or a stage of it releases: the exact law of its measurements bounds it."""
    measured = system.stage("measurements")
    mechanism = system.stage(stage) if stage else system
    return Subject(mechanism, pair, promise=promise or measured.claim, measured=measured)


CASES: dict[str, Callable[[], Subject]] = {  # `systems.toml` says what is assumed of those that break their promise
    "GDPC": lambda: Subject(GDPC(1.0), added()),
    "RDPC": lambda: Subject(RDPC(1.0, TREE), added()),
    "ADPC": lambda: Subject(ADPC(1.0), added()),
    "TopDown": lambda: released(
        topdown_audit.release(REPLACED, "replace_one"), topdown_audit.neighbors("replace_one"), promise=REPLACED
    ),
    "PHSafe, all 46 answers": lambda: Subject(
        PHSafe(read_config("us")), tabulated(joint_pair("DER"), read_config("us"))
    ),
    "ONS, 14 tables": lambda: Subject(ons_zeros.method_1(1.0), deaths()),
    "ONS, top-down": lambda: released(ons_zeros.method_2(1.0), deaths()),
    "ONS, top-down, zeros kept": lambda: released(
        ons_zeros.method_2(1.0, perturb_zeros=False), deaths(ons_zeros.ALONE), promise=PureDP(1.0)
    ),
    "ONS, Gaussian, inferred scale": lambda: Subject(systems()["bug-ons-classical-gaussian"].mechanism(), deaths()),
    "bottom-up, exact noise": lambda: Subject(BottomUp(1.0), added()),
    "bottom-up, inverse CDF": lambda: Subject(BottomUp(1.0, noise="inverse_cdf"), added()),
    "NistDp3": lambda: released(nist_synthesis.mechanism(), nist_synthesis.neighbors(), "thresholded"),
    "NistDp3, domain from data": lambda: Subject(
        DomainFromData(nist_synthesis.mechanism(), nist_synthesis.OBSERVED), nist_synthesis.from_another_state()
    ),
}


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit thirteen systems, most with 200,000 runs, four of them 100 times (quick: two, a tenth of the runs)."""
    names = ("GDPC", "ONS, top-down, zeros kept") if quick else tuple(CASES)
    times = [1 if quick else ABOUT[name].get("times", 1) for name in names]
    streams = np.random.SeedSequence(seed).spawn(len(names))
    settings = [(name, quick) for name in names]
    audits = repeat(_audit, settings, streams, times, jobs=jobs, words="systems of the papers")
    rows = [{**_about(name), "audits": own} for name, own in zip(names, audits, strict=True)]
    return {"rows": rows, "confidence": CONFIDENCE}


def _about(name: str) -> dict[str, Any]:
    subject = CASES[name]()
    return {
        "system": name,
        "promise": subject.claim.to_dict(),
        "relation": subject.claim.relation,
        "pair": subject.pair.label,
        "exact": plain_number(subject.exact()),
        "sound": "assumed" not in ABOUT[name],
    }


def _audit(name: str, quick: bool, stream: np.random.SeedSequence) -> dict[str, Any]:
    subject = CASES[name]()
    size = ABOUT[name].get("size", SIZE) // (10 if quick or stream.spawn_key[-1] else 1)  # after the first a tenth
    result = measure_loss(subject.mechanism, subject.pair, subject.claim, size=size, confidence=CONFIDENCE, rng=stream)
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
    after = [ons_unchanged.deltas(epsilon)["after"] for epsilon in ons_unchanged.EPSILONS]
    # What rounding, which the pilot applies, makes of the true delta of its Gaussian scale.
    deltas = {"delta": PILOT_DELTA, "least": min(after), "most": max(after)}
    fine, detected = ([audit for row in rows for audit in row["audits"]] for rows in (keep, break_it))
    rows = []
    for row in (*keep, *break_it):
        about, claim, audit = ABOUT[row["system"]], claim_from_dict(row["promise"]), row["audits"][0]
        delta = f", delta {claim.delta:g}" if isinstance(claim, ApproxDP) else ""
        verdict = audit["verdict"] if audit["witness"] is None else f"{audit['verdict']}, a witness"
        loss = "infinite" if np.isinf(float(row["exact"])) else f"{float(row['exact']):.3g}"
        rows.append(
            (
                f"{'' if row['sound'] else 'variant: '}{row['system']} ({about['source']})",
                f"{claim.parameter} {claim.budget:.4g}{delta}",
                about["on"],
                loss,
                f"{down(audit['lower_bound'])} ({audit['class']})",
                verdict,
                about.get("assumed", "").format(**deltas),
            )
        )
    return locals()


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
        losses(ax, at, [bound], exact, end=LIMIT, violated=bound > 1)
        if audit["witness"] is not None:
            ax.plot(LIMIT, at, **WITNESS, clip_on=False, zorder=6)
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
        *keys(
            bound="lower bound",
            violated="lower bound above the promise: violated",
            exact="exact loss of the pair",
            infinite="exact loss infinite",
            promise="promise",
        ),
        line_key("infinite, by a witness: violated", **WITNESS),
    ]
    words = "witness: probability of outputs that are impossible on the other database"
    foot(figure, handles, ncols=3, words=words)
    return figure
