"""A folder with one good file of every kind that the command reads, and the options that name them."""

import csv
import json
from contextlib import chdir, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from audit.claims import ZCDP, PureDP
from audit.measure.loss import measure_loss, measure_loss_from_outputs
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.results.files import write_json
from audit.results.folder import read_audits, save_result
from tests.golden.phsafe import CONFIG, PATHS
from tests.helpers import audited, estimated, noisy, plaudit, replayed

MINE = """
import numpy as np

def noisy(counts, size, rng):
    return counts + rng.laplace(size=(size, counts.size))

def buggy(counts, size, rng):
    outputs = noisy(counts, size, rng)
    outputs[:, 0] = counts[0]
    return outputs

def rows(frame, size, rng):
    return len(frame) + rng.laplace(size=size)
"""
SPEC = {"attributes": {"sex": ["f", "m"], "age": ["0-17", "18+"]}}
ENTRY = {"node_id": "test_counts.py::test_count", "attempt": 1, "call": 1, "expected": "not refuted"}


def make_workspace(folder: Path) -> None:
    """Write all files: of a user, of audits, of persons, of households."""
    rng = np.random.default_rng(1)
    (folder / "mine.py").write_text(MINE)
    (folder / "counts.csv").write_text("120\n75\n0\n43\n")
    np.save(folder / "counts.npy", np.array([120, 75, 0, 43]))
    (folder / "errors.csv").write_text("".join(f"{error}\n" for error in rng.geometric(0.5, 300)))
    for name, shift in (("x", 0.0), ("y", 1.0)):
        outputs = np.round(rng.laplace(shift, size=(600, 2)), 3)
        np.savetxt(folder / f"{name}.csv", outputs, delimiter=",")
        np.save(folder / f"{name}.npy", outputs)
        words = [f"{value:.2f},{'many' if value > 1 else 'few'}\n" for value in outputs[:, 0]]
        (folder / f"words-{name}.csv").write_text("count,word\n" + "".join(words))
    (folder / "empty.csv").touch()
    (folder / "folder.json").mkdir()
    for name, target in (("loop", "loop"), ("dangling", "nowhere"), ("linked", "old")):
        (folder / name).symlink_to(target)
    _save_persons(folder, rng)
    for path in PATHS:
        (folder / f"households-{path.name}").write_bytes(path.read_bytes())
    for path in (PATHS[0], PATHS[1]):
        pd.read_csv(path, dtype=str, keep_default_na=False).to_parquet(folder / f"households-{path.stem}.parquet")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    _save_results(folder)


def _save_persons(folder: Path, rng: np.random.Generator) -> None:
    sex, age = np.array(["f", "m"])[rng.integers(2, size=60)], np.array(["0-17", "18+"])[rng.integers(2, size=60)]
    persons = {"state": rng.choice(["A", "B"], 60), "county": rng.choice(["1", "2"], 60), "sex": sex, "age": age}
    frame = pd.DataFrame(persons | {"n": rng.integers(1, 4, 60), "weight": rng.uniform(0.5, 3, 60).round(2)})
    frame.to_csv(folder / "persons.csv", index=False)
    frame.to_parquet(folder / "persons.parquet", index=False)
    adults = {"f": "female", "m": "male", "0-17": "17 and under", "18+": "18 and over"}
    frame.replace(adults).to_csv(folder / "adults.csv", index=False)
    (folder / "spec.json").write_text(json.dumps(SPEC))
    (folder / "groups.json").write_text(json.dumps({"groups": [["sex", "age"]]}))
    (folder / "totals.csv").write_text(f"count\n{frame.weight.sum().round()}\n")
    with (folder / "geo.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("state", "county"), *((a, b) for a in "AB" for b in "123")])


def _save_results(folder: Path) -> None:
    """Save a result of every kind: two folders of audits, of which one is worse, and the report of a session."""
    for name, claim in (("old", PureDP(1.0)), ("new", PureDP(0.25))):
        pair = NeighborPair.add_people([120, 75, 43], 0)
        made = {
            "count": measure_loss(noisy, pair, claim, size=1000, rng=1, n_jobs=1),
            "early": measure_loss(noisy, pair, claim, size=1000, rng=1, n_jobs=1, stop="early"),
            "zcdp": measure_loss(noisy, pair, ZCDP(0.5), size=2000, rng=1, n_jobs=1),
            "outputs": measure_loss_from_outputs(
                np.load(folder / "x.npy"), np.load(folder / "y.npy"), claim, relation="add_remove", rng=1
            ),
        }
        for called, result in made.items():
            save_result(_timeless(result), folder / name, called)
    save_result(estimated(), folder / "old", "estimate")
    save_result(replayed(), folder / "old", "replay")
    save_result(audited(), folder / "mixed", "audit")
    save_result(estimated(), folder / "mixed", "estimate")
    save_result(replayed(), folder / "mixed", "replay")
    session = {"kind": "session", "audits": [{**ENTRY, "audit": audited().to_dict()}]}
    write_json(folder / "session.json", session)
    with chdir(folder), redirect_stdout(StringIO()):
        plaudit("audit", "gdpc", "--data", "counts.csv", "--size", 600, "--seed", 1, "--jobs", 1, "--out", "again")
    ((_, again),) = read_audits(folder / "again")
    write_json(folder / "again" / "gdpc.json", _timeless(again).to_dict())


def _timeless(result: AuditResult) -> AuditResult:
    """The same on every day and machine: a case depends on the bytes that it spoils."""
    kept = {key: value for key, value in result.provenance.items() if key in ("command", "parameters")}
    return replace(result, seconds=0.5, provenance=kept)


AREAS = "--areas state,county"
RELEASED = f"--data persons.csv {AREAS} --spec spec.json --epsilon 2 --out out"
HOUSEHOLDS = "--persons households-persons.csv --units households-units.csv --geo households-geo.csv"
RUNS = "--size 400 --seed 1 --jobs 1"
OUTPUTS = "--claim pure:1 --relation add_remove --seed 1"
HOUSEHOLDS_SET = HOUSEHOLDS.replace("--units ", "--set units=").replace("--geo ", "--set geo=")
