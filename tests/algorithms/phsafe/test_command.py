"""`plaudit release phsafe`: a release from files, and one clear report for everything that is wrong with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.release import check_release, read_release
from algorithms.phsafe.synthetic import synthetic_households
from algorithms.phsafe.tables import PUBLISHED
from algorithms.tables.frames import Frame
from audit import cli
from tests.golden.phsafe import CONFIG, PATHS, columns, rows

DONE, USAGE, INTERRUPTED = 0, 2, 130
FILES = tuple(path.name for path in PATHS)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """A folder with the golden households and settings; whatever is bad, they and it stay as they are."""
    folder, temporary = tmp_path / "desk", tmp_path / "temporary"
    for path in (folder, temporary):
        path.mkdir()
    for path in PATHS:
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield folder
    assert not list(temporary.iterdir())


@pytest.fixture
def plaudit(capsys):
    def command(*arguments):
        with pytest.raises(SystemExit) as stop:
            cli.main(["release", *arguments])
        return Outcome(stop.value.code, *capsys.readouterr())

    return command


def asked(*more, persons=FILES[0], units=FILES[1], geo=FILES[2], config="config.json", out="out", seed="1"):
    given = {"--persons": persons, "--units": units, "--geo": geo, "--config": config, "--out": out, "--seed": seed}
    words = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    return ("phsafe", *words, *more)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(plaudit, *arguments):
    """What is told on the last line of a report, when nothing was written and nothing changed."""
    before = contents(Path())
    outcome = plaudit(*arguments)
    assert (outcome.code, outcome.out) == (USAGE, "")
    assert "Traceback" not in outcome.err
    assert contents(Path()) == before
    assert not Path("out").exists()
    *findings, last = outcome.err.splitlines()
    assert last.startswith("plaudit: error: ")
    return (*findings, last.removeprefix("plaudit: error: "))


def replace(name, old, new, count=1):
    content = Path(name).read_bytes()
    assert content.count(old) >= count
    Path(name).write_bytes(content.replace(old, new, count))


def shell(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-m", "audit", "release", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


# A release


def test_a_release_from_files(plaudit):
    outcome = plaudit(*asked())
    assert (outcome.code, outcome.err) == (DONE, "")
    assert "976 rows in 11 tables, with noise from seed 1: a simulation, not to be published, w" in outcome.out
    assert outcome.out.startswith("rho ")
    tables = read_release("out")
    assert list(tables) == list(PUBLISHED)
    check_release(tables, read_config("config.json"), ("10", "11", "56"))
    assert sum(table["COUNT"].sum() for table in tables.values()) == sum(row[-1] for row in rows("truncated"))


@pytest.mark.slow
def test_from_a_shell_with_secure_noise_nothing_is_on_the_error_stream():
    pytest.importorskip("opendp")
    found = shell(*asked(seed=None))
    assert (found.returncode, found.stderr) == (DONE, "")
    assert "with secure noise, written to out." in found.stdout
    assert len(read_release("out")) == 11


def test_options_that_change_no_count(plaudit):
    assert plaudit(*asked()).code == DONE
    assert plaudit(*asked("--partitions", "2", "--memory", "1GB", out="other")).code == DONE
    assert contents(Path("out")) == contents(Path("other"))


def test_the_bundled_households(plaudit):
    outcome = plaudit("phsafe", "--bundled", "--out", "out", "--seed", "1")
    assert (outcome.code, outcome.err) == (DONE, "")
    assert "1,708 rows in 11 tables" in outcome.out


def test_types_are_derived_on_request(plaudit):
    homes = synthetic_households(60, rng=3, states=2, sex=True)
    homes.write("full")
    few = Frame({name: homes.units[name] for name in ("RTYPE", "MAFID", "TEN")})
    few.to_csv("few.csv")
    files = {"persons": "full/persons.csv", "geo": "full/geo.csv", "config": "us"}
    assert plaudit(*asked(**files, units="full/units.csv")).code == DONE
    assert plaudit(*asked("--derive", **files, units="few.csv", out="other")).code == DONE
    assert contents(Path("out")) == contents(Path("other"))
    told = plaudit(*asked(**files, units="few.csv", out="third")).err
    assert "; FINAL_POP, NPF, HHSPAN, HHRACE, HHT, HHT2, CPLT missing, got ['RTYPE', 'MAFID', 'TEN']" in told


def test_help_and_nothing(plaudit):
    outcome = plaudit("--help")
    assert outcome.code == DONE
    assert "phsafe" in outcome.out
    assert plaudit().code == USAGE


@pytest.mark.parametrize("name", ["[ab].csv", "'); drop table x; --.csv"])
def test_files_of_any_name(plaudit, name):
    for trap in ("star.csv", "a.csv", "b.csv"):
        Path(trap).write_text("trap\n")
    Path(FILES[0]).rename(name)
    assert plaudit(*asked(persons=name)).code == DONE


# Options


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (asked(persons=None), "--persons, --units and --geo are needed, or --bundled"),
        (asked("--bundled"), "--bundled goes without --persons, --units, --geo and --derive"),
        (("phsafe", "--bundled", "--derive", "--out", "out"), "--bundled goes without"),
        (asked(seed="-1"), "seed must be 0 or more, got -1"),
        (asked("--engine", "polars"), "engine must be duckdb or spark, got 'polars'"),
        (asked("--engine", "spark", "--memory", "4GB"), "--memory is for duckdb, got the engine spark"),
        (asked("--memory", "plenty"), "DuckDB cannot start: "),
        (asked("--partitions", "0"), "partitions must be a whole number from 1 to 1,000, got 0"),
        (asked("--partitions", "x"), "Invalid value for '--partitions'"),
        (asked("--tau", "3"), "No such option"),
        (("phsafe",), "Missing option '--out'"),
        (("bottomup",), "No such command 'bottomup'"),
    ],
)
def test_options_that_are_wrong(plaudit, arguments, told):
    assert told in refused(plaudit, *arguments)[-1]


# Settings

SETTINGS = {
    "not there": (None, "No such file"),
    "not JSON": ("{", "a config must be JSON with each key once, got: "),
    "empty": ("", "a config must be JSON with each key once, got: "),
    "a key twice": ('{"tau": {}, "tau": {}}', "key 'tau' twice"),
    "nested too deeply": ("[" * 100_000, "nested too deeply"),
    "a negative budget": (json.dumps(CONFIG).replace("1000000000.0", "-1", 1), "must be 0 or more and finite, got -1"),
    "Latin-1": ("\xe9", "a config must be JSON"),
}


@pytest.mark.parametrize(("content", "told"), SETTINGS.values(), ids=SETTINGS.keys())
def test_settings_that_are_wrong(plaudit, content, told):
    if content is not None:
        Path("wrong.json").write_bytes(content.encode("latin-1"))
    (line,) = refused(plaudit, *asked(config="wrong.json"))
    assert told in line
    assert "wrong.json" in line


# Files

BROKEN = {
    "empty": (b"", "persons.csv must begin with the names of its columns, got nothing"),
    "binary": (bytes(range(256)) * 20, "persons must have the columns RTYPE, "),
    "Latin-1": (PATHS[0].read_bytes() + b"3,\xe9,3,1,02,20\n", "Error on Line: 1212 Invalid unicode"),
    "UTF-16": (PATHS[0].read_text().encode("utf-16"), "persons.csv cannot be read: 'utf-8' codec can't decode"),
    "a row cut off": (PATHS[0].read_bytes()[:-4], "CSV Error on Line: 1211 Expected Number of Columns: 6 Found: 5"),
    "no names": (PATHS[0].read_bytes().split(b"\n", 1)[1], "RTYPE, MAFID, QAGE, CENHISP, CENRACE, RELSHIP missing"),
    "a name misspelt": (PATHS[0].read_bytes().replace(b"CENRACE", b"CENRACES"), "; CENRACE missing, got ["),
}


@pytest.mark.parametrize(("content", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_files_that_cannot_be_read(plaudit, content, told):
    Path("persons.csv").write_bytes(content)
    (line,) = refused(plaudit, *asked())
    assert told in line


@pytest.mark.parametrize(
    ("frame", "name", "told"),
    [
        ("persons", "nowhere.csv", "there is no file "),
        ("units", "nowhere.csv", "there is no file "),
        ("geo", "folder.csv", "there is no file "),
        ("persons", ".", "persons, units and geo must be .csv or .parquet files, got "),
        ("units", "/dev/null", "persons, units and geo must be .csv or .parquet files, got "),
        ("persons", "bad.parquet", "bad.parquet cannot be read: "),
        ("persons", "read_csv('/etc/passwd')", "persons, units and geo must be .csv or .parquet files, got "),
    ],
)
def test_paths_that_lead_nowhere(plaudit, frame, name, told):
    Path("folder.csv").mkdir()
    Path("bad.parquet").write_bytes(b"PAR1")
    (line,) = refused(plaudit, *asked(**{frame: name}))
    assert told in line


# Households


def damage(frame, column, rows, value):
    given = columns(Path(f"{frame}.csv"))
    for row in rows:
        given[column][row] = value
    Frame(given).to_csv(f"{frame}.csv")


def repeated(frame, row):
    lines = Path(f"{frame}.csv").read_text().splitlines()
    Path(f"{frame}.csv").write_text("\n".join([*lines, lines[row]]) + "\n")


def without(frame, row):
    lines = Path(f"{frame}.csv").read_text().splitlines()
    Path(f"{frame}.csv").write_text("\n".join(lines[:row] + lines[row + 1 :]) + "\n")


def stripped():
    given = columns(Path("persons.csv"))
    given["CENRACE"] = [race.lstrip("0") for race in given["CENRACE"]]
    Frame(given).to_csv("persons.csv")


def emptied():
    names, *_ = Path("persons.csv").read_text().splitlines()
    Path("persons.csv").write_text(names + "\n")


SPOUSE, VACANT = columns(PATHS[0])["RELSHIP"].index("21"), columns(PATHS[1])["FINAL_POP"].index("0")
LOST = sum(race < "10" for race in columns(PATHS[0])["CENRACE"])
HOUSEHOLDS = {
    "ages": (lambda: damage("persons", "QAGE", range(7), "116"), "persons: QAGE must be 0 to 115; 7 rows broke it"),
    "a NUL byte": (lambda: damage("persons", "RELSHIP", [1], "20\x00"), r"1 row broke it, such as '20\x00'"),
    "zeros lost": (stripped, f"persons: CENRACE must be 01 to 63 (63 codes); {LOST:,} rows broke it, such as '1'"),
    "SQL": (
        lambda: damage("units", "HHT", [1], "'; drop table units; --"),
        "units: HHT must be 0 to 7 (8 codes); 1 row",
    ),
    "a unit twice": (lambda: repeated("units", 5), "units: no MAFID may stand twice; 2 rows broke it, such as MAFID "),
    "a person without a unit": (
        lambda: damage("persons", "MAFID", [9], "100000001"),
        "persons: every MAFID must be that of a unit; 1 row",
    ),
    "nobody but units": (emptied, "units: FINAL_POP must be that of the members; 253 rows"),
}


@pytest.mark.parametrize(("change", "told"), HOUSEHOLDS.values(), ids=HOUSEHOLDS.keys())
def test_households_that_are_wrong(plaudit, change, told):
    change()
    *findings, last = refused(plaudit, *asked())
    assert any(told in line for line in findings)
    number = "one rule" if len(findings) == 1 else f"{len(findings)} rules"
    assert last == f"the households break {number}, above; nothing was written"


def test_no_households_at_all(plaudit):
    for path in PATHS:
        Path(path.name).write_text(path.read_text().split("\n")[0] + "\n")
    (line,) = refused(plaudit, *asked())
    assert line.startswith("geo must hold a housing unit (RTYPE 2) at least, got none")


def test_types_cannot_be_derived_without_sexes(plaudit):
    assert "; QSEX missing, got " in refused(plaudit, *asked("--derive"))[-1]


def test_derived_sexes_that_are_unknown_are_counted(plaudit):
    homes = synthetic_households(300, rng=3, states=2, sex=True)
    homes.write(".")
    damage("persons", "QSEX", range(3), "9")
    (line,) = refused(plaudit, *asked("--derive", config="us"))
    assert line == "persons: QSEX must be 1, 2; 3 rows broke it"


# Folders


def test_a_folder_that_holds_something_is_left_alone(plaudit):
    Path("mine").mkdir()
    Path("mine/notes").write_text("mine")
    assert "out must be a new or an empty folder" in refused(plaudit, *asked(out="mine"))[-1]
    assert "out must be a folder, got the file" in refused(plaudit, *asked(out="config.json"))[-1]
    assert "config.json" in refused(plaudit, *asked(out="config.json/out"))[-1]


@pytest.mark.slow
def test_bad_households_from_a_shell_have_no_traceback(desk):
    damage("persons", "QAGE", range(7), "116")
    before = contents(desk)
    found = shell(*asked())
    assert (found.returncode, found.stdout) == (USAGE, "")
    assert found.stderr.splitlines() == [
        "persons: QAGE must be 0 to 115; 7 rows broke it, such as '116'",
        "plaudit: error: the households break one rule, above; nothing was written",
    ]
    assert contents(desk) == before


def test_an_interrupt_leaves_nothing(desk, plaudit, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    before = contents(desk)
    monkeypatch.setattr(sys.modules["algorithms.phsafe.release"], "check_release", interrupted)
    outcome = plaudit(*asked())
    assert (outcome.code, outcome.out) == (USAGE, "")
    assert outcome.err == "plaudit: error: interrupted; nothing was written\n"
    assert contents(desk) == before
    assert not Path("out").exists()
