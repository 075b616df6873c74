"""`plaudit audit`: what it answers, and its exit codes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.audit.cli.desk import (
    ELSEWHERE,
    NO_POWER,
    VIOLATION,
    WITHIN,
    Command,
    audited,
    refused,
    results,
    save_outputs,
)
from tests.helpers import audited as saved


def test_a_sound_algorithm_is_within_its_claim(plaudit: Command) -> None:
    result = audited(plaudit, "rdpc", "--data", "midwest")
    assert (result.verdict, result.claim.epsilon, result.relation) == ("not refuted", 1.0, "add_remove")
    assert result.pair.startswith("1 person added to ")
    assert (result.size, result.selection, result.confidence) == (2000, 600, 0.999)


def test_so_few_runs_that_a_pass_would_be_empty(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "--runs", "40", "--seed", "1")
    assert (outcome.code, outcome.err) == (NO_POWER, "")
    assert outcome.out.startswith("No power: there were too few runs.\n")
    assert "\nWhat to do now:\n- Audit again with about 97 runs in all (--size).\n" in outcome.out
    result = audited(plaudit, "gdpc", "--epsilon", "700", code=NO_POWER)  # in strict JSON, which has no infinity
    assert result.detectable == np.inf


RATIO = "log-likelihood ratio of y over x"


@pytest.mark.parametrize(
    ("data", "attack", "event"),
    [
        ("counts.csv", "threshold", f"y if {RATIO} >= 1, x if {RATIO} <= -1"),
        ("counts.npy", "entries", "y if output[2]"),
    ],
)
def test_counts_of_the_users_own(plaudit: Command, data: str, attack: str, event: str) -> None:
    np.save("counts.npy", np.array([[120, 75], [43, 0]]))
    result = audited(plaudit, "gdpc", "--data", data, "--cell", "2", "--attack", attack)
    assert (result.verdict, result.pair) == ("not refuted", "1 person added to cell 2")
    assert result.event.startswith(event)
    assert result.selection == 600


@pytest.mark.parametrize(
    ("name", "epsilon", "code"), [("mine:noisy", 1.0, WITHIN), ("mine:promising.__call__", 0.5, VIOLATION)]
)
def test_a_mechanism_of_the_users_own(plaudit: Command, name: str, epsilon: float, code: int) -> None:
    assert (
        audited(plaudit, name, "--data", "counts.csv", "--claim", f"pure:{epsilon}", code=code).claim.epsilon == epsilon
    )


def test_an_own_mechanism_may_promise_itself_and_import_its_neighbors_late(plaudit: Command) -> None:
    assert audited(plaudit, "mine:promising", "--data", "counts.csv").claim.epsilon == 1.0
    Path("helper.py").write_text("scale = 0.5\n")
    assert audited(plaudit, "mine:lazy", "--data", "counts.csv", "--claim", "pure:2").verdict == "not refuted"


def test_a_converted_promise_is_said(plaudit: Command) -> None:
    told = plaudit("audit", "gdpc", "--data", "counts.csv", "--move-to", "1", "--size", "500").out
    assert told.splitlines()[0] == "gdpc promises epsilon 1 (add/remove), which is epsilon 2 (replace one)."
    assert "gdpc promises" not in plaudit("audit", "gdpc", "--data", "counts.csv", "--size", "500").out


@pytest.mark.parametrize("width", [60, 120])
def test_a_terminal_of_any_width_gets_whole_lines(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    for name, value in (("COLUMNS", f"{width}"), ("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    event = f"y if {RATIO} >= 1, x if {RATIO} <= -1"
    saved(event=event).to_json("gdpc.json")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", plaudit("check", "gdpc.json").out)
    assert max(map(len, shown.splitlines())) <= width
    assert f"gdpc: y if {RATIO} >= 1" in shown


def test_a_move_is_a_replacement_or_two_steps(plaudit: Command) -> None:
    move = ("gdpc", "--data", "counts.csv", "--move-to", "1")
    replaced = audited(plaudit, *move)
    assert (replaced.relation, replaced.distance, replaced.claim.epsilon) == ("replace_one", 1, 2.0)
    assert replaced.pair == "1 person moved from cell 0 to cell 1"
    assert audited(plaudit, *move, "--relation", "replace_one").claim == replaced.claim
    stated = audited(plaudit, *move, "--relation", "replace_one", "--claim", "pure:1", code=VIOLATION)
    assert (stated.claim.epsilon, stated.relation) == (1.0, "replace_one")
    steps = audited(plaudit, *move, "--relation", "add_remove")
    assert (steps.relation, steps.distance, steps.claim.epsilon) == ("add_remove", 2, 1.0)
    assert steps.measured.epsilon == pytest.approx(replaced.measured.epsilon / 2)


def test_an_audit_that_may_stop_early(plaudit: Command) -> None:
    most = ("--size", "200000", "--seed", "1", "--data", "counts.csv", "--attack", "entries")
    outcome = plaudit("audit", "gdpc-half-noise", *most, "--early", "--json")
    (result,) = results(outcome).values()
    assert (outcome.code, result.verdict, result.bound) == (VIOLATION, "violated", "anytime-valid guessing game")
    assert result.size < 20_000
    assert result.provenance["parameters"]["stop"] == "early"


@pytest.mark.parametrize(
    ("suffix", "claim", "options", "code"),
    [
        ("csv", "pure:1", ("--relation", "add_remove"), WITHIN),
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


def test_columns_of_a_file_are_named_in_events_and_refusals(plaudit: Command) -> None:
    save_outputs(width=2)
    for name in ("x", "y"):
        Path(f"{name}.csv").write_text(f"count,ill=no\n{Path(f'{name}.csv').read_text()}")
    files = ("audit", "--outputs-x", "x.csv", "--outputs-y", "y.csv", *ELSEWHERE, "--attack", "entries")
    (result,) = results(plaudit(*files, "--json")).values()
    assert result.event.startswith('y if output["ill=no"] ')
    assert "output[1]" not in result.searched
    walk = np.random.default_rng(2).normal(size=(2000, 2)).round(6)
    walk[:, 0] = walk[:, 0].cumsum().round(6)
    np.savetxt("y.csv", walk, delimiter=",", header="count,ill=no", comments="")
    assert refused(plaudit(*files), 'in the order in which they were made: output["count"] of a row correlates by')


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs pipes with a name")
def test_outputs_may_come_through_a_pipe(plaudit: Command) -> None:
    save_outputs(runs=400)  # 10 kB: more than is read at a time, less than a pipe holds
    reading, writing = os.pipe()
    os.write(writing, Path("x.csv").read_bytes())
    os.close(writing)
    piped = plaudit("audit", "--outputs-x", f"/dev/fd/{reading}", "--outputs-y", "y.csv", *ELSEWHERE, "--json")
    os.close(reading)
    direct = plaudit("audit", "--outputs-x", "x.csv", "--outputs-y", "y.csv", *ELSEWHERE, "--json")
    assert results(piped)["outputs"].size == 800
    assert results(piped)["outputs"].counts == results(direct)["outputs"].counts


def test_who_gave_no_seed_and_saves_nothing_is_told_how_to_see_the_same_again(plaudit: Command) -> None:
    code, first, _ = plaudit("audit", "gdpc", "--size", 400)
    before, _, command = first.partition("\nThe same runs again:\n    plaudit ")
    again = plaudit(*command.split())
    assert again.code == code
    assert again.out.splitlines()[:4] == before.splitlines()[:4]  # the sentences, with the bound
    assert "The same runs again" not in plaudit("audit", "gdpc", "--size", 400, "--seed", 1).out


@pytest.mark.parametrize(
    ("options", "confidential"),
    [
        (("--data", "counts.csv"), True),
        (("--data", "counts.csv", "--public-data"), False),
        (("--data", "morocco"), False),
    ],
)
def test_audits_of_a_file_are_confidential_unless_it_is_public(plaudit, options, confidential) -> None:
    words = ("audit", "mine:noisy", "--claim", "pure:1", *options, "--size", "100", "--seed", "1")
    assert plaudit(*words).out.startswith("CONFIDENTIAL: these audits are of confidential data") == confidential
    assert results(plaudit(*words, "--json"))["mine:noisy"].confidential == confidential
