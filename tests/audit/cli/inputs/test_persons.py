"""Systems on a file of persons of the user's own, with the options of `plaudit release`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

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
        (("phsafe", *AREAS), "phsafe reads no file of persons, got persons.csv"),
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
