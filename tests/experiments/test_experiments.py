"""Experiments: their quick forms run, meet their expectations, and notice numbers that do not."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.results.files import read_json, write_json
from experiments import experiment
from experiments.__main__ import FIGURES, main
from experiments.experiment import NAMES, find, load_numbers


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main([*arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


# Even the quick forms of these take seconds; what they run has tests of its own, and their saved numbers are checked.
LONG = {
    "known_bugs",
    "scoreboard",
    "coverage",
    "power",
    "claims_compared",
    "phsafe_slack",
    "phsafe_truncation",
    "phsafe_audit",
    "flaxman_direct",
    "joint_witness",
    "one_run",
    "topdown_audit",
    "topdown_vs_rdpc",
    "topdown_real",
    "ons_unchanged",
    "ons_pilot",
    "ons_bias",
    "ons_zeros",
    "bottom_up_curve",
    "nist_synthesis",
    "real_tree",
    "planning",
    "replayed",
    "seeds_audited",
}
DRAWN = {"flaxman_figure1", "phsafe_table10", "topdown_1940", "topdown_bugs"}  # twice: others are slow


def some(names: set[str]) -> list[Any]:
    """Return all experiments, those not named as slow tests."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Quick forms, each run once, when it is first asked for."""
    folder = tmp_path_factory.mktemp("quick")

    def once(name: str) -> Path:
        if not (folder / f"{name}.json").exists():
            assert command("run", name, "--quick", "--jobs", "1", "--out", str(folder)) == 0
        return folder

    return once


@pytest.mark.parametrize("name", some(set(NAMES) - LONG))
def test_quick_form_meets_its_expectation(quick: Callable[[str], Path], name: str) -> None:
    assert command("check", name, "--out", str(quick(name))) == 0
    saved = read_json(quick(name) / f"{name}.json")
    assert saved["question"] == find(name).QUESTION
    assert saved["provenance"]["parameters"] == {"quick": True, "seed": 1}


@pytest.mark.parametrize("name", some(DRAWN))
def test_figures_come_from_the_numbers_alone_and_are_stable(quick: Callable[[str], Path], name: str) -> None:
    first = (quick(name) / f"{name}.svg").read_bytes()
    assert b"<svg" in first
    assert command("draw", name, "--out", str(quick(name))) == 0
    assert (quick(name) / f"{name}.svg").read_bytes() == first


@pytest.mark.parametrize("name", NAMES)
def test_committed_numbers_meet_their_expectation(name: str) -> None:
    assert command("check", name) == 0


def spoil_medians(numbers: dict[str, Any]) -> None:
    numbers["medians"]["GDPC"] = [0.05] * 20


def spoil_bound(numbers: dict[str, Any]) -> None:
    numbers["one_person"]["GDPC"]["measured"]["epsilon"] = 0.0999 * 1.2
    numbers["one_person"]["GDPC"]["verdict"] = "violated"


def spoil_exact(numbers: dict[str, Any]) -> None:
    numbers["rows"][0]["exact"] *= 1.01


def spoil_residual(numbers: dict[str, Any]) -> None:
    numbers["rows"]["RDPC, one area"]["residual"]["loss"][0] = 0.5


def spoil_moved(numbers: dict[str, Any]) -> None:
    numbers["rows"]["moved"]["exact"] = 1.4


def spoil_one_run(numbers: dict[str, Any]) -> None:
    numbers["rows"][3]["one_run"] = [0.101] * 10


def spoil_conversion(numbers: dict[str, Any]) -> None:
    numbers["rho"]["converted"] = [0.49] * 20


def spoil_caught(numbers: dict[str, Any]) -> None:
    numbers["rows"][0]["audits"][0]["verdict"] = "not refuted"


def spoil_witness(numbers: dict[str, Any]) -> None:
    row = next(row for row in numbers["rows"] if row["name"] == "SVT5")
    row["audits"][0]["witness"] = None


def spoil_misses(numbers: dict[str, Any]) -> None:
    numbers["rows"][0]["misses"] = 78


def spoil_power(numbers: dict[str, Any]) -> None:
    numbers["curves"][0]["forced"][1][-1] = 1.01


def spoil_printed(numbers: dict[str, Any]) -> None:
    numbers["rows"][0]["unbounded"] = "0.002604"


def spoil_joint(numbers: dict[str, Any]) -> None:
    numbers["joint"]["DER replace_one"]["rho"] *= 1.001


def spoil_dropped(numbers: dict[str, Any]) -> None:
    numbers["rows"][-1]["lost"] = 10**6


def spoil_spent(numbers: dict[str, Any]) -> None:
    numbers["rows"]["twice"]["spent"] /= 2


def spoil_share(numbers: dict[str, Any]) -> None:
    numbers["shares"][1]["forced"] = [0.0] * 20


def spoil_planted(numbers: dict[str, Any]) -> None:
    row = next(row for row in numbers["rows"] if row["expected"] == "witness and counts")
    row["audits"][0]["witness"] = None


def spoil_states(numbers: dict[str, Any]) -> None:
    numbers["rows"]["1"]["states"] = 1


def spoil_negative(numbers: dict[str, Any]) -> None:
    numbers["systems"]["TopDown"]["negative"] = 0.001


def spoil_additive(numbers: dict[str, Any]) -> None:
    numbers["rows"]["2"]["additive"] = False


def spoil_unchanged(numbers: dict[str, Any]) -> None:
    numbers["rows"][0]["formula"] += 1e-4


def spoil_rare(numbers: dict[str, Any]) -> None:
    numbers["rows"]["zeros perturbed"]["10"]["regions"]["NA"] = 900


def spoil_utility(numbers: dict[str, Any]) -> None:
    numbers["kinds"]["laplace"]["1"]["l1"][0] *= 1000


def spoil_zeros(numbers: dict[str, Any]) -> None:
    numbers["deaths"][1]["true"] = 0.9999


def spoil_reach(numbers: dict[str, Any]) -> None:
    numbers["inverse"][0]["reach"] += 1


def spoil_domain(numbers: dict[str, Any]) -> None:
    audit = next(audit for audit in numbers["audits"] if audit["what"] == "domain from the data")
    audit["verdict"] = "not refuted"


def spoil_planning(numbers: dict[str, Any]) -> None:
    numbers["rows"][0]["seen"] = 0


def spoil_replayed(numbers: dict[str, Any]) -> None:
    query = next(query for query in numbers["systems"][0]["queries"] if query["name"] == "PH3 state_A-G")
    query["l2"] *= 1.01


def spoil_system(numbers: dict[str, Any]) -> None:
    numbers["rows"][0]["exact"] *= 1.001


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("flaxman_figure1", spoil_medians),
        ("flaxman_direct", spoil_bound),
        ("neighbor_relation", spoil_exact),
        ("real_tree", spoil_residual),
        ("joint_witness", spoil_moved),
        ("one_run", spoil_one_run),
        ("claims_compared", spoil_conversion),
        ("known_bugs", spoil_caught),
        ("scoreboard", spoil_witness),
        ("coverage", spoil_misses),
        ("power", spoil_power),
        ("phsafe_table10", spoil_printed),
        ("phsafe_slack", spoil_joint),
        ("phsafe_truncation", spoil_dropped),
        ("phsafe_audit", spoil_spent),
        ("topdown_1940", spoil_states),
        ("topdown_vs_rdpc", spoil_negative),
        ("topdown_real", spoil_additive),
        ("topdown_audit", spoil_share),
        ("topdown_bugs", spoil_planted),
        ("ons_unchanged", spoil_unchanged),
        ("ons_pilot", spoil_utility),
        ("ons_bias", spoil_rare),
        ("ons_zeros", spoil_zeros),
        ("bottom_up_curve", spoil_reach),
        ("nist_synthesis", spoil_domain),
        ("planning", spoil_planning),
        ("replayed", spoil_replayed),
        ("seeds_audited", spoil_system),
    ],
)
def test_check_fails_on_numbers_that_do_not_meet_the_expectation(tmp_path: Path, name: str, spoil: Any) -> None:
    saved = copy.deepcopy(read_json(FIGURES / f"{name}.json"))
    spoil(saved["numbers"])
    write_json(tmp_path / f"{name}.json", saved)
    assert command("check", name, "--out", str(tmp_path)) == 1


def test_the_page_of_findings_is_what_the_numbers_say(tmp_path: Path) -> None:
    shutil.copytree(FIGURES, tmp_path / "figures")
    (tmp_path / "figures" / "README.md").unlink()
    assert command("draw", "neighbor_relation", "--out", str(tmp_path / "figures")) == 0  # any: the page has all
    assert (tmp_path / "figures" / "README.md").read_text() == (FIGURES / "README.md").read_text()


def test_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(NAMES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "no_such"], "no experiment is called 'no_such'"),
        (["check", "no_such"], "no experiment is called 'no_such'"),
        (["run", "real_tree", "--seed", "-1"], "seed must be 0 or more, got -1"),
        (["run", "real_tree", "--jobs", "0"], "jobs must be a positive number"),
        (["run", "real_tree", "--size", "3"], "No such option"),
        (["run"], "Missing argument"),
        (["nonsense"], "No such command"),
        (["check", "--out", "no-such-folder"], "no-such-folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("experiments: error: ")
    assert error.count("\n") == 1
    assert words in error
    assert list(tmp_path.iterdir()) == []


def test_unwritable_folder_is_found_out_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("experiments.__main__.run_experiment", lambda *_, **__: pytest.fail("it ran"))
    assert command("run", "real_tree", "--out", str(tmp_path / "file" / "below")) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("damage", ["cut", "changed", "other"])
def test_damaged_numbers_are_refused(
    tmp_path: Path, quick: Callable[[str], Path], capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    text = (quick("neighbor_relation") / "neighbor_relation.json").read_text()
    path = tmp_path / "neighbor_relation.json"
    if damage == "cut":
        path.write_text(text[: len(text) // 2])
    elif damage == "changed":
        path.write_text(text.replace('"not refuted"', '"violated"', 1))
    else:
        path.write_text((quick("flaxman_figure1") / "flaxman_figure1.json").read_text())
    assert command("check", "neighbor_relation", "--out", str(tmp_path)) == 2
    assert "neighbor_relation" in capsys.readouterr().err


def test_interrupt_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    second = find("real_tree")

    def interrupted(**_: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(second, "run", interrupted)
    assert command("run", "flaxman_figure1", "real_tree", "--quick", "--out", str(tmp_path)) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flaxman_figure1.json", "flaxman_figure1.svg"]
    assert "interrupted: 1 of 2 experiments finished" in capsys.readouterr().err
    assert load_numbers("flaxman_figure1", tmp_path)


def test_numbers_do_not_depend_on_jobs(tmp_path: Path, quick: Callable[[str], Path]) -> None:
    experiment.run_experiment("neighbor_relation", tmp_path, quick=True, seed=1, jobs=2)

    def plain(folder: Path) -> str:
        rows = load_numbers("neighbor_relation", folder)["rows"]
        for row in rows:
            del row["audit"]["seconds"], row["audit"]["provenance"]
        return json.dumps(rows)

    assert plain(tmp_path) == plain(quick("neighbor_relation"))


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert command() == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("Usage: python -m experiments")
    assert printed.err == ""
