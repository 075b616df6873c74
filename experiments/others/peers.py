"""Auditors of others and ours, on the same outputs, in the same run: what they prove, and how long it takes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from audit.results.plots import BLACK, BLUE, ESTIMATE, GRAY, ORANGE
from experiments.audits import run_all
from experiments.drawing import BOX, bare_rows, column, foot, line_key, name_rows, page
from experiments.experiment import Check, Checks, Numbers, between, down, few_misses, published
from experiments.others.peers_bounds import BOUND, RAW
from experiments.others.peers_cases import AUDITS, CASES, CONFIDENCE, MANY, OURS, SELECTION, SMALL, one_run, repeated

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "build" / "peers" / "environment" / "bin" / "python"  # `make peers` puts it there
SCRIPT = HERE / "peers_bounds.py"
FEW = 2  # audits of the quick form
CITED: dict[str, dict[str, list[float]]] = published("auditors of one count")
MOST_OURS, MOST_ANOTHER, AS_MUCH = "ours", "another", "neither, within 2%"
# Of our medians over the truth the least, and whose are the largest: set after a look at the first 3 to 10 audits.
EXPECTED = (
    (0.95, MOST_OURS),
    (0.995, MOST_OURS),
    (0.985, AS_MUCH),
    (0.955, AS_MUCH),
    (0.98, AS_MUCH),
    (0.76, MOST_OURS),
    (0.85, MOST_OURS),
    (0.7, MOST_ANOTHER),
)


def run(*, quick: bool, seed: int, jobs: int) -> Numbers:
    """Audit every case by everybody, one after the other (quick: by ours alone, twice)."""
    if not quick and not PYTHON.exists():
        raise FileNotFoundError(f"{PYTHON} must be there: run `make peers`")
    streams = np.random.SeedSequence(seed).spawn(len(CASES))
    tasks = [delayed(_row)(number, quick, stream) for number, stream in enumerate(streams)]
    rows = run_all(tasks, 1, "peers", unit="cases")  # one at a time: seconds are compared
    versions = rows[0].pop("versions")
    for row in rows:
        row.pop("versions", None)
    return {"rows": rows, "versions": versions, "confidence": CONFIDENCE, "selection": SELECTION, "quick": quick}


def _row(number: int, quick: bool, stream: np.random.SeedSequence) -> dict[str, Any]:
    """Return what every auditor says of a case: ours first, then the peers on the files that it leaves."""
    case = CASES[number]
    ours: dict[str, Any] = {}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for audit, of_audit in enumerate(stream.spawn(FEW if quick else case.audits)):
            own = (one_run if case.one_run else repeated)(case, of_audit)
            for name, (bound, seconds) in own.bounds.items():
                entry = ours.setdefault(name, {"kind": BOUND, "values": [], "seconds": []})
                entry["values"].append(bound)
                entry["seconds"].append(seconds)
            np.savez(folder / f"{audit:04}.npz", x=own.x, y=own.y)
        answers = {"versions": {}, "rows": {}, "besides": []} if quick else ask(folder, case.asked(), PYTHON, SCRIPT)
    return {**case.saved(), "auditors": {**ours, **answers.pop("rows")}, **answers}


def ask(folder: Path, question: dict[str, Any], python: Path, script: Path) -> dict[str, Any]:
    """Return what a Python of others says of the outputs in a folder."""
    (folder / "asked.json").write_text(json.dumps(question), encoding="utf-8")
    # -P: what stands beside the script is none of theirs.
    ended = subprocess.run([python, "-P", script, folder], capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no word"])[-1]
        raise RuntimeError(f"peers must answer, and ended with exit code {ended.returncode}: {last}; run `make peers`")
    answer: dict[str, Any] = json.loads((folder / "bounds.json").read_text(encoding="utf-8"))
    return answer


def above(row: dict[str, Any], who: str) -> tuple[int, int]:
    values = row["auditors"][who]["values"]
    return sum(value > row["truth"] for value in values), len(values)


def middle(row: dict[str, Any], who: str) -> float:
    return float(np.median(row["auditors"][who]["values"])) / (row["truth"] or 1.0)


def few(row: dict[str, Any]) -> bool:
    return bool(row["outputs"] == 2 * SMALL)


def is_ours(who: str) -> bool:
    return who.startswith(OURS)


def best(row: dict[str, Any]) -> tuple[str, float]:
    peers = [name for name, entry in row["auditors"].items() if not is_ours(name) and entry["kind"] == BOUND]
    return max(((name, middle(row, name)) for name in peers), key=lambda pair: pair[1])


def check(numbers: Numbers) -> Checks:
    quick = numbers["quick"]
    for place, row in enumerate(numbers["rows"]):
        where, value = label(row), middle(row, OURS)
        for who, entry in row["auditors"].items():
            if entry["kind"] == BOUND:
                yield few_misses(f"{where}: {who}", *above(row, who), numbers["confidence"])
        if not quick:
            times = len(row["auditors"]) - 1
            yield Check(f"{where}: {times} bounds and estimates beside ours, expected 3 or more", times >= 3)
        if place < len(EXPECTED):
            least, whose = EXPECTED[place]
            yield between(f"{where}: median of ours / truth", value, 0.9 * least if quick else least, 1.0)
        if place < len(EXPECTED) and not quick:
            peer, most = best(row)
            close = min(value, most) >= 0.98 * max(value, most)
            holds = {MOST_OURS: value > most, MOST_ANOTHER: value < most, AS_MUCH: close}[whose]
            words = f"ours {down(value, 4)}, the best of the others ({peer}) {down(most, 4)}, expected more: {whose}"
            yield Check(f"{where}: {words}", holds)
    if not quick:
        raw = [above(row, RAW) for row in numbers["rows"] if RAW in row["auditors"]]
        times, audits = map(sum, zip(*raw, strict=True))
        words = f"{RAW}, an estimate: {times} of {audits} above the truth, expected more than half"
        yield Check(words, times > audits / 2)


def label(row: dict[str, Any]) -> str:
    truth = f"{row['truth']:.4g}" if row["truth"] else "0, the same law twice"
    unit = "canaries" if row["one_run"] else "outputs"
    return f"{row['name']} (truth {truth}), {row['outputs']:,} {unit}"


def facts(numbers: Numbers) -> dict[str, Any]:
    large, quick = [numbers["rows"][place] for place in (0, 1, 2, 5)], numbers["quick"]
    own = [down(middle(row, OURS)) for row in large]
    answer = (
        f"plaudit proves {own[0]} of epsilon {large[0]['truth']:g} and {own[1]} of {large[1]['truth']:g} (geometric "
        f"noise), {own[2]} of mu (Gaussian noise) and {own[3]} of mu from one run"
    )
    if not quick:
        *theirs, last = (down(best(row)[1]) for row in large)
        answer = f"{answer}; the best of the others {', '.join(theirs)} and {last}"
    rows = []
    for row in (row for row in numbers["rows"] if row["truth"]):
        peer, most = ("", 0.0) if quick else best(row)
        took = " and ".join(f"{np.median(row['auditors'][who]['seconds']):.2g}" for who in (OURS, peer) if who)
        rows.append((label(row), down(middle(row, OURS)), down(most) if peer else "", peer, took))
    answer, others = f"{answer} (medians at 95%, one person added).", "" if quick else _of_others(numbers)
    return {"answer": answer, "others": others, "rows": rows}


def _of_others(numbers: Numbers) -> str:
    """Say how often the others are above the truth, and what could not be had of them."""
    counted: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for row in numbers["rows"]:
        for who, entry in row["auditors"].items():
            if not is_ours(who):
                counted[entry["kind"] == BOUND].append(above(row, who))
    own, audits = map(sum, zip(*(above(row, OURS) for row in numbers["rows"]), strict=True))
    (misses, bounds), (wrong, estimates) = (map(sum, zip(*counted[bound], strict=True)) for bound in (True, False))
    besides = [entry for row in numbers["rows"] for entry in row["besides"]]
    ended = dict.fromkeys(entry["what"] for entry in besides if isinstance(entry["answer"], str))
    return (
        f"{own} of {audits:,} of our bounds are above the truth, {misses} of {bounds:,} of theirs, and {wrong:,} of "
        f"{estimates:,} of their estimates, which carry no guarantee. {'; '.join(ended)} ended in an error. "
        "DP-Auditorium, StatDP, DP-Sniper and Delta-Siege were not installed: their bounds are cited."
    )


NOT_RUN = ("Delta-Siege", "StatDP", "DP-Sniper", "DP-Auditorium")  # their bounds are cited
LOW, HIGH = 0.4, 1.1  # of the axis: what lies beyond is an arrow at its end
# Points from the panel.
COLUMNS = {"median": 66, "seconds": 104, f"of {AUDITS}": 132, f"of {MANY}": 162, "no loss": 196}
MARKER: dict[str, Any] = {"marker": "o", "markersize": 5, "clip_on": False, "zorder": 4, "linestyle": "none"}
HEADING: dict[str, Any] = {"xytext": (-155, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
HEADING |= {"fontsize": 8, "weight": "bold", "bbox": BOX}
CITING: dict[str, Any] = MARKER | {"marker": "s", "markersize": 4, "color": GRAY}


def draw(numbers: Numbers) -> Figure:
    lines = list(_lines(numbers["rows"]))
    figure, (ax,) = page(1.8 + 0.2 * len(lines))
    for at, (row, who) in enumerate(lines):
        if not who:
            ax.annotate(label(row), (0, at), xycoords=ax.get_yaxis_transform(), **HEADING)
        elif who in NOT_RUN:
            _draw_cited(ax, at, row, who)
        else:
            _draw_row(ax, at, row, who, numbers["rows"])
    name_rows(ax, [f"{who} (cited)" if who in NOT_RUN else who for _, who in lines], top=-0.8, size=8)
    ax.axvline(1, color=BLACK, linewidth=0.8, zorder=0)
    bare_rows(ax)
    ax.set_xlim(LOW, HIGH)
    ax.set_xticks([0.4, 0.6, 0.8, 1])
    ax.set_xlabel(f"value / truth: median and extremes of {AUDITS} audits\n(an arrow lies beyond the axis)")
    for name, place in COLUMNS.items():
        column(ax, -1.2, name, place, style="italic")
    column(ax, -2.2, "above the truth", COLUMNS["no loss"], style="italic")
    ax.tick_params(axis="y", pad=8)
    handles = [
        line_key("lower bound at 95%", **MARKER | {"color": BLUE}),
        line_key("estimate", **MARKER | ESTIMATE),
        line_key("cited, other runs", **CITING),
        line_key("truth", color=BLACK, linewidth=0.8),
    ]
    words = f"above the truth: of {AUDITS}, of {MANY} with {2 * SMALL:,} outputs, and of {MANY} without loss"
    foot(figure, handles, words=words)
    return figure


def _lines(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the lines of the figure: a large case, then who says something of it."""
    for row in rows:
        if not few(row):
            yield row, ""
            yield from ((row, who) for who in row["auditors"])
            yield from ((row, who) for who in NOT_RUN if row["cited"])


def _draw_row(ax: Axes, at: int, row: dict[str, Any], who: str, rows: list[dict[str, Any]]) -> None:
    entry = row["auditors"][who]
    shares = np.array(entry["values"]) / row["truth"]
    color = BLUE if entry["kind"] == BOUND else ORANGE
    ax.plot(np.clip([shares.min(), shares.max()], LOW, HIGH), [at, at], color=color, linewidth=1.2, clip_on=False)
    for end in (shares.min(), shares.max()):
        if not LOW <= end <= HIGH:
            _mark(ax, at, float(end), MARKER | {"color": color, "markersize": 4})
    _mark(ax, at, float(np.median(shares)), MARKER | {"color": color})
    words = {"median": down(middle(row, who), 3), "seconds": f"{np.median(entry['seconds']):.2f}"}
    words[f"of {AUDITS}"] = str(above(row, who)[0])
    for other in rows:
        if few(other) and other["name"] == row["name"] and row["truth"] == 1 and who in other["auditors"]:
            words[f"of {MANY}" if other["truth"] else "no loss"] = str(above(other, who)[0])
    for name, text in words.items():
        column(ax, at, text, COLUMNS[name])


def _draw_cited(ax: Axes, at: int, row: dict[str, Any], who: str) -> None:
    shares = sorted(bound / row["truth"] for bound in CITED[who][row["cited"]])
    for share in shares:
        _mark(ax, at, share, CITING)
    column(ax, at, " to ".join(f"{share:.3g}" for share in shares), COLUMNS["median"])


def _mark(ax: Axes, at: int, share: float, style: dict[str, Any]) -> None:
    beyond = {"marker": "<"} if share < LOW else {"marker": ">"} if share > HIGH else {}
    ax.plot(min(max(share, LOW), HIGH), at, **style | beyond)
