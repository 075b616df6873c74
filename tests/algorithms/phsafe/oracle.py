"""PHSafe in plain Python, from the paper and the layout of the tables, one household at a time."""

import hashlib
from collections import Counter, defaultdict
from itertools import product
from typing import NamedTuple

from algorithms.phsafe.tables import QUERIES, TAU

DENOMINATORS = tuple(name for name in QUERIES if name not in TAU)


class P(NamedTuple):
    rtype: str
    mafid: int
    age: int
    hispanic: int
    race: str
    relship: str


class U(NamedTuple):
    hht: str
    hht2: str
    cplt: str
    race: str
    hispanic: int
    tenure: str


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def sort_key(row, repeat):
    """The hash of a person's row, from the description: whole numbers as binary digits, text as it stands."""
    digests = [digest(f"{value:b}" if isinstance(value, int) else value) for value in (*row, repeat)]
    return digest(digest(",".join(digests)))


def truncated(people, tau):
    """The first tau of a household by hash; exact repeats are numbered from 1."""
    counts, keys = Counter(), []
    for person in people:
        counts[person] += 1
        keys.append((sort_key(person, counts[person]), person))
    return [person for _, person in sorted(keys)[:tau]]


def kept_by_hand(rows, tau):
    """The persons kept of all households."""
    households = defaultdict(list)
    for row in rows:
        households[row[1]].append(row)
    return Counter(person for members in households.values() for person in truncated(members, tau))


OWN = ("25", "26", "27")
FAMILY = ("20", "21", "23", *OWN, "28", "29", "30", "31", "32", "33")
PH6_CELL = {"01": 3, "03": 8, "10": 13, "06": 18}
PH3_CELL = {"01": "4", "03": "5", "10": "6", "06": "7"}
UNIVERSE = {
    "PH1_num": lambda p: p.rtype == "3",
    "PH2": lambda p: p.rtype == "3",
    "PH3": lambda p: p.rtype == "3" and p.age < 18,
    "PH4": lambda p: p.relship in FAMILY,
    "PH6": lambda p: p.age < 18 and p.relship in OWN,
    "PH7": lambda p: p.rtype == "3",
}


PH2_CELL = {"09": "9", **dict.fromkeys(("10", "11", "12"), "10"), "05": "12", **dict.fromkeys(("06", "07", "08"), "13")}
PH2_COUPLE = {("01", "1"): "3", ("02", "1"): "3", ("01", "2"): "4", ("02", "2"): "4"}
PH2_COUPLE |= {("03", "3"): "6", ("04", "3"): "6", ("03", "4"): "7", ("04", "4"): "7"}


def ph2_cell(u):
    return PH2_CELL.get(u.hht2) or PH2_COUPLE.get((u.hht2, u.cplt))


def ph3_cell(p, u):
    if p.relship in OWN:
        return PH3_CELL.get(u.hht2)
    if p.relship in ("28", "29", "31", "32", "33"):
        return "10"
    return {"30": "9"}.get(p.relship, "2" if p.relship in ("20", "21", "22", "23", "24", "34", "35", "36") else None)


def ph6_cell(p, u):
    if u.hht2 not in PH6_CELL:
        return None
    return str(PH6_CELL[u.hht2] + sum(p.age >= limit for limit in (4, 6, 12)))


def by_age(p, u):
    return "2" if p.age < 18 else "3"


def ph7_cell(p, u):
    return {"1": "2", "2": "3", "3": "4", "4": "4"}.get(u.tenure)


CELL = {
    "PH1_num": by_age,
    "PH2": lambda p, u: ph2_cell(u),
    "PH3": ph3_cell,
    "PH4": lambda p, u: by_age(p, u) if u.hht <= "3" else None,
    "PH6": ph6_cell,
    "PH7": ph7_cell,
    "PH1_denom": lambda p, u: "1" if u.hht != "0" else None,
    "PH5_denom": lambda p, u: "1" if u.hht in ("1", "2", "3") else None,
    "PH8_denom": lambda p, u: {"1": "2", "2": "2", "3": "3", "4": "3"}.get(u.tenure) if u.hht != "0" else None,
}


def iterations(name, p, u):
    race, hispanic = (p.race, p.hispanic) if name == "PH3" else (u.race, u.hispanic)
    yield "*", "*"
    if name in ("PH2", "PH6"):
        return
    if "01" <= race <= "63":
        yield "A-G", "ABCDEFG"[min(int(race), 7) - 1]
    if hispanic == 2:
        yield "H,I", "H"
    elif hispanic == 1 and race == "01":
        yield "H,I", "I"


def view(name, people, units, taus=TAU):
    """The rows behind a query: (person, unit) in numerators, (mafid, unit) in denominators."""
    if name in DENOMINATORS:
        return [(mafid, unit) for mafid, rows in units.items() for unit in rows]
    homes = defaultdict(list)
    for person in filter(UNIVERSE[name], people):
        homes[person.mafid].append(person)
    return [
        (person, units[mafid][0])
        for mafid, members in homes.items()
        if len(units.get(mafid, ())) == 1
        for person in truncated(members, taus[name])
    ]


def from_database(persons, units):
    result = defaultdict(list)
    for _, mafid, _, _, hispanic, race, tenure, hht, hht2, cplt in units.rows():
        result[mafid].append(U(hht, hht2, cplt, race, hispanic, tenure))
    return [P(*row) for row in persons.rows()], result


def by_hand(persons, units, geo, taus=TAU):
    """Basis cells of the nine queries, zeros left out: Counter by table, region, iteration and cell."""
    states = dict(zip(geo["MAFID"].tolist(), geo["TABBLKST"].tolist(), strict=True))
    housing = set(geo["MAFID"][geo["RTYPE"] == "2"].tolist())
    people, homes = from_database(persons, units)
    homes = {mafid: rows for mafid, rows in homes.items() if mafid in housing}
    result = Counter()
    for name in QUERIES:
        for person, unit in view(name, people, homes, taus):
            mafid = person if name in DENOMINATORS else person.mafid
            if cell := CELL[name](person, unit):
                for region, (_, letter) in product(("1", states[mafid]), iterations(name, person, unit)):
                    result[name, region, "" if name in ("PH2", "PH6") else letter, cell] += 1
    return result


TWINS = {"21": "1", "23": "2", "22": "3", "24": "4"}  # relationship of the partner -> CPLT


def types_by_hand(members):
    """FINAL_POP, NPF, HHT, HHT2 and CPLT of an occupied unit; members are (RELSHIP, age, sex)."""
    (sex,) = (sex for relship, _, sex in members if relship == "20")
    relations = [relship for relship, _, _ in members]
    couple = next((code for code in TWINS if code in relations), None)
    children = any(relship in OWN and age < 18 for relship, age, _ in members)
    relatives = any("25" <= relship <= "33" for relship in relations)
    family = sum(relship in FAMILY for relship in relations)
    male, alone = sex == "1", len(members) == 1
    married = couple in ("21", "23")
    hht = "1" if married else "2" if male else "3"
    if not married and not relatives:
        hht = str((4 if male else 6) + (not alone))
    if couple:
        hht2 = f"0{1 + 2 * (not married) + (not children)}"
    else:
        hht2 = f"{(9 if male else 5) + (0 if alone else 1 if children else 2 if relatives else 3):02}"
    return len(members), family if family > 1 else 0, hht, hht2, TWINS.get(couple, "5")
