"""PHSafe: from household microdata to the noisy S-DHC tables of the 2020 Census."""

from __future__ import annotations

from algorithms.phsafe.budget import noise_parameters, read_config
from algorithms.phsafe.neighbors.stability import stability_change
from algorithms.phsafe.release import release
from algorithms.phsafe.tabulation.tabulate import tabulate

__all__ = ["noise_parameters", "read_config", "release", "stability_change", "tabulate"]
