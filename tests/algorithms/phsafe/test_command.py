"""`plaudit release phsafe`: a release from files, and one clear report for everything that is wrong with them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from algorithms.phsafe.population import RELATIONSHIPS
from algorithms.phsafe.schema import FRAMES, GEO, GROUP_QUARTERS, Digits
from algorithms.phsafe.tables import PUBLISHED
from algorithms.release.frames import Frame
from algorithms.systems import systems
from tests.algorithms.releases import all_but_reading, record
from tests.golden.phsafe import CONFIG, PATHS, columns, rows
from tests.helpers import anew, beside_reading, contents, plaudit, refused_by
from tests.households import synthetic_households, write_csv

DONE, USAGE, INTERRUPTED = 0, 2, 130
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


# A release


def test_a_release_from_files(phsafe):
    assert phsafe(*command())[0] == DONE
    tables = [Path("out", name, f"{name}.csv").read_text().splitlines() for name in PUBLISHED]
    released = [int(row["COUNT"]) for table in tables for row in csv.DictReader(table, delimiter="|")]
    assert sum(released) == sum(row[-1] for row in rows("truncated"))
    assert phsafe(*command("--partitions", "2", "--memory", "1GB", out="other"))[0] == DONE
    assert contents(Path("out")) == contents(Path("other"))  # options that change no count
    code, out, err = phsafe("phsafe", "--bundled", "--out", "bundled", "--seed", "1")
    assert (code, beside_reading(err)) == (DONE, [])
    assert "1,708 rows in 11 tables" in out


def test_types_are_derived_on_request(phsafe):
    homes = synthetic_households(60, rng=3, states=2, sex=True)
    write_csv(homes, "full")
    Frame({name: homes.units[name] for name in ("RTYPE", "MAFID", "TEN")}).to_csv("few.csv")
    files = {"persons": "full/persons.csv", "geo": "full/geo.csv", "config": "us"}
    assert phsafe(*command(**files, units="full/units.csv"))[0] == DONE
    assert phsafe(*command("--derive", **files, units="few.csv", out="other"))[0] == DONE
    assert contents(Path("out")) == contents(Path("other"))
    message = refused_by(phsafe, *command(**files, units="few.csv", out="third"))[-1]
    assert "; FINAL_POP, NPF, HHSPAN, HHRACE, HHT, HHT2, CPLT missing, got ['RTYPE', 'MAFID', 'TEN']: " in message
    assert message.endswith(": docs/how-to/phsafe.md says what they hold, and --recode makes them of yours")
    assert "; QSEX missing, got " in refused_by(phsafe, *command("--derive", out="third"))[-1]


def test_columns_that_are_not_released_are_named_once(phsafe):
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
    derived = "income, citi zen, FINAL_POP, NPF, HHSPAN, HHRACE, HHT, HHT2, CPLT, value"
    for options, names in (
        ((), "QSEX, income, citi zen, value"),
        (("--derive", "--partitions", "2"), derived),
        (("--recode", "recode.json"), "QAGE, QSEX, citi zen, income, value"),
    ):
        code, _, err = phsafe(*command(*options, **given, out=f"out{len(names)}"))
        assert (code, beside_reading(err)) == (DONE, [f"not released: {names}"])
    assert "persons.QAGE read from income\n" in err


def test_a_column_that_places_read_is_not_named_in_another_file(phsafe):
    """And columns of digits, which no table reads, may be missing."""
    homes = synthetic_households(60, rng=3, states=2, sex=True)
    write_csv(homes, "full")
    Frame({**homes.persons.to_dict(), "region": homes.persons["RTYPE"]}).to_csv("p.csv")
    Frame({"RTYPE": homes.geo["RTYPE"], "MAFID": homes.geo["MAFID"], "region": homes.geo["TABBLKST"]}).to_csv("g.csv")
    Path("recode.json").write_text('{"geo": {"TABBLKST": {"from": "region"}}}')
    made = ("--recode", "recode.json"), {"persons": "p.csv", "geo": "g.csv", "out": "out"}
    usual = (), {"persons": "full/persons.csv", "geo": "full/geo.csv", "out": "other"}
    for options, files in (made, usual):
        code, _, err = phsafe(*command(*options, **files, units="full/units.csv", config="us"))
        assert (code, beside_reading(err)) == (DONE, ["not released: QSEX"])
    assert record()["reading"] == {"geo": {"TABBLKST": {"from": "region"}}}
    assert all_but_reading("out") == all_but_reading("other")


RELATED = {f"{code}": word for code, word in enumerate(RELATIONSHIPS, 20)}
IN_QUARTERS = [word for code, word in RELATED.items() if code in GROUP_QUARTERS]
NUMBERED = {"from": "home", "add": 10**8}
CODES = {  # of words
    "QSEX": {"male": "1", "female": 2},
    "CENHISP": {"no": 1, "yes": "2"},
    "RELSHIP": {word: code for code, word in RELATED.items()},
    "TEN": {"": "0", "mortgage": "1", "owned": "2", "rented": "3", "free": "4"},
}
RECODE = {
    "persons": {
        "RTYPE": {"from": "related", "values": {word: "35"[word in IN_QUARTERS] for word in RELATED.values()}},
        "MAFID": NUMBERED,
        "QAGE": {"from": "age"},
        "QSEX": {"from": "sex", "values": CODES["QSEX"]},
        "CENHISP": {"from": "hispanic", "values": CODES["CENHISP"]},
        "RELSHIP": {"from": "related", "values": CODES["RELSHIP"]},
    },
    "units": {"MAFID": NUMBERED, "TEN": {"from": "tenure", "values": CODES["TEN"]}},
    "geo": {"MAFID": NUMBERED, **{column: {"constant": 0} for column, domain in GEO.items() if domain == Digits()}},
}


def write_ordinary(homes):
    """The same households in ordinary files: homes with small numbers, ages, and words."""
    words = {column: {str(code): word for word, code in codes.items()} for column, codes in CODES.items()}
    persons = {"age": "QAGE", "sex": "QSEX", "hispanic": "CENHISP", "CENRACE": "CENRACE", "related": "RELSHIP"}
    units, geo = {"RTYPE": "RTYPE", "tenure": "TEN"}, {"RTYPE": "RTYPE", "TABBLKST": "TABBLKST"}
    for name, named in zip(FRAMES, (persons, units, geo), strict=True):
        frame = getattr(homes, name)
        given = {mine: [words.get(c, {}).get(str(v), v) for v in frame[c]] for mine, c in named.items()}
        Frame({"home": frame["MAFID"] - 10**8, **given}).to_csv(anew(f"{name}.csv"))
    Path("recode.json").write_text(json.dumps(RECODE))


def test_ordinary_columns_give_the_tables_of_the_layout(phsafe):
    homes = synthetic_households(150, rng=3, states=2, sex=True)
    write_csv(homes, "full")
    write_ordinary(homes)
    assert {"5", "3"} == set(homes.persons["RTYPE"])
    full = {name: f"full/{name}.csv" for name in FRAMES}
    assert phsafe(*command("--derive", **full, config="us"))[0] == DONE
    assert phsafe(*command(*OWN, "--partitions", "3", config="us", out="other"))[0] == DONE
    assert all_but_reading("out") == all_but_reading("other")
    own = systems()["phsafe"].on("persons.csv", units="units.csv", geo="geo.csv", derive=True, recode="recode.json")
    usual = systems()["phsafe"].on(full["persons"], units=full["units"], geo=full["geo"])
    counts, expected = (system.pair("DER").x.counts for system in (own, usual))
    assert counts.keys() == expected.keys()
    assert all((table == expected[query]).all() for query, table in counts.items())


OWN = ("--derive", "--recode", "recode.json")
OPPOSITE = "RELSHIP (related) says opposite-sex spouse, QSEX (sex) says the same sex"
AGE = "persons: QAGE (age) must be a whole number of 0 to 115; 1 row broke it, such as"
BROKEN = [  # file, column and value of the first row, and what is said
    ("persons", "age", "34.5", f"{AGE} '34.5' in home HOME"),
    ("persons", "home", "7", "persons: every MAFID (home) must be that of a unit; 1 row broke it, such as home 7"),
    (
        *("units", "tenure", ""),
        "units: TEN (tenure) must be 1 to 4 where people live; 1 row broke it, such as '0' in home HOME",
    ),
]


@pytest.mark.parametrize(("name", "column", "value", "message"), BROKEN)
def test_a_rule_is_told_in_one_line_with_the_columns_and_homes_of_the_file(phsafe, name, column, value, message):
    write_ordinary(synthetic_households(100, rng=3, states=2, sex=True))
    given = columns(Path(f"{name}.csv"))
    given[column][0], home = value, given["home"][0]
    Frame(given).to_csv(anew(f"{name}.csv"))
    line = refused_by(phsafe, *command(*OWN, config="us"))[-1]
    assert line.partition("; units: TEN")[0] == message.replace("HOME", home)


def test_couples_that_contradict_themselves_are_counted_before_the_release(phsafe):
    """All spouses are said to be of the opposite sex: those who are not are counted here by hand."""
    write_ordinary(synthetic_households(1_000, rng=3, states=2, sex=True))
    code, _, err = phsafe(*command(*OWN, config="us"))
    assert (code, beside_reading(err)) == (DONE, [])
    given, sexes = columns(Path("persons.csv")), dict[str, list[str]]()
    given["related"] = [RELATED["21"] if word == RELATED["23"] else word for word in given["related"]]
    Frame(given).to_csv(anew("persons.csv"))
    for home, word, sex in zip(given["home"], given["related"], given["sex"], strict=True):
        if word in (RELATED["20"], RELATED["21"]):
            sexes.setdefault(home, []).append(sex)
    wrong = [home for home, pair in sexes.items() if pair in (["male"] * 2, ["female"] * 2)]
    assert len(wrong) > 1
    code, _, err = phsafe(*command(*OWN, "--partitions", "2", config="us", out="other"))
    (warning,) = beside_reading(err)
    told, _, home = warning.partition(", such as home ")
    assert (code, told) == (DONE, f"warning: {len(wrong)} households: {OPPOSITE}")
    assert home in wrong


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
        (command("--recode", "age.json"), "recode of geo must make columns among RTYPE, MAFID, TABBLKST, "),
    ],
)
def test_options_that_are_wrong(phsafe, arguments, message):
    for name, content in (("list", [1]), ("homes", {"homes": {}}), ("age", {"geo": {"QAGE": {"constant": 1}}})):
        Path(f"{name}.json").write_text(json.dumps(content))
    assert message in refused_by(phsafe, *arguments)[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tau", "PH3=4.5"), "--tau must be a whole number, got 'PH3=4.5'"),
        (("--tau", "PH3=4", "--tau", "PH3=5"), "--tau must name a query once, got PH3 twice"),
        (("--margin", "PH3:state_A-G"), "--margin is written as PH3:state_A-G=20, got 'PH3:state_A-G'"),
        (("--save", "config.json"), "config.json: is there: it stays, so name a new file"),
    ],
)
def test_settings_that_are_wrong_are_refused_before_they_are_saved(files, capsys, arguments, message):
    before = contents(files)
    assert plaudit("explore", "phsafe", "--config", "config.json", *arguments) == USAGE
    assert capsys.readouterr().err == f"plaudit: error: {message}\n"
    assert contents(files) == before


# Households
