"""More than anybody means: results by the thousand, audits by the hundred at once, one audit in fifty pieces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from audit.results.files import read_json, write_json
from audit.results.folder import read_audits
from tests.fuzz.holding import tree
from tests.processes.commands import COMMANDS
from tests.processes.running import Running, run, timeless

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
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    memory, seconds = done.stdout.split()
    record_property("tried", 1)
    record_property(
        "words", f"{name} of {NUMBER:,} results: {float(seconds):.0f} s of a core, {int(memory) // 2**10} MiB"
    )
    assert done.returncode == 0, done.stderr
    assert int(memory) < MOST


def test_a_giant_result_is_refused(tmp_path, record_property):
    path = tmp_path / "giant.json"
    path.write_bytes(b'{"kind": "audit", "event": "' + b"x" * 100_000_000 + b'"}')
    for name in ("check", "report", "verify", "compare"):
        paths = [str(path)] * (1 + (name == "compare"))
        done = subprocess.run(
            [sys.executable, "-m", "plaudit", name, *paths], capture_output=True, text=True, check=False
        )
        refusal = f"plaudit: error: {path} must be at most 67108864 bytes, got 100000030\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", refusal)
    record_property("tried", 4)
    assert os.listdir(tmp_path) == ["giant.json"]


def test_an_audit_in_fifty_pieces_is_that_of_one_run(making, record_property):
    """Each piece is killed as it is about to keep its second block."""
    one = making(COMMANDS["audit"].replace("--size 400", "--size 20000"))
    folder, pieces = one.prepared(), 0

    def kill_in_time() -> None:
        kept: list[str] = []

        def hook(event: str, about: tuple[object, ...]) -> None:
            if event == "os.rename" and f"{about[1]}".endswith(".block"):
                kept.append(event)
                if len(kept) == 2:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    while (ended := run(one.command, folder, kill_in_time)).code == -signal.SIGKILL:
        pieces += 1
        assert not list((folder / "out").glob("gdpc*"))
    record_property("tried", pieces)
    assert pieces >= 50
    assert ended.code == one.undisturbed.code
    found = {path: content for path, content in tree(folder).items() if not path.endswith(".part")}
    assert {path: timeless(path, content) for path, content in found.items()} == {
        path: timeless(path, content) for path, content in one.whole.items()
    }


def test_of_audits_into_one_folder_at_once_none_is_lost(making, record_property):
    one, number = making(COMMANDS["audit"]), 200
    folder = one.prepared()
    plain = one.command.replace("--seed 1", "--seed {}").replace(" --store kept", "")
    assert plain != one.command
    running = [Running(plain.format(seed), folder) for seed in range(number)]
    ends = [each.ended() for each in running]
    assert [ended for ended in ends if ended.code not in (0, 3) or ended.err] == []
    audits = dict(read_audits(*(folder / "out").glob("gdpc*.json")))
    assert sorted(audit.seed_entropy for audit in audits.values()) == list(range(number))
    assert not [path for path in tree(folder) if path.endswith(".part")]
    record_property("tried", number)
