"""What the five papers print and claim, item by item, with where it is here and how close: the page docs/papers.md."""

from __future__ import annotations

from experiments.papers.bottom_up import BOTTOM_UP
from experiments.papers.flaxman import FLAXMAN
from experiments.papers.nist import NIST
from experiments.papers.ons import ONS
from experiments.papers.phsafe import PHSAFE

__all__ = ["FIVE"]

FIVE = (FLAXMAN, PHSAFE, ONS, BOTTOM_UP, NIST)
