"""Known bugs: mechanisms that do not keep their promise, each with its true loss. Sound mechanisms live elsewhere."""

from __future__ import annotations

from algorithms.bugs import arithmetic, budget, census, errors, pipelines, randomness, settings, sums, zeros
from algorithms.bugs.bug import KnownBug
from algorithms.bugs.pipelines import PipelineBug

__all__ = ["KnownBug", "known_bugs", "pipeline_bugs"]


def known_bugs() -> dict[str, KnownBug]:
    """Return the known bugs that show on counts or values of people, by name.

    Returns
    -------
    dict
        Each with a pair of databases that shows it, what it loses there, and how an audit finds it: from the bugs of
        the noise and the budget to those of what else comes out.

    Examples
    --------
    >>> bug = known_bugs()["rounded-first"]
    >>> bug.x, bug.y, bug.mechanism.claim.epsilon, bug.loss
    (array([2, 8]), array([3, 8]), 0.5, 2.5)
    >>> round(bug.mechanism.exact_loss(bug).maximum, 12)
    2.5
    """
    parts = (budget, zeros, census, sums, arithmetic, randomness, errors)
    return {name: bug for part in parts for name, bug in part.KNOWN.items()}


def pipeline_bugs() -> dict[str, PipelineBug]:
    """Return the known bugs of whole pipelines by name, each with a record whose addition shows it.

    Returns
    -------
    dict
        From bugs of what is drawn to those of what else is seen; all promise an epsilon of 1.

    Examples
    --------
    >>> bug = pipeline_bugs()["spent-twice"]
    >>> bug.pipeline.true_loss, bug.pipeline.twin.true_loss
    (2.0, 1.0)
    """
    return pipelines.KNOWN | settings.KNOWN
