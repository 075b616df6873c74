"""A release: measure once, post-process, and write one folder with all that is published, or nothing.

The folder holds

- ``noisy_measurements.csv``: LEVEL (0 is the root), AREA (codes from the outermost down), QUERY, GROUP (of the query's
  partition), COUNT (noisy) and VARIANCE of its noise; nothing where nothing was measured;
- ``invariants.csv``: INVARIANT, LEVEL, AREA, GROUP and COUNT (exact);
- ``tables.csv``: LEVEL, AREA, each attribute and COUNT, for every level; cells without people are left out;
- ``microdata.csv``: one row a person, areas by level, then attributes, in the order of the tables;
- ``ledger.txt``: the noise of every query and the promise in words;
- ``release.json``: what was run and how the post-processing went.

All but the invariants are functions of the noisy measurements and of what is public: `read_measurements` and
``topdown.estimate`` make the same tables again, and the same reasons of failsafes. Every area is named, so which areas
there are must be public; `algorithms.tables.intake.read_histogram` takes them from a list. Time, and what is said of
data that break a rule, depend on the data and are outside every promise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from algorithms.noise import DiscreteGaussian, Rng, counted
from algorithms.tables.files import check_folder, whole_folder
from algorithms.tables.release import Recorded, check_distinct, described, level_names
from algorithms.topdown.estimate import Outcome
from algorithms.topdown.ledger import Ledger, ledger
from algorithms.topdown.measure import measured
from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.plan import Plan
from algorithms.topdown.published import read_measurements, write_levels

__all__ = ["Release", "read_measurements", "release"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Recorded):
    """What a release that was written says of itself; counts are in its folder only.

    Attributes
    ----------
    topdown : TopDown
        What was run.
    outcome : Outcome
        How its tables came about.
    people : int
        Number of records in the microdata.
    areas : tuple of str
        Names of the levels below the root.
    preset : str
        Name of the settings, if they have one.
    """

    topdown: TopDown
    outcome: Outcome
    people: int
    areas: tuple[str, ...]
    preset: str

    @property
    def ledger(self) -> Ledger:
        """What the release promises to lose at most."""
        return ledger(self.topdown, listed=self.listed)

    @property
    def about(self) -> dict[str, Any]:
        """What made the release, and how its post-processing went."""
        plan, found = self.topdown, self.outcome
        residuals = {"primal": found.primal, "dual": found.dual}
        return {
            "preset": self.preset,
            "noise": self.noise,
            "promise": plan.claim.to_dict(),
            "relation": plan.claim.relation,
            "invariants": [str(invariant) for invariant in plan.invariants],
            "bounds": [str(bounds) for bounds in plan.bounds],
            "areas": self.areas_from,
            **described(plan.tree, ("root", *self.areas), plan.schema),
            "solver": plan.solver,
            "routes": found.routes,
            "failsafes": [{"area": failure.area, "reason": failure.reason} for failure in found.failures],
            "residuals": {name: value if math.isfinite(value) else str(value) for name, value in residuals.items()},
        }


def release(
    topdown: TopDown,
    histogram: ArrayLike,
    *,
    out: str | os.PathLike[str],
    rng: Rng = "secure",
    areas: Sequence[str] | None = None,
    preset: str = "",
    listed: bool = False,
) -> Release:
    """Run TopDown once, level by level, and write each level while its parts are estimated.

    Measurements and tables of a level are in memory until it is written, and tables above the finest level to the end;
    `TopDown.measure` and `TopDown.estimate` return all of them. The same seed gives the same tables there and here.

    Parameters
    ----------
    topdown : TopDown
        What is counted, at what price, and how.
    histogram : array_like of int, shape (leaves, cells)
        People.
    out : path-like
        Folder to write, which must not exist or be empty.
    rng : "secure" or numpy Generator
        A release takes the default, the operating system's entropy; a seeded generator is for simulations.
    areas : sequence of str, optional
        Names of the levels below the root, for the microdata. Default: ``level 1``, ``level 2``, ...
    preset : str
        Name of the settings, for the record.
    listed : bool
        Whether the tree is from a public list of areas; else the record says that they were read from the data.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from algorithms.hierarchy import Hierarchy
    >>> from algorithms.topdown import preset
    >>> topdown = preset("micro", Hierarchy.regular(2, 1), epsilon=200.0)
    >>> with TemporaryDirectory() as folder:
    ...     made = release(topdown, [[5, 0, 3, 1], [2, 2, 2, 2]], out=f"{folder}/out", rng=np.random.default_rng(0))
    ...     print(made.people, Path(f"{folder}/out/tables.csv").read_text().splitlines()[1])
    17 0,0,female,17 and under,7
    """
    check_folder(out)
    names = level_names(areas, topdown.tree)
    _check_names(topdown, names)
    with counted() as draws, whole_folder(out) as staged:
        DiscreteGaussian(1.0).sample(0, rng)  # a source of noise that is missing is told before the work, not after it
        people, outcome = write_levels(staged, topdown, *measured(topdown, histogram, rng), names)
        made = Release(topdown=topdown, outcome=outcome, people=people, areas=names, preset=preset, listed=listed)
        made.of(draws).write_record(staged)
    return made


def _check_names(plan: Plan, areas: tuple[str, ...]) -> None:
    check_distinct(("LEVEL", "AREA", *plan.schema.attributes, "COUNT"))
    check_distinct((*areas, *plan.schema.attributes))
    for level in range(plan.tree.depth + 1):
        nodes, seen = plan.tree.level(level), set()
        for name in map(plan.tree.name, range(nodes.start, nodes.stop)):
            if name in seen:
                raise ValueError(f"areas of a level must have different names along their paths, got {name!r} twice")
            seen.add(name)
