"""`plaudit audit` of registered systems: each on its own databases, with its stages, budgets and relations."""

import pytest

from tests.audit.cli.desk import NO_POWER, WITHIN, Command, results
from tests.helpers import audited

FEW = ("--size", "400", "--seed", "1", "--confidence", "0.999", "--attack", "entries")


@pytest.mark.parametrize(
    ("arguments", "pair", "claim"),
    [
        (("ons", "--pair", "alone", "--epsilon", "0.5"), "1 person added to cell (0, 0)", "epsilon 0.5 (add/remove)"),
        (("topdown", "--stage", "measurements", "--relation", "add_remove"), "added to", "epsilon 1 (add/remove)"),
        (("bottom-up", "--data", "midwest", "--people", "2"), "2 people added to", "epsilon 1 (add/remove)"),
        (("RAPPOR",), "", "epsilon 0.4001 (add/remove)"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (("topdown", "--stage", "measurements", "--set", "rho=0.5"), "under in 1", "rho 0.5 (replace"),
                (("topdown", "--set", "preset=h1", "--stage", "measurements"), "(0, 0) to (0, 1)", "(replace one)"),
                (("phsafe", "--set", "preset=pr", "--pair", "API"), "API: two rows of units vanish", "(add/remove)"),
            )
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_system_runs_on_databases_of_its_own(plaudit: Command, arguments: tuple[str, ...], pair: str, claim: str):
    """A few runs tell nothing: what counts here is what is asked, and that nothing sound is accused."""
    outcome = plaudit("audit", *arguments, *FEW, "--json")
    assert outcome.code in (WITHIN, NO_POWER)
    (result,) = results(outcome).values()
    assert (pair in result.pair, claim in str(result.claim), result.confidential) == (True, True, False)


def test_a_stage_and_a_pair_are_part_of_the_name_and_of_the_command(plaudit: Command) -> None:
    words = ("--stage", "measurements", "--pair", "added", "--epsilon", "2", *FEW, "--json")
    ((name, result),) = results(plaudit("audit", "topdown", *words)).items()
    assert (name, result.mechanism) == ("topdown measurements added", "TopDown measurements")
    options = "--stage measurements --pair added --size 400 --confidence 0.999 --attack entries"
    assert result.provenance["command"] == f"plaudit audit topdown --epsilon 2.0 {options} --seed 1"


# The command that is named runs.
@pytest.mark.parametrize(
    ("arguments", "following"),
    [
        ("topdown --stage measurements --pair added", "search topdown"),
        pytest.param("phsafe --relation add_remove", "audit phsafe", marks=pytest.mark.slow),
    ],
)
def test_a_pass_on_databases_of_a_system_names_the_command_for_others(plaudit, monkeypatch, arguments, following):
    with monkeypatch.context() as patched:  # a pass takes 60,000 runs and ten seconds
        patched.setattr("audit.measure.loss.measure_loss", lambda *_, **__: audited())
        outcome = plaudit("audit", *arguments.split(), "--size", "60000", "--seed", "1", "--json")
    assert outcome.code == WITHIN
    (result,) = results(outcome).values()
    (command,) = result.provenance["next"]
    assert command.startswith(f"plaudit {following}")
    assert "--seed" not in command
    assert plaudit(*command.replace("60000", "600").split()[1:], "--seed", "1").code in (WITHIN, NO_POWER)
