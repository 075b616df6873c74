"""Auditors of others: outputs and bounds go through files, and what is missing is asked for in one line."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.__main__ import FIGURES
from experiments.experiment import load_numbers
from experiments.others import auditors, peers_bounds
from tests.helpers import refuses

HOME = Path(__file__).parent.parent.parent
QUESTION = {"parameter": "mu", "delta": 0.1, "threshold": None, "confidence": 0.95, "selection": 0.3}
FAKE = f"""
import sys, json
from pathlib import Path
sys.path.insert(0, {str(HOME)!r})
from experiments.others import peers_bounds
peers_bounds.PACKAGES = ("numpy",)
peers_bounds.auditors = lambda parameter, one_run: {{
    f"fake of {{parameter}}": ("bound", lambda one: one.y.mean() - one.x.mean() + one.seed - one.error)
}}
place = Path(sys.argv[1])
(place / "bounds.json").write_text(json.dumps(peers_bounds.answers(place)))
"""


def left_outputs(folder):
    for number in (0, 1):
        np.savez(folder / f"{number:04}.npz", x=np.zeros(4), y=np.full(4, 10.0))


def test_a_peer_reads_outputs_and_writes_bounds(tmp_path):
    left_outputs(tmp_path)
    (tmp_path / "fake.py").write_text(FAKE)
    answer = auditors.ask(tmp_path, QUESTION, Path(sys.executable), tmp_path / "fake.py")
    row = answer["rows"]["fake of mu"]
    assert row["kind"] == "bound"
    assert row["values"] == pytest.approx([9.95, 10.95])  # the seed of an audit is its number
    assert len(row["seconds"]) == 2
    assert answer["versions"] == {"numpy": np.__version__}


def test_a_folder_without_question_or_outputs_is_refused_in_one_line(tmp_path):
    question = tmp_path / "question.json"
    refuses(SystemExit, f"peers: error: {question} must be there: run `make peers`", peers_bounds.answers, tmp_path)
    question.write_text(json.dumps(QUESTION))
    refuses(SystemExit, f"peers: error: {tmp_path} must hold outputs: run `make peers`", peers_bounds.answers, tmp_path)


@pytest.mark.parametrize("row", load_numbers("other_auditors", FIGURES)["rows"], ids=lambda row: row["name"])
def test_the_saved_auditors_are_those_of_today(row):
    kinds = {name: entry["kind"] for name, entry in row["auditors"].items() if name != auditors.OURS}
    peers = peers_bounds.auditors(row["parameter"], row["one_run"])
    assert [(name, kind) for name, (kind, _) in peers.items()] == list(kinds.items())


def test_peers_that_fail_say_why_in_one_line(tmp_path):
    left_outputs(tmp_path)
    (tmp_path / "bad.py").write_text("print('much')\nimport no_such_auditor")
    words = "peers must answer, and ended with exit code 1: ModuleNotFoundError: No module named 'no_such_auditor'; "
    python, script = Path(sys.executable), tmp_path / "bad.py"
    refuses(RuntimeError, words + "run `make peers`", auditors.ask, tmp_path, QUESTION, python, script)


PACKAGE = SimpleNamespace(
    utils=SimpleNamespace(AttackResults=dict),
    compute_eps_lo=lambda counts, delta, error, method: counts["TP"] + counts["TN"] - counts["FP"] - counts["FN"],
)


def test_counts_of_a_threshold_are_of_the_right_side(monkeypatch):
    x, y = np.array([0.0, 1, 2]), np.array([1.0, 2, 3, 4])
    assert peers_bounds.errors(PACKAGE, x, y, 2.0) == {"FN": 1, "TP": 3, "TN": 2, "FP": 1}
    monkeypatch.setitem(sys.modules, "privacy_estimates", PACKAGE)
    question = peers_bounds.Question("epsilon", 0, None, 0.95, 0.3, 1, np.zeros(100), np.ones(200))
    assert peers_bounds.by_counts("beta", question) == 70 + 140  # all that did not choose are told apart


def test_a_bound_of_nothing_is_a_mu_of_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(get_sigma_gaussian=lambda e, d: e / d))
    question = peers_bounds.Question("mu", 0.1, None, 0.95, 0.3, 1, np.zeros(1), np.zeros(1))
    assert peers_bounds.converted(lambda _: 0.0)(question) == 0
    assert peers_bounds.converted(lambda _: 2.0)(question) == pytest.approx(0.05)


def test_peers_see_the_scores_that_ours_sees():
    case = auditors.CASES[5]
    x, y, bound, seconds = auditors.one_run(case, np.random.SeedSequence(1))
    assert case.question()["threshold"] == 3
    assert len(x) + len(y) == auditors.CANARIES
    assert [round(float(side.mean()), 1) for side in (x, y)] == [0, 1]
    assert 0.7 < bound < 1
    assert seconds > 0
