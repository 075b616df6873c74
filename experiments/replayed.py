"""One pair of runs with the same answers: what it shows of whole systems, and of bugs planted in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from algorithms.bugs import known_bugs, pipeline_bugs
from algorithms.bugs.pipelines import PipelineBug
from algorithms.bugs.randomness import SeededByTime
from algorithms.bugs.systems.nist import DomainFromData, GroupsFromData
from algorithms.phsafe import read_config
from algorithms.phsafe.measurement import PHSafe
from algorithms.phsafe.neighbors.pairs import HouseholdPair
from algorithms.phsafe.neighbors.stability import stability_change
from algorithms.phsafe.neighbors.worst import joint_pair, worst_pair
from algorithms.phsafe.tables import QUERIES
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.topdown import TopDown
from audit.mechanism import Mechanism
from audit.neighbors import NeighborPair
from audit.replay import Replay, replay
from audit.results.plots import BLACK, BLUE, GREEN, ORANGE, new_figure
from audit.sampling.progress import progress_bar
from experiments import nist_synthesis, topdown_bugs
from experiments.experiment import Check, near

QUESTION = (
    "What does one pair of runs with the same noisy answers show, of real systems and of planted bugs, and how fast?"
)
EXPECTATION = (
    "Run from persons or records to tables, PHSafe, TopDown and NistDp3 are not accused; no query changes by more than "
    "its noise is scaled to, PHSafe's changes are those counted by SQL, TopDown and NistDp3 spend all of their promise "
    "on the pair. Each of 18 planted bugs is caught by one pair of runs, or by ten if it shows for some answers only, "
    "as the kind of violation that it is, in under 10 seconds, and its twin without the bug is not accused. Of the 29 "
    "known bugs that audits find by sampling, those that add their noise in the open are caught, too."
)

FEW, MANY = 10, 60  # pairs of runs, for planted and for known bugs that show for some answers only
KNOWN = {True: 18, False: 21}  # known bugs that one pair shows, and 60
SLOWEST = 10_000.0  # milliseconds
PHSAFE, EVERYWHERE, TOPDOWN, NIST = "PHSafe", "PHSafe (DER)", "TopDown", "NistDp3"


@dataclass(frozen=True)
class Case:
    """A bug in a system: what runs with it and without, on whom, and what should be seen."""

    name: str
    words: str
    broken: Any
    sound: Any
    pair: NeighborPair
    kind: str
    released: bool | None = None  # whether the noisy tables may be published, as what is made of them does not tell


def phsafe(queries: dict[str, Any]) -> Mechanism:
    """Return PHSafe with the production settings, from persons, units and geo to noisy tables."""
    config = read_config("us")
    only = [(table, level) for table, level, _ in config.budgets() if table in queries]
    measured = PHSafe(config, only=only)

    def whole(data: Any, size: int, rng: np.random.Generator) -> Any:
        persons, units, geo = data
        return measured(tabulation(persons, units, geo, queries, config=config, validation="none"), size, rng)

    whole.claim = measured.claim  # type: ignore[attr-defined]
    return whole


def households(quick: bool) -> dict[str, HouseholdPair]:
    """Return neighbors under PHSafe: a spouse leaves a family; a person leaves, and rows of units change everywhere."""
    found = {PHSAFE: worst_pair("PH3", "state_A-G", "VAL", config="us")}
    return found if quick else found | {EVERYWHERE: joint_pair("DER", config="us")}


def topdown_cases() -> Iterator[Case]:
    """Yield the four bugs of TopDown, all in its published tables; two of them no practical sample shows there."""
    kinds = {topdown_bugs.COUNTS: "loss", topdown_bugs.WITNESS: "output"}
    for case in topdown_bugs.cases():
        if case.expected in kinds and "Gaussian" not in case.words:
            broken, pair = replace(case.mechanism, solver="piqp"), topdown_bugs.neighbors(case.pair)
            name, words = case.kind.__name__, f"TopDown: {case.words.removesuffix(', geometric')}"
            yield Case(name, words, broken, _sound_topdown(), pair, kinds[case.expected], released=True)


def nist_cases(quick: bool) -> Iterator[Case]:
    """Yield the bugs of NistDp3, on census records, which take a while to be read."""
    if quick:
        return
    nist = nist_synthesis.mechanism()
    domain = DomainFromData(nist, nist_synthesis.OBSERVED)
    yield Case(
        "DomainFromData",
        "NistDp3: states read from the data",
        domain,
        nist,
        nist_synthesis.from_another_state(),
        "output",
    )
    groups = GroupsFromData(nist.schema, nist.epsilon)
    pair = nist_synthesis.regrouping()
    yield Case("GroupsFromData", "NistDp3: groups chosen on the data", groups, nist, pair, "order")


def pipeline_case(name: str, bug: PipelineBug) -> Case:
    """Return a planted bug of a small pipeline."""
    if bug.records.dtype.kind == "f":  # NaN, which equals no other record
        y = np.append(bug.records, bug.record)
        pair = NeighborPair.declared(bug.records, y, "add_remove", unit="record", label="1 record added")
    else:
        pair = NeighborPair.add_record(bug.records, bug.record)
    return Case(name, bug.words, bug.pipeline, bug.pipeline.twin, pair, bug.kind)


def run(*, quick: bool, seed: int, jobs: int) -> dict[str, Any]:
    """Replay systems and bugs (quick: one query of PHSafe, and no NistDp3)."""
    del jobs  # a replay is one run after another
    queries = {"PH3": QUERIES["PH3"]} if quick else dict(QUERIES)
    of_systems: list[Callable[[], dict[str, Any]]] = [
        partial(_phsafe, name, pair, queries, seed) for name, pair in households(quick).items()
    ]
    of_systems.append(
        lambda: _system(TOPDOWN, replay(_sound_topdown(), topdown_bugs.neighbors("moved"), rng=seed, released=True))
    )
    if not quick:
        of_systems.append(
            lambda: _system(
                NIST, replay(nist_synthesis.mechanism(), nist_synthesis.neighbors(), rng=seed, released=True)
            )
        )
    cases = [pipeline_case(name, bug) for name, bug in pipeline_bugs().items()]
    cases += [*topdown_cases(), *nist_cases(quick)]
    with progress_bar("replays", len(of_systems) + len(cases), unit="replays") as advance:
        systems = []
        for system in of_systems:
            systems.append(system())
            advance(1)
        bugs = []
        for case in cases:
            bugs.append(_bug(case, seed))
            advance(1)
    return {"systems": systems, "bugs": bugs, "known": _known(seed, 1 if quick else MANY), "quick": quick}


def _sound_topdown() -> TopDown:
    found = next(case.mechanism for case in topdown_bugs.cases() if case.kind is TopDown)
    return replace(found, solver="piqp")


def _phsafe(name: str, pair: HouseholdPair, queries: dict[str, Any], seed: int) -> dict[str, Any]:
    neighbors = NeighborPair.declared(pair.x, pair.y, pair.relation, label=pair.label)
    found = replay(phsafe(queries), neighbors, rng=seed, released=True)
    change = stability_change(pair.x, pair.y, tables=tuple(queries), config="us")
    counted = {
        f"{table} {level}": [float(l1), float(l2)]
        for table, level, l1, l2 in zip(
            *(change[column] for column in ("TABLE", "LEVEL", "L1", "L2_SQUARED")), strict=True
        )
    }
    config = read_config("us")
    shares = zip(*(change[column] for column in ("TABLE", "LEVEL", "SHARE")), strict=True)
    spent = math.fsum(config.budget(table, level) * float(share) for table, level, share in shares)
    return {**_system(name, found), "counted": counted, "spent_by_sql": spent}


def _system(name: str, found: Replay) -> dict[str, Any]:
    """Return the changes of a system's queries, and what they cost."""
    claim = found.claim
    assert claim is not None  # all three promise something
    spends = "rho" if claim.parameter == "rho" else "epsilon"
    return {
        "name": name,
        "pair": found.pair,
        "verdict": found.verdict,
        "parameter": spends,
        "promised": claim.budget,
        "lost": math.fsum(getattr(query, spends) for query in found.queries),
        "queries": [
            {
                "name": query.name,
                "draws": query.draws,
                "declared": None if query.declared is None else list(query.declared),
                "l1": query.l1_change,
                "l2": query.l2_change,
            }
            for query in found.queries
        ],
        "milliseconds": _rounded(1e3 * found.seconds),
    }


def _bug(case: Case, seed: int) -> dict[str, Any]:
    observe: Any = "time" if case.kind == "time" else "output"
    found = replay(case.broken, case.pair, rng=seed, observe=observe, released=case.released)
    if found.verdict != "violated":
        found = replay(case.broken, case.pair, rng=seed, size=FEW, released=case.released)
    sound = replay(case.sound, case.pair, rng=seed, observe=observe, released=case.released)
    return {
        "name": case.name,
        "words": case.words,
        "expected": case.kind,
        "kinds": [violation.kind for violation in found.violations],
        "twin": sound.verdict,
        "pairs": found.size if observe == "output" else None,
        "milliseconds": _rounded(1e3 * found.seconds),
    }


def _known(seed: int, most: int) -> dict[str, Any]:
    """Return how many pairs of runs show each known bug: 1, so many as there are, or None where they do not."""
    needed: dict[str, int | None] = {}
    for name, bug in known_bugs().items():
        pair, mechanism = NeighborPair.declared(bug.x, bug.y, bug.relation), bug.mechanism
        if isinstance(mechanism, SeededByTime):  # a second that ends between two runs would hide it
            mechanism = replace(mechanism, clock=lambda: 0.0)
        shown = (size for size in (1, most) if replay(mechanism, pair, rng=seed, size=size, released=True).violations)
        needed[name] = next(shown, None)
    return needed


def _rounded(number: float) -> float:
    """Return a time to two digits: more of it would be chance."""
    return float(f"{number:.2g}")


def check(numbers: dict[str, Any]) -> list[Check]:
    """Hold changes against what is declared, and every bug against what is planted."""
    found = []
    for system in numbers["systems"]:
        name = system["name"]
        beyond = [query["name"] for query in system["queries"] if not _within(query)]
        words = f"{name}: {len(beyond)} of {len(system['queries'])} queries change beyond what is declared, expected 0"
        found.append(Check(words, not beyond))
        found.append(Check(f"{name}: {system['verdict']}, expected not refuted", system["verdict"] == "not refuted"))
        if "counted" in system:
            wrong = [
                query["name"]
                for query in system["queries"]
                if not np.allclose([query["l1"], query["l2"] ** 2], system["counted"][query["name"]], rtol=1e-9)
            ]
            found.append(Check(f"{name}: {len(wrong)} changes differ from those by SQL, expected 0", not wrong))
            lost, spent = system["lost"], system["spent_by_sql"]
            found.append(near(f"{name}: rho lost on the pair, and by SQL", lost, spent, 1e-6 * spent))
        else:
            what = f"{name}: {system['parameter']} lost on the pair"
            found.append(near(what, system["lost"], system["promised"], 1e-9))
    for bug in numbers["bugs"]:
        seen = bug["kinds"][0] if bug["kinds"] else "nothing"
        words = f"{bug['words']}: seen as {seen}, expected {bug['expected']}; its twin {bug['twin']}"
        found.append(Check(words, seen == bug["expected"] and bug["twin"] == "not refuted"))
        words = f"{bug['words']}: {bug['milliseconds']:g} ms, expected below {SLOWEST:g}"
        found.append(Check(words, bug["milliseconds"] < SLOWEST))
    needed = list(numbers["known"].values())
    caught, expected = sum(map(bool, needed)), KNOWN[numbers["quick"]]
    words = f"known bugs caught: {caught} of {len(needed)}, expected {expected} of 29"
    return [*found, Check(words, (caught, len(needed)) == (expected, 29))]


def _within(query: dict[str, Any]) -> bool:
    return all(query[norm] <= limit * (1 + 1e-9) for norm, limit in zip(("l1", "l2"), query["declared"], strict=True))


def finding(numbers: dict[str, Any]) -> str:
    """Return what the systems spend, and how bugs are caught."""
    parts = []
    for system in numbers["systems"]:
        share = max(query["l2"] ** 2 / query["declared"][1] ** 2 for query in system["queries"])
        parts.append(
            f"{system['name']} ({system['pair']}): {len(system['queries'])} queries, at most {share:.2f} of the "
            f"squared L2 change that noise is scaled to, {system['parameter']} {system['lost']:.4g} of "
            f"{system['promised']:.4g}, {system['milliseconds'] / 1e3:.2g} s"
        )
    bugs, known = numbers["bugs"], list(numbers["known"].values())
    caught = [bug for bug in bugs if bug["kinds"][:1] == [bug["expected"]]]
    once = [bug["milliseconds"] for bug in caught if bug["pairs"] == 1]
    accused = sum(bug["twin"] == "violated" for bug in bugs)
    more = [f"{bug['words']} by {bug['pairs']}" for bug in caught if bug["pairs"] not in (1, None)]
    text = (
        f"Exact changes on one pair of databases, from input to tables: {'; '.join(parts)}. {len(caught)} of "
        f"{len(bugs)} planted bugs are caught, {len(once)} by one pair in {min(once):.2g} to {max(once):,.0f} ms "
        f"(median {np.median(once):.2g}){''.join(f', {words}' for words in more)}, and the running time by 200 runs; "
        f"{accused} of {len(bugs)} twins are accused. Two bugs of TopDown are among them that 50,000 runs of the "
        f"published tables do not show. Of the {len(known)} known bugs one pair shows {known.count(1)}"
    )
    most = max((number for number in known if number), default=1)
    if most > 1:
        text += f" and {most} pairs {known.count(most)} more"
    return f"{text}; the others draw their noise by itself or elsewhere, so that what they add it to is not seen."


def draw(numbers: dict[str, Any]) -> Figure:
    """Draw the true change of every query in units of the declared one, and the time to catch each bug."""
    figure, (left, right) = new_figure(12.4, 5.6, columns=2)
    _draw_changes(left, numbers["systems"])
    _draw_bugs(right, numbers["bugs"])
    return figure


def _draw_changes(ax: Axes, systems: list[dict[str, Any]]) -> None:
    """One dot a query, in a row for each query of PHSafe, level of TopDown, or system."""
    ticks, place = [], 0.0
    for system in systems:
        ax.text(-0.02, place, f"{system['name']}:", ha="right", va="center", style="italic", transform=_by_row(ax))
        words = f"{system['pair']}; {system['parameter']} {system['lost']:.3g} of {system['promised']:.3g}"
        box = {"facecolor": "white", "linewidth": 0, "pad": 1.0}
        ax.text(0.0, place, words, va="center", fontsize=7.5, bbox=box)
        place += 1
        rows: dict[str, list[float]] = {}
        for query in system["queries"]:
            words = query["name"].split(" at ")[-1] if " at " in query["name"] else query["name"].split()[0]
            label = f"{len(system['queries'])} groups" if system["name"] == NIST else words
            rows.setdefault(label, []).append(query["l2"] ** 2 / query["declared"][1] ** 2)
        for label, shares in rows.items():
            ax.plot(shares, [place] * len(shares), "o", color=BLUE, markersize=5, markerfacecolor="white", zorder=3)
            ax.plot(max(shares), place, "o", color=BLUE, markersize=5, zorder=4)
            ticks.append((place, label))
            place += 1
        place += 0.5
    ax.axvline(1, color=BLACK, linewidth=1.2, linestyle="--", zorder=0)
    ax.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=8)
    ax.set_ylim(place, -0.8)
    ax.set_xlim(-0.03, 1.25)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("squared L2 change, in units of the one that noise is scaled to")
    ax.set_title("true changes of all queries (filled: the largest)")


def _by_row(ax: Axes) -> Any:
    return ax.get_yaxis_transform()


def _draw_bugs(ax: Axes, bugs: list[dict[str, Any]]) -> None:
    for place, bug in enumerate(bugs):
        time, caught = bug["milliseconds"], bug["kinds"][:1] == [bug["expected"]]
        ax.plot([0.3, time], [place, place], color=ORANGE, linewidth=1.1, zorder=1)
        ax.plot(time, place, "D" if caught else "x", color=GREEN if caught else ORANGE, markersize=5, zorder=3)
        seen = bug["kinds"][0] if bug["kinds"] else "missed"
        box = {"facecolor": "white", "linewidth": 0, "pad": 0.5}
        ax.annotate(seen, (time, place), (7, 0), textcoords="offset points", va="center", fontsize=7.5, bbox=box)
    ax.set_xscale("log")
    ax.axvline(SLOWEST, color=BLACK, linewidth=1.2, linestyle="--", zorder=0)
    ax.set_xlim(0.3, 3 * SLOWEST)
    ax.set_yticks(range(len(bugs)), [bug["words"] for bug in bugs], fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(bugs) - 0.3, -0.8)
    ax.set_xlabel("milliseconds until the bug is caught, all runs together")
    ax.set_title("planted bugs, and the violation that is seen")
    ax.legend(
        handles=[
            Line2D([], [], marker="D", color=GREEN, markersize=5, linestyle="none", label="caught as planted"),
            Line2D([], [], color=BLACK, linewidth=1.2, linestyle="--", label="10 seconds"),
        ],
        loc="upper right",
        bbox_to_anchor=(0.88, 1.0),
        fontsize=8,
    )
