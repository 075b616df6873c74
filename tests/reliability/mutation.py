"""Would the tests notice a change of the code? ``python -m tests.reliability.mutation [--size N | --whole]``.

Each mutant is one small change of what proves a bound: claims, bounds, methods, exact losses, neighbors. The quick
tests of its room that enter the changed function run on it, and kill it if one of them fails. Mutants are not written
to disk but imported from memory by processes forked from one that has the libraries loaded, because a new interpreter,
or a copy of the tree, for each of them would cost more than the tests. (mutmut forks as well, but passes over module
constants and whatever is decorated, such as every claim.) What was found is kept: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import importlib.abc
import importlib.util
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings
from scipy.stats import binomtest

from tests.reliability.mutants import Mutant, Room, body, sample

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "mutation"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
LIBRARIES = ["joblib", "pandas", "polars", "scipy.signal", "sklearn.linear_model"]
MOST_MEMORY = 8 << 30  # bytes that a mutant may ask for: one with a changed exponent asks for all there is
UNSHRUNK = "unshrunk"
NOT_IMPORTED = 99  # exit code of tests that ran without the module that is changed
METHODS = ("tests/audit/methods", "tests/audit/planning", "tests/audit/test_one_run.py", "tests/audit/test_stopping.py")
ROOMS = [
    Room("audit/claims", ("tests/audit/claims", "audit/claims"), ROOT),
    Room("audit/bounds", ("tests/audit/bounds", "audit/bounds"), ROOT),
    Room("audit/methods", (*METHODS, "audit/methods"), ROOT),
    Room("audit/exact", ("tests/audit/test_exact.py", "audit/exact"), ROOT),
    Room("audit/neighbors", ("tests/audit/neighbors", "audit/neighbors"), ROOT),
]


class FromMemory(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports one module from a text, whatever its file says."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.used = mutant, False

    def find_spec(self, name, path=None, target=None):
        if name == self.mutant.module:
            return importlib.util.spec_from_file_location(name, self.mutant.path, loader=self)
        return None

    def get_filename(self, name):
        return str(self.mutant.path)

    def get_data(self, path):
        self.used = True
        return self.mutant.text.encode()


def run_tests(root: Path, words: list[str], mutant: Mutant | None, reached: str) -> None:
    """Run tests until one fails, on a mutant or the source as it is, and end the process with their code."""
    os.environ["COVERAGE_FILE"] = reached
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.chdir(root)
    sys.path.insert(0, str(root))
    finder = FromMemory(mutant) if mutant else None
    if finder:
        sys.meta_path.insert(0, finder)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        # One failure will do, and nobody looks at the simplest one.
        settings.register_profile(
            UNSHRUNK, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
        )
        words = [f"--hypothesis-profile={UNSHRUNK}", *words]
    # Plain: pytest's own way to import, for better messages, comes before the mutant's.
    code = int(pytest.main(["-q", "-x", "--assert=plain", "--rootdir", str(root), *words]))
    os._exit(NOT_IMPORTED if finder and not finder.used else code)


def forked(root: Path, words: list[str], mutant: Mutant | None, limit: float | None, reached: str = "") -> int | None:
    """Return the exit code of tests in a process of their own, or None where they took longer than the limit."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.reliability.mutation", *LIBRARIES])
    process = context.Process(target=run_tests, args=(root, words, mutant, reached))
    process.start()
    process.join(limit)
    code = process.exitcode
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # with whatever its tests have left running
    process.kill()  # which may not lead a group yet
    process.join()
    return code


class Trials:
    """What tests did to mutants, kept in a folder that a later run goes on with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.found = folder, {}
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "found.jsonl"
        if self.file.exists():
            lines = map(json.loads, self.file.read_text("utf-8").splitlines())
            self.found = {tuple(key): result for key, result in lines}

    def note(self, key: tuple, result) -> None:
        """Keep a result: one write a line, so that threads do not mix them."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, result]) + "\n")
        self.found[key] = result

    def unchanged(self, room: Room) -> tuple[float, coverage.CoverageData]:
        """Return how long tests take on the source as it is, where all must pass, and which lines each of them runs."""
        key = (room.sources, room.digest)
        reached = self.folder / f"{room.digest}.coverage"
        if key not in self.found:
            words = [f"--cov={room.sources}", f"--cov-config={os.devnull}", "--cov-context=test", "--cov-report="]
            began = time.monotonic()
            code = forked(room.root, [*words, *room.tests], None, None, str(reached))
            if code != 0:
                raise RuntimeError(f"tests must pass on the source as it is, got exit code {code} of {room.tests}")
            self.note(key, time.monotonic() - began)
        data = coverage.CoverageData(str(reached))
        data.read()
        return self.found[key], data

    def outcome(self, mutant: Mutant, seconds: float, reached: coverage.CoverageData) -> str:
        """Return whether a mutant was ``killed``, ``survived``, or ``timed out``: as good as killed."""
        key = (mutant.room.sources, mutant.room.digest, mutant.file, mutant.operator, mutant.occurrence)
        if key not in self.found:
            words = collected(mutant, reached)
            code = forked(mutant.room.root, words, mutant, 60 + seconds) if words else 0
            if code not in (None, 0, 1, 2, 3):
                raise RuntimeError(f"tests must import what is changed, got exit code {code} of {words} with {mutant}")
            self.note(key, {None: "timed out", 0: "survived"}.get(code, "killed"))
        return self.found[key]


def collected(mutant: Mutant, reached: coverage.CoverageData) -> list[str]:
    """Return the tests that enter the changed function: all of the room, if it runs on import."""
    contexts = reached.contexts_by_lineno(str(mutant.path))
    names = {name for line in body(mutant) or () for name in contexts.get(line, [])}
    if body(mutant) is None or "" in names:
        return list(mutant.room.tests)
    return sorted({name.rpartition("|")[0] for name in names})


def explained() -> list[dict[str, Any]]:
    """Return the mutants that no test can kill, and why."""
    return tomllib.loads(EQUIVALENT.read_text("utf-8"))["mutant"]


def score(rooms=ROOMS, *, size: int | None = 400, seed: int = 1, folder: Path = STORE, jobs: int = 2) -> dict:
    """Return how many mutants of a random sample were tried and killed, its interval at 95%, and those that survived.

    A mutant that hangs for a minute longer than all tests take is killed. One that no test can kill counts as a
    survivor, with the reason why.
    """
    trials, why = Trials(folder), {(one["file"], one["change"]): one["why"] for one in explained()}
    known = {room: trials.unchanged(room) for room in rooms}
    drawn = list(sample(rooms, size, seed))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda mutant: trials.outcome(mutant, *known[mutant.room]), drawn))
    survivors = [mutant for mutant, name in zip(drawn, found, strict=True) if name == "survived"]
    tried, killed = len(drawn), len(drawn) - len(survivors)
    interval = binomtest(killed, tried).proportion_ci(0.95, "exact")
    return {
        "tried": tried,
        "killed": killed,
        "timed out": found.count("timed out"),
        "interval": [interval.low, interval.high],
        "survivors": [
            {"place": one.place, "change": one.change, "why": why.get((one.file, one.change), "")}
            for one in sorted(survivors, key=lambda one: one.place)
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Would the tests notice a change of the code?")
    parser.add_argument("--size", type=int, default=400, help="mutants to draw at random")
    parser.add_argument("--whole", action="store_true", help="every mutant there is")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=STORE, help="what was found before, and is not run again")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    size = None if options.whole else options.size
    print(json.dumps(score(size=size, seed=options.seed, folder=options.folder, jobs=options.jobs), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
