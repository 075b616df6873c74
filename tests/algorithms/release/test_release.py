"""What is told of a release that is interrupted, cannot be printed, or follows one that was killed: it is true."""

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from algorithms.release import engine
from algorithms.topdown.presets import PRESETS
from audit.io.temporary import SPILLED, STAGED, _machine
from tests.golden.phsafe import CONFIG, PATHS
from tests.helpers import beside_reading, contents, plaudit, refused_by, rows_of

DONE, USAGE, INTERRUPTED, UNREAD = 0, 2, 130, 141
PUBLISHED = "out holds a whole release, and its budget is spent"
ADULTS = PRESETS["micro"].schema.attributes["age"]
SYSTEMS = {
    "phsafe": "--persons persons.csv --units units.csv --geo geo.csv --config config.json",
    "topdown": "--data people.csv --areas state,county --preset micro --count n",
    "ons": "--data people.csv --areas state,county --count n --spec spec.json --epsilon 1000 --method top-down",
    "bottom-up": "--data people.csv --areas state,county --count n --spec spec.json --epsilon 1000",
    "nist": "--data people.csv --spec spec.json --groups groups.json --epsilon 1000 --rows 5",
}


@pytest.fixture
def files(workspace):
    """A folder with persons for every system."""
    for path, name in zip(PATHS, ("persons.csv", "units.csv", "geo.csv"), strict=True):
        shutil.copy(path, name)
    Path("config.json").write_text(json.dumps(CONFIG))
    rows = [f"10,1,female,{ADULTS[0]},40", f"10,2,male,{ADULTS[1]},7", f"20,1,male,{ADULTS[1]},12"]
    Path("people.csv").write_text("\n".join(["state,county,sex,age,n", *rows, ""]))
    attributes = {"sex": ["female", "male"], "age": [ADULTS[0], ADULTS[1], "1"]}
    Path("spec.json").write_text(json.dumps({"attributes": attributes}))
    Path("groups.json").write_text(json.dumps({"groups": [["sex"], ["age"]]}))
    return workspace


@pytest.fixture
def release(files, capsys):
    def run(system, *more):
        try:
            code = plaudit("release", system, *SYSTEMS[system].split(), *(more or ("--out", "out", "--seed", "1")))
        except KeyboardInterrupt:  # when all is said: the process that is watched has this code, then
            code = INTERRUPTED
        return (code, *capsys.readouterr())

    return run


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_release_has_its_tables_its_ledger_and_its_record(release, system):  # and PHSafe those it publishes
    code, out, err = release(system, "--out", "out", "--seed", "1", *["--published"] * (system == "phsafe"))
    assert (code, [line for line in beside_reading(err) if not line.startswith("not released: ")]) == (DONE, [])
    assert out.startswith(Path("out/ledger.txt").read_text())
    assert out.endswith(", with noise from seed 1: a simulation, not to be published, written to out.\n")
    record = json.loads(Path("out/release.json").read_text())
    assert record["noise"] == "from a seeded generator: a simulation, not to be published"
    assert record["promise"]["relation"] == record["relation"]
    assert {"csv", "software"} < record.keys()
    described = {}
    for row in rows_of(Path("out/columns.csv")):
        assert all(row[name] for name in ("FILE", "COLUMN", "MEANING"))
        if row["COLUMN"] in ("COUNT", "ESTIMATE", "LOWER", "UPPER"):
            assert row["VALUES"] == ("exact" if row["FILE"] == "invariants.csv" else "noisy")
        described.setdefault(row["FILE"], []).append(row["COLUMN"])
    tables = {str(path.relative_to("out")): path for path in Path("out").rglob("*.csv") if path.name != "columns.csv"}
    separator = "|" if system == "phsafe" else ","
    assert described == {name: path.read_text().splitlines()[0].split(separator) for name, path in tables.items()}
    assert re.search("added or removed|replaced", Path("out/ledger.txt").read_text())


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_release_draws_secure_noise_where_no_seed_is_given(release, system):
    pytest.importorskip("opendp")
    code, out, _ = release(system, "--out", "out")
    assert (code, out.endswith(", with secure noise, written to out.\n")) == (DONE, True)
    assert json.loads(Path("out/release.json").read_text())["noise"].startswith("secure: ")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_release_that_is_interrupted_leaves_nothing(release, files, system, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    before = contents(files)
    monkeypatch.setattr(engine, "shown", interrupted)
    code, out, err = release(system)
    assert (code, out) == (INTERRUPTED, "")
    assert err.splitlines()[-1] == "plaudit: interrupted; nothing was written"
    assert contents(files) == before


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_release_refuses_what_is_wrong_with_its_options_and_files(release, system):
    first = SYSTEMS[system].split()[1]
    for more, rule in (
        (("--out", "out", "--seed", "-1"), "seed must be 0 or more, got -1"),
        (("--out", first, "--seed", "1"), f"out must be a new or an empty folder, got {first}"),
        (("--seed", "1"), "Missing option '--out'"),
        (("--out", "out", "--seed", "1", "--memory", "plenty"), "DuckDB cannot start: "),
    ):
        assert rule in refused_by(release, system, *more)[-1]


@pytest.mark.reliability(row=6)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_release_whose_words_are_lost_is_told(release, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, _, err = release("ons")
    assert (code, err.splitlines()[-1]) == (USAGE, f"plaudit: error: no space left on device; {PUBLISHED}")
    assert Path("out/release.json").exists()


def test_a_release_that_nobody_reads_of_is_told(release, monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as left:
        monkeypatch.setattr(sys, "stdout", left)
        code, _, err = release("ons")
    assert (code, err.splitlines()[-1]) == (UNREAD, f"plaudit: nobody reads on; {PUBLISHED}")


def test_what_killed_runs_have_left_is_named(release, files):
    owner = f"{_machine()}-{2**22 + 1}-7"  # the number of no process
    places = (Path(tempfile.gettempdir(), f"{SPILLED}{owner}-{1:016x}"), files / f"{STAGED}{owner}-{2:016x}")
    for place in places:
        place.mkdir()
    code, _, err = release("ons")
    assert code == DONE
    for place in places:
        place.rmdir()
        assert f"left by a run that was killed: 1 file or folder; `plaudit doctor --clean {place.parent}`" in err
