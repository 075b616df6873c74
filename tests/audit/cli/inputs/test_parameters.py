"""Parameters of systems: which there are, how values are read, and that results say them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from algorithms.systems import systems
from audit.claims import ApproxDP, PureDP
from audit.cli.inputs.parameters import described, read_parameters, writable
from audit.cli.inputs.targets import WITH_OPTION
from audit.results.folder import read_audits
from tests.audit.cli.desk import QUICK, WITHIN, Command, audited


def example(
    *,
    parts: int = 4,
    factor: float = 2.5,
    share: Fraction = Fraction(1, 3),
    shares: Sequence[Fraction | int | str] = (),
    limits: tuple[float, float] = (0.0, 1.0),
    law: Literal["laplace", "geometric"] = "laplace",
    rounded: bool = True,
    rho: float | None = None,
    whole=7,
    pairs: Sequence[tuple[str, str]] = (),
    table: dict[str, int] | None = None,
) -> None:
    """Take parameters of all kinds, the last two of which a shell cannot write."""


PARAMETERS = writable(signature(example, eval_str=True).parameters)


def test_parameters_are_those_that_a_shell_can_write() -> None:
    words = "parts=4, factor=2.5, share=1/3, shares=, limits=0.0,1.0, law=laplace, rounded=True, rho=None, whole=7"
    assert described(PARAMETERS) == words


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("parts=1e3", 1000),
        ("factor=1e-3", 0.001),
        ("share=2/6", Fraction(1, 3)),
        ("shares=1/2,1/4,0.25", (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))),
        ("limits=0,5", (0.0, 5.0)),
        ("law=geometric", "geometric"),
        ("rounded=false", False),
        ("rho=0.5", 0.5),
        ("whole=8", 8),
    ],
)
def test_a_value_is_read_by_its_annotation_or_default(word: str, value: Any) -> None:
    ((_, read),) = read_parameters([word], PARAMETERS, "example").items()
    assert (read, type(read)) == (value, type(value))


def test_every_system_is_the_same_where_its_defaults_are_set() -> None:
    found = {}
    for name, system in systems().items():
        own = writable({key: one for key, one in system.settings.items() if key not in WITH_OPTION})
        words = [word for key, one in own.items() if (word := described({key: one}))[-1] != "="]
        found[name] = read_parameters(words, own, name)
        assert system.mechanism(**found[name]).claim == system.claim
    assert found["adpc"] == {"parts": 4}
    assert found["SVT1"] == {"threshold": 0.5, "positives": 1}
    assert found["phsafe"] == {"times": 1.0}
    assert found["gdpc"] == found["topdown"] == {}


@pytest.mark.parametrize(
    ("words", "claim", "parameters"),
    [
        ("adpc --set parts=9", PureDP(1.0), {"parts": 9}),
        ("RAPPOR --set f=0.5", PureDP(0.8006, "add_remove"), {"f": 0.5}),
        ("ons-independent --set law=gaussian --set delta=1e-6", ApproxDP(1.0, 1e-6), {"law": "gaussian"}),
        ("nist --set rows=20", PureDP(1.0), {"rows": 20}),
    ],
)
def test_the_promise_is_that_of_the_parameters_and_the_result_says_them(
    plaudit: Command, words: str, claim: Any, parameters: dict[str, Any]
) -> None:
    result = audited(plaudit, *words.split())
    assert result.claim.budget == pytest.approx(claim.budget, abs=1e-3)
    assert result.claim.delta_at(0.0) == pytest.approx(claim.delta_at(0.0), abs=1e-3)
    assert parameters.items() <= result.provenance["parameters"]["mechanism"].items()
    assert f"plaudit audit {words} " in result.provenance["command"]


def test_parameters_of_the_census_systems_set_their_noise(plaudit: Command) -> None:
    """Half of the budget for the root, in place of a third; twice the budget of every query."""
    usual, other = (
        systems()["topdown"].mechanism(),
        systems()["topdown"].mechanism(shares=[Fraction(1, 2), "1/4", "1/4"]),
    )
    noise = [[made.laws(j, "detailed")[0][1].epsilon * 2 for j in range(3)] for made in (usual, other)]
    assert noise == pytest.approx(np.array([[1 / 3] * 3, [1 / 2, 1 / 4, 1 / 4]]))
    assert other.claim == usual.claim
    usual, other = systems()["phsafe"].mechanism(), systems()["phsafe"].mechanism(times=2)
    assert other.claim.rho == pytest.approx(2 * usual.claim.rho)
    assert [usual.laws[key].variance / law.variance for key, law in other.laws.items()] == pytest.approx(
        [2.0] * len(usual.laws)
    )
    result = audited(plaudit, "topdown", "--stage", "measurements", "--set", "shares=1/2,1/2,0")
    assert "plaudit audit topdown --set shares=1/2,1/2,0 " in result.provenance["command"]


def test_two_audits_have_names_of_their_own_and_can_be_made_again(plaudit: Command) -> None:
    for parts in (2, 8):
        assert plaudit("audit", "adpc", "--set", f"parts={parts}", *QUICK, "--out", "out").code == WITHIN
    assert [name for name, _ in read_audits(Path("out"))] == ["adpc-parts-2", "adpc-parts-8"]
    assert "it is the same" in plaudit("verify", "--rerun", "out/adpc-parts-8.json").out


def test_people_are_scattered_as_asked(plaudit: Command) -> None:
    """1,000 people at 10 an area, over two levels: ten areas of ten."""
    words = ("--data", "uniform", "--set", "people=1e3", "--set", "levels=2", "--set", "people_per_leaf=10")
    result = audited(plaudit, "rdpc", *words, "--cell", "99")
    assert (result.pair, result.confidential) == ("1 person added to 10 / 110", False)
    assert plaudit("audit", "rdpc", *words, "--cell", "100").err.endswith("cell must be from 0 to 99, got 100\n")
