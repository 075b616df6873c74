"""`plaudit release phsafe`: releases from files, half a second each, and one clear report of what is wrong."""

import csv
import json
from pathlib import Path

import pytest

from algorithms.phsafe.schema import GEO
from algorithms.phsafe.tables import PUBLISHED
from algorithms.release.frames import Frame
from algorithms.systems import systems
from tests.algorithms.releases import all_but_reading
from tests.docs.pages import ROOT
from tests.golden.phsafe import CONFIG, PATHS, columns, rows
from tests.helpers import anew, beside_reading, contents, plaudit, refused_by
from tests.households import synthetic_households, write_csv

DONE, USAGE = 0, 2
FILES = tuple(path.name for path in PATHS)


@pytest.fixture(autouse=True)
def files(workspace):
    """A folder with the golden households and settings; whatever is bad, they and it stay as they are."""
    for path in PATHS:
        Path(path.name).write_bytes(path.read_bytes())
    Path("config.json").write_text(json.dumps(CONFIG))
    Path("recode.json").write_text('{"geo": {}}')
    return workspace


@pytest.fixture
def phsafe(capsys):
    return lambda *arguments: (plaudit("release", *arguments), *capsys.readouterr())


def command(*more, persons=FILES[0], units=FILES[1], geo=FILES[2], config="config.json", out="out", seed="1"):
    given = {"--persons": persons, "--units": units, "--geo": geo, "--config": config, "--out": out, "--seed": seed}
    words = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    return ("phsafe", *words, *more)


def test_a_release_from_files(phsafe):
    assert phsafe(*command("--partitions", "2", "--memory", "1GB"))[0] == DONE  # options that change no count
    tables = [Path("out", name, f"{name}.csv").read_text().splitlines() for name in PUBLISHED]
    released = [int(row["COUNT"]) for table in tables for row in csv.DictReader(table, delimiter="|")]
    assert sorted(released) == sorted(row[-1] for row in rows("truncated"))


def test_a_release_of_the_bundled_households(phsafe):
    code, out, err = phsafe("phsafe", "--bundled", "--out", "bundled", "--seed", "1")
    assert (code, beside_reading(err)) == (DONE, [])
    assert "1,708 rows in 11 tables" in out


@pytest.fixture
def few(files):
    """Files of synthetic households, with and without the columns of units that persons make."""
    homes = synthetic_households(60, rng=3, states=2, sex=True)
    write_csv(homes, "full")
    Frame({name: homes.units[name] for name in ("RTYPE", "MAFID", "TEN")}).to_csv("few.csv")
    return {"persons": "full/persons.csv", "geo": "full/geo.csv", "config": "us"}


def test_types_are_derived_on_request(phsafe, few):  # two releases
    assert phsafe(*command(**few, units="full/units.csv"))[0] == DONE
    assert phsafe(*command("--derive", **few, units="few.csv", out="other"))[0] == DONE
    assert contents(Path("out")) == contents(Path("other"))


def test_types_that_are_missing_and_cannot_be_derived_are_refused(phsafe, few):
    message = refused_by(phsafe, *command(**few, units="few.csv", out="third"))[-1]
    assert "; FINAL_POP, NPF, HHSPAN, HHRACE, HHT, HHT2, CPLT missing, got ['RTYPE', 'MAFID', 'TEN']: " in message
    assert message.endswith(": docs/how-to/phsafe.md says what they hold, and --recode makes them of yours")
    assert "; QSEX missing, got " in refused_by(phsafe, *command("--derive", out="third"))[-1]


DERIVED = "income, citi zen, FINAL_POP, NPF, HHSPAN, HHRACE, HHT, HHT2, CPLT, value"


@pytest.mark.parametrize(
    ("options", "names", "read"),
    [
        (("--derive", "--partitions", "2"), DERIVED, ""),
        (("--recode", "recode.json"), "QAGE, QSEX, citi zen, income, value", "persons.QAGE read from income\n"),
    ],
)
def test_columns_that_are_not_released_are_named_once(phsafe, options, names, read):
    """A file may be units and places: what either reads is used."""
    homes = synthetic_households(60, rng=3, states=2, sex=True)
    ages = homes.persons["QAGE"]
    Frame({**homes.persons.to_dict(), "income": ages, "citi\tzen": ages}).to_csv("p.csv")
    state = dict(zip(homes.geo["MAFID"], homes.geo["TABBLKST"], strict=True))
    places = {name: [state[number] if name == "TABBLKST" else "2" for number in homes.units["MAFID"]] for name in GEO}
    more = dict.fromkeys(("income", "value"), homes.units["MAFID"])
    Frame({**places, **homes.units.to_dict(), **more}).to_csv("u.csv")
    given = {"persons": "p.csv", "units": "u.csv", "geo": "u.csv", "config": "us"}
    Path("recode.json").write_text('{"persons": {"QAGE": {"from": "income"}, "QSEX": {"from": "CITI\\tzen"}}}')
    code, _, err = phsafe(*command(*options, **given))
    assert (code, beside_reading(err)) == (DONE, [f"not released: {names}"])
    assert read in err


RECODE = ROOT / "examples" / "recode.json"
OWN = ("--derive", "--recode", str(RECODE))
ORDINARY = {"persons": "persons.csv", "units": "homes.csv", "geo": "homes.csv", "config": "us"}
PERSONS = [  # home, then what the recode makes of words, and age: two couples, and two who share a home
    *((1, "1", "1", "01", "20", 40), (1, "2", "1", "02", "21", 38), (1, "1", "2", "02", "25", 5)),
    *((2, "2", "1", "07", "20", 50), (2, "2", "1", "07", "23", 48), (4, "1", "2", "06", "20", 30)),
    *((4, "1", "1", "03", "34", 31), (5, "2", "1", "04", "20", 90)),
]
HOMES = [(1, "10", "1"), (2, "11", "3"), (3, "10", "0"), (4, "11", "4"), (5, "10", "2")]


def write_ordinary(persons=PERSONS):
    """Write the same households in the layout, into a folder, and in words and small numbers of homes."""
    made = json.loads(RECODE.read_text())
    coded = ("QSEX", "CENHISP", "CENRACE", "RELSHIP"), ("TABBLKST", "TEN")
    ways = made["persons"] | made["units"] | made["geo"]
    for name, households, columns_made in zip(("persons", "homes"), (persons, HOMES), coded, strict=True):
        places = dict(zip(("MAFID", *columns_made, "QAGE"), zip(*households, strict=True), strict=False))
        words = {column: {code: word for word, code in ways[column]["values"].items()} for column in columns_made}
        own = {ways[column]["from"]: [words.get(column, {}).get(v, v) for v in places[column]] for column in places}
        Frame(own).to_csv(anew(f"{name}.csv"))
        mafids = [number + 10**8 for number in places["MAFID"]]
        full = {"RTYPE": ["3" if name == "persons" else "2"] * len(households), **places, "MAFID": mafids}
        Frame(full).to_csv(anew(f"full-{name}.csv"))


def test_ordinary_columns_give_the_tables_of_the_layout(phsafe, monkeypatch):  # four readings of households
    write_ordinary()
    full = {"persons": "full-persons.csv", "units": "full-homes.csv", "geo": "full-homes.csv"}
    assert phsafe(*command("--derive", **full, config="us"))[0] == DONE
    code, _, err = phsafe(*command(*OWN, "--partitions", "3", **ORDINARY, out="other"))
    assert (code, beside_reading(err)) == (DONE, [])
    assert all_but_reading("out") == all_but_reading("other")
    read = systems()["phsafe"].own
    own = read("persons.csv", units="homes.csv", geo="homes.csv", derive=True, recode=str(RECODE))
    usual = read(full["persons"], units=full["units"], geo=full["geo"], derive=True)
    monkeypatch.setattr("algorithms.phsafe.system.joined_to", lambda tables, pair: tables)  # before any pair is added
    monkeypatch.setattr("algorithms.phsafe.system.tabulated", lambda *pair_and_settings: None)
    counts, expected = (system.pairs["DER"]().counts for system in (own, usual))
    assert counts.keys() == expected.keys()
    assert all((table == expected[query]).all() for query, table in counts.items())


BROKEN = [  # file, column and value of the first row, and what is said
    ("persons", "age", "34.5", "persons: QAGE (age) must be a whole number of 0 to 115; {} '34.5' in household 1"),
    ("persons", "household", "7", "persons: every MAFID (household) must be that of a unit; {} household 7"),
    ("homes", "tenure", "", "units: TEN (tenure) must be 1 to 4 where people live; {} '0' in household 1"),
]


@pytest.mark.parametrize(("name", "column", "value", "message"), BROKEN)
def test_a_rule_is_told_in_one_line_with_the_columns_and_homes_of_the_file(phsafe, name, column, value, message):
    write_ordinary()
    given = columns(Path(f"{name}.csv"))
    given[column][0] = value
    Frame(given).to_csv(anew(f"{name}.csv"))
    line = refused_by(phsafe, *command(*OWN, **ORDINARY))[-1]
    assert line == message.format("1 row broke it, such as")


@pytest.mark.parametrize("parts", ["1", "2"])
def test_couples_that_contradict_themselves_are_counted_before_the_release(phsafe, parts):
    """All spouses are said to be of the opposite sex."""
    spouses = [(*codes, "21" if relationship == "23" else relationship, age) for *codes, relationship, age in PERSONS]
    write_ordinary(spouses)
    code, _, err = phsafe(*command(*OWN, "--partitions", parts, **ORDINARY, out="other"))
    opposite = "RELSHIP (relationship) says opposite-sex spouse, QSEX (sex) says the same sex"
    assert (code, beside_reading(err)) == (DONE, [f"warning: 1 household: {opposite}, such as household 2"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (command(persons=None), "--persons, --units and --geo are needed, or --bundled"),
        (command("--bundled"), "--bundled goes without --persons, --units, --geo, --recode and --derive"),
        (("phsafe", "--bundled", "--derive", "--out", "out"), "--bundled goes without"),
        (command("--engine", "spark", "--memory", "4GB"), "--memory is for duckdb, got the engine spark"),
        (command("--engine", "spark", "--recode", "recode.json"), "--recode is for duckdb, got the engine spark"),
        (command("--master", "local[2]"), "--master is for spark, got the engine duckdb"),
        (command("--recode", "list.json"), "recode must be an object with persons, units, geo alone, got [1]"),
        (command("--recode", "homes.json"), "with persons, units, geo alone, got ['homes']"),
    ],
)
def test_options_that_are_wrong(phsafe, arguments, message):
    for name, content in (("list", [1]), ("homes", {"homes": {}})):
        Path(f"{name}.json").write_text(json.dumps(content))
    assert message in refused_by(phsafe, *arguments)[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tau", "PH3=4.5"), "--tau must be a whole number, got 'PH3=4.5'"),
        (("--tau", "PH3=4", "--tau", "PH3=5"), "--tau must name a query once, got PH3 twice"),
        (("--margin", "PH3:state_A-G"), "--margin is written as PH3:state_A-G=20, got 'PH3:state_A-G'"),
    ],
)
def test_settings_that_are_wrong_are_refused_before_they_are_saved(files, capsys, arguments, message):
    before = contents(files)
    assert plaudit("explore", "phsafe", "--config", "config.json", *arguments) == USAGE
    assert capsys.readouterr().err == f"plaudit: error: {message}\n"
    assert contents(files) == before
