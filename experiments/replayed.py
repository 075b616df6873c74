"""Replay whole systems and known bugs: runs on both databases with the same noisy answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import delayed

from algorithms.bugs import KnownBug, known_bugs
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
from audit import Mechanism, NeighborPair, measure_loss, replay
from experiments.audits import kept, run_all
from experiments.experiment import CONFIDENCE, DATA, Check, Checks, Numbers, near
from experiments.nist import synthesis as nist_synthesis
from experiments.topdown import bugs as topdown_bugs

PUBLISHED: dict[str, str] = DATA["replayed"]["published"]  # the classes of arXiv 2602.17454
SMALL: dict[str, str] = PUBLISHED | DATA["replayed"]["others"]
SAMPLES = 40_000
TIMED = ("imputes-on-demand",)  # not visible in any output
FEW, MANY = 10, 60  # pairs of runs for bugs that only some answers show: in systems; in functions
KNOWN = {True: 23, False: 26}  # known bugs shown by one pair (quick), and by 60 pairs
SLOWEST = 10_000.0  # milliseconds
PHSAFE, EVERYWHERE, TOPDOWN, NIST = "PHSafe", "PHSafe (DER)", "TopDown", "NistDp3"


@dataclass(frozen=True)
class Case:
    """A bug in a system: the mechanism with and without it, the pair, and the expected kind of violation."""

    name: str
    words: str
    broken: Any
    sound: Any  # None for a bug of a single function
    pair: NeighborPair
    kind: str
    released: bool | None = None  # whether the noisy tables count as published, since outputs do not show it


def phsafe(queries: dict[str, Any]) -> Mechanism:
    """Return PHSafe with the production settings: persons, units and geography in, noisy tables out."""
    config = read_config("us")
    only = [(table, level) for table, level, _ in config.budgets() if table in queries]
    measured = PHSafe(config, only=only)

    def whole(data: Any, size: int, rng: np.random.Generator) -> Any:
        persons, units, geo = data
        return measured(tabulation(persons, units, geo, queries, config=config, validation="none"), size, rng)

    whole.claim = measured.claim  # type: ignore[attr-defined]
    return whole


def households(quick: bool) -> dict[str, HouseholdPair]:
    """Return neighbors for PHSafe: a spouse leaves a family; a person leaves, and units change in all tables."""
    spouse = {PHSAFE: worst_pair("PH3", "state_A-G", "VAL", config="us")}
    return spouse if quick else spouse | {EVERYWHERE: joint_pair("DER", config="us")}


def topdown_cases() -> Iterator[Case]:
    """Yield the four bugs of TopDown, in published tables; sampling needs too many runs to detect two of them there."""
    kinds = {topdown_bugs.COUNTS: "loss", topdown_bugs.WITNESS: "output"}
    for case in topdown_bugs.cases():
        if case.expected in kinds and "Gaussian" not in case.words:
            broken, pair = replace(case.mechanism, solver="piqp"), topdown_bugs.neighbors(case.pair)
            name, words = case.kind.__name__, f"TopDown: {case.words.removesuffix(', geometric')}"
            yield Case(name, words, broken, _correct_topdown(), pair, kinds[case.expected], released=True)


def nist_cases(quick: bool) -> Iterator[Case]:
    """Yield the bugs of NistDp3, on census records, which are slow to read."""
    if quick:
        return
    nist = nist_synthesis.mechanism()
    domain, pair = DomainFromData(nist, nist_synthesis.OBSERVED), nist_synthesis.from_another_state()
    yield Case("DomainFromData", "NistDp3: states read from the data", domain, nist, pair, "output")
    groups, pair = GroupsFromData(nist.schema, nist.epsilon), nist_synthesis.regrouping()
    yield Case("GroupsFromData", "NistDp3: groups chosen on the data", groups, nist, pair, "order")


def replays(*, quick: bool, seed: int) -> Numbers:
    """Replay systems and bugs, one after another (quick: one query of PHSafe, and no NistDp3)."""
    queries = {"PH3": QUERIES["PH3"]} if quick else dict(QUERIES)
    systems = [delayed(_phsafe)(name, pair, queries, seed) for name, pair in households(quick).items()]
    systems.append(delayed(_system)(TOPDOWN, _correct_topdown(), topdown_bugs.neighbors("moved"), seed))
    if not quick:
        systems.append(delayed(_system)(NIST, nist_synthesis.mechanism(), nist_synthesis.neighbors(), seed))
    small = {name: bug for name, bug in known_bugs().items() if name in SMALL}
    cases = [Case(name, SMALL[name], bug.mechanism, None, _pair(bug), bug.replayed) for name, bug in small.items()]
    cases += [*topdown_cases(), *nist_cases(quick)]
    results = run_all(systems + [delayed(_bug)(case, seed) for case in cases], 1, "replays", unit="replays")
    known, bugs = _known(seed, 1 if quick else MANY), results[len(systems) :]
    for case, bug in zip(cases, bugs, strict=True):
        if case.name in small and (case.name in PUBLISHED or not quick):
            options: dict[str, Any] = {"size": SAMPLES, "confidence": CONFIDENCE, "rng": seed}
            bug["sampled"] = kept(measure_loss(case.broken, case.pair, case.broken.claim, **options))
    return {"systems": results[: len(systems)], "bugs": bugs, "known": known, "quick": quick}


def _correct_topdown() -> TopDown:
    return replace(next(case.mechanism for case in topdown_bugs.cases() if case.kind is TopDown), solver="piqp")


def _phsafe(name: str, pair: HouseholdPair, queries: dict[str, Any], seed: int) -> dict[str, Any]:
    neighbors = NeighborPair.declared(pair.x, pair.y, pair.relation, label=pair.label)
    system, config = _system(name, phsafe(queries), neighbors, seed), read_config("us")
    change = stability_change(pair.x, pair.y, tables=tuple(queries), config="us")
    columns = ("TABLE", "LEVEL", "L1", "L2_SQUARED", "SHARE")
    rows = list(zip(*(change[column] for column in columns), strict=True))
    spent = math.fsum(config.budget(table, level) * float(share) for table, level, *_, share in rows)
    counted = {f"{table} {level}": [float(l1), float(l2)] for table, level, l1, l2, _ in rows}
    return {**system, "counted": counted, "spent_by_sql": spent}


def _system(name: str, mechanism: Mechanism, pair: NeighborPair, seed: int) -> dict[str, Any]:
    result = replay(mechanism, pair, rng=seed, released=True)
    claim = result.claim
    assert claim is not None  # all three systems have a promise
    spends = "rho" if claim.parameter == "rho" else "epsilon"
    return {
        "name": name,
        "pair": result.pair,
        "verdict": result.verdict,
        "parameter": spends,
        "promised": claim.budget,
        "lost": math.fsum(getattr(query, spends) for query in result.queries),
        "queries": [
            {"name": query.name, "draws": query.draws, "declared": query.declared and list(query.declared)}
            | {"l1": query.l1_change, "l2": query.l2_change}
            for query in result.queries
        ],
        "milliseconds": _rounded(1e3 * result.seconds),
    }


def _bug(case: Case, seed: int) -> dict[str, Any]:
    observe: Any = "time" if case.kind == "time" else "output"
    broken = replay(case.broken, case.pair, rng=seed, observe=observe, released=case.released)
    if broken.verdict != "violated":
        broken = replay(case.broken, case.pair, rng=seed, size=FEW, released=case.released)
    sound = case.sound and replay(case.sound, case.pair, rng=seed, observe=observe, released=case.released)
    return {
        "name": case.name,
        "words": case.words,
        "expected": case.kind,
        "kinds": [violation.kind for violation in broken.violations],
        "sound": sound and sound.verdict,
        "pairs": broken.size if observe == "output" else None,
        "milliseconds": _rounded(1e3 * broken.seconds),
    }


def _known(seed: int, most: int) -> dict[str, Any]:
    """Return how many pairs of runs show each known bug: 1, `most`, or None if `most` do not."""
    needed: dict[str, int | None] = {}
    for name, bug in known_bugs().items():
        if bug.found == "replay":  # they have their own cases
            continue
        pair, mechanism = _pair(bug), bug.mechanism
        if isinstance(mechanism, SeededByTime):  # a tick of the clock between two runs would hide it
            mechanism = replace(mechanism, clock=lambda: 0.0)
        sizes = (size for size in (1, most) if replay(mechanism, pair, rng=seed, size=size, released=True).violations)
        needed[name] = next(sizes, None)
    return needed


def _pair(bug: KnownBug) -> NeighborPair:
    return NeighborPair.declared(bug.x, bug.y, bug.relation)


def _rounded(number: float) -> float:
    """Return a time rounded to two digits; further digits vary by chance."""
    return float(f"{number:.2g}")


def check_replays(numbers: Numbers) -> Checks:
    for system in numbers["systems"]:
        name = system["name"]
        beyond = [
            query["name"]
            for query in system["queries"]
            if query["l1"] > query["declared"][0] * (1 + 1e-9) or query["l2"] > query["declared"][1] * (1 + 1e-9)
        ]
        words = f"{name}: {len(beyond)} of {len(system['queries'])} queries change beyond what is declared, expected 0"
        yield Check(words, not beyond)
        yield Check(f"{name}: {system['verdict']}, expected not refuted", system["verdict"] == "not refuted")
        if "counted" in system:
            wrong = [
                query["name"]
                for query in system["queries"]
                if not np.allclose([query["l1"], query["l2"] ** 2], system["counted"][query["name"]], rtol=1e-9)
            ]
            yield Check(f"{name}: {len(wrong)} changes differ from those by SQL, expected 0", not wrong)
            lost, spent = system["lost"], system["spent_by_sql"]
            yield near(f"{name}: rho spent on the pair, and by SQL", lost, spent, 1e-6 * spent)
        else:
            what = f"{name}: {system['parameter']} spent on the pair"
            yield near(what, system["lost"], system["promised"], 1e-9)
    for bug in numbers["bugs"]:
        kind = bug["kinds"][0] if bug["kinds"] else "nothing"
        yield Check(f"{bug['words']}: found as {kind}, expected {bug['expected']}", kind == bug["expected"])
        if bug["sound"]:
            words = f"{bug['words']}: {bug['sound']} without the bug, expected not refuted"
            yield Check(words, bug["sound"] == "not refuted")
        words = f"{bug['words']}: {bug['milliseconds']:g} ms, expected below {SLOWEST:g}"
        yield Check(words, bug["milliseconds"] < SLOWEST)
        if "sampled" in bug:
            verdict, wanted = bug["sampled"]["verdict"], "not refuted" if bug["name"] in TIMED else "violated"
            yield Check(f"{bug['words']}: by sampling {verdict}, expected {wanted}", verdict == wanted)
    sampled = {bug["name"] for bug in numbers["bugs"] if "sampled" in bug}
    yield Check(f"{len(sampled & set(PUBLISHED))} published classes are sampled, expected 6", sampled >= set(PUBLISHED))
    needed = list(numbers["known"].values())
    detected, expected = sum(map(bool, needed)), KNOWN[numbers["quick"]]
    words = f"known bugs found: {detected} of {len(needed)}, expected {expected} of 29"
    yield Check(words, (detected, len(needed)) == (expected, 29))
