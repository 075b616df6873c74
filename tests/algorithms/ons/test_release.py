"""Releases of the pilot's methods: counted right, whole or not there at all, and refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.tables import Domain, Table
from algorithms.ons.top_down import default_levels
from algorithms.schema import Grouping, Schema
from tests.algorithms.releases import names, record, refused_in_one_line, released, specification
from tests.helpers import rows_of, system_module

MODULE = system_module("ons")
release = MODULE.release

SCHEMA = Schema({"sex": ("f", "m"), "age": ("young", "old")})
LEAVES = [("north", "1"), ("north", "2"), ("south", "1")]
TREE = Hierarchy.from_codes(*zip(*LEAVES, strict=True))
PEOPLE = np.array([[400, 0, 3, 25], [90, 40, 40, 1], [0, 0, 7, 300]])
AREAS = ("region", "ccg")
RNG = np.random.default_rng(0)
FILES = {"data": "deaths.csv", "areas": "region,ccg", "spec": "spec.json", "count": "n", "geo": "geo.csv", "out": "out"}
GIVEN = FILES | {"epsilon": 1000.0, "method": "top-down"}
INDEPENDENT = {"method": "independent"}


@pytest.fixture(autouse=True)
def files(desk):
    """Deaths, their specification and the list of areas."""
    counts = [
        [*LEAVES[leaf], ("young", "old")[cell % 2], ("f", "m")[cell // 2], people]
        for (leaf, cell), people in np.ndenumerate(PEOPLE)
    ]
    desk({"deaths.csv": [["Region", "ccg", "age", "sex", "n"], *counts], "spec.json": specification(SCHEMA)})
    desk({"geo.csv": "region,ccg\nnorth,1\nnorth,2\nsouth,1\nsouth,9\n"})


def run(**changes):
    return released("ons", **GIVEN | changes)


def test_top_down_command_writes_people_and_tables_that_agree(capsys):
    assert run(table=["region:age", "total:sex*age"], seed=1) == 0
    assert names() == ["columns.csv", "ledger.txt", "microdata.csv", "release.json", "table_1.csv", "table_2.csv"]
    people, table = rows_of(Path("out/microdata.csv")), rows_of(Path("out/table_1.csv"))
    assert list(people[0]) == ["region", "ccg", "sex", "age"]
    for row in table:
        found = sum(person["region"] == row["region"] and person["age"] == row["age"] for person in people)
        assert found == int(row["COUNT"])
    assert sum(int(row["COUNT"]) for row in rows_of(Path("out/table_2.csv"))) == len(people)
    about = record()
    levels = ("total: total", "total: detailed", "region: detailed", "ccg: detailed")
    assert list(about["shares"].items()) == list(zip(levels, ("1/100", "1/20", "33/200", "31/40"), strict=True))
    assert (about["nonnegative"], about["levels"]) == (True, {"total": 1, "region": 2, "ccg": 4})
    assert "People are fitted to them: rare groups are too large." in capsys.readouterr().out


def test_independent_command_writes_its_tables():
    assert run(table=["ccg:total=1/4", "region:sex=3/4"], geo=None, seed=1, **INDEPENDENT) == 0
    first, second = (rows_of(Path(f"out/table_{number}.csv")) for number in (1, 2))
    assert [int(row["COUNT"]) for row in first] == PEOPLE.sum(axis=1).tolist()
    assert [" ".join(row.values()) for row in second] == ["north f 530", "north m 69", "south f 0", "south m 307"]
    ledger = Path("out/ledger.txt").read_text()
    assert "no promise covers it" in ledger
    assert "raised to 0" not in ledger
    about = record()
    assert (about["shares"], about["nonnegative"]) == ({"ccg: total": "1/4", "region: sex": "3/4"}, False)


def test_ledger_tells_that_negative_counts_were_raised_and_the_variance_of_whole_numbers():
    assert run(table="ccg:total", nonnegative=True, seed=1, epsilon=8, law="laplace", **INDEPENDENT) == 0
    ledger = Path("out/ledger.txt").read_text()
    assert "Negative counts were raised to 0" in ledger
    assert "0.01833" in ledger  # cosh(4) / (2 sinh(4)^2), where before rounding it is 2 / 64
    assert record()["nonnegative"] is True


def test_tables_of_groupings_have_columns_of_their_own():
    schema = Schema(SCHEMA.attributes, {"all": Grouping("age", {"any": ["young", "old"]})})
    tables = [Table(0, "all*sex"), Table(0, "all")]
    release(OnsTopDown(TREE, schema, 5000.0), PEOPLE, areas=AREAS, out="out", rng=RNG, tables=tables)
    first = [{"sex": sex, "all": "any", "COUNT": count} for sex, count in (("f", "530"), ("m", "376"))]
    assert rows_of(Path("out/table_1.csv")) == first
    assert rows_of(Path("out/table_2.csv")) == [{"all": "any", "COUNT": "906"}]


WRITTEN = "--table is written as AREA:QUERY, AREA one of total, region, ccg, got"
BAD = {
    "--method must be one of independent, top-down, got 'both'": {"method": "both"},
    "--areas must name columns with commas between, such as state,county, got 're": {"areas": "region,"},
    "areas must not be called total, which is the whole, got 'total'": {"areas": "total,ccg"},
    f"{WRITTEN} 'region'": {"table": "region"},
    "shares of tables go with --method independent": {"table": "region:sex=1/2"},
    "--nonnegative and shares of tables go with --method independent": {"nonnegative": True},
    "--level must have one": {"level": "total:total"},
    "--table is needed": INDEPENDENT,
    "--level goes with --method top-down": INDEPENDENT | {"level": "total:total=1"},
    "a share each, or none": INDEPENDENT | {"table": ["ccg:sex=1/2", "ccg:age"]},
    "--table must have a share after =, or no =, got 'ccg:sex='": INDEPENDENT | {"table": "ccg:sex="},
    "must leave ccg: sex en": INDEPENDENT | {"table": ["ccg:sex", "total:age"], "epsilon": 1e-12},
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(capsys, words):
    refused_in_one_line(capsys, words, "ons", **GIVEN | BAD[words])


def test_shares_for_other_depths_follow_the_square_root_of_the_number_of_counts():
    tree = Hierarchy.regular(3, 1)
    levels, shares = default_levels(Domain(tree, SCHEMA))
    assert levels == (Table(0, "total"), Table(0, "detailed"), Table(1, "detailed"))
    assert sum(map(float, shares)) == pytest.approx(1)
    assert float(shares[2]) / float(shares[1]) == pytest.approx(3**0.5, rel=1e-3)
    OnsTopDown(tree, SCHEMA, 1.0, levels, shares)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rng": "secure"}, "a secure release needs law=\"geometric\", got 'laplace'"),
        ({"perturb_zeros": False}, "must perturb zeros"),
        ({"areas": ("region", "SEX")}, "different names, got 'SEX' twice"),
        # How many more people than that is not told.
        ({"most": 100}, r"^a release must have at most .* people, and noise of epsilon 0\.01 on their number makes m"),
        ({"most": 100, "epsilon": 1000.0}, "^a release must have at most .* people, and noise made more: raise eps"),
    ],
)
def test_releases_that_break_a_rule(monkeypatch, options, words):
    options = dict(options)
    monkeypatch.setattr(MODULE.engine, "LARGEST_RELEASE", options.pop("most", MODULE.engine.LARGEST_RELEASE))
    mechanism = OnsTopDown(TREE, SCHEMA, options.pop("epsilon", 1.0), perturb_zeros=options.pop("perturb_zeros", True))
    with pytest.raises(ValueError, match=words):
        release(mechanism, PEOPLE, **{"areas": AREAS, "out": "out", "rng": RNG} | options)
    assert not Path("out").exists()


def test_tables_that_cannot_be_counted_are_told_before_there_is_noise(monkeypatch):
    monkeypatch.setattr(OnsTopDown, "__call__", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(ValueError, match="query must be total, detailed, or name each of"):
        release(OnsTopDown(TREE, SCHEMA, 1.0), PEOPLE, areas=AREAS, rng=RNG, tables=[Table(1, "income")])
    own = IndependentNoise(TREE, SCHEMA, 1.0, [Table(1, "sex")])
    with pytest.raises(ValueError, match="tables of independent noise are its own"):
        release(own, PEOPLE, areas=AREAS, rng=RNG, tables=[Table(1, "age")])
