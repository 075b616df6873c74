"""Experiments: their quick forms run, meet their expectations, and notice numbers that do not."""

import json
import math
import shutil
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import special

from audit.claims import ApproxDP, PureDP
from audit.results.files import read_json, write_json
from experiments import experiment
from experiments.__main__ import FIGURES, _write_page, main
from experiments.bounds import early
from experiments.experiment import NAMES, find, load_numbers
from experiments.others import libraries

SHORT = "neighbor_relation"  # 1 s with its two figures, each drawn twice; the quick forms of the others take longer
QUICK = [name if name == SHORT else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


def command(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([*arguments])
    return stop.value.code


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Quick forms, each run once, when it is first asked for."""
    folder = tmp_path_factory.mktemp("quick")

    @cache
    def once(name):
        assert command("run", name, "--quick", "--jobs", "1", "--out", str(folder)) == 0
        return folder

    return once


@pytest.mark.parametrize("name", QUICK)
def test_quick_form_meets_its_expectation_and_is_drawn_from_its_numbers_alone(quick, name):
    folder = quick(name)
    assert command("check", name, "--out", str(folder)) == 0
    saved = read_json(folder / f"{name}.json")
    assert (saved["question"], saved["expectation"]) == (find(name).question, find(name).expectation)
    assert saved["provenance"]["parameters"] == {"quick": True, "seed": 1}
    drawn = {ending: (folder / f"{name}{ending}").read_text() for ending in (".svg", ".phone.svg")}
    assert command("draw", name, "--out", str(folder)) == 0
    assert drawn == {ending: (folder / f"{name}{ending}").read_text() for ending in drawn}


def first(rows, **wanted):
    return next(row for row in rows if wanted.items() <= row.items())


# Numbers that an expectation does not allow.
SPOILED = [
    ("flaxman_residuals", lambda n: n["medians"].update(GDPC=[0.05] * 20)),
    ("flaxman_direct", lambda n: n["paper"]["GDPC"]["equal"].update(largest=[0.1] * 20)),
    ("flaxman_equation", lambda n: n["curves"]["GDPC"]["equation"].__setitem__(0, 0.999)),
    ("neighbor_relation", lambda n: n["rows"][0].update(exact=1.01 * n["rows"][0]["exact"])),
    ("flaxman_audit", lambda n: n["rows"]["moved"].update(exact=1.4)),
    ("one_run", lambda n: n["rows"][3].update(one_run=[0.101] * 10)),
    ("one_run", lambda n: n["noise"][1].update(any=0.7)),
    ("known_bugs", lambda n: n["rows"][0]["audits"][0].update(verdict="not refuted")),
    ("known_bugs", lambda n: first(n["rows"], expected="witness and counts")["audits"][0].update(witness=None)),
    ("known_bugs", lambda n: first(n["replays"]["systems"][0]["queries"], name="PH3 state_A-G").update(l2=1e6)),
    ("bounds", lambda n: n["rows"][0].update(misses=78)),
    ("phsafe_table10", lambda n: n["rows"][0].update(unbounded="0.002604")),
    ("phsafe_spent", lambda n: n["joint"]["DER replace_one"].update(rho=1.001 * n["joint"]["DER replace_one"]["rho"])),
    ("phsafe_intervals", lambda n: n["rows"][0].update(published=[0.9, 0.001])),
    ("phsafe_audits", lambda n: n["rows"]["twice"].update(spent=n["rows"]["twice"]["spent"] / 2)),
    ("topdown_loss", lambda n: n["shares"][1].update(lower_bound=[0.0] * 20)),
    ("topdown_errors", lambda n: n["rows"]["2"].update(additive=False)),
    ("invariants", lambda n: first(n["rows"], loss="inf")["audits"][0].update(witness=None)),
    ("cell_keys", lambda n: n["rows"][3].update(proof=1.1 * n["rows"][3]["proof"])),
    ("ons_utility", lambda n: n["kinds"]["laplace"]["1"].update(l1=[1e9, *n["kinds"]["laplace"]["1"]["l1"][1:]])),
    ("ons_regions", lambda n: n["printed"]["zeros perturbed"]["10"]["regions"].update(NA=900)),
    ("ons_regions", lambda n: [n["printed"]["7"].pop(epsilon) for epsilon in ("0.03", "0.1", "0.2", "0.3")]),
    ("ons_zeros", lambda n: n["deaths"][1].update(true=0.9999)),
    ("bottom_up_curve", lambda n: n["inverse"][0].update(reach=1 + n["inverse"][0]["reach"])),
    ("nist_rows", lambda n: first(n["audits"], what="domain from the data").update(verdict="not refuted")),
    ("nist_rows", lambda n: first(n["audits"], what="synthetic rows").update(verdict="violated")),
    ("nist_rows", lambda n: n["distance"]["grouped"]["8"].__setitem__(0, 4 * max(n["floor"]))),
    ("nist_rows", lambda n: n.update(noiseless=1.005 * max(n["distance"]["grouped"]["8"]))),
    ("runs", lambda n: n["rows"][0].update(seen=0)),
    ("runs", lambda n: n["early"][0].update(violated=20 * [True])),
    ("runs", lambda n: first(n["early"], factor=4.0).update(runs=20 * [41])),
    ("published_tables", lambda n: [row.update(lower_bound=1.1 * row["epsilon"]) for row in n["audits"]]),
    ("libraries", lambda n: first(n["rows"], mechanism="Snapping")["audits"]["everything"].update(verdict="violated")),
    ("other_auditors", lambda n: n["rows"][1]["auditors"]["plaudit"].update(values=[1.01] * 20)),
    ("other_auditors", lambda n: first(n["benchmarks"], name="PrefixSum").update(audits=20 * [{"lower_bound": 0.1}])),
    ("all_systems", lambda n: n["known_rho"][0].update(median_of_20=1.11 * n["known_rho"][0]["rho"])),
    ("all_systems", lambda n: n["rows"][0].update(exact=1.001 * n["rows"][0]["exact"])),
]


def test_every_experiment_is_spoiled():
    assert [name for name in NAMES if name not in dict(SPOILED)] == []


@pytest.mark.parametrize(("name", "spoil"), SPOILED, ids=[name for name, _ in SPOILED])
def test_committed_numbers_meet_their_expectation_and_others_do_not(name, spoil):
    numbers, check = load_numbers(name, FIGURES), find(name).functions.check
    assert [outcome.words for outcome in check(numbers) if not outcome.holds] == []
    spoil(numbers)
    assert not all(outcome.holds for outcome in check(numbers))


def test_a_failed_check_is_exit_code_1(tmp_path, capsys):
    saved = read_json(FIGURES / "topdown_errors.json")
    dict(SPOILED)["topdown_errors"](saved["numbers"])
    write_json(tmp_path / "topdown_errors.json", saved)
    assert command("check", "topdown_errors", "--out", str(tmp_path)) == 1
    assert "  FAIL topdown_errors: epsilon 2: additive, not negative, " in capsys.readouterr().out


def test_the_page_of_findings_is_what_the_numbers_say(tmp_path, monkeypatch):  # of all experiments, 1 s
    regions = find("ons_regions").functions
    facts = regions.facts(load_numbers("ons_regions", FIGURES))  # half a second, which the page asks for four times
    monkeypatch.setattr(regions, "facts", lambda numbers: facts)
    shutil.copytree(FIGURES, tmp_path / "figures", ignore=shutil.ignore_patterns("*.svg", "README.md"))
    _write_page(tmp_path / "figures")
    assert (tmp_path / "figures" / "README.md").read_text() == (FIGURES / "README.md").read_text()


def test_list_names_every_experiment(capsys):
    assert command("list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(NAMES)


SAVED, OTHER = ((FIGURES / f"{name}.json").read_text() for name in ("neighbor_relation", "one_run"))


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("", ["check", "no_such"], "no experiment is called 'no_such'"),
        ("", ["run", "one_run", "--seed", "-1"], "seed must be 0 or more, got -1"),
        ("", ["run", "one_run", "--jobs", "0"], "jobs must be a positive number"),
        ("", ["run", "one_run", "--out", "neighbor_relation.json/below"], "neighbor_relation.json"),
        ("", ["run", "libraries", "--out", "."], "diffprivlib.npz must hold outputs: run `make libraries`"),
        ("", ["run", "other_auditors", "--out", "."], "none must be there: run `make peers`"),
        (SAVED[: len(SAVED) // 2], ["check", "neighbor_relation", "--out", "."], "neighbor_relation"),
        (SAVED.replace('"not refuted"', '"violated"', 1), ["check", "neighbor_relation", "--out", "."], "checksum"),
        (OTHER, ["check", "neighbor_relation", "--out", "."], "the experiment neighbor_relation, got 'one_run'"),
    ],
)
def test_refusals_are_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, text, arguments, words):
    monkeypatch.setattr("experiments.others.libraries.OUTPUTS", tmp_path / "none")
    monkeypatch.setattr("experiments.others.auditors.PYTHON", tmp_path / "none")
    monkeypatch.setattr("experiments.bounds.one_run.run", lambda **_: pytest.fail("it ran"))
    monkeypatch.chdir(tmp_path)
    Path("neighbor_relation.json").write_text(text)
    assert command(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("experiments: error: ")
    assert error.count("\n") == 1
    assert words in error
    assert [path.name for path in tmp_path.iterdir()] == ["neighbor_relation.json"]


def test_the_best_bet_on_a_known_law_grows_by_its_divergence_from_the_promise():
    right, promised = special.expit(2.0), special.expit(1.0)
    divergence = special.rel_entr(right, promised) + special.rel_entr(1 - right, 1 - promised)
    limits = [early._known_law("randomized response", PureDP(1.0), PureDP(loss)) for loss in (2.0, math.inf)]
    assert limits == pytest.approx([math.log(20) / divergence, math.log(20) / math.log1p(math.exp(-1))])


def test_audits_that_pass_count_as_never_refuting():
    row = {"runs": [30, 10, 20, 5], "violated": [True, True, True, False]}
    assert [early.needed_runs(row, share) for share in (0.5, 0.75, 0.8)] == [20, 30, math.inf]


def test_libraries_that_need_torch_are_read_where_they_were_run(tmp_path, monkeypatch):
    monkeypatch.setattr(libraries, "FILES", ())
    monkeypatch.setattr(libraries, "OUTPUTS", tmp_path)
    assert libraries._of_files() == []
    row = {"mechanism": "DP-SGD, sum", "promise": "approx:1,1e-5", "relation": "add_remove", "seconds": 1.0}
    answer = json.dumps({"library": "opacus", "version": "1.6.0", "rows": [row]})
    np.savez(tmp_path / "opacus.npz", told=np.array(answer), x0=np.zeros((2, 3)), y0=np.zeros((2, 3)))
    (case,) = libraries._of_files()
    assert (case.library, case.mechanism, case.claim) == ("opacus", "DP-SGD, sum", ApproxDP(1.0, 1e-5))
    audits = {name: {"verdict": "not refuted", "lower_bound": 0.0} for name in libraries.LOOKS}
    row = {"library": "opacus", "mechanism": "DP-SGD, sum", "promise": case.claim.to_dict(), "audits": audits}
    assert [found.holds for found in libraries.check({"rows": [row]})] == [True, False]  # the mean is missing


def test_interrupt_keeps_what_is_finished(tmp_path, monkeypatch, capsys):
    saved = load_numbers("neighbor_relation", FIGURES)
    monkeypatch.setattr("experiments.flaxman.neighbor_relation.run", lambda **_: saved)
    monkeypatch.setattr("experiments.flaxman.neighbor_relation.draw", lambda numbers: Figure())
    monkeypatch.setattr("experiments.bounds.one_run.run", Mock(side_effect=KeyboardInterrupt))
    assert command("run", "neighbor_relation", "one_run", "--quick", "--out", str(tmp_path)) == 130
    kept = [f"neighbor_relation.{ending}" for ending in ("json", "phone.svg", "svg")]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    error = capsys.readouterr().err
    assert error == f"experiments: interrupted; 1 of 2 experiments finished before that, saved in {tmp_path}\n"
    assert load_numbers("neighbor_relation", tmp_path)["rows"] == saved["rows"]


def test_numbers_do_not_depend_on_jobs(tmp_path, quick):
    experiment.run_experiment("neighbor_relation", tmp_path, quick=True, seed=1, jobs=2)

    def plain(folder):
        rows = load_numbers("neighbor_relation", folder)["rows"]
        for row in rows:
            del row["audit"]["seconds"], row["audit"]["provenance"]
        return json.dumps(rows)

    assert plain(tmp_path) == plain(quick("neighbor_relation"))


def test_no_error_of_any_kind_is_a_failed_expectation(monkeypatch, capsys):
    panic = type("PanicError", (BaseException,), {})("no thread")
    monkeypatch.setattr("experiments.bounds.one_run.check", Mock(side_effect=panic))
    assert command("check", "one_run") == 2
    assert capsys.readouterr() == ("", "experiments: error: PanicError: no thread\n")
    assert command("--debug", "check", "one_run") == 2
    assert capsys.readouterr().err.startswith("Traceback")
