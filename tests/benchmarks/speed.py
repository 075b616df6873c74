"""Speeds of what people wait for, as ratios within one run: `make bench`. Nothing here is asserted."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.noise import DiscreteGaussian, TwoTailedGeometric
from algorithms.population import load, uniform_population
from audit.claims import PureDP
from audit.estimates.direct import direct_loss
from audit.estimates.residuals import residual_loss
from audit.measure.loss import measure_loss
from audit.neighbors import NeighborPair
from tests.benchmarks.alias import alias_sampler
from tests.benchmarks.measuring import paired, seconds

AUTHOR_DIRECT, AUTHOR_RESIDUAL = 110 * 60 + 48, 22.3  # seconds, from the replication notebook's run of 9 September 2019
DRAWS = 1_000_000
STORED = 100_000  # runs of an audit whose blocks are kept
START_LIMIT = 30  # milliseconds that the plugin may add to the start of pytest


def pytest_starts(pairs: int = 60) -> NDArray[np.float64]:
    """Return medians, in ms, of whole pytest sessions over one empty test: without the plugin, with it, what it adds.

    The second row is processor time, which other work on the machine disturbs less. Each pair is run in turn, and every
    other one the other way round, so that neither a drifting machine nor what is left in its caches counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_nothing.py").write_text("def test_nothing():\n    pass\n")

        def clocks() -> NDArray[np.float64]:
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            return 1000 * np.array([time.perf_counter(), children.ru_utime + children.ru_stime])

        def session(*options: str) -> NDArray[np.float64]:
            begun = clocks()
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            return clocks() - begun

        times = []
        for number in range(pairs + 1):
            if number % 2:
                loaded, bare = session(), session("-p", "no:plaudit")
            else:
                bare, loaded = session("-p", "no:plaudit"), session()
            times.append((bare, loaded, loaded - bare))
    medians: NDArray[np.float64] = np.median(times[1:], axis=0).T  # the first pair compiles
    return medians


def stored(mechanism: Any, pairs: int = 7) -> tuple[float, float, float, float]:
    """Compare audits that keep their blocks with the same that do not, in processor time.

    Returns the ratio, the seconds without and with a store, and the ratio once more where the store has all blocks.
    """
    pair, found = NeighborPair.add_people(load("morocco")[1], cell=0), []
    for number in range(pairs):
        with tempfile.TemporaryDirectory() as folder:

            def audit(store: str | None, seed: int = number) -> float:
                begun = time.process_time()
                measure_loss(mechanism, pair, mechanism.claim, size=STORED, rng=seed, store=store)
                return time.process_time() - begun

            times = {store: audit(store) for store in ((None, folder) if number % 2 else (folder, None))}
            without, with_store = times[None], times[folder]
            found.append((with_store / without, without, with_store, audit(folder) / without))
    ratio, without, with_store, again = np.median(found, axis=0).tolist()
    return ratio, without, with_store, again


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
    laws = {"two-tailed geometric": TwoTailedGeometric(0.1), "discrete Gaussian": DiscreteGaussian(15.56)}
    values = np.arange(-450, 451)
    for name, law in laws.items():
        alias = alias_sampler(values, np.exp(law.logpmf(values)))
        ours, theirs, ratio = paired(lambda n=law: n.sample(DRAWS, rng), lambda n=alias: n(DRAWS, rng))
        beside = f"{theirs / DRAWS * 1e9:.1f} ns, an alias table in numba"
        table.add_row(f"{name}, a draw", f"{ours / DRAWS * 1e9:.1f} ns", beside, f"{ratio:.1f}")
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

    large = NeighborPair.add_people(np.full(1_000_000, 100), 0)
    tracemalloc.start()
    begun = time.perf_counter()
    measure_loss(GDPC(1.0), large, PureDP(1.0), size=400, rng=1)
    spent = time.perf_counter() - begun
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    beside = f"{peak:.0f} MiB at most; the outputs are {400 * 8_000_000 / 2**20:,.0f}"
    table.add_row("an audit of 400 runs, 1,000,000 cells", f"{spent:.1f} s", beside, "")

    fields = NeighborPair.declared(np.zeros((500, 10)), np.eye(500, 10), "add_remove")

    def noisy(data: Any, size: int, rng: np.random.Generator) -> Any:
        return data + rng.laplace(size=(size, *data.shape)).round(6)

    def framed(data: Any, size: int, rng: np.random.Generator) -> Any:
        return [pandas.DataFrame(one, columns=list("abcdefghij")) for one in noisy(data, size, rng)]

    arrays, frames, ratio = paired(
        *(lambda m=m: measure_loss(m, fields, PureDP(1.0), size=10_000, rng=1) for m in (noisy, framed))
    )
    name = "an audit of 10,000 data frames of 500 x 10"
    table.add_row(name, f"{frames:.2f} s", f"{arrays:.2f} s, of arrays", f"{ratio:.2f}")

    for mechanism in (GDPC(1.0), ADPC(1.0)):
        spent, without, with_store, again = stored(mechanism)
        name = f"{type(mechanism).__name__}, an audit of {STORED:,} runs"
        table.add_row(f"{name}, with a store", f"{with_store:.2f} s", f"{without:.2f} s without", f"{spent:.3f}")
        table.add_row(f"{name}, from its store", f"{again * without:.2f} s", "", f"{again:.3f}")

    def starts(*words: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    nothing = starts("-c", "pass")
    for words in (("-m", "plaudit", "--version"), ("-m", "plaudit", "--help"), ("-c", "import audit")):
        bare, start, ratio = paired(nothing, starts(*words))
        beside = f"{1000 * bare:.0f} ms, python -c pass"
        table.add_row(" ".join(words[1:]), f"{1000 * start:.0f} ms", beside, f"{ratio:.1f}")

    (bare, loaded, added), (*_, work) = pytest_starts()
    beside = f"{bare:.0f} ms without the plugin"
    table.add_row("a pytest session over one empty test", f"{loaded:.0f} ms", beside, f"{loaded / bare:.2f}")
    table.add_row("what the plugin adds to it", f"{added:+.1f} ms", f"limit {START_LIMIT:+d} ms", "")
    table.add_row("the same in processor time", f"{work:+.1f} ms", "", "")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
