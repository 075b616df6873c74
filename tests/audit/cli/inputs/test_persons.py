"""Systems on a file of persons of the user's own, with the options of `plaudit release`."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.synthetic import synthetic_households
from tests.audit.cli.desk import NO_POWER, WITHIN, Command, refused, results, strict

FEW = ("--size", "400", "--seed", "1", "--confidence", "0.999", "--attack", "entries", "--json")
AREAS, SPEC = ("--data", "persons.csv", "--areas", "state,county"), ("--spec", "spec.json")


@pytest.fixture(autouse=True)
def files(desk: Path) -> None:
    """Persons of two states with two counties each, of all kinds; public ones; what they are."""
    kinds = list(itertools.product("ab", "12", ("female", "male"), ("17 and under", "18 and over")))
    lines = [",".join(kind) for number, kind in enumerate(kinds) for _ in range(number % 5 + 1)]
    for name, part in (("persons", lines), ("public", lines[::2])):
        Path(f"{name}.csv").write_text("\n".join(["state,county,sex,age", *part]) + "\n")
    levels = {"sex": ["female", "male"], "age": ["17 and under", "18 and over"]}
    Path("spec.json").write_text(json.dumps({"attributes": levels}))


HOUSEHOLDS = ("--data", "homes/persons.csv", "--units", "homes/units.csv", "--geo", "homes/geo.csv")


def slow(*case: object) -> object:
    """A case that counts households several times."""
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Households of two states, with the sexes from which types are derived; and nobody but in group quarters."""
    folder = tmp_path_factory.mktemp("homes")
    synthetic_households(60, rng=3, states=2, sex=True).write(folder)
    for name in ("persons", "units", "geo"):
        head, *rows = (folder / f"{name}.csv").read_text().splitlines()
        quarters = [row for row in rows if row[0] == ("5" if name == "persons" else "4")]
        (folder / f"quarters-{name}.csv").write_text("\n".join([head, *quarters]) + "\n")
    settings = read_config("us").to_dict()
    (folder / "large.json").write_text(json.dumps(settings | {"tau": dict.fromkeys(settings["tau"], 96)}))
    return folder


@pytest.fixture
def homes(desk: Path, written: Path) -> None:
    Path("homes").symlink_to(written)


@pytest.mark.parametrize(
    ("options", "pair"),
    [
        ((), "VAL: a spouse who is counted leaves a family of 12"),
        slow(("--preset", "us", "--derive", "--pair", "API"), "API: two rows of units vanish where the person is not"),
        slow(("--config", "homes/large.json"), "DER: one of 97 persons leaves: rows of units change everywhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_phsafe_is_audited_among_households(plaudit: Command, homes: None, options: tuple[str, ...], pair: str) -> None:
    """The options are those of the release, whose name of the persons is known too."""
    outcome = plaudit("audit", "phsafe", "--persons", *HOUSEHOLDS[1:], *options, *FEW)
    assert outcome.code in (WITHIN, NO_POWER)
    (result,) = results(outcome).values()
    assert result.pair.startswith(pair)
    assert result.pair.endswith(", in households added to the data")
    assert (result.relation, result.confidential) == ("add_remove", True)
    assert result.provenance["command"].startswith("plaudit audit phsafe --data homes/persons.csv --geo homes/geo.csv")


def test_persons_need_what_reads_them(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    outcome = plaudit("audit", "ons", *AREAS, *SPEC, *FEW)
    assert refused(outcome, "reading files and frames needs the extra census: pip install 'plaudit[census]'")


@pytest.mark.slow
def test_the_other_commands_take_households_too(plaudit: Command, homes: None) -> None:
    estimate = plaudit("estimate", "phsafe", *HOUSEHOLDS, "--runs", "50", "--seed", "1", "--json")
    assert estimate.code == WITHIN
    (found,) = strict(estimate.out).values()
    assert found["settings"]["pair"].endswith(", in households added to the data")
    replayed = plaudit("replay", "phsafe", *HOUSEHOLDS, "--pair", "DER", "--seed", "1", "--json")
    assert replayed.code == WITHIN
    (shown,) = strict(replayed.out).values()
    assert (len(shown["queries"]), shown["violations"], shown["confidential"]) == (46, [], True)
    searched = plaudit("search", "phsafe", *HOUSEHOLDS, "--size", "900", "--seed", "1", "--json")
    assert searched.code in (WITHIN, NO_POWER)
    assert [result.pair[:3] for result in results(searched).values()] == ["VAL", "DER", "API"]
    assert all(result.confidential for result in results(searched).values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (HOUSEHOLDS[:2], "phsafe needs --units with data of your own, as `plaudit release` does"),
        (HOUSEHOLDS[:4], "phsafe needs --geo with data of your own, as `plaudit release` does"),
        (HOUSEHOLDS[2:], "--geo goes with --data: a file of persons"),
        ((*HOUSEHOLDS[:5], "none.csv"), "there is no file "),
        ((*HOUSEHOLDS[:3], *HOUSEHOLDS[5:], *HOUSEHOLDS[4:]), "units must have the columns RTYPE, MAFID, FINAL_POP"),
        ((*HOUSEHOLDS, "--config", "uk"), "config must be us, pr or a .json file, got uk: No such file"),
        ((*HOUSEHOLDS, "--config", "spec.json"), "spec.json: "),
        ((*HOUSEHOLDS, "--preset", "uk"), "preset of phsafe must be one of us, pr, got 'uk'"),
        slow((*HOUSEHOLDS, "--preset", "pr"), "geo: every state must be in the filter"),
        ((*HOUSEHOLDS, "--preset", "us", "--config", "us"), "one of --preset and --config must be given at most"),
        slow((*HOUSEHOLDS, "--pair", "none"), "pair of phsafe must be one of VAL, DER, API, got 'none'"),
        slow(
            (*HOUSEHOLDS, "--config", "homes/large.json", "--pair", "VAL"),
            "pair of phsafe must be one of DER, API, got 'VAL'",
        ),
        slow((*HOUSEHOLDS, "--relation", "replace_one"), "phsafe has no pair of replace_one neighbors"),
        ((*HOUSEHOLDS, "--spec", "spec.json"), "phsafe takes no --spec"),
        slow((*HOUSEHOLDS, "--epsilon", "1"), "phsafe takes no budget, got --epsilon"),
        (
            (
                "--data",
                "homes/quarters-persons.csv",
                "--units",
                "homes/quarters-units.csv",
                "--geo",
                "homes/quarters-geo.csv",
            ),
            "units must have a housing unit at least, got none in homes/quarters-units.csv",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_households_that_are_wrong_are_one_line(
    plaudit: Command, homes: None, arguments: tuple[str, ...], words: str
) -> None:
    assert refused(plaudit("audit", "phsafe", *arguments), words)


@pytest.mark.parametrize(
    ("arguments", "pair"),
    [
        (("topdown", *AREAS), "1 person moved from cell ("),
        (("topdown", *AREAS, "--stage", "measurements", "--pair", "added", "--rho", "1"), "1 person added to cell ("),
        (("ons", *AREAS, *SPEC, "--stage", "adjusted"), "1 person added to cell ("),
        (("ons-top-down", *AREAS, *SPEC, "--relation", "add_remove"), "1 person added to cell ("),
        (("bottom-up", *AREAS, *SPEC, "--relation", "replace_one"), "1 person moved from cell ("),
        (("nist", "--data", "persons.csv", *SPEC, "--public", "public.csv"), "the last person of the file added"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_system_is_audited_on_persons(plaudit: Command, arguments: tuple[str, ...], pair: str) -> None:
    """A few runs tell nothing: what counts is what is asked, and that nothing sound is accused."""
    outcome = plaudit("audit", *arguments, *FEW)
    assert outcome.code in (WITHIN, NO_POWER)
    (result,) = results(outcome).values()
    assert result.pair.startswith(pair)
    assert result.confidential
    (public,) = results(plaudit("audit", *arguments, *FEW, "--public-data")).values()
    assert not public.confidential
    assert public.counts == result.counts


def test_the_other_commands_take_persons_too(plaudit: Command) -> None:
    persons = (*AREAS, *SPEC, "--seed", "1")
    estimate = plaudit("estimate", "bottom-up", *persons, "--json")
    assert estimate.code == WITHIN
    (found,) = strict(estimate.out).values()
    assert (found["areas"], found["settings"]["pair"][:14]) == (16, "1 person added")
    assert plaudit("replay", "ons", *persons).code == WITHIN
    assert plaudit("search", "bottom-up", *persons, "--pairs", "4", "--size", "2000").code in (WITHIN, NO_POWER)
    one_run = plaudit("audit", "--one-run", "bottom-up", *persons)
    assert one_run.code in (WITHIN, NO_POWER)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ons", *AREAS), "ons needs --spec with data of your own, as `plaudit release` does"),
        (("nist", "--data", "persons.csv", *SPEC), "nist needs --public with data of your own"),
        (("nist", *AREAS, *SPEC, "--public", "public.csv"), "nist takes no --areas"),
        (("topdown", *AREAS, *SPEC), "topdown takes no --spec"),
        (("topdown", "--areas", "state"), "--areas goes with --data: a file of persons"),
        (("topdown", *AREAS[:3], "country"), "country missing"),
        (("topdown", "--preset", "e2e-1940", *AREAS), "hhgq"),
        (("phsafe", *AREAS), "phsafe takes no --areas"),
        (("topdown", "--data", "persons.csv"), "topdown needs --areas with data of your own"),
        (("gdpc", "--derive"), "--derive goes with --data: a file of persons"),
        (("gdpc", *AREAS), "gdpc reads no file of persons, got persons.csv"),
        (("bottom-up", *AREAS, *SPEC, "--cell", "1"), "--cell is for counts: persons have pairs of their own"),
        (
            ("bottom-up", *AREAS, *SPEC, "--pair", "none"),
            "pair of bottom-up must be one of added, replaced, got 'none'",
        ),
        (("ons-independent", *AREAS, *SPEC), "name each of sex, age"),
        (("ons", "--data", "none.csv", *AREAS[2:], *SPEC), "none.csv"),
        (("mine:noisy", *AREAS, "--claim", "pure:1"), "--areas is for the systems of `plaudit list`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line(plaudit: Command, arguments: tuple[str, ...], words: str) -> None:
    assert refused(plaudit("audit", *arguments), words)
