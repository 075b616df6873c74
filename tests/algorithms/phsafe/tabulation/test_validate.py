"""Bad households: every rule is reached, and the rows that break it are counted; types follow from members."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.phsafe import read_config, tabulate
from algorithms.phsafe.schema import FRAMES, Codes, Digits, Whole
from algorithms.phsafe.tabulation.derive import derive_units
from algorithms.phsafe.tabulation.rules import Finding, InvalidHouseholds, check_report
from algorithms.release.frames import Frame
from tests.algorithms.phsafe.oracle import types_by_hand
from tests.golden.phsafe import CONFIG, PATHS, columns
from tests.households import synthetic_households

UNIT, PLACE = "every MAFID must be that of a unit", "every MAFID must be that of a place"
TWICE, ALONE = "no MAFID may stand twice", "Puerto Rico must be by itself"
FILTER = "every state must be in the filter"
ONE = "an occupied unit must have one householder"
TENURE, NO_TENURE = "TEN must be 1 to 4 where people live", "TEN must be 0 where nobody lives, and in group quarters"
QUARTERS = "RELSHIP must be 37 or 38 in group quarters and only there"
HOUSED = "RTYPE must be 3 in a housing unit and 5 in group quarters"
PLACED = "RTYPE must be 2 for housing units and only for them"
PARTNERED = ("units", "at most one member may be the householder's spouse or partner")


class Golden:
    """The golden households as lists of text, with the means to find and damage some of them."""

    def __init__(self):
        self.persons, self.units, self.geo = map(columns, PATHS)
        self.used = set()

    def frames(self):
        return [Frame({n: np.array(v, object) for n, v in f.items()}) for f in (self.persons, self.units, self.geo)]

    def unit(self, **wanted):
        """The place in the units of the first that has these values and was not found before."""
        places = (i for i in range(len(self.units["MAFID"])) if i not in self.used)
        place = next(i for i in places if all(self.units[name][i] == value for name, value in wanted.items()))
        self.used.add(place)
        return place

    def members(self, unit):
        return [i for i, mafid in enumerate(self.persons["MAFID"]) if mafid == self.units["MAFID"][unit]]

    def member(self, unit, relationship):
        return next(i for i in self.members(unit) if self.persons["RELSHIP"][i] == relationship)

    def place(self, unit):
        return self.geo["MAFID"].index(self.units["MAFID"][unit])

    def remove(self, frame, rows):
        kept = {name: [v for i, v in enumerate(values) if i not in set(rows)] for name, values in frame.items()}
        frame.update(kept)

    def repeat(self, frame, row):
        for values in frame.values():
            values.append(values[row])


def findings_of(database, golden, **options):
    with pytest.raises(InvalidHouseholds) as error:
        tabulate(*golden.frames(), "PH2", engine=database, **options)
    assert str(error.value) == "; ".join(map(str, error.value.findings))
    return {(finding.frame, finding.rule): finding.rows for finding in error.value.findings}


def outside(domain):
    """Text that is not in a domain, the missing value last."""
    if isinstance(domain, Codes):
        code = domain.codes[1]
        lost = [code.lstrip("0")] if code.startswith("0") and len(code) > 1 else []
        return ["x", f" {code}", f"{code} ", f"{code}.0", "'; drop table persons; --", f"{code}\x00", *lost, None]
    if isinstance(domain, Digits):
        return ["x", "-1", "1.5", "1 ", "", "1\x00", "٣", None]
    assert isinstance(domain, Whole)
    far = [domain.least - 1, domain.most + 1, *domain.without, 2**70]
    return [*map(str, far), "x", "1.0", "1e2", "+1", " 1", "", "٣", "nan", "1\x00", None]


@pytest.mark.parametrize("frame", FRAMES)
def test_every_value_outside_its_domain_is_counted(database, frame):
    golden, wanted = Golden(), {}
    for column, domain in FRAMES[frame].items():
        values = outside(domain)
        getattr(golden, frame)[column][: len(values)] = values
        wanted[frame, f"{column} must be {domain}"] = len(values)
    assert findings_of(database, golden) == wanted


def test_numbers_outside_their_domain_are_counted(database):
    persons, units, geo = Golden().frames()
    races = persons["CENRACE"].astype(np.int64)  # of text: their zeros are lost
    ages = np.where(np.arange(len(persons)) < 3, -1, persons["QAGE"].astype(np.int64))
    for column, values, wrong, value in (("QAGE", ages, ages < 0, "-1"), ("CENRACE", races, races < 10, "1")):
        with pytest.raises(InvalidHouseholds) as error:
            tabulate({**persons.to_dict(), column: values}, units, geo, "PH2", engine=database)
        rule = f"{column} must be {FRAMES['persons'][column]}"
        home = min(persons["MAFID"][values == int(value)])
        assert error.value.findings == (Finding("persons", rule, int(wrong.sum()), repr(value), home),)
    mafids = persons["MAFID"].astype(np.int64)
    negative = {**persons.to_dict(), "MAFID": np.where(np.arange(len(persons)) < 3, -mafids, mafids)}
    with pytest.raises(InvalidHouseholds, match=r"^persons: MAFID must be .*; 3 rows broke it, such as '-"):
        tabulate(negative, units, geo, engine=database, partitions=3)  # each is in a part


def test_a_column_of_another_type_is_refused(database):
    persons, units, geo = Golden().frames()
    for column, kind, words in (
        ("QAGE", bool, "QAGE must hold whole numbers, got [A-Z_]+"),
        ("CENRACE", float, "CENRACE must hold text, got real numbers"),
    ):
        with pytest.raises(ValueError, match=rf"^persons\.{words}$"):
            tabulate({**persons.to_dict(), column: persons[column].astype(kind)}, units, geo, engine=database)


def test_whole_numbers_may_be_floats_and_what_is_none_is_counted(database):
    persons, units, geo = Golden().frames()
    ages = persons["QAGE"].astype(np.float32)
    same = tabulate({**persons.to_dict(), "QAGE": ages}, units, geo, "PH1_num", engine=database)
    assert list(same.rows()) == list(tabulate(persons, units, geo, "PH1_num", engine=database).rows())
    ages[3:6] = np.nan, 17.5, np.inf
    message = r"^persons: QAGE must be a whole number of 0 to 115; 3 rows broke it, such as '17.5' in MAFID [0-9]+$"
    with pytest.raises(InvalidHouseholds, match=message):
        tabulate({**persons.to_dict(), "QAGE": ages}, units, geo, engine=database)


def test_a_column_given_twice_is_refused(database):
    persons, units, geo = Golden().frames()
    with pytest.raises(ValueError, match=r"^persons must have one column QAGE, got qage_1 besides$"):
        tabulate({**persons.to_dict(), "qage": persons["QAGE"]}, units, geo, engine=database)


def test_a_finding_is_one_short_line_with_an_example_and_its_home(database):
    golden = Golden()
    home = golden.unit(**COUPLE)
    golden.persons["RELSHIP"][golden.member(home, "21")] = "20"
    with pytest.raises(InvalidHouseholds) as error:
        tabulate(*golden.frames(), engine=database)
    (finding,) = error.value.findings
    assert (finding.example, finding.home) == ("2 householders", golden.units["MAFID"][home])
    for value, shown in ((None, "a missing value"), ("many\nlines " * 10_000, "'many")):
        golden.persons["RELSHIP"][7] = value
        message = (
            rf"^persons: RELSHIP must be 20 to 38 \(19 codes\); 1 row broke it, such as {shown}[^\n]{{,60}} in MAFID "
        )
        with pytest.raises(InvalidHouseholds, match=f"{message}{golden.persons['MAFID'][7]}$"):
            tabulate(*golden.frames(), engine=database)


def related(golden, relationship, who="20", **home):
    """Give a member of a household another relationship."""
    golden.persons["RELSHIP"][golden.member(golden.unit(**home), who)] = relationship


def in_quarters(golden, frame, column, home, quarters):
    """Give a household of 4, and group quarters, another value: their last member or their place."""
    for unit, value in ((golden.unit(FINAL_POP="4", RTYPE="2"), home), (golden.unit(RTYPE="4"), quarters)):
        place = golden.members(unit)[-1] if frame is golden.persons else golden.place(unit)
        frame[column][place] = value


def leave(golden, *relationships, **home):
    """Let members of a household leave, all of them where none is named."""
    place = golden.unit(**home)
    leaving = [golden.member(place, code) for code in relationships] or golden.members(place)
    golden.remove(golden.persons, leaving)


def vanish(golden, **home):
    place = golden.unit(**home)
    golden.remove(golden.geo, [golden.place(place)])
    golden.remove(golden.units, [place])


def change(golden, column, *changes):
    """Give units of some values others: the first that has them and was not changed yet."""
    for where, value in changes:
        golden.units[column][golden.unit(**where)] = value


DERIVED = {  # by column of units, a value and another that contradicts the members
    "FINAL_POP": [({"FINAL_POP": "5"}, "6"), ({"FINAL_POP": "0"}, "1")],
    "NPF": [({"FINAL_POP": "1"}, "2"), ({"HHT": "1"}, "97")],
    "HHSPAN": [({"HHSPAN": "1"}, "2"), ({"HHSPAN": "0"}, "1")],
    "HHRACE": [({"HHRACE": "01"}, "02"), ({"HHRACE": "00"}, "01")],
    "HHT": [({"HHT": "1"}, "2"), ({"HHT": "4"}, "5"), ({"HHT": "4"}, "6"), ({"HHT": "0"}, "1")],
    "HHT2": [({"HHT2": "01"}, "02"), ({"HHT2": "05"}, "06"), ({"HHT2": "00"}, "12")],
    "CPLT": [({"CPLT": "1"}, "2"), ({"CPLT": "5"}, "1"), ({"CPLT": "0"}, "5")],
}
MEMBERS = {name: ("units", f"{name} must be that of the members") for name in DERIVED}
ALL_OF_COUPLE = {MEMBERS[name]: 1 for name in ("FINAL_POP", "NPF", "HHT", "HHT2", "CPLT")}
ALL_OF_ONE = {rule: 1 for name, rule in MEMBERS.items() if name != "NPF"}  # which was 0
LIVED = [({"FINAL_POP": number, "RTYPE": "2"}, "0") for number in "123"]
EMPTY = [({"FINAL_POP": "0", "RTYPE": "2"}, "4"), ({"RTYPE": "4"}, "1")]
COUPLE = {"HHT": "1", "HHT2": "02", "FINAL_POP": "2", "CPLT": "1"}
DAMAGES = {
    "a unit twice": (lambda g: g.repeat(g.units, 4), {("units", TWICE): 2}),
    "a place twice, another thrice": (lambda g: [g.repeat(g.geo, row) for row in (4, 9, 9)], {("geo", TWICE): 5}),
    "no such unit": (
        lambda g: g.persons["MAFID"].__setitem__(slice(4), ["100000001"] * 3 + ["899999999"]),
        {("persons", UNIT): 4},
    ),
    "units without a place": (lambda g: g.remove(g.geo, [3, 5]), {("units", PLACE): 2}),
    "a place without a unit": (lambda g: g.remove(g.units, [g.unit(FINAL_POP="0")]), {("geo", UNIT): 1}),
    "persons without unit and place": (lambda g: vanish(g, FINAL_POP="4"), {("persons", UNIT): 4}),
    "two householders": (lambda g: related(g, "20", "21", **COUPLE), {("units", ONE): 1}),
    "no householder": (lambda g: [related(g, "34", FINAL_POP=n) for n in "36"], {("units", ONE): 2}),
    "tenures": (lambda g: change(g, "TEN", *LIVED, *EMPTY), {("units", TENURE): 3, ("units", NO_TENURE): 2}),
    # Sex is not in the production layout: HHT2 tells it, and HHT must agree.
    "another sex": (lambda g: change(g, "HHT2", ({"HHT2": "09"}, "05")), {MEMBERS["HHT"]: 1}),
    "a spouse who is missing": (lambda g: leave(g, "21", **COUPLE), ALL_OF_COUPLE),
    "two partners": (lambda g: related(g, "22", "25", HHT2="01"), {PARTNERED: 1, MEMBERS["NPF"]: 1}),
    "nobody at home": (lambda g: leave(g, FINAL_POP="1", RTYPE="2"), {("units", NO_TENURE): 1, **ALL_OF_ONE}),
    "types of persons": (
        lambda g: in_quarters(g, g.persons, "RTYPE", "5", "3"),
        {("persons", HOUSED): 2, ("persons", QUARTERS): 2},
    ),
    "relationships of others": (
        lambda g: in_quarters(g, g.persons, "RELSHIP", "37", "34"),
        {("persons", QUARTERS): 2, MEMBERS["NPF"]: 1},
    ),
    "types of places": (lambda g: in_quarters(g, g.geo, "RTYPE", "4", "2"), {("geo", PLACED): 2}),
    "what members do not make": (
        lambda g: [change(g, name, *changes) for name, changes in DERIVED.items()],
        {MEMBERS[name]: len(changes) for name, changes in DERIVED.items()},
    ),
}


@pytest.mark.parametrize(("damage", "wanted"), DAMAGES.values(), ids=DAMAGES)
def test_what_contradicts_itself_is_counted(database, damage, wanted):
    golden = Golden()
    damage(golden)
    assert findings_of(database, golden) == wanted


def test_a_state_outside_the_filter(database):
    golden = Golden()
    golden.geo["TABBLKST"][:3] = ["01", "72", "55"]
    assert findings_of(database, golden, config=read_config(CONFIG)) == {("geo", FILTER): 3}
    island = read_config({**read_config("pr").to_dict()})
    assert findings_of(database, Golden(), config=island) == {("geo", FILTER): 278}


def test_puerto_rico_among_states(database):
    golden = Golden()
    golden.geo["TABBLKST"][:5] = ["72"] * 5
    assert findings_of(database, golden) == {("geo", ALONE): 5}
    golden.geo["TABBLKST"][:] = ["72" if int(unit) % 2 else "21" for unit in golden.geo["MAFID"]]
    with pytest.raises(ValueError, match=f"^geo: {ALONE}, and there is 21 besides$"):  # each of two parts has one
        tabulate(*golden.frames(), "PH2", engine=database, partitions=2)
    golden.geo["TABBLKST"][:] = ["72"] * 278
    assert len(tabulate(*golden.frames(), "PH2", engine=database)) == 16


def test_a_state_may_have_no_more_than_group_quarters_in_a_part(database):
    """The other part has housing of other states: Puerto Rico is refused, another state is in no table."""
    golden = Golden()
    odd = {unit for unit in golden.units["MAFID"] if int(unit) % 2}
    housed = odd & {u for u, kind in zip(golden.geo["MAFID"], golden.geo["RTYPE"], strict=True) if kind == "2"}
    for frame in (golden.persons, golden.units, golden.geo):
        golden.remove(frame, [i for i, unit in enumerate(frame["MAFID"]) if unit in housed])
    for state in ("72", "11"):
        golden.geo["TABBLKST"][:] = [state if unit in odd else "21" for unit in golden.geo["MAFID"]]
        if state == "72":
            with pytest.raises(ValueError, match=f"^geo: {ALONE}, and there is 21 besides$"):
                tabulate(*golden.frames(), "PH2", engine=database, partitions=2)
    assert {*tabulate(*golden.frames(), "PH2", engine=database, partitions=2)["REGION_ID"]} == {"1", "21"}


def test_production_does_not_check_consistency(database):
    golden = Golden()
    golden.units["TEN"][golden.unit(FINAL_POP="3")] = "0"
    golden.persons["RELSHIP"][golden.member(golden.unit(FINAL_POP="2"), "20")] = "34"
    assert len(tabulate(*golden.frames(), engine=database, validation="production")) == 976
    golden.geo["TABBLKST"][0] = "99"
    assert len(findings_of(database, golden, validation="production")) == 1
    assert len(tabulate(*golden.frames(), engine=database, validation="none")) == 976


def test_parts_add_up_what_they_find(database):
    golden = Golden()
    golden.persons["QAGE"][:40] = ["116"] * 40
    golden.persons["MAFID"][41] = None  # in no part by its number, so in the first
    whole = findings_of(database, golden)
    assert whole == {
        ("persons", "QAGE must be a whole number of 0 to 115"): 40,
        ("persons", "MAFID must be a whole number of 100000001 to 899999999"): 1,
    }
    assert findings_of(database, golden, partitions=2) == whole


def test_a_report_adds_up_rows_and_keeps_the_least_example():
    check_report([])
    with pytest.raises(InvalidHouseholds) as error:
        check_report([Finding("geo", "R", 1_000, "b"), Finding("units", "R", 1, "c"), Finding("geo", "R", 234, "a")])
    assert str(error.value) == "geo: R; 1,234 rows broke it, such as a; units: R; 1 row broke it, such as c"


COMPANY = [f"{code}" for code in range(21, 37)]
MEMBER = st.tuples(st.sampled_from(COMPANY), st.sampled_from([0, 17, 18, 60]), st.sampled_from("12"))


@given(st.lists(st.tuples(st.sampled_from("12"), st.lists(MEMBER, max_size=5)), min_size=1, max_size=12))
@settings(max_examples=10)  # besides all pairs of members
@example([])
def test_types_follow_from_any_members(database, homes):
    homes = [[("20", 40, sex), *rest] for sex, rest in homes]
    if not homes:
        homes = [[("20", 40, "1"), (a, 17, "2"), (b, 30, "1")] for a, b in itertools.product(COMPANY, repeat=2)]
    flat = [(100_000_001 + i, *member) for i, members in enumerate(homes) for member in members]
    mafid, relship, age, sex = zip(*flat, strict=True)
    persons = {"RTYPE": ["3"] * len(flat), "MAFID": mafid, "QAGE": age, "CENHISP": [2] * len(flat)}
    persons |= {"CENRACE": ["07"] * len(flat), "RELSHIP": relship, "QSEX": sex}
    mafids = 100_000_001 + np.arange(len(homes) + 2)
    units = {"RTYPE": ["2"] * (len(homes) + 1) + ["4"], "MAFID": mafids, "TEN": ["1"] * (len(homes) + 2)}
    made = derive_units(Frame(persons), Frame(units), engine=database)
    assert made.columns == tuple(FRAMES["units"])
    assert made["MAFID"].tolist() == mafids.tolist()
    derived = list(zip(*(made[name].tolist() for name in ("FINAL_POP", "NPF", "HHT", "HHT2", "CPLT")), strict=True))
    assert derived == [*map(types_by_hand, homes), (0, 0, "0", "00", "0"), (0, 0, "0", "00", "0")]
    householders = list(zip(made["HHSPAN"].tolist(), made["HHRACE"].tolist(), strict=True))
    assert householders == [(2, "07")] * len(homes) + [(0, "00")] * 2


def test_sexes_that_are_unknown_are_counted(database):
    homes = synthetic_households(100, rng=3, states=1, sex=True)
    sexes = homes.persons["QSEX"].copy()
    sexes[:4] = ["3", "", None, "1 "]
    message = rf"^persons: QSEX must be 1, 2; 4 rows broke it, such as '' in MAFID {homes.persons['MAFID'][1]}$"
    with pytest.raises(InvalidHouseholds, match=message):
        derive_units({**homes.persons.to_dict(), "QSEX": sexes}, homes.units, engine=database)
    with pytest.raises(ValueError, match=r"^persons must have the columns .*; QSEX missing, got "):
        derive_units(PATHS[0], PATHS[1], engine=database)
