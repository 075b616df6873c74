"""How plaudit measures each family of promises: one file per family. The theorems are in `audit.bounds`."""

from __future__ import annotations

from audit.methods.betting import Bets
from audit.methods.game import Game
from audit.methods.gaussian import Gaussian
from audit.methods.method import Method, register_method
from audit.methods.one_run import OneRun
from audit.methods.regions import RegionMethod
from audit.methods.renyi import Renyi
from audit.methods.two_samples import TwoSamples
from audit.methods.variation import Variation

__all__ = [
    "Bets",
    "Game",
    "Gaussian",
    "Method",
    "OneRun",
    "RegionMethod",
    "Renyi",
    "TwoSamples",
    "Variation",
    "register_method",
]
