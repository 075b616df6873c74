"""Systems on a file of persons of the user's own, with the options of `plaudit release`."""

import sys
from pathlib import Path

import pytest

from tests.audit.cli.desk import NO_POWER, WITHIN, Command, refused, results, save_households, save_persons, strict

FEW = ("--size", "400", "--seed", "1", "--confidence", "0.999", "--attack", "entries", "--json")
AREAS, SPEC = ("--data", "persons.csv", "--areas", "state,county"), ("--spec", "spec.json")


@pytest.fixture(autouse=True)
def files(workspace: Path) -> None:
    save_persons()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("homes")
    save_households(folder)
    return folder


@pytest.mark.parametrize(
    ("options", "pair"),
    [
        ((), "VAL: a spouse who is counted leaves a family of 12"),
        pytest.param(  # which counts households several times
            ("--set", "config=homes/large.json"),
            "DER: one of 97 persons leaves: rows of units change everywhere",
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_phsafe_is_audited_among_households(plaudit: Command, written: Path, options: tuple[str, ...], pair: str):
    """The options are those of the release, whose name of the persons is known too. DuckDB counts twice, 1 s."""
    Path("homes").symlink_to(written)
    households = ("--persons", "homes/persons.csv", "--set", "units=homes/units.csv", "--set", "geo=homes/geo.csv")
    outcome = plaudit("audit", "phsafe", *households, *options, *FEW)
    assert outcome.code in (WITHIN, NO_POWER)
    (result,) = results(outcome).values()
    assert result.pair.startswith(pair)
    assert result.pair.endswith(", in households added to the data")
    assert (result.relation, result.confidential) == ("add_remove", True)
    assert result.provenance["command"].startswith("plaudit audit phsafe --data homes/persons.csv --set units=")


def test_persons_need_what_reads_them(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    outcome = plaudit("audit", "ons", *AREAS, *SPEC, *FEW)
    assert refused(outcome, "reading files and frames needs the extra census: pip install 'plaudit[census]'")


@pytest.mark.parametrize(
    ("arguments", "pair"),
    [
        (("ons-top-down", *AREAS, *SPEC, "--relation", "add_remove", "--public-data"), "1 person added to cell ("),
        (("bottom-up", *AREAS, *SPEC, "--relation", "replace_one"), "1 person moved from cell ("),
        (("nist", "--data", "persons.csv", *SPEC, "--set", "public=public.csv"), "the last person of the file added"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_system_is_audited_on_persons(plaudit: Command, arguments: tuple[str, ...], pair: str) -> None:
    """A few runs tell nothing: what counts is what is asked, and that nothing sound is accused."""
    outcome = plaudit("audit", *arguments, *FEW)
    assert outcome.code in (WITHIN, NO_POWER)
    (result,) = results(outcome).values()
    assert result.pair.startswith(pair)
    assert result.confidential == ("--public-data" not in arguments)


def test_a_result_names_files_but_not_where_they_are(plaudit: Command, tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text('{"groups": [["sex", "age"]]}')
    words = ("--data", "persons.csv", *SPEC, "--set", f"groups={tmp_path / 'groups.json'}")
    (result,) = results(plaudit("audit", "nist", *words, *FEW)).values()
    assert "--spec spec.json --set groups=groups.json" in result.provenance["command"]


def test_the_other_commands_take_persons_too(plaudit: Command) -> None:  # four commands
    persons = (*AREAS, *SPEC, "--seed", "1")
    (found,) = strict(plaudit("estimate", "bottom-up", *persons, "--json").out).values()
    assert (found["areas"], found["settings"]["pair"][:14]) == (16, "1 person added")
    assert plaudit("replay", "ons", *persons).code == WITHIN
    assert plaudit("search", "bottom-up", *persons, "--pairs", "4", "--size", "1200").code in (WITHIN, NO_POWER)
    assert plaudit("audit", "--one-run", "bottom-up", *persons).code in (WITHIN, NO_POWER)
