"""The pilot of the Office for National Statistics: deaths of 2018, by two methods."""

from __future__ import annotations

import numpy as np

from experiments import ons_bias, ons_matrices
from experiments.audits import violations
from experiments.papers.item import Item, Paper, Saved

WITH, WITHOUT = ons_bias.WITH, ons_bias.WITHOUT


def _unchanged(n: Saved, law: str) -> str:
    return ", ".join(f"{row['formula']:.4f}" for row in n("ons_unchanged")["rows"] if row["law"] == law)


def _regions(n: Saved, variant: str, region: str = "NA") -> str:
    rows = n("ons_bias")["rows"][variant]
    return f"{ons_bias.NAMES[region]}: " + ", ".join(f"{row['regions'][region]:,.0f}" for row in rows.values())


def _printed(variant: str, region: str = "NA") -> str:
    counts = ons_bias.PRINTED_REGIONS[variant][region][1:]
    return f"{ons_bias.NAMES[region]}: " + ", ".join(f"{count:,}" for count in counts)


def _areas(n: Saved, variant: str) -> str:
    rows = n("ons_bias")["rows"][variant]
    ratios = [
        rows[epsilon]["areas"][area] / shown[1 + place]
        for area, shown in ons_bias.PRINTED_AREAS[variant].items()
        for place, epsilon in enumerate(rows)
        if shown[1 + place]
    ]
    return f"{min(ratios):.2f} to {max(ratios):.2f} times the printed counts"


def _nearest(n: Saved, name: str, method: str) -> str:
    epsilon, apart = ons_matrices.nearest(n("ons_matrices"), name, method)
    return f"{method} at epsilon {epsilon:g}: {apart:.2f} of cells in other classes"


def _mean(n: Saved, kind: str, measure: str) -> str:
    rows = n("ons_pilot")["kinds"][kind]
    return ", ".join(
        f"{np.mean(np.array(rows[epsilon][measure], float)):,.2f} at {epsilon}" for epsilon in ("0.1", "1", "10")
    )


def _ratio(n: Saved) -> str:
    kinds = n("ons_pilot")["kinds"]
    ratio = np.divide(kinds["top-down, pilot"]["1"]["l1"], kinds["laplace"]["1"]["l1"])
    return f"L1 at epsilon 1: {ratio.min():.2f} to {ratio.max():.0f} times, above 1 in {(ratio > 1).sum()} of 14 tables"


def _orders(n: Saved) -> str:
    found = n("ons_orders")
    smallest = [name for _, name in found["names"]].index("N99999999")
    after = {
        row["order"]: row["after"][smallest]
        for row in found["rows"]
        if (row["law"], row["epsilon"]) == ("laplace", 2.0)
    }
    return "Northern Ireland at epsilon 2: " + ", ".join(f"{count:,.0f} ({order})" for order, count in after.items())


def _zeros(n: Saved) -> str:
    rows = {row["name"].removeprefix("zeros kept: "): row["audits"] for row in n("ons_zeros")["zeros"]}
    audits = rows["synthetic people"]
    return f"{violations(audits)} of {len(audits)} audits of synthetic people report a violation"


DATA = "the records are confidential; made-up deaths have its regions, Brazil's are real"

ONS = Paper(
    "Office for National Statistics, pilot of differential privacy on mortality data",
    [
        Item("Section 2", "epsilon-DP, one record added or removed", "audit.claims:PureDP", "same"),
        Item(
            "Figure 1",
            "Laplace noise on two neighbors, a ratio of exp(epsilon) at most",
            "ons_illustrated",
            "shown",
            lambda n: (
                f"log-ratio {np.abs(np.subtract(*n('ons_illustrated')['log_densities'])).max():.4f}, at epsilon 1"
            ),
        ),
        Item(
            "Section 3, equations",
            "P(unchanged) = F(0.5) - F(-0.5) = 1 - exp(-epsilon/2)",
            "algorithms.ons:unchanged_probability, tests.algorithms.ons.test_ons:"
            "test_unchanged_counts_are_those_of_tables_1_to_3",
            "same",
        ),
        Item(
            "Table 1",
            "Laplace, rounded",
            "ons_unchanged",
            "same",
            lambda n: _unchanged(n, "laplace"),
            "0.0488 ... 0.9933",
        ),
        Item(
            "Table 2",
            "Gaussian, rounded",
            "ons_unchanged",
            "same",
            lambda n: _unchanged(n, "gaussian"),
            "0.0157 ... 0.9512",
            "scale and delta 0.05 are inferred from the row: they are not printed",
        ),
        Item("Table 3", "geometric", "ons_unchanged", "same", lambda n: _unchanged(n, "geometric"), "0.05 ... 0.9999"),
        Item(
            "Section 4",
            "541,000 deaths of 2018",
            "algorithms.ons.deaths:synthetic_deaths, algorithms.ons.deaths:brazil_deaths, ons_pilot",
            "not to be had",
            lambda n: f"{n('ons_pilot')['people']:,} made up",
            "541,000",
            f"{DATA}; Table 8 adds up to 529,655",
        ),
        Item(
            "Method 1",
            "independent noise, the budget divided among tables",
            "algorithms.ons:IndependentNoise, tests.algorithms.ons.test_ons:test_shares_of_tables_are_what_they_cost",
            "same",
        ),
        Item(
            "Privacy budget",
            "10 tables of 1 each, or 100 of 0.1, for 10 in all",
            "tests.algorithms.ons.test_ons:test_shares_of_tables_are_what_they_cost",
            "same",
        ),
        Item(
            "Perturbation of zeros",
            "without noise on zeros the ratio is outside of the definition",
            "ons_zeros, tests.algorithms.ons.test_ons:test_zeros_that_get_no_noise_are_a_witness",
            "same",
            _zeros,
        ),
        Item(
            "Negative values and bias",
            "raising negative values to 0 lifts counts",
            "ons_pilot",
            "same",
            lambda n: (
                f"lift at epsilon 1 {n('ons_pilot')['kinds']['laplace']['1']['lift']:.2f} people a count, by its law "
                f"{n('ons_pilot')['kinds']['laplace']['1']['expected']:.2f}"
            ),
        ),
        Item(
            "Figure 2, method 2",
            "from the top down: noise, adjustment to the level above, whole numbers",
            "algorithms.ons:OnsTopDown, ons_illustrated",
            "shown",
            lambda n: f"a release by hand: {n('ons_illustrated')['release']}",
        ),
        Item(
            "Method 2",
            "maximum remainder rounding keeps totals",
            "algorithms.ons.adjust:maximum_remainder, "
            "tests.algorithms.ons.test_ons:test_rounding_keeps_every_parent_in_random_cases",
            "same",
        ),
        Item(
            "Section 1",
            "geometric and Gaussian mechanisms were applied, results not presented",
            "ons_orders, ons_pilot",
            "shown",
            lambda n: (
                f"independent Gaussian, mean share of cells in their class: {_mean(n, 'gaussian', 'on_diagonal')}"
            ),
        ),
        Item(
            "Table 4",
            "fourteen tables",
            "algorithms.ons.tables:PILOT_TABLES, tests.algorithms.ons.test_ons:test_fourteen_tables_of_the_pilot",
            "same",
        ),
        Item(
            "Table 5",
            "numbers of categories",
            "tests.algorithms.ons.test_deaths:test_the_shape_is_that_of_table_5",
            "same",
        ),
        Item(
            "Table 6",
            "transition matrix, a desirable result",
            "ons_matrices",
            "differs",
            lambda n: f"{_nearest(n, 'good', 'laplace')}; {_nearest(n, 'good', 'top-down')}",
            "11 x 11 cells",
            "neither table, method nor epsilon is named, and no setting of either method gives it",
        ),
        Item(
            "Table 7",
            "transition matrix, a poor result",
            "ons_matrices",
            "close",
            lambda n: _nearest(n, "poor", "top-down"),
            "11 x 11 cells",
            "epsilon is not named",
        ),
        Item(
            "Table 8",
            "regions after the top-down method, epsilon 10, 2, 0.1",
            "ons_bias",
            "direction",
            lambda n: f"{_regions(n, WITH)}; {_regions(n, WITH, 'N99999999')}",
            f"{_printed(WITH)}; {_printed(WITH, 'N99999999')}",
        ),
        Item("Table 9", "areas, the same", "ons_bias", "direction", lambda n: _areas(n, WITH), "9 areas"),
        Item(
            "Table 10",
            "regions without noise on zeros",
            "ons_bias",
            "direction",
            lambda n: f"{_regions(n, WITHOUT)}; {_regions(n, WITHOUT, 'S99999999')}",
            f"{_printed(WITHOUT)}; {_printed(WITHOUT, 'S99999999')}",
        ),
        Item("Table 11", "areas, the same", "ons_bias", "direction", lambda n: _areas(n, WITHOUT), "9 areas"),
        Item(
            "Table 12",
            "an illustration of the bias",
            "tests.algorithms.ons.test_ons:test_table_12_digit_by_digit",
            "same",
        ),
        Item(
            "Section 5", "geography first would shift the same effect to other variables", "ons_orders", "same", _orders
        ),
        Item(
            "Section 5, equations",
            "L1, L2, Hellinger's distance, cells on the diagonal",
            "algorithms.ons.utility:utility, tests.algorithms.ons.test_ons:test_transition_matrix_and_its_classes",
            "same",
            why="Hellinger's formula is an image; the usual one for tables is taken",
        ),
        Item(
            "Section 5",
            "shares 0.01, 0.05, 0.165, 0.775 of the levels",
            "algorithms.ons.top_down:PILOT_SHARES, "
            "tests.algorithms.ons.test_ons:test_levels_cost_their_shares_for_every_person",
            "same",
        ),
        Item(
            "Figure 3",
            "cells relatively unchanged, top-down, Laplace",
            "ons_pilot",
            "shown",
            lambda n: f"mean share: {_mean(n, 'top-down, pilot', 'on_diagonal')}",
            why="the figure is an image without numbers",
        ),
        Item(
            "Figure 4",
            "L1 falls with epsilon",
            "ons_pilot",
            "direction",
            lambda n: f"mean L1: {_mean(n, 'top-down, pilot', 'l1')}",
        ),
        Item(
            "Figure 5",
            "L2 falls with epsilon",
            "ons_pilot",
            "direction",
            lambda n: f"mean L2: {_mean(n, 'top-down, pilot', 'l2')}",
        ),
        Item(
            "Figure 6",
            "Hellinger's distance falls with epsilon",
            "ons_pilot",
            "direction",
            lambda n: f"mean distance: {_mean(n, 'top-down, pilot', 'hellinger')}",
        ),
        Item(
            "Section 5",
            "L1 and L2 of the top-down method are much greater than of independent noise",
            "ons_pilot",
            "differs",
            _ratio,
            why="so in coarse tables, not in fine ones, at one total epsilon",
        ),
        Item(
            "Section 6",
            "more epsilon for high levels may improve results",
            "ons_pilot",
            "same",
            lambda n: (
                "L1 with equal shares / the pilot's, regions, epsilon 1: "
                + ", ".join(
                    f"{a / b:.2f}"
                    for a, b in zip(
                        n("ons_pilot")["kinds"]["top-down, equal"]["1"]["l1"][10:],
                        n("ons_pilot")["kinds"]["top-down, pilot"]["1"]["l1"][10:],
                        strict=True,
                    )
                )
            ),
        ),
    ],
)
