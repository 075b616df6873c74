"""What it costs to keep finished blocks: audits with a store against the same without one, in turn.

Run by ``make bench``; ratios within one run.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from algorithms.population import load
from algorithms.systems import systems
from audit.loss import measure_loss
from audit.neighbors import NeighborPair

PAIRS = 7  # of audits, with and without a store
SIZE = 100_000
LIMIT = 1.02


def timed(mechanism, pair, number, store):
    """Return the seconds of processor time, of the system's too, that an audit takes, and its counts."""
    begun = time.process_time()
    counts = measure_loss(mechanism, pair, mechanism.claim, size=SIZE, rng=number, store=store).counts
    return time.process_time() - begun, counts


def main() -> None:
    """Print the ratio of the medians, and of the pairs."""
    _, people = load("morocco")
    pair = NeighborPair.add_people(people, cell=0)
    for name in ("gdpc", "adpc"):
        mechanism = systems()[name].mechanism()
        ratios, times = [], []
        for number in range(PAIRS):
            with tempfile.TemporaryDirectory() as folder:
                order = [None, folder] if number % 2 else [folder, None]
                both = {store: timed(mechanism, pair, number, store) for store in order}
                assert both[folder][1] == both[None][1]
                again = timed(mechanism, pair, number, folder)
                assert again[1] == both[None][1]
                kept = sum(path.stat().st_size for path in Path(folder).rglob("*.block"))
            ratios.append(both[folder][0] / both[None][0])
            times.append(again[0] / both[None][0])
        print(
            f"{name}: with a store, {SIZE} runs take {statistics.median(ratios):.3f} times the processor time they "
            f"take without (limit {LIMIT}; {min(ratios):.3f} to {max(ratios):.3f} of {PAIRS} pairs); asked again, "
            f"{statistics.median(times):.3f} times; {kept / 1e6:.1f} MB kept"
        )


if __name__ == "__main__":
    main()
