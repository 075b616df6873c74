"""Laws and choices of events that the tests of attacks share."""

import numpy as np

from audit.attacks.movement import Moments
from audit.attacks.protocol import Exploration
from audit.attacks.selection import Guessing, empty_event, rate_candidates, select_events, tabulated
from audit.events import cell
from tests.audit.sampling.cases import given_runs

BOTH = ("threshold", "cell")
ENTRY = (cell(),)
SUPPORT = np.arange(-400.0, 402)


def scored(statistics, x, y):
    return [np.column_stack([statistic(np.asarray(part)) for statistic in statistics]) for part in (x, y)]


def several(x, y, statistics=ENTRY, *, families=BOTH, counting=50_000, confidence=0.95, forgiven=0.0):
    game = Guessing(counting, confidence, forgiven)
    found = rate_candidates(tabulated(statistics, *scored(statistics, x, y), families), game)
    return select_events(found, game) or [empty_event(statistics[0])]


def select(x, y, statistics=ENTRY, **options):
    return several(x, y, statistics, **options)[0]


def exploration(x, y, current="", times=10):
    """Outputs all of which an attack may look at: so many times their number choose."""
    return Exploration(given_runs(np.asarray(x), np.asarray(y)), times * len(x), current=current)


def geometric_law(epsilon, center=0):
    return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(SUPPORT - center))


def exact_quality(event, p, q, support=SUPPORT):
    """Rate of right guesses, and share of runs that are guessed, of an event on two laws."""
    guesses = event.guess(support)
    right, wrong = p[guesses < 0].sum() + q[guesses > 0].sum(), q[guesses < 0].sum() + p[guesses > 0].sum()
    return right / (right + wrong), (right + wrong) / 2


def names(statistics):
    return [statistic.name for statistic in statistics]


def moments(outputs, center):
    return Moments.of(len(outputs), iter([Moments.reducer(center)(outputs)]))


def released_by(tree, output):
    """The areas that a release of leaves or of all holds."""
    return tree.leaves if output == "leaves" else np.arange(tree.n_nodes)


OUTPUTS = ("leaves", "all")
