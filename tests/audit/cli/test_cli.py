"""The command: what it answers, its exit codes, and the one line it has for everything that is wrong."""

from __future__ import annotations

import io
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from algorithms.flaxman import GDPC
from audit import NeighborPair, PureDP, cli, measure_loss
from audit.claims import ZCDP, ApproxDP, GaussianDP
from audit.cli import loading as inputs
from audit.estimates.direct import direct_loss
from audit.results import AuditResult
from audit.results.files import read_json, write_json

WITHIN, VIOLATION, USAGE, NO_POWER, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141

# A fraction of a second. Whatever the seed, a sound mechanism is accused with probability at most 0.001, and one that
# loses twice its claim of 1 or 0.5 is cleared with probability below 1e-8 (exact, all of 1,400 counted runs guessing).
QUICK = ("--size", "2000", "--seed", "1", "--confidence", "0.999")

MINE = '''
import sys
import time
import numpy as np
from audit import PureDP

def noisy(counts, size, rng):
    return counts + rng.laplace(size=(size, counts.size))

def normal(counts, size, rng):
    return counts + rng.normal(size=(size, counts.size))

def lazy(counts, size, rng):
    from helper import scale
    return counts + rng.laplace(scale=scale, size=(size, counts.size))

class Promising:
    """Noise for epsilon 1."""
    def __init__(self, claim):
        self.claim = claim
    def __call__(self, counts, size, rng):
        return noisy(counts, size, rng)

class Shy(Promising):
    def __init__(self):
        pass
    @property
    def claim(self):
        return {}["claim"]

promising, replacing = Promising(PureDP(1.0)), Promising(PureDP(2.0, "replace_one"))
vague, shy = Promising(1.0), Shy()
number = 3

def refuses(counts, size, rng):
    raise ValueError("counts must be\\neven, got 75")

def divides(counts, size, rng):
    return counts / 0 if counts.size == 0 else 1 // 0

def forgets(counts, size, rng):
    return {}["noise"]

def reads(counts, size, rng):
    return open("no-such-table").read()

def runs_dry(counts, size, rng):
    raise EOFError("no more noise")

def leaves(counts, size, rng):
    sys.exit(0)

def deaf(counts, size, rng):
    return noisy(counts, size, np.random.default_rng(7))

def once(counts, size, rng):
    return noisy(counts, 1, rng)

def blank(counts, size, rng):
    return np.full((size, counts.size), np.nan)

def wordy(counts, size, rng):
    return np.where(noisy(counts, size, rng)[:, :1] > 120.5, "many", "few")

def bytewise(counts, size, rng):
    return np.full((size, 1), b"many")

def impatient(counts, size, rng):
    raise KeyboardInterrupt
'''

# Blocks once it is asked for more runs than the first look takes. Tests may run in the background of a shell, which
# makes programs deaf to interrupts.
BLOCKS = r"""
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def mechanism(counts, size, rng):
    if size > 100:
        os.write(1, b"blocked\n")  # whole, whichever thread it is
        time.sleep(600)
    return counts + rng.laplace(size=(size, counts.size))
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's own, with mechanisms and counts, and nothing of it left behind in the interpreter."""
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    (folder / "counts.csv").write_text("120\n75\n43\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(sys, "modules", sys.modules)
    for name in ("mine", "helper"):
        monkeypatch.setitem(sys.modules, name, sys)  # so that what is imported under it is forgotten afterwards
        monkeypatch.delitem(sys.modules, name)
    return folder


@pytest.fixture
def plaudit(capsys: pytest.CaptureFixture[str]) -> Command:
    def command(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as stop:
            cli.main([*arguments])
        assert isinstance(stop.value.code, int)
        return Outcome(stop.value.code, *capsys.readouterr())

    return command


def strict(text: str) -> Any:
    """Read JSON as the standard has it: no NaN, no Infinity."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def results(outcome: Outcome) -> dict[str, AuditResult]:
    return {name: AuditResult.from_dict(values) for name, values in strict(outcome.out).items()}


def audited(plaudit: Command, *arguments: str, code: int = WITHIN) -> AuditResult:
    """Audit one thing and return its result."""
    outcome = plaudit("audit", *arguments, *QUICK, "--json")
    assert (outcome.code, outcome.err) == (code, "")
    (result,) = results(outcome).values()
    return result


def shell(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "audit", *arguments], text=True, timeout=60, **options)


def save_outputs(shift: float = 1.0, runs: int = 2000, *, width: int = 1) -> None:
    """Write outputs of a mechanism that ran elsewhere: x.csv, y.csv, x.npy and y.npy."""
    rng = np.random.default_rng(11)
    for name, mean in (("x", 0.0), ("y", shift)):
        outputs = rng.laplace(size=(runs, width))
        outputs[:, -1] += mean
        np.savetxt(f"{name}.csv", outputs, delimiter=",")
        np.save(f"{name}.npy", outputs)


ELSEWHERE = ("--claim", "pure:1", "--relation", "add_remove", "--seed", "1")

# List


def test_list_tells_the_systems_apart(plaudit: Command) -> None:
    outcome = plaudit("list")
    assert (outcome.code, outcome.err) == (WITHIN, "")
    texts = dict(line.split(maxsplit=1) for line in outcome.out.splitlines())
    assert {"gdpc", "rdpc", "rdpc-all", "adpc", "gaussian-counts", "gdpc-half-noise", "gdpc-notebook"} <= set(texts)
    assert len(set(texts.values())) == len(texts)
    assert texts["rdpc"].startswith("Raked geometric DP counts")
    assert texts["rdpc-all"] == texts["rdpc"].removesuffix(".") + " (output='all')."


def test_the_version_is_that_of_the_package(plaudit: Command) -> None:
    outcome = plaudit("--version")
    assert (outcome.code, outcome.out, outcome.err) == (WITHIN, f"plaudit {metadata.version('plaudit')}\n", "")


def test_list_as_json(plaudit: Command) -> None:
    plain = plaudit("list").out.splitlines()
    assert strict(plaudit("list", "--json").out) == dict(line.split(maxsplit=1) for line in plain)


# Audits


@pytest.mark.parametrize("name", ["gdpc", "rdpc", "rdpc-all", "adpc"])
def test_a_sound_algorithm_is_within_its_claim(plaudit: Command, name: str) -> None:
    result = audited(plaudit, name, "--data", "midwest")
    assert (result.verdict, result.claim.epsilon, result.relation) == ("not refuted", 1.0, "add_remove")
    assert result.pair.startswith("1 person added to ")
    assert (result.size, result.selection, result.confidence) == (2000, 600, 0.999)


@pytest.mark.parametrize(("name", "epsilon"), [("gdpc-half-noise", "1"), ("gdpc-notebook", "0.9")])
def test_a_known_bug_is_a_violation(plaudit: Command, name: str, epsilon: str) -> None:
    # They lose 2 and 2.56 times what they promise.
    outcome = plaudit("audit", name, "--epsilon", epsilon, *QUICK)
    assert (outcome.code, outcome.err) == (VIOLATION, "")
    (row,) = [line for line in outcome.out.splitlines() if line.split()[:1] == [name]]
    assert "violated" in row


def test_one_violation_outweighs_the_rest(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "gdpc-half-noise", "adpc", *QUICK, "--json")
    assert outcome.code == VIOLATION
    assert {name: result.verdict for name, result in results(outcome).items()} == {
        "gdpc": "not refuted",
        "gdpc-half-noise": "violated",
        "adpc": "not refuted",
    }


def test_so_few_runs_that_a_pass_would_be_empty(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "--size", "40", "--seed", "1")
    assert (outcome.code, outcome.err) == (NO_POWER, "")
    assert "no power" in outcome.out


def test_json_is_strict_where_numbers_are_infinite(plaudit: Command) -> None:
    result = audited(plaudit, "gdpc", "--epsilon", "700", code=NO_POWER)
    assert result.detectable == np.inf


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_counts_of_the_users_own(plaudit: Command, suffix: str) -> None:
    np.save("counts.npy", np.array([[120, 75], [43, 0]]))
    result = audited(plaudit, "gdpc", "--data", f"counts.{suffix}", "--cell", "2", "--attack", "threshold")
    assert (result.verdict, result.pair) == ("not refuted", "1 person added to cell 2")
    assert result.event == "y if log-likelihood ratio of y over x >= 1, x if log-likelihood ratio of y over x <= -1"
    result = audited(plaudit, "gdpc", "--data", f"counts.{suffix}", "--cell", "2", "--attack", "entries")
    assert "output[2]" in result.event


@pytest.mark.parametrize("text", ["people\n120\n75\n43\n", "\ufeff120\n75\n43\n", "120,75,43\n", "a,b,c\n120,75,43\n"])
def test_counts_with_names_a_mark_or_in_one_line_are_the_same(plaudit: Command, text: str) -> None:
    Path("other.csv").write_text(text, "utf-8")
    same = [
        audited(plaudit, "gdpc", "--data", data, "--cell", "1", "--attack", "entries")
        for data in ("counts.csv", "other.csv")
    ]
    assert same[0].counts == same[1].counts
    assert "output[1]" in same[1].event


@pytest.mark.parametrize("name", ["mine:noisy", "mine:promising.__call__", "mine:promising"])
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
    # 80 people lose 2; that less than 1.2 is forced has probability below 1e-16 (exact, all counted runs guessing).
    assert result.measured.epsilon > 0.6 * 0.025


def test_a_converted_promise_is_said(plaudit: Command) -> None:
    told = plaudit("audit", "gdpc", "--data", "counts.csv", "--move-to", "1", "--size", "500").out
    assert told.splitlines()[0] == "gdpc promises epsilon 1 (add/remove), which is epsilon 2 (replace one)."
    assert "which is" not in plaudit("audit", "gdpc", "--data", "counts.csv", "--size", "500").out


def test_a_narrow_terminal_gets_events_below_the_table(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    told = plaudit("audit", "gdpc", "--data", "counts.csv", "--size", "500", "--seed", "1").out
    assert max(len(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", told).splitlines()) <= 80
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
    ("attack", "searched"),
    [
        ("threshold", "thresholds, to"),
        ("cell", "single values, to"),
        ("entries", "thresholds and single values, to 9 decimals, of"),
        ("likelihood_ratio", "thresholds and single values, to 9 decimals, of 1 statistics (log-likelihood ratio"),
    ],
)
def test_an_attack_by_name(plaudit: Command, attack: str, searched: str) -> None:
    result = audited(plaudit, "gdpc", "--attack", attack, "--data", "counts.csv")
    assert result.searched.startswith(searched)


# Promises of every kind

# Power enough for all: whatever the seed, these are accused with probability at most 0.001.
ROOMY = ("--size", "60000", "--seed", "1", "--confidence", "0.999", "--attack", "entries", "--data", "counts.csv")


@pytest.mark.parametrize(
    ("name", "claim", "promised", "code"),
    [
        ("gdpc", "approx:1,1e-6", ApproxDP(1.0, 1e-6), WITHIN),
        ("gdpc", "approx:0.5,1e-6", ApproxDP(0.5, 1e-6), VIOLATION),
        ("gdpc", "approx:0.5,0.3", ApproxDP(0.5, 0.3), WITHIN),  # GDPC has delta 0.288 there
        ("mine:normal", "zcdp:0.5", ZCDP(0.5), WITHIN),
        ("mine:normal", "zcdp:0.2", ZCDP(0.2), VIOLATION),
        ("gaussian-counts", "", ZCDP(0.5), WITHIN),
        ("mine:normal", "gaussian:1", GaussianDP(1.0), WITHIN),
        ("mine:normal", "gaussian:0.7", GaussianDP(0.7), VIOLATION),
    ],
)
def test_a_promise_of_any_kind(plaudit: Command, name: str, claim: str, promised: Any, code: int) -> None:
    stated = ("--claim", claim) if claim else ()
    outcome = plaudit("audit", name, *stated, *ROOMY, "--json")
    (result,) = results(outcome).values()
    assert (outcome.code, outcome.err, result.claim) == (code, "", promised)
    assert type(result.measured) is type(promised)
    assert result.verdict == ("violated" if code == VIOLATION else "not refuted")


def test_promises_of_several_kinds_in_one_table_and_figure(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "gaussian-counts", *ROOMY, "--out", "out")
    assert (outcome.code, outcome.err) == (WITHIN, "")
    assert "Losses are epsilon in nats, rho in nats for one step between neighbors." in " ".join(outcome.out.split())
    for name, words in (("gdpc", "epsilon 1"), ("gaussian-counts", "rho 0.5")):
        (row,) = [line for line in outcome.out.splitlines() if line.split()[:1] == [name]]
        assert f" {words} " in row
    assert sorted(os.listdir("out")) == ["audits.png", "gaussian-counts.json", "gdpc.json"]
    checked = results(plaudit("check", "out", "--json"))
    assert [checked[name].claim for name in ("gdpc", "gaussian-counts")] == [PureDP(1.0), ZCDP(0.5)]


def test_a_mu_is_not_in_nats(plaudit: Command) -> None:
    told = plaudit("audit", "mine:normal", "--claim", "gaussian:1", "--size", "500", "--data", "counts.csv").out
    assert "Losses are mu in standard deviations for one step" in " ".join(told.split())


def test_another_relation_multiplies_a_rho_by_four(plaudit: Command) -> None:
    told = plaudit("audit", "gaussian-counts", "--move-to", "1", "--size", "500", "--data", "counts.csv").out
    assert told.splitlines()[0] == "gaussian-counts promises rho 0.5 (add/remove), which is rho 2 (replace one)."


def test_an_audit_that_may_stop_early(plaudit: Command) -> None:
    most = ("--size", "200000", "--selection", "0.02", "--seed", "1", "--data", "counts.csv", "--json")
    outcome = plaudit("audit", "gdpc-half-noise", *most, "--early")
    (result,) = results(outcome).values()
    assert (outcome.code, result.verdict, result.bound) == (VIOLATION, "violated", "anytime-valid guessing game")
    assert result.size < 20_000
    assert result.provenance["parameters"]["stop"] == "early"
    (whole,) = results(plaudit("audit", "gdpc-half-noise", *most)).values()
    assert (whole.size, whole.bound) == (200_000, "guessing game")


def test_words_of_a_mechanism_and_in_a_file(plaudit: Command) -> None:
    result = audited(plaudit, "mine:wordy", "--data", "counts.csv", "--claim", "pure:1")
    assert (result.verdict, "'many'" in result.event) == ("not refuted", True)
    rng = np.random.default_rng(3)
    for name, share in (("x", 0.3), ("y", 0.6)):
        np.save(f"{name}.npy", np.where(rng.random(2000) < share, "many", "few"))
    given = plaudit("audit", "--outputs-x", "x.npy", "--outputs-y", "y.npy", *ELSEWHERE, "--json")
    assert (given.code, "'many'" in results(given)["outputs"].event) == (WITHIN, True)


def test_a_share_of_the_runs_selects(plaudit: Command) -> None:
    assert audited(plaudit, "gdpc", "--selection", "0.5").selection == 1000


# Outputs from elsewhere


@pytest.mark.parametrize("suffix", ["csv", "npy"])
@pytest.mark.parametrize("width", [1, 3])
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


def test_both_kinds_of_files_give_the_same(plaudit: Command) -> None:
    save_outputs()
    pairs = [
        results(plaudit("audit", "--outputs-x", f"x.{end}", "--outputs-y", f"y.{end}", *ELSEWHERE, "--json"))["outputs"]
        for end in ("csv", "npy")
    ]
    assert pairs[0].counts == pairs[1].counts


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


# The same again


def test_the_seed_decides_and_the_jobs_do_not(plaudit: Command) -> None:
    def counts(*options: str) -> Any:
        # 1,503 areas: 2,790 runs a block, so three blocks on either database.
        return results(plaudit("audit", "gdpc", "--size", "20000", "--json", *options))["gdpc"].counts

    one = counts("--seed", "5", "--jobs", "1")
    assert counts("--seed", "5", "--jobs", "2") == one
    assert counts("--seed", "6", "--jobs", "1") != one


def test_fresh_entropy_is_recorded_and_reproduces(plaudit: Command) -> None:
    fresh, other = (results(plaudit("audit", "gdpc", "--size", "500", "--json"))["gdpc"] for _ in range(2))
    assert fresh.seed_entropy != other.seed_entropy
    again = results(plaudit("audit", "gdpc", "--size", "500", "--json", "--seed", str(fresh.seed_entropy)))["gdpc"]
    assert again.counts == fresh.counts


# Saved audits


def test_what_is_saved_is_checked_to_the_same_table_and_code(plaudit: Command) -> None:
    outcome = plaudit("audit", "gdpc", "gdpc-half-noise", *QUICK, "--out", "deep/er")
    assert (outcome.code, outcome.err) == (VIOLATION, "")
    assert sorted(os.listdir("deep/er")) == ["audits.png", "gdpc-half-noise.json", "gdpc.json"]
    assert Path("deep/er/audits.png").read_bytes().startswith(b"\x89PNG")
    table, _, last = outcome.out.rstrip("\n").rpartition("\n")
    assert last == "Saved in deep/er/: one JSON file an audit, and the figure audits.png."
    checked = plaudit("check", "deep/er")
    assert (checked.code, checked.err) == (VIOLATION, "")
    assert sorted(checked.out.split()) == sorted(table.split())
    saved = results(plaudit("check", "deep/er", "--json"))
    assert saved["gdpc"].to_dict() == read_json(Path("deep/er/gdpc.json"))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("gdpc", *QUICK), WITHIN),
        (("gdpc", "gdpc-half-noise", *QUICK), VIOLATION),
        (("gdpc", "--size", "40", "--seed", "1"), NO_POWER),
    ],
)
def test_check_gives_the_exit_code_of_the_audit(plaudit: Command, arguments: tuple[str, ...], code: int) -> None:
    assert plaudit("audit", *arguments, "--out", "out", "--json").code == code
    Path("out/.gdpc.json.part.json").write_text("half of a file that somebody else is writing")
    assert plaudit("check", "out").code == code


def test_json_beside_files_is_nothing_but_json(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:noisy", "--claim", "pure:1", *QUICK, "--out", "out", "--json")
    assert results(outcome)["mine:noisy"].to_dict() == read_json(Path("out/mine-noisy.json"))


# Bad input


class Trap:
    """Leaves a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


def save_bad_files() -> None:
    texts = {
        "empty.csv": "",
        "names.csv": "people\n",
        "words.csv": "people\n120\nmany\n",
        "letter.csv": "12O\n75\n43\n",
        "spaced.csv": "1 200\n75\n",
        "coded.csv": "1,120\n2,75\n3,43\n",
        "mixed.csv": "120,many,43\n",
        "ragged.csv": "1,2\n3\n",
        "nan.csv": "120\nnan\n",
        "half.csv": "120\n0.5\n",
        "negative.csv": "120\n-3\n",
        "counts.txt": "120\n",
        "wide.csv": "1,2\n3,4\n" * 100,
        "blank.csv": "1\nnan\n" * 100,
        "broken.py": "def",
        "stops.py": "1 // 0",
        "exits.py": "raise SystemExit(0)",
        "needs.py": "import no_such_library",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    Path("latin.csv").write_bytes("café\n120\n".encode("latin-1"))
    Path("folder.csv").mkdir()
    np.save("pickled.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez("archive.npz", counts=np.arange(3))
    shutil.move("archive.npz", "archive.npy")
    Path("empty.npy").touch()
    np.save("none.npy", np.empty(0))
    np.save("text.npy", np.array(["120", "75"]))
    with open("huge.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(file, header)
    save_outputs()


OWN = ("--data", "counts.csv", "--claim", "pure:1")
HERE = ("mine:promising", "--data", "counts.csv")
GIVEN = ("--outputs-x", "x.csv", "--outputs-y", "y.csv")

BAD_AUDITS: list[tuple[tuple[str, ...], str]] = [
    # names and options
    ((), "name at least one mechanism"),
    (("no-such",), "no algorithm for epsilon 1 is called 'no-such'; there are gdpc, rdpc,"),
    (("gdpc-notebook",), "no algorithm for epsilon 1 is called 'gdpc-notebook'"),
    (("gdpc", "rdpc", "gdpc"), "every mechanism must have a name of its own, got gdpc twice"),
    (("gdpc", "--sise", "100"), "No such option: --sise"),
    (("gdpc", "--size", "many"), "Invalid value for '--size'"),
    # numbers
    (("gdpc", "--epsilon", "0"), "epsilon must be"),
    (("gdpc", "--epsilon", "-1"), "got -1"),
    (("gdpc", "--epsilon", "nan"), "got nan"),
    (("gdpc", "--epsilon", "inf"), "got inf"),
    (("gdpc", "--cell", "1503"), "cell must be inside counts of shape (1503,), got 1503"),
    (("gdpc", "--cell", "-1"), "cell must be at least 0, got -1"),
    ((*HERE, "--people", "0"), "people must be at least 1, got 0"),
    ((*HERE, "--people", "-4"), "people must be at least 1, got -4"),
    ((*HERE, "--people", "99999999999999999999"), "people must be below 2**53, got 99999999999999999999"),
    ((*HERE, "--move-to", "1", "--people", "121"), "cell 0 must hold the people who move: 121, got 120"),
    ((*HERE, "--move-to", "0"), "source and target must differ, got 0 twice"),
    ((*HERE, "--move-to", "3"), "cell must be inside counts of shape (3,), got 3"),
    ((*HERE, "--size", "10"), "mine:promising: at least 8 runs must choose an event, got 3 of 10"),
    ((*HERE, "--size", "0"), "size must be at least 1, got 0"),
    ((*HERE, "--size", "-100"), "size must be at least 1, got -100"),
    ((*HERE, "--selection", "0"), "mine:promising: selection must be in (0, 1), got 0.0"),
    ((*HERE, "--selection", "1"), "selection must be in (0, 1), got 1.0"),
    ((*HERE, "--confidence", "0"), "confidence must be in (0, 1), got 0.0"),
    ((*HERE, "--confidence", "1"), "confidence must be in (0, 1), got 1.0"),
    ((*HERE, "--confidence", "1.5"), "confidence must be in (0, 1), got 1.5"),
    ((*HERE, "--confidence", "nan"), "confidence must be in (0, 1), got nan"),
    ((*HERE, "--attack", "treshold"), "got 'treshold'"),
    ((*HERE, "--seed", "-1"), "seed must be 0 or more, got -1"),
    ((*HERE, "--jobs", "0"), "jobs must be a positive number, or -1 for all cores, got 0"),
    ((*HERE, "--jobs", "-2"), "jobs must be a positive number, or -1 for all cores, got -2"),
    # claims and relations
    ((*HERE, "--claim", "gauss:1"), "a claim is written pure:EPSILON or approx:EPSILON,DELTA or gaussian:MU"),
    ((*HERE, "--claim", "gauss:1"), "MU with positive finite numbers, got 'gauss:1'"),
    ((*HERE, "--claim", "Zcdp:1"), "got 'Zcdp:1'"),
    ((*HERE, "--claim", "approx:1"), "got 'approx:1'"),
    ((*HERE, "--claim", "approx:1;1e-6"), "got 'approx:1;1e-6'"),
    ((*HERE, "--claim", "approx:1,1e-6,2"), "got 'approx:1,1e-6,2'"),
    ((*HERE, "--claim", "approx:1,0"), "got 'approx:1,0'"),
    ((*HERE, "--claim", "approx:1,2"), "delta must be in [0, 1], got 2.0"),
    ((*HERE, "--claim", "approx:1,1"), "a claim that is audited must have a delta in [0, 1), got 1.0"),
    ((*HERE, "--claim", "zcdp:0"), "got 'zcdp:0'"),
    ((*HERE, "--claim", "zcdp:0.5,1e-6"), "got 'zcdp:0.5,1e-6'"),
    ((*HERE, "--claim", "gaussian:-1"), "got 'gaussian:-1'"),
    ((*HERE, "--claim", "gaussian:nan"), "got 'gaussian:nan'"),
    ((*HERE, "--claim", "gaussian:"), "got 'gaussian:'"),
    ((*HERE, "--attack", "likelihood_ratio"), "mine:promising: an attack must find something to look at: likelihood"),
    ((*HERE, "--attack", "paths"), "mine:promising: an attack must find something to look at: paths"),
    ((*HERE, "--claim", "pure"), "got 'pure'"),
    ((*HERE, "--claim", "pure:"), "got 'pure:'"),
    ((*HERE, "--claim", "pure:0"), "got 'pure:0'"),
    ((*HERE, "--claim", "pure:inf"), "got 'pure:inf'"),
    ((*HERE, "--relation", "add-remove"), 'relation must be "add_remove" or "replace_one", got \'add-remove\''),
    ((*HERE, "--relation", "replace_one"), "--relation replace_one needs --move-to"),
    (("mine:replacing", "--data", "counts.csv"), "a replace_one promise says nothing about add_remove neighbors"),
    (
        ("mine:noisy", "--data", "counts.csv"),
        "mine:noisy has no claim of its own: give --claim, such as pure:1 or zcdp:0.5",
    ),
    (("mine:vague", "--data", "counts.csv"), "mine:vague has no claim of its own"),
    (("mine:shy", "--data", "counts.csv"), "mine:shy failed: KeyError: 'claim' (mine.py, line "),
    # options that would silently do nothing
    (("gdpc", "--distance", "2"), "--distance is for outputs from elsewhere: give --people"),
    ((*HERE, "--epsilon", "2"), "--epsilon is for the algorithms of `plaudit list`"),
    ((*GIVEN, *ELSEWHERE, "--people", "80"), "--people has no effect on outputs from elsewhere"),
    ((*GIVEN, *ELSEWHERE, "--early"), "--early has no effect on outputs from elsewhere"),
    ((*GIVEN, *ELSEWHERE, "--move-to", "1"), "--move-to has no effect on outputs from elsewhere"),
    # counts
    (("gdpc", "--data", "no-such.csv"), "No such file or directory: 'no-such.csv'"),
    (
        ("gdpc", "--data", "counts.txt"),
        "data must be brazil or midwest or morocco, or a .csv or .npy file of counts, got",
    ),
    (("gdpc", "--data", ""), "data must be brazil or midwest or morocco, or a .csv or .npy file of counts, got ''"),
    (("gdpc", "--data", "folder.csv"), "Is a directory: 'folder.csv'"),
    (("gdpc", "--data", "empty.csv"), "empty.csv must hold at least one number, got none"),
    (("gdpc", "--data", "names.csv"), "names.csv must hold at least one number, got none"),
    (("gdpc", "--data", "letter.csv"), "letter.csv must hold numbers, one run or count a line: could not convert"),
    (("gdpc", "--data", "spaced.csv"), "spaced.csv must hold numbers, one run or count a line: could not convert"),
    (("gdpc", "--data", "coded.csv"), "coded.csv must hold one count a line, got a table of shape (3, 2)"),
    (("gdpc", "--data", "words.csv"), "words.csv must hold numbers, one run or count a line: could not convert"),
    (("gdpc", "--data", "mixed.csv"), "mixed.csv must hold numbers, one run or count a line: could not convert"),
    (("gdpc", "--data", "ragged.csv"), "ragged.csv must hold numbers, one run or count a line: "),
    (("gdpc", "--data", "latin.csv"), "latin.csv must hold numbers, one run or count a line: 'utf-8' codec"),
    (("gdpc", "--data", "nan.csv"), "counts must be whole numbers, got nan"),
    (("gdpc", "--data", "half.csv"), "counts must be whole numbers, got 0.5"),
    (("gdpc", "--data", "negative.csv"), "counts must not be negative, got -3"),
    (("gdpc", "--data", "pickled.npy"), "pickled.npy must hold numbers, one run or count a line: Object arrays"),
    (("gdpc", "--data", "archive.npy"), "archive.npy must hold numbers, one run or count a line: the magic string"),
    (("gdpc", "--data", "empty.npy"), "empty.npy must hold numbers, one run or count a line: EOF"),
    (("gdpc", "--data", "huge.npy"), "huge.npy must hold numbers, one run or count a line: Unable to allocate"),
    (("gdpc", "--data", "none.npy"), "counts must have at least one cell, got shape (0,)"),
    (("gdpc", "--data", "text.npy"), "counts must be numbers, got dtype <U3"),
    (("rdpc", "--data", "counts.csv"), "rdpc: counts must"),
    # outputs
    (GIVEN[:2], "--outputs-x and --outputs-y go together"),
    (GIVEN[2:], "--outputs-x and --outputs-y go together"),
    (("gdpc", *GIVEN, *ELSEWHERE), "without the name of a mechanism"),
    (
        (*GIVEN, "--claim", "pure:1"),
        "outputs from elsewhere need --claim, such as pure:1, and --relation add_remove or",
    ),
    ((*GIVEN, "--relation", "add_remove"), "outputs from elsewhere need --claim, such as pure:1, and --relation"),
    ((*GIVEN, *ELSEWHERE, "--distance", "0"), "distance must be at least 1, got 0"),
    ((*GIVEN[:3], "no-such.csv", *ELSEWHERE), "No such file or directory: 'no-such.csv'"),
    ((*GIVEN[:3], "wide.csv", *ELSEWHERE), "outputs must have one shape on both databases, got () and (2,)"),
    ((*GIVEN[:3], "blank.csv", *ELSEWHERE), "outputs must not be NaN, got 100 of 200 values"),
    ((*GIVEN[:3], "x.csv", *ELSEWHERE), "outputs are the same on both databases"),
    ((*GIVEN[:3], "text.npy", *ELSEWHERE), "outputs must be numbers or words on both databases, got float64 and <U3"),
    # mechanisms of the user's own
    (("no_such_module:f", *OWN), "'no_such_module' cannot be imported: No module named 'no_such_module'"),
    (("needs:f", *OWN), "'needs' cannot be imported: No module named 'no_such_library'"),
    (("broken:f", *OWN), "'broken' cannot be imported: SyntaxError: "),
    (("stops:f", *OWN), "'stops' cannot be imported: ZeroDivisionError: integer division or modulo by zero (stops.py"),
    (("exits:f", *OWN), "'exits' cannot be imported: SystemExit: 0 (exits.py, line 1)"),
    (("mine:no_such", *OWN), "'mine' has no 'no_such'"),
    (("mine:", *OWN), "a mechanism of your own is written module:object, got 'mine:'"),
    ((":noisy", *OWN), "a mechanism of your own is written module:object, got ':noisy'"),
    (("./mine.py:noisy", *OWN), "a mechanism of your own is written module:object, got './mine.py:noisy'"),
    (("mine:number", *OWN), "mine:number must be a mechanism, callable as (data, size, rng), got int"),
    (("mine:Promising", *OWN), "mine:Promising must be a mechanism, callable as (data, size, rng), got type"),
    (("mine:refuses", *OWN), "mine:refuses: counts must be even, got 75"),
    (("mine:divides", *OWN), "mine:divides failed: ZeroDivisionError: integer division or modulo by zero (mine.py, "),
    (("mine:forgets", *OWN), "mine:forgets failed: KeyError: 'noise' (mine.py, line "),
    (("mine:reads", *OWN), "mine:reads failed: FileNotFoundError: [Errno 2]"),
    (("mine:runs_dry", *OWN), "mine:runs_dry failed: EOFError: no more noise (mine.py, line "),
    (("mine:leaves", *OWN), "mine:leaves failed: SystemExit: 0 (mine.py, line "),
    (("mine:deaf", *OWN), "mine:deaf: outputs are identical under two different rngs: the mechanism ignores its rng"),
    (("mine:once", *OWN), "mine:once: a mechanism must return one output a run: asked for "),
    (("mine:blank", *OWN), "mine:blank: outputs must not be NaN"),
    (("mine:bytewise", *OWN), "mine:bytewise: outputs must be numbers or words, got dtype |S4"),
]


def refused(outcome: Outcome, words: str) -> bool:
    """Hold what every refusal has in common: code 2 and one line, nothing else."""
    assert (outcome.code, outcome.out) == (USAGE, "")
    assert outcome.err.startswith("plaudit: error: ")
    assert outcome.err.endswith("\n")
    assert outcome.err.count("\n") == 1
    assert words in outcome.err
    return True


@pytest.mark.parametrize(("arguments", "words"), BAD_AUDITS, ids=[" ".join(bad[0]) for bad in BAD_AUDITS])
def test_a_bad_audit_is_one_line_and_leaves_nothing(
    plaudit: Command, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    save_bad_files()
    out = tmp_path / "out"
    assert refused(plaudit("audit", *arguments, "--out", str(out)), words)
    assert not out.exists() or list(out.iterdir()) == []
    assert not Path("sprung").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "gdpc", "--size"), "Option '--size' requires an argument"),
        (("audit", "gdpc", "--out"), "Option '--out' requires an argument"),
        (("audti", "gdpc"), "No such command 'audti'"),
        (("list", "gdpc"), "unexpected extra argument"),
        (("check",), "Missing argument"),
        (("check", "no-such"), "no-such must be a folder of saved audits, and there is none"),
        (("check", "counts.csv"), "counts.csv must be a folder of saved audits, and there is none"),
        (("check", "."), ". must hold saved audits (*.json), got none"),
    ],
)
def test_a_bad_command_is_one_line(plaudit: Command, arguments: tuple[str, ...], words: str) -> None:
    assert refused(plaudit(*arguments), words)


def test_pickles_are_traps(desk: Path) -> None:
    save_bad_files()
    with pytest.raises(TypeError):  # negative control: opened the way it was made, the trap springs
        float(np.load("pickled.npy", allow_pickle=True)[0])
    assert (desk / "sprung").exists()


def test_no_command_is_the_help_and_not_a_pass(plaudit: Command) -> None:
    outcome = plaudit()
    assert (outcome.code, outcome.err) == (USAGE, "")
    assert outcome.out == plaudit("--help").out
    assert "Exit codes" in outcome.out
    assert plaudit("audit", "--help").code == WITHIN


def test_a_file_beyond_the_limit_is_refused(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LARGEST_INPUT", 9)
    assert refused(plaudit("audit", "gdpc", "--data", "counts.csv"), "counts.csv must be at most 9 bytes, got 10")


def test_systems_that_are_not_installed(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
    assert refused(plaudit("list"), "the reference implementations must be installed: run `pip install .`")


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("counts.csv", "out must be a folder, got the file counts.csv"),
        ("counts.csv/below", "'counts.csv/below'"),
        pytest.param(
            "locked",
            "Permission denied",
            marks=pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere"),
        ),
    ],
)
def test_what_cannot_be_kept_is_found_out_before_the_runs(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch, out: str, words: str
) -> None:
    Path("locked").mkdir(mode=0o500)
    monkeypatch.setattr("audit.loss.measure_loss", lambda *_, **__: pytest.fail("it ran"))
    assert refused(plaudit("audit", "gdpc", "--out", out), words)


def test_an_error_in_the_second_audit_keeps_the_first(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:noisy", "mine:divides", *OWN, "--size", "500", "--out", "out")
    assert refused(outcome, "mine:divides failed")
    assert os.listdir("out") == ["mine-noisy.json"]


# Damaged files


def cut(path: Path) -> None:
    path.write_text(path.read_text()[:200])


def change(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace('"not refuted"', '"violated"'))
    assert path.read_text() != text


def change_with_checksum(path: Path) -> None:
    write_json(path, read_json(path) | {"verdict": "violated"})


def strip(path: Path) -> None:
    values = read_json(path)
    del values["event"]
    write_json(path, values)


def estimate(path: Path) -> None:
    write_json(path, direct_loss([0, 1, 1], [0, 0, 1], 0, at=[1]).to_dict())


def foreign(path: Path) -> None:
    path.write_text('{"kind": "audit"}\n')


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, "gdpc.json is not a result file"),
        (change, "gdpc.json does not match its checksum"),
        (change_with_checksum, "gdpc.json: the verdict must follow from the numbers: 'not refuted', got 'violated'"),
        (strip, "gdpc.json: audit fields are missing or unknown: event"),
        (estimate, "gdpc.json must be a saved audit, got an estimate"),
        (foreign, "gdpc.json is not a result file: it has no checksum"),
        (Path.unlink, "out must hold saved audits (*.json), got none"),
    ],
)
def test_a_damaged_file_is_refused_by_name(plaudit: Command, damage: Callable[[Path], None], words: str) -> None:
    pair = NeighborPair.add_people([120, 75, 43], cell=0)
    measure_loss(GDPC(1.0), pair, PureDP(1.0), size=500, rng=1).to_json("out/gdpc.json")
    assert plaudit("check", "out").code == WITHIN
    damage(Path("out/gdpc.json"))
    assert refused(plaudit("check", "out"), words)


# As a program


def test_as_a_program(desk: Path) -> None:
    found = shell("audit", "gdpc-half-noise", *QUICK, cwd=desk, capture_output=True)
    assert (found.returncode, found.stderr) == (VIOLATION, "")
    refusal = shell("audit", "mine:divides", *OWN, cwd=desk, capture_output=True)
    assert refused(Outcome(refusal.returncode, refusal.stdout, refusal.stderr), "mine:divides failed")


def test_the_script_is_the_same_command() -> None:
    (script,) = metadata.entry_points(group="console_scripts", name="plaudit")
    assert script.load() is cli.main


def test_a_terminal_without_accents_costs_no_verdict(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(screen, encoding="ascii"))
    assert plaudit("audit", "gdpc", *QUICK) == (WITHIN, "", "")
    assert b"Tanger-T\\xe9touan" in screen.getvalue()
    assert b"not refuted" in screen.getvalue()


def test_an_interrupt_keeps_what_is_finished(desk: Path) -> None:
    (desk / "blocks.py").write_text(BLOCKS)
    command = [sys.executable, "-m", "audit", "audit", "mine:noisy", "blocks:mechanism", *OWN, *QUICK, "--out", "out"]
    with subprocess.Popen(command, cwd=desk, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 60)[0]  # a deadline, not a pause
            assert process.stdout.readline() == "blocked\n"
            assert (desk / "out" / "mine-noisy.json").exists()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == INTERRUPTED
    assert out == "blocked\n" * out.count("\n")
    assert err == "plaudit: interrupted: 1 of 2 audits finished, saved in out\n"
    assert os.listdir(desk / "out") == ["mine-noisy.json"]
    assert AuditResult.from_dict(read_json(desk / "out" / "mine-noisy.json")).verdict == "not refuted"


def test_an_interrupt_of_the_first_audit(plaudit: Command) -> None:
    outcome = plaudit("audit", "mine:impatient", *OWN, "--jobs", "1")
    assert outcome == (INTERRUPTED, "", "plaudit: interrupted: 0 of 1 audits finished\n")


def test_an_interrupt_before_any_audit(plaudit: Command) -> None:
    Path("early.py").write_text("raise KeyboardInterrupt")
    assert plaudit("audit", "early:f", *OWN).code == INTERRUPTED


@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [(("list",), ""), (("list",), "1"), (("audit", "mine:promising", *QUICK, "--out", "out"), "")],
)
def test_a_reader_that_has_left_is_no_violation(desk: Path, arguments: tuple[str, ...], unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        left = shell(*arguments, stdout=writing, stderr=subprocess.PIPE, cwd=desk, env=environment)
    finally:
        os.close(writing)
    assert (left.returncode, left.stderr) == (UNREAD, "")
    if "--out" in arguments:
        assert sorted(os.listdir(desk / "out")) == ["audits.png", "mine-promising.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, plaudit: Command) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert refused(plaudit("list"), "No space left on device")


# Daily use: verified, confidential, resumed, in time


def test_what_reproduces_an_audit_is_in_its_file_and_does(plaudit: Command) -> None:
    asked = ("mine:noisy", "--claim", "pure:1", "--size", "2000", "--data", "counts.csv", "--cell", "1", "--out", "out")
    assert plaudit("audit", *asked, "--store", "kept", "--jobs", "1").code == WITHIN
    first = AuditResult.from_dict(read_json(Path("out/mine-noisy.json")))
    command = shlex.split(first.provenance["command"])
    assert command[:3] == ["plaudit", "audit", "mine:noisy"]
    assert not {"--out", "--store", "--jobs"} & set(command)
    again = results(plaudit(*command[1:], "--json"))["mine:noisy"]
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
    asked = ("audit", "mine:noisy", "--claim", "pure:1", *options, *QUICK, "--out", "out")
    shown = plaudit(*asked)
    assert shown.out.startswith("CONFIDENTIAL: these audits are of confidential data") == confidential
    assert read_json(Path("out/mine-noisy.json"))["confidential"] == confidential
    assert plaudit("check", "out").out.startswith("CONFIDENTIAL") == confidential


def test_verify_computes_bounds_again(plaudit: Command) -> None:
    plaudit("audit", "gdpc", "gdpc-half-noise", *QUICK, "--out", "out")
    within, violated = (Path(f"out/{name}.json") for name in ("gdpc", "gdpc-half-noise"))
    fine = plaudit("verify", str(within))
    assert (fine.code, fine.err) == (WITHIN, "")
    assert fine.out.startswith("out/gdpc.json: whole, and its numbers follow from its counts. GDPC: promised epsilon 1")
    assert plaudit("verify", str(within), str(violated)).code == VIOLATION
    values = read_json(within)
    values["measured"]["epsilon"] *= 1.01
    write_json(within, values)
    refused = plaudit("verify", str(violated), str(within))
    assert refused.code == USAGE
    assert re.fullmatch(
        r"plaudit: error: out/gdpc.json: measured must follow from the counts: \S+, got \S+\n", refused.err
    )
    assert plaudit("check", "out").code == VIOLATION  # which believes a whole file


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("verify", "nothing.json"), "No such file"),
        (("verify", "counts.csv"), "is not a result file"),
        (("verify", "."), "Is a directory"),
        (("verify",), "Missing argument"),
        (("check", "out", "--format", "xml"), "format must be one of table, json"),
        (("check", "out", "--format", "csv", "--json"), "--json and --format csv exclude each other"),
        (("audit", "gdpc", "--timeout", "0"), "timeout must be positive and finite, got 0"),
        (("audit", "gdpc", "--timeout", "nan"), "timeout must be positive and finite, got nan"),
        (("audit", "gdpc", "--timeout", "soon"), "Invalid value for '--timeout'"),
        (("audit", "gdpc", "--store", "counts.csv"), "counts.csv"),
    ],
)
def test_what_daily_commands_refuse(plaudit: Command, arguments: tuple[str, ...], words: str) -> None:
    outcome = plaudit(*arguments)
    assert outcome.code == USAGE
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


def test_check_in_every_form(plaudit: Command) -> None:
    plaudit("audit", "gdpc", *QUICK, "--out", "out")
    table, as_json = plaudit("check", "out"), plaudit("check", "out", "--format", "json")
    assert as_json.out == plaudit("check", "out", "--json").out
    assert table.out == plaudit("check", "out", "--format", "table").out
    for form in ("line", "text", "markdown", "latex", "csv"):
        outcome = plaudit("check", "out", "--format", form)
        assert (outcome.code, outcome.err) == (WITHIN, "")
        assert "gdpc" in outcome.out.lower()


@pytest.mark.slow
def test_an_interrupted_audit_goes_on_from_its_store(desk: Path) -> None:
    """The first of two terminals is closed in the middle; the second asks again."""
    (desk / "steps.py").write_text(
        "import os, time\n"
        "def mechanism(counts, size, rng):\n"
        "    with open('log', 'a') as log:\n"
        "        log.write(f'{size}\\n')\n"
        "    if size == 500 and os.path.exists('slow') and len(open('log').readlines()) > 30:\n"
        "        os.write(1, b'there\\n')\n"
        "        time.sleep(600)\n"
        "    return counts + rng.laplace(size=(size, counts.size))\n"
        "mechanism.runs_per_block = 500\n"
    )
    asked = ("audit", "steps:mechanism", "--claim", "pure:1", "--size", "20000", "--data", "counts.csv", "--json")
    command = [sys.executable, "-m", "audit", *asked, "--store", "kept", "--jobs", "1"]
    (desk / "slow").touch()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as audit:
        assert audit.stdout is not None
        assert audit.stdout.readline() == "there\n"
        audit.kill()
    before = len((desk / "log").read_text().splitlines())
    (desk / "slow").unlink()
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    (resumed,) = results(Outcome(0, done.stdout, "")).values()
    assert len((desk / "log").read_text().splitlines()) - before < 40  # of some 45 blocks, 25 were there
    alone = shell(*asked, "--seed", str(resumed.seed_entropy), capture_output=True, check=True)
    assert results(Outcome(0, alone.stdout, ""))["steps:mechanism"].counts == resumed.counts


@pytest.mark.parametrize("hang", ["time.sleep(600)", pytest.param("while True: pass", marks=pytest.mark.slow)])
def test_a_mechanism_that_hangs_ends_in_time(desk: Path, hang: str) -> None:
    (desk / "hangs.py").write_text(
        "import os, time\n"
        "def mechanism(counts, size, rng):\n"
        "    open('pid', 'w').write(str(os.getpid()))\n"
        f"    {hang}\n"
    )
    asked = ("audit", "hangs:mechanism", "--claim", "pure:1", "--store", "kept", "--timeout", "1.5")
    begun = time.monotonic()
    outcome = shell(*asked, capture_output=True)
    assert outcome.returncode == USAGE
    assert outcome.stderr == (
        "plaudit: error: the audit must end within 1.5 s, and did not: it was stopped; finished runs are in kept, and "
        "the same command goes on from them\n"
    )
    assert time.monotonic() - begun < 30
    if (desk / "pid").exists():  # on a machine under load it may not have come so far
        with pytest.raises(ProcessLookupError):
            os.kill(int((desk / "pid").read_text()), 0)


@pytest.mark.slow
def test_an_audit_that_ends_in_time_is_the_same(desk: Path) -> None:
    asked = ("audit", "mine:noisy", "--claim", "pure:1", *QUICK, "--out")
    outcome = shell(*asked, "one", "--timeout=60", capture_output=True)
    assert (outcome.returncode, outcome.stderr) == (WITHIN, "")
    assert shell(*asked, "two", capture_output=True).returncode == WITHIN
    one, two = (AuditResult.from_dict(read_json(Path(name) / "mine-noisy.json")) for name in ("one", "two"))
    assert (one.counts, one.provenance["command"]) == (two.counts, two.provenance["command"])
    violated = shell("audit", "gdpc-half-noise", *QUICK, "--timeout", "60", capture_output=True)
    assert violated.returncode == VIOLATION


@pytest.mark.slow
def test_somebody_else_may_end_a_timed_audit(desk: Path) -> None:
    (desk / "dies.py").write_text(
        "import os, signal\ndef mechanism(counts, size, rng):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    outcome = shell("audit", "dies:mechanism", "--claim", "pure:1", "--timeout", "60", capture_output=True)
    assert outcome.returncode == USAGE
    assert outcome.stderr.startswith("plaudit: error: the audit was ended by SIGKILL; with --store, finished runs")
