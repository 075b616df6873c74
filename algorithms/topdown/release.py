"""A release: measure once, post-process, and write one folder with all that is published, or nothing.

The folder holds

- ``noisy_measurements.csv``: LEVEL (0 is the root), AREA (codes from the outermost down), QUERY, GROUP (of the query's
  partition), COUNT (noisy) and VARIANCE of its noise; nothing where nothing was measured;
- ``invariants.csv``: INVARIANT, LEVEL, AREA, GROUP and COUNT (exact);
- ``tables.csv``: LEVEL, AREA, each attribute and COUNT, for every level; cells without people are left out;
- ``microdata.csv``: one row a person, areas by level, then attributes, sorted;
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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.noise import DiscreteGaussian, Rng, counted
from algorithms.tables.files import check_folder
from algorithms.tables.release import Published, check_distinct, described, level_names
from algorithms.topdown.estimate import Estimate
from algorithms.topdown.ledger import Ledger, ledger
from algorithms.topdown.measure import Measurements
from algorithms.topdown.mechanism import TopDown
from algorithms.topdown.plan import Plan
from algorithms.topdown.published import read_measurements, write_tables

__all__ = ["LARGEST_RELEASE", "Release", "read_measurements", "release"]

LARGEST_RELEASE = 400_000_000
"""Most records that are written: more than the people of all nations but two. Noise alone makes more of them where the
budget is tiny and no total is held, and each is a row of the microdata, so that they would fill the disk."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Published):
    """Noisy measurements, invariants, and the tables made from them; the data are not in it.

    Attributes
    ----------
    topdown : TopDown
        What was run.
    measurements : Measurements
        Noisy answers and invariants.
    estimate : Estimate
        Tables of all areas.
    areas : tuple of str
        Names of the levels below the root.
    preset : str
        Name of the settings, if they have one.
    """

    topdown: TopDown
    measurements: Measurements
    estimate: Estimate
    areas: tuple[str, ...]
    preset: str

    @property
    def ledger(self) -> Ledger:
        """What the release promises to lose at most."""
        return ledger(self.topdown, listed=self.listed)

    @property
    def people(self) -> int:
        """Number of records in the microdata."""
        return int(self.estimate.tables[0].sum())

    @property
    def about(self) -> dict[str, Any]:
        """What made the release, and how its post-processing went."""
        plan, found = self.topdown, self.estimate
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

    def check(self) -> None:
        """Refuse more records than `LARGEST_RELEASE`."""
        if self.people > LARGEST_RELEASE:
            raise ValueError(
                f"a release must have at most {LARGEST_RELEASE:,} records, got {self.people:,}; where the noise "
                "made them, take a larger budget, or hold the total as an invariant"
            )

    def write_tables(self, staged: Path) -> None:
        """Write measurements, invariants, tables and microdata."""
        write_tables(staged, self.topdown, self.measurements, self.estimate.tables, self.areas)


def release(
    topdown: TopDown,
    histogram: ArrayLike,
    *,
    out: str | os.PathLike[str] | None = None,
    rng: Rng = "secure",
    areas: Sequence[str] | None = None,
    preset: str = "",
    listed: bool = False,
) -> Release:
    """Run TopDown once.

    Parameters
    ----------
    topdown : TopDown
        What is counted, at what price, and how.
    histogram : array_like of int, shape (leaves, cells)
        People.
    out : path-like, optional
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
    >>> from algorithms.hierarchy import Hierarchy
    >>> from algorithms.topdown import preset
    >>> topdown = preset("micro", Hierarchy.regular(2, 1), epsilon=200.0)
    >>> made = release(topdown, [[5, 0, 3, 1], [2, 2, 2, 2]], rng=np.random.default_rng(0))
    >>> made.people, made.estimate.tables[1].tolist()
    (17, [5, 0, 3, 1])
    """
    if out is not None:
        check_folder(out)
    names = level_names(areas, topdown.tree)
    _check_names(topdown, names)
    with counted() as draws:
        DiscreteGaussian(1.0).sample(0, rng)  # a source of noise that is missing is told before the work, not after it
        measurements = topdown.measure(histogram, rng)
    estimate = topdown.estimate(measurements)
    made = Release(
        topdown=topdown, measurements=measurements, estimate=estimate, areas=names, preset=preset, listed=listed
    ).of(draws)
    if out is not None:
        made.write(out)
    return made


def _check_names(plan: Plan, areas: tuple[str, ...]) -> None:
    check_distinct(("LEVEL", "AREA", *plan.schema.attributes, "COUNT"))
    check_distinct((*areas, *plan.schema.attributes))
    levels = np.repeat(np.arange(plan.tree.depth + 1), np.diff(plan.tree.offsets)).tolist()
    seen = set()
    for place in zip(levels, map(plan.tree.name, range(plan.tree.n_nodes)), strict=True):
        if place in seen:
            raise ValueError(f"areas of a level must have different names along their paths, got {place[1]!r} twice")
        seen.add(place)
