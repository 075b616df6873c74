"""The attack by classifiers: for losses that show only in how the entries of an output vary together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.attacks.movement import (
    EXACT_ATTACKS,
    Explored,
    changed_entries,
    clearly,
    explore,
    largest,
    like_outputs,
    movers,
)
from audit.attacks.protocol import MOST as SPENDABLE
from audit.attacks.protocol import Exploration
from audit.attacks.statistics import dot
from audit.attacks.weak_signals import combined_score, companions, one_thread, pick, standardizer, still_gains
from audit.events import Statistic
from audit.neighbors import NeighborPair
from audit.sampling.streams import Phase, stream

__all__ = ["candidates"]

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]

SHARE = 1 / 4  # share of the selection runs that trains classifiers
FEWEST, MOST = 400, 20_000  # fewest and most of these runs
WHOLE = 2**21  # numbers up to which training outputs are kept whole for other attacks
MOST_MORE = 400_000  # most further training runs, if more still help
FEW_VALUES, FEW_RUNS = 8, 20  # most values of an entry that are tested one by one, and fewest runs of each
MOVING = 2.5  # standard errors from which an entry counts as moving
SMALL = 1e-9  # smaller standard errors are rounding
FEW_ENTRIES, MOST_ENTRIES = 32, 16  # entries of a classifier: all if so few, else so many of each kind


def candidates(exploration: Exploration) -> tuple[Statistic, ...]:
    """Return the scores of classifiers, which order outputs by likelihood ratio (Bichsel et al., "DP-Sniper", 2021)."""
    # None if there is one entry, runs are few, or an exact attack applies. If entries are correlated, as in tables made
    # consistent, and more training runs would help, all runs that may be spent train another score.
    learning = min(int(exploration.choosing * SHARE), MOST)
    if (
        exploration.statistics_by_attack.keys() & EXACT_ATTACKS
        or learning < FEWEST
        or math.prod(exploration.shape) == 1
    ):
        return ()
    explored = explore(exploration)
    if exploration.statistics_by_attack and one_entry_tells_all(exploration.pair, explored):
        return ()
    entries = entries_to_learn(exploration.pair, explored)
    features = companions(explored, entries)
    own = np.searchsorted(features.entries, entries)

    def taught(runs: int, *part: int) -> list[NDArray[Any]]:
        blocks = exploration.outputs(runs, lambda outputs: pick(outputs, features.entries), Phase.LEARN, *part)
        return [np.concatenate(list(side)) for side in blocks]

    if learning * math.prod(exploration.shape) <= WHOLE:
        blocks = exploration.outputs(learning, lambda outputs: outputs.reshape(len(outputs), -1), Phase.LEARN)
        exploration.shared["taught"] = [list(side) for side in blocks]
        sides = [pick(np.concatenate(side), features.entries) for side in exploration.shared["taught"]]
    else:
        sides = taught(learning)
    seed = int(stream(exploration.runs.root, Phase.LEARN).generate_state(1)[0])
    scores = fitted(sides[0][:, own], sides[1][:, own], seed=seed)
    statistics = scoring(scores, entries)
    looked = [pick(side, features.entries) for side in explored.held]
    budget = min(int(SPENDABLE * exploration.choosing) - exploration.spent, MOST_MORE)
    known_before = [[side[:, own] for side in of] for of in (sides, looked)]
    if features.leads.size == 0 or budget < FEWEST or not still_gains(scores.values(), *known_before):
        return statistics
    budget += exploration.use_extra(MOST_MORE - budget)
    on_x, on_y = map(np.concatenate, zip(sides, looked, taught(budget, 2), strict=True))
    return (*statistics, combined_score(on_x, on_y, features, seed=seed))


def one_entry_tells_all(pair: NeighborPair, explored: Explored) -> bool:
    """Tell whether one entry seems to hold all of the likelihood ratio, by a few runs."""
    # Either no other entry changes or depends on it; or it has few values, given which the others do not differ.
    entries = math.prod(explored.shape)
    _, _, best, by = movers(explored.x, explored.y, MOST_ENTRIES)
    lively = {*best[by >= MOVING].tolist(), *explored.that_spread(MOST_ENTRIES).tolist()}
    changed = {int(np.ravel_multi_index(index, explored.shape)) for index in changed_entries(pair, explored.shape, 2)}
    if not (changed or by[0] >= clearly(entries) or explored.that_spread(1).size) or entries > FEW_ENTRIES:
        return False
    lively |= changed
    lead, sides = int(best[0]), [explored.standard(side) for side in explored.held]
    sides = [np.hstack([side, np.abs(side - side.mean(axis=0))]) for side in sides]
    values = np.unique(np.concatenate(sides)[:, lead])
    if values.size <= FEW_VALUES:
        return all(
            _differ(*(side[side[:, lead] == value] for side in sides)) < clearly(4 * entries) for value in values
        )
    if len(lively) > 1:
        return False
    (lead,) = lively
    shared = 0.0
    for side in sides:
        apart = side - side.mean(axis=0)
        spread = apart.std(axis=0)
        apart /= np.where(spread > 0, spread, 1.0)
        both = np.abs(apart[:, [lead, lead + entries]].T @ apart) / math.sqrt(len(side))
        both[:, [lead, lead + entries]] = 0.0
        shared = max(shared, float(both.max()))
    return shared < clearly(4 * entries)


def _differ(x: Floats, y: Floats) -> float:
    """Return the largest difference of two column means in standard errors; 0 if runs are few."""
    if min(len(x), len(y)) < FEW_RUNS:
        return 0.0
    error = np.sqrt(x.var(axis=0) / len(x) + y.var(axis=0) / len(y))
    return float(np.max(np.abs(x.mean(axis=0) - y.mean(axis=0)) / np.where(error > SMALL, error, np.inf)))


def entries_to_learn(pair: NeighborPair, explored: Explored) -> NDArray[np.intp]:
    """Return the places of entries in a flattened output: all if few, else those that change, move or spread."""
    entries = math.prod(explored.shape)
    if entries <= FEW_ENTRIES:
        return np.arange(entries)
    best = np.concatenate([movers(explored.x, explored.y, MOST_ENTRIES)[2], explored.that_spread(MOST_ENTRIES)])
    if like_outputs(pair, explored.shape):
        change = np.abs(pair.y.astype(np.float64) - pair.x).reshape(-1)
        changed = largest(change, MOST_ENTRIES)
        best = np.concatenate([changed[change[changed] > 0], best])
    return np.unique(best)


def fitted(on_x: Floats, on_y: Floats, *, seed: int) -> dict[str, Score]:
    """Train classifiers to tell the two databases apart by some entries, and return their log-odds of `y`, by name."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import
    from sklearn.linear_model import LogisticRegression

    both = np.concatenate([on_x, on_y])
    standardized = standardizer(both)
    features = standardized(both)
    labels = np.repeat([0, 1], [len(on_x), len(on_y)])
    learners = {
        "logistic regression": LogisticRegression(max_iter=200),
        "gradient boosting": HistGradientBoostingClassifier(
            max_iter=40, max_leaf_nodes=15, min_samples_leaf=50, early_stopping=False, random_state=seed
        ),
    }
    scores: dict[str, Score] = {}
    for name, learner in learners.items():
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")  # of a fit that has not converged: it is rated on fresh runs anyway
            learner.fit(features, labels)

        def score(values: Floats, learner: Any = learner) -> Floats:
            if hasattr(learner, "coef_"):
                return dot(standardized(values), learner.coef_[0]) + float(learner.intercept_[0])
            with one_thread():
                return np.asarray(learner.decision_function(standardized(values)))

        scores[name] = score
    return scores


def scoring(scores: dict[str, Score], entries: NDArray[np.intp]) -> tuple[Statistic, ...]:
    """Return statistics of outputs that score some of their entries."""

    def of(score: Score) -> Score:
        return lambda outputs: score(pick(outputs, entries))

    return tuple(Statistic(f"{name} on {entries.size} entries", of(score)) for name, score in scores.items())
