"""The command as a process of its own: interrupts, readers that leave, time limits, stores."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from audit.results import AuditResult
from audit.results.files import read_json
from tests.audit.cli.desk import INTERRUPTED, OWN, QUICK, UNREAD, USAGE, VIOLATION, WITHIN, Outcome, results, shell

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


@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [(("--version",), ""), (("audit", "mine:promising", "--data", "counts.csv", *QUICK, "--out", "out"), "1")],
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


@pytest.mark.slow
def test_an_interrupted_audit_goes_on_from_its_store(desk: Path) -> None:
    """The first of two terminals is closed in the middle; the second asks again."""
    (desk / "steps.py").write_text(
        "import os, time\n"
        "def mechanism(counts, size, rng):\n"
        "    if size == 500:\n"  # not the first looks at a mechanism, which are made again
        "        with open('log', 'a') as log:\n"
        "            log.write(f'{size}\\n')\n"
        "    if size == 500 and os.path.exists('slow') and len(open('log').readlines()) > 25:\n"
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
    assert len((desk / "log").read_text().splitlines()) - before < 25  # of some 38 blocks, 25 were there
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
    asked = ("audit", "hangs:mechanism", *OWN, "--store", "kept", "--timeout", "1.5")
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
    asked = ("audit", "mine:noisy", *OWN, *QUICK, "--out")
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
    outcome = shell("audit", "dies:mechanism", *OWN, "--timeout", "60", capture_output=True)
    assert outcome.returncode == USAGE
    assert outcome.stderr.startswith("plaudit: error: the audit was ended by SIGKILL; with --store, finished runs")
