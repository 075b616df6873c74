"""A folder with one good file of every kind that the command reads, and good command lines for all of them."""

from __future__ import annotations

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


def make_desk(folder: Path) -> None:
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
            "zcdp": measure_loss(noisy, pair, ZCDP(0.5), size=1000, rng=1, n_jobs=1),
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
    (folder / "again" / "audits.png").unlink()


def _timeless(result: AuditResult) -> AuditResult:
    """The same on every day and machine: a case depends on the bytes that it spoils."""
    kept = {key: value for key, value in result.provenance.items() if key in ("command", "parameters")}
    return replace(result, seconds=0.5, provenance=kept)


AREAS = "--areas state,county"
RELEASED = f"--data persons.csv {AREAS} --spec spec.json --epsilon 2 --out out"
HOUSEHOLDS = "--persons households-persons.csv --units households-units.csv --geo households-geo.csv"
RUNS = "--size 400 --seed 1 --jobs 1"
OUTPUTS = "--claim pure:1 --relation add_remove --seed 1"

# Good command lines, each of which takes a fraction of a second, and how often each is spoiled.
COMMANDS: tuple[tuple[int, str], ...] = (
    (1, "list"),
    (1, "list --json"),
    (3, f"audit gdpc --epsilon 1 {RUNS} --data counts.csv --out out"),
    (2, f"audit gaussian-counts --claim zcdp:0.5 {RUNS} --data counts.npy --json"),
    (2, f"audit rdpc {RUNS} --data morocco --cell 0 --cell 17 --confidence 0.999"),
    (3, f"audit mine:noisy mine:buggy --data counts.csv --claim pure:1 {RUNS} --out out --name both"),
    (3, f"audit mine:buggy --data counts.csv --claim approx:1,1e-6 {RUNS} --out old --cells smallest,empty"),
    (2, f"audit mine:noisy --data counts.csv --claim gaussian:1 {RUNS} --store kept --early"),
    (2, f"audit mine:noisy --data counts.csv --claim zcdp:0.5 {RUNS} --people 2 --move-to 1 --relation replace_one"),
    (2, f"audit mine:rows --data persons.csv --add-row A,1,f,18+,1,1.0 --claim pure:1 {RUNS} --out out"),
    (2, f"audit mine:rows --data persons.parquet --replace-row 0 A,1,f,18+,1,1.0 --claim pure:1 {RUNS}"),
    (6, f"audit --outputs-x x.csv --outputs-y y.csv {OUTPUTS} --out out"),
    (6, f"audit --outputs-x x.npy --outputs-y y.npy {OUTPUTS} --json --distance 2"),
    (5, f"audit --outputs-x words-x.csv --outputs-y words-y.csv {OUTPUTS} --attack auto"),
    (2, "audit gdpc --one-run --data counts.csv --seed 1 --share 0.5 --out out"),
    (2, f"audit ons --data persons.csv {AREAS} --spec spec.json --geo geo.csv --stage measurements {RUNS}"),
    (1, f"audit nist --data persons.csv --spec spec.json --public persons.parquet {RUNS} --json"),
    (1, f"audit topdown --preset micro --data adults.csv {AREAS} --stage measurements {RUNS}"),
    (1, f"audit phsafe {HOUSEHOLDS} --config config.json --pair VAL --size 40 --seed 1 --jobs 1"),
    (4, "replay gdpc --data counts.csv --cell 0 --seed 1 --out out"),
    (4, "replay mine:buggy --data counts.csv --claim pure:1 --seed 1 --json --released --size 3"),
    (2, f"search gdpc --data counts.csv --pairs 4 --keep 2 {RUNS} --out out"),
    (2, "estimate gdpc --data counts.csv --method direct --runs 500 --seed 1 --out out"),
    (2, "estimate gdpc --data morocco --method kde --seed 1 --bandwidth 0.2 --percentile 90 --multiplier 2 --json"),
    (2, "estimate gaussian-counts --data morocco --method slope --change 1 --seed 1"),
    (3, "estimate --residuals errors.csv --method lag-tail --out out"),
    (3, "plan pure:1 --violation 1.5 --power 0.8 --confidence 0.95 --out plan.svg"),
    (2, "plan approx:1,1e-6 --runs 2000 --distance 2 --selection 0.5 --json"),
    (1, "plan gaussian:1 --relation replace_one --seconds-per-run 0.1"),
    (9, "check old"),
    (6, "check new/count.json --format csv"),
    (5, "check session.json --json"),
    (3, "check mixed --format markdown"),
    (9, "compare old new --confidence 0.99"),
    (8, "compare old/count.json new/count.json --json"),
    (12, "verify old new/count.json"),
    (2, "verify again --rerun"),
    (6, "report old --out page.html --title Counts"),
    (4, "report mixed --public"),
    (2, "report session.json"),
    (4, f"release bottom-up {RELEASED} --geo geo.csv --seed 1"),
    (3, f"release bottom-up {RELEASED} --weight weight --largest-weight 3 --totals totals.csv --tolerance 9 --seed 1"),
    (4, f"release ons {RELEASED} --method independent --table state:age*sex --count n --seed 1"),
    (3, f"release ons {RELEASED} --method top-down --level total:total=1/2 --level county:detailed=1/2 --geo geo.csv"),
    (4, "release nist --data persons.csv --spec spec.json --epsilon 2 --groups groups.json --rows 50 --out out"),
    (2, "release nist --data persons.parquet --spec spec.json --epsilon 2 --public persons.csv --rows 50 --out out"),
    (3, f"release topdown --preset micro --data adults.csv {AREAS} --geo geo.csv --seed 1 --out out"),
    (2, f"release topdown --preset micro --data adults.csv {AREAS} --epsilon 1 --relation add_remove --out out"),
    (3, f"release phsafe {HOUSEHOLDS} --config config.json --seed 1 --out out"),
    (1, "release phsafe --persons households-persons.parquet --units households-units.parquet --geo households-geo.csv "
        "--config config.json --partitions 2 --memory 1GB --out out"),
    (5, "explore phsafe --config config.json --margin PH3:state_A-G=20 --tau PH3=4 --save settings.json"),
)  # fmt: skip
