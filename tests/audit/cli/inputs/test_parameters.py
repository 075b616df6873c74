"""Parameters of systems, and modules of a user's own: how they are read, and that results say them."""

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Literal

import pytest

from algorithms.systems import systems
from audit.claims import ApproxDP
from audit.cli.inputs.parameters import described, read_parameters, writable
from audit.cli.inputs.targets import WITH_OPTION
from tests.audit.cli.desk import MINE, NO_POWER, OWN, Command, audited, refused


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


def test_a_value_is_read_by_its_annotation_or_default() -> None:
    words = "parts=1e3 factor=1e-3 share=2/6 shares=1/2,0.25 limits=0,5 law=geometric rounded=false rho=0.5 whole=8"
    read = list(read_parameters(words.split(), PARAMETERS, "example").values())
    expected = [1000, 0.001, Fraction(1, 3), (Fraction(1, 2), Fraction(1, 4)), (0.0, 5.0), "geometric", False, 0.5, 8]
    assert (read, [*map(type, read)]) == (expected, [*map(type, expected)])


def test_every_system_is_the_same_where_its_defaults_are_set() -> None:
    found = {}
    for name, system in systems().items():
        own = writable({key: one for key, one in system.settings.items() if key not in WITH_OPTION})
        words = [word for key, one in own.items() if (word := described({key: one}))[-1] != "="]
        found[name] = read_parameters(words, own, name)
        assert system.mechanism(**found[name]).claim == system.claim
    assert (found["adpc"], found["phsafe"]) == ({"parts": 4}, {"times": 1.0})
    assert found["gdpc"] == found["topdown"] == {}


def test_the_promise_is_that_of_the_parameters_and_the_result_says_them(plaudit: Command) -> None:
    result = audited(plaudit, "RAPPOR", "--set", "f=0.5")
    assert result.claim.budget == pytest.approx(0.8006, abs=1e-3)
    assert result.provenance["parameters"]["mechanism"]["f"] == 0.5
    assert "plaudit audit RAPPOR --set f=0.5 " in result.provenance["command"]
    system = systems()["ons-independent"]
    read = read_parameters(["law=gaussian", "delta=1e-6"], writable(system.settings), system.name)
    assert system.mechanism(**read).claim == ApproxDP(1.0, 1e-6)


def test_parameters_of_the_census_systems_set_their_noise() -> None:
    """Half of the budget for the root, in place of a third; twice the budget of every query."""
    other = systems()["topdown"].mechanism(shares=[Fraction(1, 2), "1/4", "1/4"])
    assert [other.laws(j, "detailed")[0][1].epsilon * 2 for j in range(3)] == pytest.approx([1 / 2, 1 / 4, 1 / 4])
    assert other.claim == systems()["topdown"].mechanism().claim
    usual, other = systems()["phsafe"].mechanism(), systems()["phsafe"].mechanism(times=2)
    assert other.claim.rho == pytest.approx(2 * usual.claim.rho)
    assert {round(usual.laws[key].variance / law.variance, 6) for key, law in other.laws.items()} == {2.0}


def test_people_are_scattered_as_asked(plaudit: Command) -> None:
    """1,000 people at 10 an area, over two levels: ten areas of ten."""
    words = ("--data", "uniform", "--set", "people=1e3", "--set", "levels=2", "--set", "people_per_leaf=10")
    result = audited(plaudit, "rdpc", *words, "--cell", "99")
    assert (result.pair, result.confidential) == ("1 person added to 10 / 110", False)


@pytest.mark.parametrize(("module", "library"), [("colorsys", "colorsys.py"), ("time", "in Python itself")])
def test_a_module_with_the_name_of_a_library_is_refused(plaudit: Command, workspace: Path, module: str, library: str):
    (workspace / f"{module}.py").write_text(MINE)
    outcome = plaudit("audit", f"{module}:noisy", *OWN)
    assert refused(outcome, f"a module of your own must not have the name of a library, got {module!r}, which is ")
    assert outcome.err.endswith(f"{library}\n")


def test_results_say_which_file_was_imported(plaudit: Command, workspace: Path) -> None:
    source = {"file": "mine.py", "sha256": hashlib.sha256(MINE.encode()).hexdigest()}
    assert audited(plaudit, "mine:noisy", *OWN).provenance["imported"] == source
    assert "imported" not in audited(plaudit, "gdpc").provenance
    assert plaudit("replay", "mine:noisy", *OWN, "--out", "out").code == NO_POWER  # its noise passes no seam
    (path,) = Path("out").glob("*.json")
    assert json.loads(path.read_bytes())["provenance"]["imported"] == source
