"""Synthetic households, and the counts that the Bureau's production release returned for them; see README.md."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.schema import GEO as GEO_DOMAINS
from algorithms.phsafe.schema import PERSONS as PERSON_DOMAINS
from algorithms.phsafe.schema import UNITS as UNIT_DOMAINS
from algorithms.phsafe.schema import Whole
from algorithms.phsafe.tables import QUERIES
from algorithms.release.frames import Frame

HERE = Path(__file__).parent
PERSONS, UNITS, GEO = PATHS = tuple(HERE / f"{name}.csv" for name in ("persons", "units", "geo"))
CONFIG = json.loads((HERE / "config.json").read_text())


def rows(name):
    """The rows of a table of counts, as `Frame.rows` gives them."""
    with (HERE / f"{name}.csv").open(newline="") as file:
        _, *found = csv.reader(file)
    return [(*row[:-1], int(row[-1])) for row in found]


def columns(path):
    """The columns of an input file as lists of text, to be damaged."""
    with path.open(newline="") as file:
        names, *found = csv.reader(file)
    return {name: list(values) for name, values in zip(names, zip(*found, strict=True), strict=True)}


def typed(values):
    """Columns of text as a frame has them: whole numbers as such."""
    domains = {**PERSON_DOMAINS, **UNIT_DOMAINS, **GEO_DOMAINS}
    kinds = {name: np.int64 if isinstance(domains[name], Whole) else object for name in values}
    return Frame({name: np.array(column, kinds[name]) for name, column in values.items()})


def frames():
    """The three frames."""
    return [typed(columns(path)) for path in PATHS]


def settings(budget=1.0, definition="zcdp", tau=None, **budgets):
    """Settings with one budget everywhere, but for the queries named."""
    levels = {name: dict.fromkeys(query.levels, budgets.get(name, budget)) for name, query in QUERIES.items()}
    taus = {**CONFIG["tau"], **(tau or {})}
    return read_config({**CONFIG, "privacy_budget": levels, "tau": taus, "privacy_defn": definition})


def ranked():
    """Every row of the households that are truncated, by the query whose persons they are; whole numbers as such."""
    whole = ("MAFID", "QAGE", "CENHISP", "DUPLICATE_INDEX", "RANK", "KEPT")
    found = {}
    with gzip.open(HERE / "truncation_kept.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row.pop("TABLE"), []).append({k: int(v) if k in whole else v for k, v in row.items()})
    return found
