"""Tell by a guessing game whether the running time depends on the data."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from audit.replay.violations import Violation

__all__ = ["FALSE_ALARM", "timing"]

SELECTION = 0.3  # of the runs, to choose what is guessed from
FALSE_ALARM = 1e-6  # probability that a mechanism is accused whose time does not depend on the data
WARM = 2  # runs on each database before the first that counts


def timing(take: Callable[[bool], int], size: int, rng: np.random.Generator) -> Violation | None:
    """Play the game: a fair coin picks the database of each run, and a limit on its time guesses which it was.

    `take` runs on `y` if its argument is true, else on `x`, and returns nanoseconds.

    Guarantee: whatever else the times depend on, be it the load of the machine or the runs before, a coin that they do
    not depend on is guessed right with probability 1/2, given all before. So the number of right guesses is binomial,
    and a violation is reported with probability 1e-6 at most.
    """
    for on_y in (False, True) * WARM:
        take(on_y)
    coins = rng.random(size) < 0.5
    times = np.array([take(bool(coin)) for coin in coins])
    choosing = int(SELECTION * size)
    limit, above = _best_guess(times[:choosing], coins[:choosing])
    right = int(((times[choosing:] > limit) == (coins[choosing:] == above)).sum())
    from scipy import stats  # only where it is needed: it is slow to import

    chance = float(stats.binom.sf(right - 1, size - choosing, 0.5))
    if chance > FALSE_ALARM:
        return None
    typical = [f"{statistics.median(times[coins == side]) / 1e6:.3g} ms" for side in (False, True)]
    words = f"the time tells the database in {right} of {size - choosing} runs, by chance with probability {chance:.1e}"
    return Violation("time", f"{words} (median {typical[0]} on x, {typical[1]} on y)")


def _best_guess(times: NDArray[np.int64], coins: NDArray[np.bool_]) -> tuple[float, bool]:
    """Return a limit, and the database that runs above it are taken to be of."""
    order = np.argsort(times, kind="stable")
    ordered, on_y = times[order], coins[order]
    # Right if the runs from each place on are taken to be of y, and those before of x.
    right = np.append(on_y[::-1].cumsum()[::-1], 0) + np.append(0, (~on_y).cumsum())
    place = int(np.argmax(np.abs(right - on_y.size / 2)))
    ends = np.concatenate([[-np.inf], (ordered[1:] + ordered[:-1]) / 2, [np.inf]])
    return float(ends[place]), bool(right[place] >= on_y.size / 2)
