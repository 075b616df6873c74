"""Speeds of what people wait for, beside something of known speed: `make bench`. Nothing is asserted."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.noise import TwoTailedGeometric
from algorithms.population import uniform_population
from audit.claims import PureDP
from audit.estimates.direct import direct_loss
from audit.estimates.residuals import residual_loss
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.benchmarks.measuring import seconds

RUNS, DRAWS = 100, 1_000_000
RNG = np.random.default_rng(1)
TREE, COUNTS = uniform_population(1_000_000, 3, 100, RNG)
MECHANISMS = (GDPC(0.1), RDPC(0.1, TREE), ADPC(0.1))
PAIR = NeighborPair.move_people(COUNTS, 0, 1001)


def textbook(shape):
    """Return two-tailed geometric noise of epsilon 0.1 as two draws of numpy."""
    p = -np.expm1(-0.1)
    return RNG.geometric(p, shape) - RNG.geometric(p, shape)


def direct():
    """Make the direct estimates of the paper, of 500 runs on each database."""
    for mechanism in MECHANISMS:
        x, y = (mechanism(data, 500, RNG)[:, 0] for data in (PAIR.x, PAIR.y))
        for event in ("equal", "at_least"):
            direct_loss(x, y, COUNTS[0], event=event)


def residuals(**options):
    """Make the nine residual fits of the paper."""
    for epsilon in (0.025, 0.05, 0.1):
        for mechanism in (GDPC(epsilon), RDPC(epsilon, TREE), ADPC(epsilon)):
            residual_loss(mechanism(COUNTS, 1, RNG)[0] - COUNTS, method="kde", rng=1, **options)


def started(*words):
    """Start Python."""
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


STARTS = (("-c", "pass"), ("-m", "plaudit", "--version"), ("-m", "plaudit", "--help"), ("-c", "import audit"))
CELL, DRAW = 1e9 / RUNS / COUNTS.size, 1e9 / DRAWS  # nanoseconds of one
# The author's times are from the replication notebook's run of 9 September 2019.
ROWS = [
    *((f"{type(one).__name__}, a cell", lambda m=one: m(COUNTS, RUNS, RNG), CELL, "ns") for one in MECHANISMS),
    ("two numpy geometrics, a cell", lambda: textbook((RUNS, COUNTS.size)) + COUNTS, CELL, "ns"),
    ("two-tailed geometric, a draw", lambda: TwoTailedGeometric(0.1).sample(DRAWS, RNG), DRAW, "ns"),
    ("two numpy geometrics, a draw", lambda: textbook(DRAWS), DRAW, "ns"),
    ("direct estimates, 3 x (500 + 500) runs; the author: 1 h 51 min", direct, 1, "s"),
    ("nine residual fits with intervals; the author, without: 22.3 s", residuals, 1, "s"),
    ("nine residual fits of 21 blocks of areas", lambda: residuals(blocks=TREE.ancestors(1)), 1, "s"),
    (
        "an audit of 200,000 runs, 2 cells",
        lambda: measure_loss(GDPC(1.0), NeighborPair.add_people([120, 75], 0), PureDP(1.0), rng=1),
        1,
        "s",
    ),
    *((f"python {' '.join(words)}", lambda words=words: started(*words), 1000, "ms") for words in STARTS),
]

if __name__ == "__main__":
    table = Table("what", "median of three", title="Speed on this machine, one thread: compare rows")
    for name, work, unit, called in ROWS:
        table.add_row(name, f"{seconds(work, 3) * unit:.2f} {called}")
    Console().print(table)
