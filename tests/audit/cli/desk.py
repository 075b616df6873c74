"""What tests of the command share: mechanisms and outputs of a user, and how outcomes are read."""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from algorithms.phsafe.budget import read_config
from audit.results import AuditResult
from tests.helpers import beside_reading
from tests.households import synthetic_households, write_csv

WITHIN, VIOLATION, USAGE, NO_POWER, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141

# A fraction of a second. Whatever the seed, a sound mechanism is accused with probability at most 0.001, and one that
# loses twice its claim of 1 or 0.5 is cleared with probability below 1e-8 (exact, all of 1,400 counted runs guessing).
QUICK = ("--size", "2000", "--seed", "1", "--confidence", "0.999")

MINE = '''
import sys
import numpy as np
from audit import PureDP

def noisy(counts, size, rng):
    return np.round(counts + rng.laplace(size=(size, counts.size)), 6)

def lazy(counts, size, rng):
    from helper import scale
    return np.round(counts + rng.laplace(scale=scale, size=(size, counts.size)), 6)

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

def refuses(counts, size, rng):
    raise ValueError("counts must be\\neven, got 75")

def divides(counts, size, rng):
    return counts / 0 if counts.size == 0 else 1 // 0

def reads(counts, size, rng):
    return open("no-such-table").read()

def leaves(counts, size, rng):
    sys.exit(0)

class PanicError(BaseException):
    """As foreign libraries raise it: no Exception."""

def panics(counts, size, rng):
    raise PanicError("no thread")

def impatient(counts, size, rng):
    raise KeyboardInterrupt

left = 60

def tired(counts, size, rng):
    global left
    left -= size
    return noisy(counts, size, rng) if left >= 0 else impatient(counts, size, rng)
'''


EXACT = """
import numpy as np
from audit import PureDP

class Noisy:
    def __init__(self, claim=None):
        if claim:
            self.claim = claim
    def exact(self, counts):
        return counts
    def __call__(self, counts, size, rng):
        return counts + rng.laplace(size=(size, counts.size))

class Broken(Noisy):
    def __call__(self, counts, size, rng):
        return 1 // 0

noisy, promising, broken = Noisy(), Noisy(PureDP(1.0)), Broken()
"""

BUGGY = """
def buggy(counts, size, rng):
    noisy = counts + rng.laplace(size=(size, counts.size))
    noisy[:, 2] = counts[2]
    return noisy
"""
TABLE = """
def old(people, size, rng):
    ages = [row["age"] for row in people] if isinstance(people, list) else people["age"]
    return (sum(age >= 65 for age in ages) + rng.laplace(size=size)).round(3)
"""
PEOPLE = "name,age,zip\nAda,36,01234\nBob,70,99999\nCid,64,00001\n"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]
OWN = ("--data", "counts.csv", "--claim", "pure:1")


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
        outputs = np.round(outputs, 6)  # unrounded, their last bits tell the mean
        np.savetxt(f"{name}.csv", outputs, delimiter=",")
        np.save(f"{name}.npy", outputs)


def save_persons() -> None:
    """Write persons of two states with two counties each, of all kinds; public ones; what they are."""
    kinds = list(itertools.product("ab", "12", ("female", "male"), ("17 and under", "18 and over")))
    lines = [",".join(kind) for number, kind in enumerate(kinds) for _ in range(number % 5 + 1)]
    for name, part in (("persons", lines), ("public", lines[::2])):
        Path(f"{name}.csv").write_text("\n".join(["state,county,sex,age", *part]) + "\n")
    levels = {"sex": ["female", "male"], "age": ["17 and under", "18 and over"]}
    Path("spec.json").write_text(json.dumps({"attributes": levels}))


def save_households(folder: Path) -> None:
    """Write households of two states, with the sexes from which types are derived; and nobody but in group quarters."""
    write_csv(synthetic_households(60, rng=3, states=2, sex=True), folder)
    for name in ("persons", "units", "geo"):
        head, *rows = (folder / f"{name}.csv").read_text().splitlines()
        quarters = [row for row in rows if row[0] == ("5" if name == "persons" else "4")]
        (folder / f"quarters-{name}.csv").write_text("\n".join([head, *quarters]) + "\n")
    settings = read_config("us").to_dict()
    (folder / "large.json").write_text(json.dumps(settings | {"tau": dict.fromkeys(settings["tau"], 96)}))


def refused(outcome: Outcome, words: str) -> bool:
    """Hold what every refusal has in common: code 2 and one line, beside how columns were read before."""
    assert (outcome.code, outcome.out) == (USAGE, "")
    (line,) = beside_reading(outcome.err)
    assert line.startswith("plaudit: error: ")
    assert outcome.err.endswith(f"{line}\n")
    assert words in line
    return True
