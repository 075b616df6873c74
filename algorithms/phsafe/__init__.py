"""PHSafe, whole: from household microdata to the S-DHC tables of the 2020 Census, and what they cost.

The rooms, in the order of the flow: `schema` (what the frames hold), `engine` (where SQL runs), `intake` (reading),
`derive` (household types from members), `validate`, `tables` (the nine queries), `cubes` (truncate, join, count),
`tabulate` (exact tables), `budget` (settings, noise, ledger), `measurement` (noise), `release` (the flow as one call,
and how it differs from the paper and from production), `postprocess` (non-negative counts and averages), `explore`
(margins of error), `population` (bundled and synthetic households), and for the audit `stability` and `neighbors`.
"""

from __future__ import annotations

from algorithms.phsafe.budget import noise_parameters, read_config
from algorithms.phsafe.neighbors.stability import stability_change
from algorithms.phsafe.release import release
from algorithms.phsafe.tabulation.tabulate import tabulate

__all__ = ["noise_parameters", "read_config", "release", "stability_change", "tabulate"]
