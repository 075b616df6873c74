"""The systems of the five papers, and TopDown, with pairs and runs of their audits, and exact losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from algorithms.bottom_up import BottomUp
from algorithms.bugs.systems.nist import DomainFromData
from algorithms.bugs.systems.ons import ClassicalGaussian
from algorithms.flaxman import ADPC, GDPC, RDPC
from algorithms.hierarchy import Hierarchy
from algorithms.ons import IndependentNoise, OnsTopDown
from algorithms.ons.deaths import Deaths, synthetic_deaths
from algorithms.ons.laws import PILOT_DELTA
from algorithms.ons.tables import Table
from algorithms.phsafe.budget import read_config
from algorithms.phsafe.measurement import PHSafe, tabulated
from algorithms.phsafe.neighbors.worst import joint_pair
from algorithms.phsafe.population import load_households
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.population import load
from algorithms.systems import systems
from algorithms.topdown import preset
from audit import ApproxDP, GaussianDP, NeighborPair, PureDP
from experiments.audits import exact_law, largest_loss, lost
from experiments.nist import synthesis as nist_synthesis
from experiments.ons import zeros as ons_zeros

EPSILON, RHO = 1.0, 0.5
SIZE = 200_000  # runs of an audit
TREE_500 = [(f"county {k // 100}", f"tract {k // 10}", f"block {k}") for k in range(500)]


@dataclass(frozen=True, eq=False)
class Subject:
    """A system with its audited mechanism and pair, and the mechanism whose errors are used for estimates."""

    mechanism: Any
    pair: NeighborPair
    size: int = SIZE
    promise: Any = None  # None: the claim of the mechanism
    measured: Any = None  # its exact law bounds the loss; None: the audited mechanism
    errors: Any = None  # None: the audited mechanism
    where: NeighborPair | None = None  # pair of the errors; None: the same pair
    data: Any = None  # database of the errors; None: the first one of that pair
    silent: dict[str, str] = field(default_factory=dict)  # reasons why estimates are impossible, by method

    @property
    def claim(self) -> Any:
        return self.promise or self.mechanism.claim

    def exact(self) -> float:
        """Return the exact loss, the larger of both orders, in the parameter of the promise."""
        law_of: Any = self.measured or self.mechanism
        if isinstance(self.claim, ApproxDP):  # Gaussian noise on counts
            return GaussianDP(1 / law_of.noises[0].scale).epsilon_at(self.claim.delta)
        if hasattr(law_of, "spent"):
            return float(law_of.spent(self.pair))
        if hasattr(law_of, "support_masses"):
            assert max(law_of.support_masses(self.pair)) > 0  # its only exact law is that of witnesses
            return math.inf
        if self.claim.parameter == "rho":
            return lost(law_of, self.pair, "rho")
        return largest_loss(law_of, self.pair)


def morocco(make: Callable[[Hierarchy], Any]) -> Subject:
    tree, counts = load("morocco")
    return Subject(make(tree), NeighborPair.add_people(counts, 0))


def blocks() -> tuple[Hierarchy, NeighborPair]:
    """Return a tree of 500 blocks in tracts and counties, and a pair: a person moves from the first to the last."""
    tree = Hierarchy.from_codes(*zip(*TREE_500, strict=True))
    people = np.random.default_rng(2020).poisson(20, (tree.n_leaves, 4))
    people[0, 0] += 1  # the person who moves
    return tree, NeighborPair.move_people(people, (0, 0), (tree.n_leaves - 1, 3))


def topdown_measured(**budget: Any) -> Subject:
    tree, pair = blocks()
    return Subject(preset("micro", tree, **budget).stage("measurements"), pair)


def topdown_published() -> Subject:
    tree, pair = blocks()
    topdown = preset("micro", tree, epsilon=EPSILON)
    paths = topdown.stage("rounded", paths=(0, tree.n_leaves - 1))
    return Subject(paths, pair, SIZE, topdown.claim, topdown.stage("measurements"), topdown)


def phsafe() -> Subject:
    config, homes = read_config("us"), load_households()
    counted = tabulation(homes.persons, homes.units, homes.geo, config=config)
    return Subject(PHSafe(config), tabulated(joint_pair("DER"), config), data=counted)


def ons_tables() -> Subject:
    deaths, tree, here, all_ = died()
    one, complete = (IndependentNoise(where, deaths.schema, EPSILON) for where in (tree, deaths.tree))
    return Subject(one, here, errors=complete, where=all_)


def ons_levels() -> Subject:
    deaths, tree, here, _ = died()
    return Subject(OnsTopDown(tree, deaths.schema, EPSILON).stage("measurements"), here, 50_000)


def ons_people() -> Subject:
    deaths, tree, here, everywhere = died()
    one, complete = (OnsTopDown(where, deaths.schema, EPSILON) for where in (tree, deaths.tree))
    return Subject(one, here, 20_000, measured=one.stage("measurements"), errors=complete, where=everywhere)


def died() -> tuple[Deaths, Hierarchy, NeighborPair, NeighborPair]:
    """Return deaths, a tree of a single area, and pairs with one more death: in this area alone, and in all areas."""
    # Noise on other areas carries no information on this one, so the audit omits them.
    deaths = synthetic_deaths(0)
    leaf = [deaths.tree.labels[node] for node in deaths.tree.leaves].index("E38000001")
    cell = int(np.argmax(deaths.histogram[leaf]))
    tree = Hierarchy.from_codes(["region"], ["area"])
    here = NeighborPair.add_people(deaths.histogram[[leaf]], (0, cell))
    return deaths, tree, here, NeighborPair.add_people(deaths.histogram, (leaf, cell))


def nist(*, rows: bool = False) -> Subject:
    """Return NistDp3's noisy histograms before the cut, or histograms of its synthetic rows."""
    mechanism, pair = nist_synthesis.mechanism(), nist_synthesis.neighbors()
    measured = mechanism.stage("measurements")
    if rows:
        no_truth = "rows are drawn: how many a bin gets is chance, and no error of its count"
        silent = dict.fromkeys(("lag_tail", "kde", "histogram"), no_truth)
        return Subject(mechanism.stage("counted"), pair, 20_000, measured=measured, silent=silent)
    return Subject(measured, pair)


SYSTEMS: dict[str, Callable[[], Subject]] = {  # `systems.toml` has the data and the lesson of each
    "GDPC": lambda: morocco(lambda tree: GDPC(EPSILON)),
    "RDPC": lambda: morocco(lambda tree: RDPC(EPSILON, tree)),
    "ADPC": lambda: morocco(lambda tree: ADPC(EPSILON)),
    "bottom-up": lambda: morocco(lambda tree: BottomUp(EPSILON)),
    "TopDown, measurements": partial(topdown_measured, epsilon=EPSILON),
    "TopDown, rounded tables": topdown_published,
    "TopDown, measurements, zCDP": partial(topdown_measured, rho=RHO),
    "PHSafe, noisy counts": phsafe,
    "ONS, 14 tables": ons_tables,
    "ONS, levels": ons_levels,
    "ONS, synthetic people": ons_people,
    "NistDp3, histograms": nist,
    "NistDp3, rows": partial(nist, rows=True),
}


def zeros_kept() -> Subject:
    """Return the pilot without noise on zeros, where a person who appears in a cell exists."""
    pilot = OnsTopDown(ons_zeros.FEW.tree, ons_zeros.FEW.schema, EPSILON, perturb_zeros=False)
    return Subject(pilot, few_deaths(ons_zeros.ALONE), promise=PureDP(EPSILON), measured=pilot.stage("measurements"))


def few_deaths(cell: tuple[int, int]) -> NeighborPair:
    return NeighborPair.add_people(ons_zeros.FEW.histogram, cell)


def classical_gaussian() -> Subject:
    mechanism = systems()["bug-ons-classical-gaussian"].mechanism()
    return Subject(mechanism, few_deaths(ons_zeros.AMONG), size=8_000_000)


def rounded_delta(epsilon: float) -> float:
    """Return the true delta of the classical Gaussian noise at an epsilon after the pilot's rounding."""
    tables: dict[str, Any] = {"tables": [Table(0, "total")], "law": "gaussian", "delta": PILOT_DELTA}
    bug = ClassicalGaussian(ons_zeros.FEW.tree, ons_zeros.FEW.schema, epsilon, **tables)
    return exact_law(bug.noises[0], [1]).delta_at(epsilon)


def inverse_cdf() -> Subject:
    return Subject(BottomUp(EPSILON, noise="inverse_cdf"), NeighborPair.add_people([50, 3, 12, 41, 7, 0, 28, 16, 5], 0))


def domain_from_data() -> Subject:
    mechanism = DomainFromData(nist_synthesis.mechanism(), nist_synthesis.OBSERVED)
    return Subject(mechanism, nist_synthesis.from_another_state(), size=500)


VARIANTS = {  # that violate the promise, with the numbers of their random streams
    "ONS, top-down, zeros kept": (zeros_kept, 7),
    "ONS, Gaussian, inferred scale": (classical_gaussian, 8),
    "bottom-up, inverse CDF": (inverse_cdf, 10),
    "NistDp3, domain from data": (domain_from_data, 12),
}
