"""`plaudit audit`: what it answers, and its exit codes."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from audit.results.folder import read_audits
from tests.audit.cli.desk import (
    INTERRUPTED,
    NO_POWER,
    VIOLATION,
    WITHIN,
    Command,
    audited,
    refused,
    results,
    save_outputs,
)

OTHERWISE = "with --store FOLDER, the same command would go on"


def test_so_few_runs_that_a_pass_would_be_empty(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "--runs", "40", "--seed", "1")
    assert (outcome.code, outcome.err) == (NO_POWER, "")
    assert outcome.out.startswith("No power: there were too few runs.\n")
    assert "\n- Audit again with about 140 runs in all (--size).\n" in outcome.out
    result = audited(plaudit, "gdpc", "--epsilon", "700", code=NO_POWER)  # in strict JSON, which has no infinity
    assert result.detectable == np.inf


def test_counts_of_the_users_own(plaudit: Command) -> None:
    np.save("counts.npy", np.array([[120, 75], [43, 0]]))
    for data, attack, event in (("csv", "threshold", "log-likelihood ratio"), ("npy", "entries", "output[2]")):
        result = audited(plaudit, "gdpc", "--data", f"counts.{data}", "--cell", "2", "--attack", attack)
        assert (result.verdict, result.pair) == ("not refuted", "1 person added to cell 2")
        assert result.event.startswith(f"y if {event}")


def test_an_own_mechanism_may_promise_itself_and_import_its_neighbors_late(plaudit: Command) -> None:
    assert audited(plaudit, "mine:promising", "--data", "counts.csv").claim.epsilon == 1.0
    audited(plaudit, "mine:promising.__call__", "--data", "counts.csv", "--claim", "pure:0.5", code=VIOLATION)
    Path("helper.py").write_text("scale = 0.5\n")
    assert audited(plaudit, "mine:lazy", "--data", "counts.csv", "--claim", "pure:2").verdict == "not refuted"


def test_a_converted_promise_is_said(plaudit: Command) -> None:
    printed = plaudit("audit", "gdpc", "--data", "counts.csv", "--move-to", "1", "--size", "500").out
    assert printed.splitlines()[0] == "gdpc promises epsilon 1 (add/remove), which is epsilon 2 (replace one)."


def test_a_move_is_a_replacement_or_two_steps(plaudit: Command) -> None:
    move = ("gdpc", "--data", "counts.csv", "--move-to", "1")
    replaced = audited(plaudit, *move)
    assert (replaced.relation, replaced.distance, replaced.claim.epsilon) == ("replace_one", 1, 2.0)
    assert replaced.pair == "1 person moved from cell 0 to cell 1"
    stated = audited(plaudit, *move, "--relation", "replace_one", "--claim", "pure:1", code=VIOLATION)
    assert (stated.claim.epsilon, stated.relation) == (1.0, "replace_one")
    steps = audited(plaudit, *move, "--relation", "add_remove")
    assert (steps.relation, steps.distance, steps.claim.epsilon) == ("add_remove", 2, 1.0)


def test_an_audit_that_may_stop_early(plaudit: Command) -> None:
    result = audited(plaudit, "gdpc", "--data", "counts.csv", "--early", "--event", "output[0] >= 121")
    assert result.provenance["parameters"]["stop"] == "early"
    assert (result.event, result.searched) == ("y if output[0] >= 121", "one event, registered beforehand")


@pytest.mark.parametrize(
    ("words", "code", "way"),
    [
        ("mine:tired mine:noisy --claim pure:1", INTERRUPTED, f"{OTHERWISE}; not begun: 1 of 2 audits"),
        ("mine:noisy mine:tired --claim pure:0.3", VIOLATION, OTHERWISE),
        ("mine:tired --claim pure:1 --store kept", INTERRUPTED, "the same command will go on from kept"),
    ],
)
def test_an_interrupt_of_an_early_audit_gives_its_result_so_far(
    plaudit: Command, words: str, code: int, way: str
) -> None:
    given = "--data counts.csv --early --jobs 1 --seed 1 --out out"
    outcome = plaudit("audit", *words.split(), *given.split())
    (result,) = [result for _, result in read_audits(Path("out")) if result.mechanism == "tired"]
    assert f"stopped by the user after {result.size} runs: the bound holds" in result.notes
    message = f"plaudit: interrupted: the result of mine:tired is that of its first {result.size} runs; "
    assert (outcome.code, outcome.err) == (code, f"{message}{way}\n")
    assert "Let the audit go on" in outcome.out


@pytest.mark.parametrize(
    ("suffix", "claim", "options", "code"),
    [
        ("npy", "pure:0.5", ("--relation", "replace_one"), VIOLATION),
        ("csv", "pure:0.5", ("--relation", "add_remove", "--distance", "2"), WITHIN),
    ],
)
def test_outputs_from_elsewhere(plaudit: Command, suffix: str, claim: str, options: tuple[str, ...], code: int) -> None:
    save_outputs(width=3)
    files = ("--outputs-x", f"x.{suffix}", "--outputs-y", f"y.{suffix}", "--seed", "1", "--confidence", "0.999")
    outcome = plaudit("audit", *files, "--claim", claim, *options, "--json")
    result = results(outcome)["outputs"]
    assert (outcome.code, result.adjacency, result.size) == (code, "declared", 4000)
    assert result.pair == f"outputs in x.{suffix} and y.{suffix}"
    assert "output[2]" in result.event


def test_a_look_at_files_that_grow_tells_its_odds(plaudit: Command) -> None:
    save_outputs(width=1)
    files = ("--outputs-x", "x.csv", "--outputs-y", "y.csv", "--claim", "pure:0.5", "--relation", "add_remove")
    outcome = plaudit("audit", *files, "--early")
    assert re.search(
        r"^plaudit: [\d,]+ of 4,000 runs: odds of .* to 1 against the promise, 20 decide$", outcome.err, re.M
    )


def test_columns_of_a_file_are_named_in_events_and_refusals(plaudit: Command) -> None:
    save_outputs(width=2)
    for name in ("x", "y"):
        Path(f"{name}.csv").write_text(f"count,ill=no\n{Path(f'{name}.csv').read_text()}")
    files = ("audit", "--outputs-x", "x.csv", "--outputs-y", "y.csv", "--relation", "add_remove", "--seed", "1")
    files += ("--claim", "pure:1", "--attack", "entries")
    (result,) = results(plaudit(*files, "--json")).values()
    assert result.event.startswith('y if output["ill=no"] ')
    (named,) = results(plaudit(*files, "--event", "ill=no >= 0.5", "--json")).values()
    assert (named.event, named.selection) == ('y if output["ill=no"] >= 0.5', 0)
    assert shlex.split(named.provenance["command"])[-4:-2] == ["--event", "ill=no >= 0.5"]
    walk = np.random.default_rng(2).normal(size=(2000, 2)).round(6)
    walk[:, 0] = walk[:, 0].cumsum().round(6)
    np.savetxt("y.csv", walk, delimiter=",", header="count,ill=no", comments="")
    assert refused(plaudit(*files), 'in the order in which they were made: output["count"] of a row correlates by')


def test_who_gave_no_seed_and_saves_nothing_is_told_how_to_see_the_same_again(plaudit: Command) -> None:
    before, _, command = plaudit("audit", "gdpc", "--size", 400).out.partition("\nThe same runs again:\n    plaudit ")
    again = plaudit(*command.split()).out
    assert again.splitlines()[:4] == before.splitlines()[:4]  # the sentences, with the bound
    assert "The same runs again" not in again


@pytest.mark.parametrize(
    ("options", "confidential"), [("counts.csv", True), ("counts.csv --public-data", False), ("morocco", False)]
)
def test_audits_of_a_file_are_confidential_unless_it_is_public(plaudit, options, confidential) -> None:
    words = ("audit", "mine:noisy", "--claim", "pure:1", "--size", "100", "--seed", "1", "--data", *options.split())
    assert plaudit(*words).out.startswith("CONFIDENTIAL: results of confidential data. ") == confidential


@pytest.mark.parametrize(
    ("arguments", "name", "code"),
    [
        (("gdpc",), "gdpc one run", WITHIN),
        (("topdown", "--pair", "added", "--epsilon", "3"), "topdown added one run", NO_POWER),
        (("adpc", "--claim", "zcdp:0.5"), "adpc one run", NO_POWER),
        (("gdpc-half-noise",), "gdpc-half-noise one run", VIOLATION),
        (("mine:noisy", "--data", "morocco", "--claim", "pure:0.3"), "mine:noisy one run", VIOLATION),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_one_run_is_audited(plaudit: Command, arguments: tuple[str, ...], name: str, code: int) -> None:
    """False alarm: 1e-3. Noise for twice, or three times, the promise on 1,503 areas is far beyond it."""
    outcome = plaudit("audit", "--one-run", *arguments, "--seed", "1", "--confidence", "0.999", "--json")
    assert (outcome.code, outcome.err) == (code, "")
    ((called, result),) = results(outcome).items()
    assert (called, result.size, result.selection) == (name, 1, 0)
    assert result.provenance["command"].startswith(f"plaudit audit {arguments[0]} ")
    assert " --one-run " in result.provenance["command"]
