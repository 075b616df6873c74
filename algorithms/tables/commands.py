"""What all commands share: the two applications, where noise comes from, and how an interrupt ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

__all__ = ["choices", "interruptible", "noise_of", "releases"]

OPTIONS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
releases, choices = typer.Typer(**OPTIONS), typer.Typer(**OPTIONS)


@releases.callback()
def _release() -> None:
    """Run a reference implementation on data of your own: tables with secure noise, and what they cost."""


@choices.callback()
def _explore() -> None:
    """See what budgets and thresholds mean for accuracy, and the reverse."""


def noise_of(seed: int | None) -> tuple[Any, str]:
    """Return the source of noise of a release, and what it is, in words.

    Parameters
    ----------
    seed : int or None
        Of a simulation; None for a release.

    Returns
    -------
    rng : "secure" or numpy Generator
        What mechanisms take.
    words : str
        For the last line.

    Raises
    ------
    ValueError
        If the seed is negative.
    """
    import numpy as np

    if seed is None:
        return "secure", "secure noise"
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    return np.random.default_rng(seed), f"noise from seed {seed}: a simulation, not to be published"


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn an interrupt, or a request to end, into one line: what was half done is removed on the way.

    Yields
    ------
    None
        For the work.

    Raises
    ------
    ValueError
        If it is interrupted.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise ValueError("interrupted; nothing was written") from None
