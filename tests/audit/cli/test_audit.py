"""`plaudit audit`: what it answers, and its exit codes."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.claims import ZCDP, ApproxDP, GaussianDP
from tests.audit.cli.desk import ELSEWHERE, NO_POWER, QUICK, VIOLATION, WITHIN, Command, audited, results, save_outputs


def test_a_sound_algorithm_is_within_its_claim(plaudit: Command) -> None:
    result = audited(plaudit, "rdpc", "--data", "midwest")
    assert (result.verdict, result.claim.epsilon, result.relation) == ("not refuted", 1.0, "add_remove")
    assert result.pair.startswith("1 person added to ")
    assert (result.size, result.selection, result.confidence) == (2000, 600, 0.999)
    assert audited(plaudit, "gdpc", "--selection", "0.5").selection == 1000


def test_one_violation_outweighs_the_rest(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "gdpc-half-noise", "adpc", *QUICK, "--data", "counts.csv", "--json")
    assert outcome.code == VIOLATION
    assert {name: result.verdict for name, result in results(outcome).items()} == {
        "gdpc": "not refuted",
        "gdpc-half-noise": "violated",
        "adpc": "not refuted",
    }


def test_so_few_runs_that_a_pass_would_be_empty(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "--size", "40", "--seed", "1")
    assert (outcome.code, outcome.err) == (NO_POWER, "")
    assert "gdpc has no power. What would help: some 97 runs (--size).\n" in outcome.out
    result = audited(plaudit, "gdpc", "--epsilon", "700", code=NO_POWER)  # in strict JSON, which has no infinity
    assert result.detectable == np.inf


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_counts_of_the_users_own(plaudit: Command, suffix: str) -> None:
    np.save("counts.npy", np.array([[120, 75], [43, 0]]))
    result = audited(plaudit, "gdpc", "--data", f"counts.{suffix}", "--cell", "2", "--attack", "threshold")
    assert (result.verdict, result.pair) == ("not refuted", "1 person added to cell 2")
    assert result.event == "y if log-likelihood ratio of y over x >= 1, x if log-likelihood ratio of y over x <= -1"
    result = audited(plaudit, "gdpc", "--data", f"counts.{suffix}", "--cell", "2", "--attack", "entries")
    assert "output[2]" in result.event


@pytest.mark.parametrize("text", ["people\n120\n75\n43\n", "\ufeffa,b,c\n120,75,43\n"])
def test_counts_with_names_a_mark_or_in_one_line_are_the_same(plaudit: Command, text: str) -> None:
    Path("other.csv").write_text(text, "utf-8")
    same = [
        audited(plaudit, "gdpc", "--data", data, "--cell", "1", "--attack", "entries")
        for data in ("counts.csv", "other.csv")
    ]
    assert same[0].counts == same[1].counts
    assert "output[1]" in same[1].event


@pytest.mark.parametrize("name", ["mine:noisy", "mine:promising.__call__"])
def test_a_mechanism_of_the_users_own(plaudit: Command, name: str) -> None:
    result = audited(plaudit, name, "--data", "counts.csv", "--claim", "pure:1")
    assert (result.verdict, result.claim.epsilon) == ("not refuted", 1.0)
    result = audited(plaudit, name, "--data", "counts.csv", "--claim", "pure:0.5", code=VIOLATION)
    assert (result.verdict, result.claim.epsilon) == ("violated", 0.5)


def test_an_own_mechanism_may_promise_itself_and_import_its_neighbors_late(plaudit: Command) -> None:
    assert audited(plaudit, "mine:promising", "--data", "counts.csv").claim.epsilon == 1.0
    Path("helper.py").write_text("scale = 0.5\n")
    assert audited(plaudit, "mine:lazy", "--data", "counts.csv", "--claim", "pure:2").verdict == "not refuted"


def test_a_group_of_people(plaudit: Command) -> None:
    result = audited(plaudit, "gdpc", "--epsilon", "0.025", "--people", "80")
    assert (result.verdict, result.distance) == ("not refuted", 80)
    assert result.pair.startswith("80 people added to ")
    # 80 people lose 2; a lower bound below 1.2 has probability below 1e-16 (exact, all counted runs guessing).
    assert result.measured.epsilon > 0.6 * 0.025


def test_a_converted_promise_is_said(plaudit: Command) -> None:
    told = plaudit("audit", "gdpc", "--data", "counts.csv", "--move-to", "1", "--size", "500").out
    assert told.splitlines()[0] == "gdpc promises epsilon 1 (add/remove), which is epsilon 2 (replace one)."
    assert "which is" not in plaudit("audit", "gdpc", "--data", "counts.csv", "--size", "500").out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_of_any_width_gets_whole_lines(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    told = plaudit("audit", "gdpc", "--data", "counts.csv", "--size", "500", "--seed", "1").out
    assert max(len(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", told).splitlines()) <= width
    assert "gdpc: y if log-likelihood ratio of y over x >= 1" in told


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


@pytest.mark.parametrize(
    ("name", "claim", "promised"),
    [
        ("gdpc", ("--claim", "approx:0.5,1e-6"), ApproxDP(0.5, 1e-6)),
        ("gaussian-counts", (), ZCDP(0.5)),
        ("mine:normal", ("--claim", "gaussian:0.7"), GaussianDP(0.7)),
    ],
)
def test_a_promise_of_any_kind(plaudit: Command, name: str, claim: tuple[str, ...], promised: Any) -> None:
    outcome = plaudit("audit", name, *claim, *QUICK, "--data", "counts.csv", "--json")
    (result,) = results(outcome).values()
    assert (outcome.err, result.claim, type(result.measured)) == ("", promised, type(promised))


def test_an_audit_that_may_stop_early(plaudit: Command) -> None:
    most = ("--size", "200000", "--selection", "0.02", "--seed", "1", "--data", "counts.csv", "--attack", "entries")
    outcome = plaudit("audit", "gdpc-half-noise", *most, "--early", "--json")
    (result,) = results(outcome).values()
    assert (outcome.code, result.verdict, result.bound) == (VIOLATION, "violated", "anytime-valid guessing game")
    assert result.size < 20_000
    assert result.provenance["parameters"]["stop"] == "early"


def test_words_of_a_mechanism_and_in_a_file(plaudit: Command) -> None:
    result = audited(plaudit, "mine:wordy", "--data", "counts.csv", "--claim", "pure:1")
    assert (result.verdict, "'many'" in result.event) == ("not refuted", True)
    rng = np.random.default_rng(3)
    for name, share in (("x", 0.3), ("y", 0.6)):
        np.save(f"{name}.npy", np.where(rng.random(2000) < share, "many", "few"))
    given = plaudit("audit", "--outputs-x", "x.npy", "--outputs-y", "y.npy", *ELSEWHERE, "--json")
    assert (given.code, "'many'" in results(given)["outputs"].event) == (WITHIN, True)


@pytest.mark.parametrize(("suffix", "width"), [("csv", 3), ("npy", 1)])
def test_outputs_from_elsewhere(plaudit: Command, suffix: str, width: int) -> None:
    save_outputs(width=width)
    files = ("--outputs-x", f"x.{suffix}", "--outputs-y", f"y.{suffix}")
    given = ("audit", *files, "--seed", "1", "--confidence", "0.999")
    within = plaudit(*given, "--claim", "pure:1", "--relation", "add_remove", "--json")
    result = results(within)["outputs"]
    assert (within.code, result.adjacency, result.size) == (WITHIN, "declared", 4000)
    assert result.pair == f"outputs in x.{suffix} and y.{suffix}"
    assert f"output[{width - 1}]" in result.event or width == 1
    assert plaudit(*given, "--claim", "pure:0.5", "--relation", "replace_one").code == VIOLATION
    assert plaudit(*given, "--claim", "pure:0.5", "--relation", "add_remove", "--distance", "2").code == WITHIN


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


def test_the_seed_decides_and_the_jobs_do_not(plaudit: Command) -> None:
    def counts(*options: str) -> Any:
        # 1,503 areas: 2,790 runs a block, so two or three blocks on either database.
        return results(plaudit("audit", "gdpc", "--size", "12000", "--json", *options))["gdpc"].counts

    one = counts("--seed", "5", "--jobs", "1")
    assert counts("--seed", "5", "--jobs", "2") == one


def test_what_reproduces_an_audit_is_in_its_file_and_does(plaudit: Command) -> None:
    asked = ("mine:noisy", "--claim", "pure:1", "--size", "500", "--data", "counts.csv", "--cell", "1", "--json")
    (first,) = results(plaudit("audit", *asked, "--store", "kept", "--jobs", "1")).values()
    (other,) = results(plaudit("audit", *asked)).values()
    assert first.seed_entropy != other.seed_entropy  # drawn anew, and recorded
    command = shlex.split(first.provenance["command"])
    assert command[:3] == ["plaudit", "audit", "mine:noisy"]
    assert not {"--json", "--store", "--jobs"} & set(command)
    (again,) = results(plaudit(*command[1:], "--json")).values()
    assert (again.counts, again.event, again.seed_entropy) == (first.counts, first.event, first.seed_entropy)
    assert again.provenance["command"] == first.provenance["command"]


def test_the_command_of_outputs_from_elsewhere(plaudit: Command) -> None:
    save_outputs()
    made = plaudit("audit", "--outputs-x", "x.csv", "--outputs-y", "y.csv", "--public-data", *ELSEWHERE, "--json")
    (first,) = results(made).values()
    words = shlex.split(first.provenance["command"])
    assert words[:4] == ["plaudit", "audit", "--claim", "pure:1"]
    assert not first.confidential
    (again,) = results(plaudit(*words[1:], "--json")).values()
    assert again.counts == first.counts


@pytest.mark.parametrize(
    ("options", "confidential"),
    [
        (("--data", "counts.csv"), True),
        (("--data", "counts.csv", "--public-data"), False),
        (("--data", "morocco"), False),
    ],
)
def test_audits_of_a_file_are_confidential_unless_it_is_public(plaudit, options, confidential) -> None:
    asked = ("audit", "mine:noisy", "--claim", "pure:1", *options, *QUICK)
    assert plaudit(*asked).out.startswith("CONFIDENTIAL: these audits are of confidential data") == confidential
    assert results(plaudit(*asked, "--json"))["mine:noisy"].confidential == confidential
