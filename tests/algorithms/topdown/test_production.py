"""The page on the Bureau's TopDown says of this one what the code does."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.topdown import preset
from algorithms.topdown.ledger import Ledger, noise_table
from algorithms.topdown.presets import PRESETS

PAGE = Path(__file__).parents[3] / "docs/explanation/topdown_production.md"
ROWS = [
    line.strip("| ").replace("\\*", "*").split(" | ")
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ")
]
WORDS = {row[0]: row[1] for row in ROWS}
PERSONS, TEST = PRESETS["pl94-2020"], PRESETS["e2e-1940"]
RUN = preset(PERSONS, Hierarchy.regular(1, 5), facilities=np.ones((1, 8), int))


def test_the_shares_are_those_of_the_page() -> None:
    rows = []
    for level, share in PERSONS.levels.items():
        queries = [*PERSONS.queries[level].values()]
        whole = math.lcm(*(part.denominator for part in queries))
        rows.append([level, *map(str, [share * 4099, whole, *(part * whole for part in queries)])])
    assert rows == [row for row in ROWS if row[0] in PERSONS.levels]
    assert f"shares of the {len(rows)} levels" in WORDS
    assert f"shares of the {sum(map(len, PERSONS.queries.values()))} queries" in WORDS


def test_settings_are_those_of_the_page() -> None:
    levels = [*PERSONS.levels]
    first, passes = [levels[j] for j in RUN.passes or {}], {level: RUN.rounded(j) for j, level in enumerate(levels)}
    total, nested = passes["state"]
    other = [level for level in levels if len(passes[level]) == 1]
    assert all(passes[level] == [total, nested] for level in first)
    homes, facilities = (np.ravel([RUN.bounds[0].lower, RUN.bounds[0].upper])[[place, place + 8]] for place in (0, 1))
    shares = ", ".join(f"{float(share):g} {name}" for name, share in TEST.queries["nation"].items())
    found = {
        "budget of persons": f"= {RUN.claim.budget:.4f}",
        "delta": f"delta {Ledger(RUN).delta:g}",
        "slack between the two": f"{RUN.slack:g}",
        "order of queries": f"at {', '.join(first)} the total is fitted first, then all others; at {', '.join(other)}",
        "passes of rounding": f"at {', '.join(first)} the {total[0]}, then {len(nested)} nested queries; at "
        f"{', '.join(other)} all {len(passes['nation'][0])} at once",
        "failsafe": {None: "none for persons"}[RUN.minimal],
        "persons in a housing unit": "{} to {:,}".format(*homes),
        "persons in a facility": "{} to {:,}".format(*facilities),
        "end-to-end test: persons in a housing unit": "{} to {}".format(*TEST.persons_a_unit),
        "end-to-end test: budget": f"1/{len(TEST.levels)} for each of the {len(TEST.levels)} levels; {shares}",
        "end-to-end test: failsafe, rounding": f"on {TEST.minimal}; cell by cell",
    }
    assert {name: words for name, words in found.items() if words not in WORDS[name]} == {}
    assert ({*TEST.levels.values()}, TEST.rounding) == ({Fraction(1, 4)}, ())
    noise = noise_table(RUN)
    assert np.array(noise["SCALE"]) ** 2 * noise["BUDGET"] == pytest.approx(1, rel=1e-12)
