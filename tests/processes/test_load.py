"""More than anybody means: results by the thousand, audits by the hundred at once, one audit in fifty pieces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from audit.results.files import findings, read_json, write_json
from audit.results.folder import read_audits
from tests.fuzz.holding import tree
from tests.processes.commands import COMMANDS
from tests.processes.running import PATIENCE, Running, run

pytestmark = [pytest.mark.slow, pytest.mark.reliability(17)]

NUMBER, MOST = 20_000, 500 * 2**10  # results; KiB
# A process begins with the memory of the one that starts it, which must be small.
WATCHED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def many(good_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    result = read_json(good_files / "new" / "count.json")
    for number in range(NUMBER):
        write_json(folder / f"audit-{number}.json", {**result, "seed_entropy": number})
    return folder


@pytest.mark.parametrize("name", ["check", "report", "compare"])
def test_thousands_of_results_are_read(many, record_property, name):
    """In memory that every machine has. How long it takes is told, and is no matter of the machine's other work."""
    folders = [str(many)] * (1 + (name == "compare"))
    command = [sys.executable, "-c", WATCHED, sys.executable, "-m", "plaudit", name, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    memory, seconds = done.stdout.split()
    record_property("tried", 1)
    record_property(
        "words", f"{name} of {NUMBER:,} results: {float(seconds):.0f} s of a core, {int(memory) // 2**10} MiB"
    )
    assert done.returncode == (0 if name == "compare" else 1), done.stderr  # a violation, as often as there are files
    assert int(memory) < MOST


def test_a_giant_result_is_refused(tmp_path, record_property):
    path = tmp_path / "giant.json"
    path.write_bytes(b'{"kind": "audit", "event": "' + b"x" * 100_000_000 + b'"}')
    for name in ("check", "report", "verify", "compare"):
        paths = [str(path)] * (1 + (name == "compare"))
        done = subprocess.run(
            [sys.executable, "-m", "plaudit", name, *paths],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        refusal = f"plaudit: error: {path} must be at most 67108864 bytes, got 100000030\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", refusal)
    record_property("tried", 4)
    assert os.listdir(tmp_path) == ["giant.json"]


STEPS = """
def mechanism(counts, size, rng):
    return counts + rng.laplace(size=(size, counts.size))
mechanism.runs_per_block = 250
"""


def test_an_audit_in_fifty_pieces_is_that_of_one_run(tmp_path, record_property):
    """Each piece is killed as it is about to keep its second block."""
    asked = "plaudit audit steps:mechanism --data counts.csv --claim pure:1 --size 20000 --seed 1 --jobs 1 --out out"
    pieces = 0
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "steps.py").write_text(STEPS)
        (tmp_path / name / "counts.csv").write_text("120\n75\n")

    def kill_in_time() -> None:
        kept: list[str] = []

        def hook(event: str, about: tuple[object, ...]) -> None:
            if event == "os.rename" and f"{about[1]}".endswith(".block"):
                kept.append(event)
                if len(kept) == 2:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    whole = run(asked, tmp_path / "whole")
    while (ended := run(f"{asked} --store kept", tmp_path / "parts", kill_in_time)).code == -signal.SIGKILL:
        pieces += 1
        assert not (tmp_path / "parts" / "out").exists()
    record_property("tried", pieces)
    record_property("words", f"an audit in {pieces} pieces, each of which was killed: the counts are those of one run")
    assert pieces >= 50
    assert ended.code == whole.code == 0
    (one,), (other,) = (read_audits(tmp_path / name / "out") for name in ("whole", "parts"))
    assert findings(one[1].to_dict()) == findings(other[1].to_dict())


def test_of_audits_into_one_folder_at_once_none_is_lost(making, record_property):
    one, number, at_once = making(COMMANDS["audit"]), 200, 8  # processes, each of which has memory of its own
    folder, running, ends = one.prepared(), [], []
    # At this confidence one of all is called violated by chance with probability at most 0.0002.
    plain = one.command.replace("--seed 1", "--seed {} --confidence 0.999999").replace(" --store kept", "")
    for seed in range(number):
        running.append(Running(plain.format(seed), folder))
        if len(running) == at_once or seed == number - 1:
            ends += [each.ended() for each in running]
            running.clear()
    assert [ended for ended in ends if ended.code not in (0, 3) or ended.err] == []
    audits = dict(read_audits(*(folder / "out").glob("gdpc*.json")))
    assert sorted(audit.seed_entropy for audit in audits.values()) == list(range(number))
    assert not [path for path in tree(folder) if path.endswith(".part")]
    record_property("tried", number)
    record_property("words", f"{number} audits into one folder, {at_once} at a time: none lost")
