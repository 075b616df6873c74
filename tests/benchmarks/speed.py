"""Speeds of what people wait for, as ratios within one run: `make bench`. Nothing here is asserted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

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
from tests.benchmarks.measuring import paired, seconds

AUTHOR_DIRECT, AUTHOR_RESIDUAL = 110 * 60 + 48, 22.3  # seconds, from the replication notebook's run of 9 September 2019
DRAWS = 1_000_000
STORED = 100_000  # runs of an audit whose blocks are kept
START_LIMIT = 30  # milliseconds that the plugin may add to the start of pytest


def main() -> None:
    """Measure and print."""
    rng = np.random.default_rng(1)
    tree, counts = uniform_population(1_000_000, 3, 100, rng)
    table = Table(
        "what", "plaudit", "beside it", "ratio", title="Speed on this machine, one thread; ratios are what counts"
    )

    p = -np.expm1(-0.1)
    shape = (100, counts.size)
    ours, textbook, ratio = paired(
        lambda: GDPC(0.1)(counts, shape[0], rng), lambda: counts + rng.geometric(p, shape) - rng.geometric(p, shape)
    )
    cells = shape[0] * shape[1]
    beside = f"{textbook / cells * 1e9:.1f} ns, two numpy geometrics"
    table.add_row("GDPC, a cell", f"{ours / cells * 1e9:.1f} ns", beside, f"{ratio:.1f}")
    for name, mechanism in (("RDPC", RDPC(0.1, tree)), ("ADPC", ADPC(0.1))):
        spent = seconds(lambda m=mechanism: m(counts, shape[0], rng))
        table.add_row(f"{name}, a cell", f"{spent / cells * 1e9:.1f} ns", "", "")
    law = TwoTailedGeometric(0.1)
    ours, textbook, ratio = paired(
        lambda: law.sample(DRAWS, rng), lambda: rng.geometric(p, DRAWS) - rng.geometric(p, DRAWS)
    )
    beside = f"{textbook / DRAWS * 1e9:.1f} ns, two numpy geometrics"
    table.add_row("two-tailed geometric, a draw", f"{ours / DRAWS * 1e9:.1f} ns", beside, f"{ratio:.1f}")

    pair = NeighborPair.move_people(counts, 0, 1001)
    mechanisms = (GDPC(0.1), RDPC(0.1, tree), ADPC(0.1))

    def direct() -> None:
        for mechanism in mechanisms:
            x, y = (mechanism(data, 500, rng)[:, 0] for data in (pair.x, pair.y))
            for event in ("equal", "at_least"):
                direct_loss(x, y, counts[0], event=event)

    spent = seconds(direct, 3)
    name, beside = "the direct estimate of the paper, 3 x (500 + 500) runs", "1 h 51 min, the author in 2019"
    table.add_row(name, f"{spent:.2f} s", beside, f"{AUTHOR_DIRECT / spent:,.0f}")

    residuals = [
        mechanism(counts, 1, rng)[0] - counts
        for epsilon in (0.025, 0.05, 0.1)
        for mechanism in (GDPC(epsilon), RDPC(epsilon, tree), ADPC(epsilon))
    ]
    blocks = tree.ancestors(1)
    for name, options in (("single areas", {}), ("21 blocks of areas", {"blocks": blocks})):
        spent = seconds(lambda o=options: [residual_loss(r, method="kde", rng=1, **o) for r in residuals], 3)
        beside, ratio = "22.3 s without, the author", f"{AUTHOR_RESIDUAL / spent:.0f}"
        table.add_row(f"nine residual fits with intervals, {name}", f"{spent:.2f} s", beside, ratio)

    small = NeighborPair.add_people([120, 75], 0)
    spent = seconds(lambda: measure_loss(GDPC(1.0), small, PureDP(1.0), rng=1), 3)
    table.add_row("an audit of 200,000 runs, 2 cells", f"{spent:.2f} s", "", "")

    def starts(*words: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    nothing = starts("-c", "pass")
    for words in (("-m", "plaudit", "--version"), ("-m", "plaudit", "--help"), ("-c", "import audit")):
        bare, start, ratio = paired(nothing, starts(*words))
        beside = f"{1000 * bare:.0f} ms, python -c pass"
        table.add_row(" ".join(words[1:]), f"{1000 * start:.0f} ms", beside, f"{ratio:.1f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
