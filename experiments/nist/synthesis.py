"""NistDp3 on KDD Census-Income: the accuracy of its synthetic rows, and the losses of its histograms and rows."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.bugs.systems.nist import DomainFromData, GroupsFromData
from algorithms.nist import Groups, NistDp3, choose_groups, marginal_distance
from algorithms.population import halves, load_income
from algorithms.schema import CROSS, Schema
from audit import Event, Mechanism, NeighborPair, PureDP, measure_loss
from audit.events import ThresholdRule, cell
from audit.results.plots import BLACK, BLUE, GRAY, PALE, SERIES
from audit.sampling.progress import progress_bar
from experiments.audits import all_or_none, bounds, exact_law, kept, run_all
from experiments.drawing import budget_axis, column, extent, head, name_rows, own_keys, page, promise
from experiments.experiment import CONFIDENCE, Check, Checks, Numbers, between, down, few_misses, near, violations

EPSILONS, NO_NOISE = (8.0, 1.0, 0.3), 1e9
LAWS = ("laplace", "geometric")
ROWS, MARGINALS, SEEDS = 800_000, 100, 5
FAR, SAMPLED = 5, 0.1  # in floors: least distance of groups; most that sampling of rows adds
PEOPLE, PROMISE = 500, 1.0  # audited people: the first of the protected half
SHARE_SIZE, JOINT_SIZE, SOUND_SIZE, BUG_SIZE = 10_000, 100_000, 2_000, 200
AUDITS, SOUND_AUDITS = 20, 100
LOSS = 2.5  # total loss of the pair for one group, in nats: few runs prove much of it
ALIKE = 4  # equal people added if all groups are audited together
AUDITED_ROWS, AT_A_TIME = 2_000, 32  # synthetic rows of a run; runs in memory at once
CUSTOMARY = 0.95  # confidence of bounds on losses; verdicts have CONFIDENCE
OBSERVED = "state_of_previous_residence"  # field whose values are read from the data, as the challenge allowed

EACH, MEASURED, CUT, SYNTHETIC = "one group", "all histograms", "after the cut", "synthetic rows"
TOGETHER = MEASURED, CUT, SYNTHETIC
SOUND, DOMAIN, GROUPING = "sound", "domain from the data", "groups from the data"
Codes = NDArray[Any]


class Task(NamedTuple):
    """An audit: its kind, the law of the noise, the group or stage, and the number of runs."""

    what: str
    law: str
    group: str
    size: int


@cache
def income() -> tuple[Schema, Codes, Codes]:
    """Return the schema, the half of the records treated as public, and the protected half."""
    schema, records = load_income()
    return schema, *halves(records)


@cache
def chosen() -> Groups:
    schema, public, _ = income()
    return choose_groups(public, schema)


def mechanism(law: str = "laplace", epsilon: float = PROMISE) -> NistDp3:
    return NistDp3(income()[0], chosen(), epsilon, rows=AUDITED_ROWS, law=law)  # type: ignore[arg-type]


def neighbors(people: int = 1) -> NeighborPair:
    """Return a pair: some protected persons, and the same with `people` copies of the next person added."""
    _, _, protected = income()
    x, person = protected[:PEOPLE], protected[PEOPLE]
    y = np.vstack([x, np.tile(person, (people, 1))])
    words = "one person added" if people == 1 else f"{people} people of a kind added"
    return NeighborPair(x, y, "add_remove", people, "record", label=words)


@cache
def from_another_state() -> NeighborPair:
    """Return a pair whose added person is the only one from some state."""
    schema, _, protected = income()
    column = list(schema.attributes).index(OBSERVED)
    x = protected[:PEOPLE]
    new = protected[~np.isin(protected[:, column], x[:, column])][0]
    return NeighborPair.add_record(x, new, label=f"the only person from {schema.attributes[OBSERVED][new[column]]}")


@cache
def regrouping() -> NeighborPair:
    """Return a pair whose added person changes which fields are grouped as correlated."""
    schema, _, protected = income()
    bug, people = GroupsFromData(schema, PROMISE), PEOPLE
    while bug.groups(protected[:people]).fields == bug.groups(protected[: people + 1]).fields:
        people += 1
    return NeighborPair.add_record(protected[:people], protected[people], label=f"person {people + 1} added")


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Synthesize 5 times at each of three budgets, and audit (quick: once at one budget, and four groups)."""
    income_seed, audit_seed = np.random.SeedSequence(seed).spawn(2)
    nist, part, times = mechanism(), 4 if quick else 1, 1 if quick else AUDITS
    names = nist.groups.names[:: 5 if quick else 1]
    tasks = [
        Task(EACH, law, name, SHARE_SIZE // part)
        for law in LAWS[: 1 if quick else 2]
        for name in names
        for _ in range(times)
    ]
    joint = {CUT: JOINT_SIZE // 100} if quick else {MEASURED: JOINT_SIZE, CUT: JOINT_SIZE, SYNTHETIC: JOINT_SIZE // 5}
    tasks += [Task(what, "laplace", "", size) for what, size in joint.items()]
    bugs = (DOMAIN,) if quick else (DOMAIN, GROUPING)
    tasks += [Task(bug, "laplace", "", BUG_SIZE) for bug in bugs for _ in range(times)]
    tasks += [
        Task(SOUND, LAWS[number % 2], (MEASURED, CUT)[number // 2 % 2], SOUND_SIZE // part)
        for number in range(1 if quick else SOUND_AUDITS)
    ]
    work = [delayed(_audit)(task, own) for task, own in zip(tasks, audit_seed.spawn(len(tasks)), strict=True)]
    audits = run_all(work, jobs, "loss of NistDp3")
    return {
        **_utility(income_seed, quick=quick),
        "audits": audits,
        "shares": {name: exact_law(nist.stage("measurements", only=[name]), neighbors()).maximum for name in names},
        "share": nist.share,
        "composed": {law: exact_law(mechanism(law).stage("measurements"), neighbors()).maximum for law in LAWS},
        "promise": PROMISE,
        "people": {DOMAIN: from_another_state().label} | ({} if quick else {GROUPING: regrouping().label}),
        "quick": quick,
    }


def _utility(seed: np.random.SeedSequence, *, quick: bool) -> dict[str, Any]:
    """Return distances of 3-way margins from the protected half: of releases, the public half, and exact data."""
    schema, public, protected = income()
    rows, marginals, seeds = (50_000, 60, 1) if quick else (ROWS, MARGINALS, SEEDS)
    margins, *streams = seed.spawn(1 + seeds)

    def distance(records: Codes) -> float:
        # Always the same margins, so that distances differ only by the records.
        return marginal_distance(records, protected, schema, marginals=marginals, rng=np.random.default_rng(margins))

    kinds = {"grouped": chosen(), "independent": Groups.single(schema)}
    epsilons = EPSILONS[1:2] if quick else EPSILONS
    distances: dict[str, dict[str, list[float]]] = {kind: {} for kind in kinds}
    floor = []
    with progress_bar("rows of NistDp3", seeds * len(epsilons), unit="releases") as advance:
        for stream in streams:
            rng = np.random.default_rng(stream)
            floor.append(distance(protected[rng.integers(0, len(protected), rows)]))
            for epsilon in epsilons:
                for kind, groups in kinds.items():
                    fitted = NistDp3(schema, groups, epsilon, rows=rows).fit(protected, rng)
                    distances[kind].setdefault(f"{epsilon:g}", []).append(distance(fitted.synthesize(rng=rng)))
                advance(1)
    exact = NistDp3(schema, chosen(), NO_NOISE, rows=rows).fit(protected, np.random.default_rng(margins))
    return {
        **{"fields": len(schema.attributes), "records": len(protected), "rows": rows, "max_bins": chosen().max_bins},
        "groups": dict(zip(chosen().names, mechanism().bins, strict=True)),
        "distance": distances,
        "floor": floor,
        "public": distance(public),
        "noiseless": distance(exact.synthesize(rng=np.random.default_rng(margins))),
    }


def _audit(task: Task, stream: np.random.SeedSequence) -> dict[str, Any]:
    audited, pair, claim, options = _case(task)
    confidence = CONFIDENCE if task.what in (SOUND, DOMAIN, GROUPING) else CUSTOMARY
    result = measure_loss(audited, pair, claim, size=task.size, confidence=confidence, rng=stream, **options)
    about = {"people": pair.distance, "promise": claim.epsilon, "event": result.event}
    return {**task._asdict(), **about, **kept(result)}


def _case(task: Task) -> tuple[Mechanism, NeighborPair, PureDP, dict[str, Any]]:
    nist, schema = mechanism(task.law), income()[0]
    if task.what == EACH:
        stage, pair = nist.stage("measurements", only=[task.group]), neighbors(math.ceil(LOSS / nist.share))
        return stage, pair, stage.claim, {"event": _registered(nist, task.group, pair)}
    if task.what == DOMAIN:
        return DomainFromData(nist, OBSERVED), from_another_state(), nist.claim, {}
    if task.what == GROUPING:
        return GroupsFromData(schema, PROMISE), regrouping(), nist.claim, {}
    if task.group == CUT:
        return nist.stage("thresholded"), from_another_state(), nist.claim, {}
    pair = neighbors(ALIKE)
    if MEASURED in (task.what, task.group):
        return nist.stage("measurements"), pair, nist.claim, {"attack": "likelihood_ratio"}
    return _agreeing(nist, pair.y[-1], rows=task.what == SYNTHETIC), pair, nist.claim, {}


def _registered(nist: NistDp3, name: str, pair: NeighborPair) -> Event:
    """Return the event that the bin of the added people has at most the count of `x`, or at least that of `y`."""
    group = nist.groups.names.index(name)
    x, y = (nist.histogram(data, group) for data in (pair.x, pair.y))
    changed = int(np.flatnonzero(x != y)[0])
    return Event(cell(changed), ThresholdRule(low=float(x[changed]), high=float(y[changed])))


def _agreeing(nist: NistDp3, person: Codes, *, rows: bool) -> Mechanism:
    """Return a mechanism that counts, in each group, agreement with a person: after the cut, or in synthetic rows."""
    places = [int(np.flatnonzero(nist.histogram(person[np.newaxis], group))[0]) for group in range(len(nist.groups))]

    def part(data: Codes, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if rows:
            agrees = nist(data, size, rng) == person
            return np.stack([agrees[:, :, columns].all(axis=2).sum(axis=1) for columns in nist.columns], axis=1)
        noisy = (nist.cut(nist.measure(data, group, size, rng), group) for group in range(len(places)))
        return np.stack([counts[:, at] for counts, at in zip(noisy, places, strict=True)], axis=1).astype(np.int64)

    def released(data: Codes, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.concatenate([part(data, min(AT_A_TIME, size - at), rng) for at in range(0, size, AT_A_TIME)])

    return released


def _of(numbers: Numbers, *what: str) -> list[dict[str, Any]]:
    return [audit for kind in what for audit in numbers["audits"] if audit["what"] == kind]


def _shares(numbers: Numbers, law: str, group: str) -> NDArray[np.float64]:
    own = [audit for audit in _of(numbers, EACH) if (audit["law"], audit["group"]) == (law, group)]
    return np.array([audit["lower_bound"] for audit in own], np.float64) / float(numbers["share"])


def check(numbers: Numbers) -> Checks:
    largest = max(numbers["groups"].values())
    words = f"{len(numbers['groups'])} groups of {numbers['fields']} fields, at most {largest:,} bins"
    yield Check(words, largest <= numbers["max_bins"] and len(numbers["groups"]) < numbers["fields"])
    floor, grouped = max(numbers["floor"]), numbers["distance"]["grouped"]
    for epsilon, values in grouped.items():
        single = min(numbers["distance"]["independent"][epsilon])
        words = f"epsilon {epsilon}: distance at most {max(values):.3f} grouped, at least {single:.3f} independent"
        nearest = min(values) / floor
        words = f"{words}, {nearest:.0f} floors of {floor:.4f}, expected {FAR} at least"
        yield Check(words, nearest >= FAR and max(values) < single)
    means = [float(np.mean(values)) for values in grouped.values()]
    yield Check("distances grow as epsilon falls", means == sorted(means))
    words = f"without noise {numbers['noiseless']:.4f}, with the largest budget {means[0]:.4f} (and sampling of rows)"
    yield between(words, numbers["noiseless"], FAR * floor, means[0] + SAMPLED * floor)
    for law, loss in numbers["composed"].items():
        yield near(f"{law}, all histograms: exact loss / promise", loss / numbers["promise"], 1, 1e-9)
    for group, loss in numbers["shares"].items():
        yield near(f"{group}: exact loss / own share", loss / numbers["share"], 1, 1e-9)
        for law in LAWS:
            if (shares := _shares(numbers, law, group)).size:
                words = f"{law}, {group}: median lower bound / own share"
                yield between(words, float(np.median(shares)), 0.8 if numbers["quick"] else 0.9, 1.02)
    each = _of(numbers, EACH)
    yield few_misses("one group", sum(one["lower_bound"] > one["promise"] for one in each), len(each), CUSTOMARY)
    for audit in _of(numbers, *TOGETHER):
        what, least = audit["what"], 0.3 if audit["what"] == MEASURED else 0.0
        yield between(f"{what}: lower bound / promise", audit["lower_bound"] / audit["promise"], least, 1.0)
        yield Check(f"{what}: {audit['verdict']}", audit["verdict"] != "violated")
    for bug in numbers["people"]:
        audits = _of(numbers, bug)
        times = sum(audit["verdict"] == "violated" and audit["witness"] == 1 for audit in audits)
        least = min(bounds(audits))
        words = f"{bug}: {times} of {len(audits)} audits find it, with a lower bound of {least:.1f} or more by counting"
        yield Check(words, times == len(audits) and least > numbers["promise"])
    yield all_or_none("correct algorithm", _of(numbers, SOUND), violated=False)


def facts(numbers: Numbers) -> dict[str, Any]:
    correct = _of(numbers, SOUND)
    (epsilon, grouped), *_ = numbers["distance"]["grouped"].items()
    shares = [_shares(numbers, law, group) for law in LAWS for group in numbers["shares"]]
    least = down(min(np.median(own) for own in shares if own.size))
    rows = []
    for kind, distances in numbers["distance"].items():
        means = ", ".join(f"{np.mean(own):.3f}" for own in distances.values())
        rows.append((f"distance, {kind} fields, epsilon {', '.join(distances)}", means))
    rows.append(("distance, grouped fields without noise", f"{numbers['noiseless']:.3f}"))
    rows.append(("distance, records resampled", f"{np.mean(numbers['floor']):.3f}"))
    for audit in _of(numbers, *TOGETHER):
        rows.append((f"lower bound / promise, {audit['what']}", down(audit["lower_bound"] / audit["promise"])))
    for what in numbers["people"]:
        rows.append((f"violations, {what}", f"{violations(_of(numbers, what))} of {len(_of(numbers, what))}"))
    independent = np.mean(numbers["distance"]["independent"][epsilon])
    return locals()


def draw(numbers: Numbers) -> Figure:
    figure, (top, below) = page(8.2, 2, 1, heights=[1.2, 1.8])
    _draw_utility(top, numbers)
    _draw_groups(below, numbers)
    return figure


def _draw_utility(ax: Axes, numbers: Numbers) -> None:
    words = {"independent": f"{numbers['fields']} independent fields", "grouped": "groups, chosen on public data"}
    for (kind, label), (color, dashes, marker) in zip(words.items(), SERIES, strict=False):
        distances = {float(epsilon): values for epsilon, values in numbers["distance"][kind].items()}
        means = [np.mean(values) for values in distances.values()]
        ax.plot(list(distances), means, color=color, linestyle=dashes, marker=marker, label=label)
        ends = np.array([(min(values), max(values)) for values in distances.values()]).T
        ax.vlines(list(distances), *ends, color=color, linewidth=3, alpha=0.5)
    ax.axhline(numbers["noiseless"], color=SERIES[1][0], linestyle=":", label="the same groups without noise")
    ax.axhline(numbers["public"], color=BLACK, linestyle=":", label="the public half itself")
    ax.axhline(float(np.mean(numbers["floor"])), color=GRAY, linewidth=1.5, label="floor: exact data resampled")
    budget_axis(ax, distances, "epsilon, one record added or removed")
    ax.set(ylim=(0, None), ylabel="total variation of 3-way\nmargins (mean, 0 to 1)")
    head(ax, f"(a) distance of {numbers['rows']:,} rows from records", own_keys(ax), x=-0.3)


def _draw_groups(ax: Axes, numbers: Numbers) -> None:
    labels = []
    for at, group in enumerate(numbers["shares"]):
        first, *others = group.replace("_", " ").split(CROSS)
        labels.append(first + (f" + {len(others)}" if others else ""))
        column(ax, at, f"{numbers['groups'][group]:,}", 36)
        for law, marker, color, off in zip(LAWS, "o^", (BLUE, PALE), (-0.17, 0.17), strict=True):
            if (shares := _shares(numbers, law, group)).size:
                label = f"{law.title()} noise: median lower bound, and range" if at == 0 else None
                extent(ax, shares, at + off, color)
                ax.plot(np.median(shares), at + off, marker, color=color, markersize=5, label=label)
    promise(ax, label="the group's share of the promise")
    column(ax, -1, "bins", 36, style="italic")
    name_rows(ax, labels)
    ax.set_xlabel("lower bound (95%) / group's share")
    head(ax, f"(b) each group, epsilon {numbers['promise']:g}", own_keys(ax), ncols=2, x=-0.3)
