"""The words of a report: what numbers mean to whoever decides."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

from audit.bounds.citations import THEOREMS
from audit.report.formatting import NEIGHBORS, at_least, at_most, cells, nearest
from audit.results import AuditResult

__all__ = [
    "assumptions",
    "event_class",
    "meaning",
    "neighbors",
    "unseen",
    "visible",
]

LONGEST = 10_000  # letters of one text: a longer one is somebody's joke, and is cut
STACKED = 3  # marks above or below one letter: more of them would cover the lines around
UNSEEN = set("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # printable, says Unicode, and nothing to be seen


def visible(words: str, most: int = LONGEST) -> str:
    r"""Return hostile text as it is safe to look at: nothing in it hides, turns around or covers other text.

    Parameters
    ----------
    words : str
        A name, label or path.
    most : int
        Letters that are kept.

    Returns
    -------
    str
        The same, with an escape for every letter that cannot be seen, turns the direction of reading, or is one mark
        too many on a letter.

    Examples
    --------
    >>> visible("total\u202e\x00 of all")
    'total\\u202e\\x00 of all'
    """
    head, rest = words[:most], len(words) - most
    ending = f" ... ({rest:,} more letters)" if rest > 0 else ""
    if head.isascii() and head.isprintable():
        return head + ending
    kept, marks = [], 0
    for letter in head:
        marks = marks + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        seen = letter.isprintable() and letter not in UNSEEN and marks <= STACKED
        kept.append(letter if seen else letter.encode("unicode_escape").decode())
    return "".join(kept) + ending


def neighbors(result: AuditResult) -> str:
    """Return what one step between neighbors is, and what this pair is besides.

    Parameters
    ----------
    result : AuditResult
        Redacted or not.

    Returns
    -------
    str
        Without a full stop.
    """
    group = f", {result.distance:,} steps apart" if result.distance > 1 else ""
    return _step(result) + group + (" (declared)" if result.adjacency == "declared" else "")


def event_class(result: AuditResult) -> str:
    """Return the kind of event that was counted, which is no secret.

    Parameters
    ----------
    result : AuditResult
        Redacted or not.

    Returns
    -------
    str
        With its article.
    """
    return THEOREMS[result.bound][1] if result.bound in THEOREMS else "an event of another kind"


def meaning(result: AuditResult) -> list[str]:
    """Return what an audit says in words that need no mathematics.

    Parameters
    ----------
    result : AuditResult
        Redacted or not.

    Returns
    -------
    list of str
        Sentences: the promise, then what became of it.
    """
    claim, said = result.claim, cells(result)
    secret = (
        f"whether one {result.unit} is in the data"
        if result.relation == "add_remove"
        else f"which of two values the data of one {result.unit} have"
    )
    aside = f", failures of probability {said['delta']} set aside" if "delta" in claim.parameters else ""
    promised, forced = _times(claim.guessed_right, result.measured.guessed_right)
    sentences = [
        f"The promise: whoever knows everything but {secret}, and sees one release, guesses it right at most "
        f"{promised} times in 100 from even odds{aside}."
    ]
    if result.verdict == "not refuted":
        return [
            *sentences,
            f"The runs force {said['parameter']} to be at least {said['measured']}, within the promised "
            f"{said['promised']}: they do not refute the promise, and do not prove it.",
        ]
    if result.verdict == "no power":
        return [
            *sentences,
            "There were too few runs to tell twice the promised loss from the promise: they say nothing for it or "
            "against it.",
        ]
    if result.support is not None:
        sentences.append(
            f"It is broken without limit: by the exact law of the algorithm an output{_probability(result.support)} is "
            "possible on one of the two databases only, and after it the guess is certain."
        )
    if not result.measured <= claim:
        sentences.append(
            f"The runs prove that it is broken: after some releases the guess is right at least {forced} times in "
            f"100{aside}."
            if claim.epsilon_delta
            else "The runs prove that it is broken: the strictest promise of its kind that they leave standing allows "
            f"{forced} times in 100."
        )
    return sentences


def unseen(result: AuditResult) -> list[str]:
    """Return what an audit could not have seen, besides what none could.

    Parameters
    ----------
    result : AuditResult
        Redacted or not.

    Returns
    -------
    list of str
        Sentences.
    """
    said, promised = cells(result), result.claim.budget
    share = (
        f" ({at_most(100 * result.detectable / promised)}% of the promise)"
        if 0 < promised < math.inf and result.detectable < math.inf
        else ""
    )
    power = (
        "Any loss in the event that was counted, however large: too few runs met it to tell."
        if result.detectable == math.inf
        else f"A loss below {said['detectable']}{share} in the event that was counted: from there on such runs say "
        "violated with a probability of 0.8 or more."
    )
    return [
        *([power] if result.verdict != "violated" else []),
        "How large the loss is, or whether it has a limit: a bound from below never says."
        if result.ceiling == math.inf
        else f"That a loss exceeds {said['ceiling']}, or has no limit: as many runs never force more.",
    ]


def assumptions(result: AuditResult) -> list[str]:
    """Return what an audit takes for granted, and what it has checked, besides what holds for all.

    Parameters
    ----------
    result : AuditResult
        Redacted or not.

    Returns
    -------
    list of str
        Sentences.
    """
    steps = "one step" if result.distance == 1 else f"{result.distance:,} steps"
    known = "computed from the databases" if result.adjacency == "verified" else "taken on the word of the auditor"
    if _one_run(result):
        runs = "Fair coins, independent and secret until the guesses were made, decided who was in the one run."
    elif result.adjacency == "declared" and result.mechanism == "given outputs":
        runs = "The runs were made elsewhere and are taken to be independent: only copies would have been noticed."
    else:
        runs = "The runs are independent: no random stream served two blocks of runs, or both databases."
    return [
        f"Neighbors are two databases with {_step(result)}. These are {steps} apart, which was {known}; every loss is "
        f"for one step{', as group privacy allows' if result.distance > 1 else ''}.",
        runs,
        f"The event was chosen on {result.selection:,} runs and counted on others."
        if result.selection > 0
        else "The event was fixed before any run, and all runs counted.",
        *(
            ["The witness of an unbounded loss is the algorithm's law as it states it: no count shows it."]
            if result.support is not None
            else []
        ),
    ]


def _step(result: AuditResult) -> str:
    return f"one {NEIGHBORS[result.relation].format(result.unit)}"


def _one_run(result: AuditResult) -> bool:
    return result.bound == "one-run guessing game"


def _times(promised: float, forced: float) -> tuple[str, str]:
    """Return two probabilities as so many times in 100: at most, at least, and not the same unless they are."""
    for digits in range(3, 12):
        words = at_most(100 * promised, digits), at_least(100 * forced, digits)
        if (float(words[1]) > float(words[0])) == (forced > promised):
            break
    return words


def _probability(support: dict[str, Any]) -> str:
    """Return how often a witness is met, which a redacted audit does not tell."""
    return f" of probability {nearest(support['probability'])}" if "probability" in support else ""
