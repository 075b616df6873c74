"""Clark and Dajani (2019): two-tailed geometric noise from the bottom up."""

from __future__ import annotations

from experiments.papers.item import Item, Paper, Saved


def _chosen(n: Saved, words: str) -> str:
    found = n("bottom_up_curve")["chosen"][words]
    return f"99% of L1 accuracy at epsilon {found['l1']:g}, of L2 at {found['l2']:g}"


BOTTOM_UP = Paper(
    'Clark and Dajani (2019), "Achieving Differential Privacy Using a Two-Tailed Geometric Bottom-Up Mechanism"',
    [
        Item(
            "Method 1",
            "geometric law with p = 1 - exp(-epsilon); the difference of two is two-tailed",
            "algorithms.noise:TwoTailedGeometric, "
            "tests.algorithms.noise.test_noise:test_two_tailed_geometric_is_scipys_dlaplace",
            "same",
        ),
        Item(
            "Method 1",
            "noise on every cell of the full histogram; margins are sums",
            "algorithms.bottom_up:BottomUp, "
            "tests.algorithms.bottom_up.test_bottom_up:test_margins_add_up_every_combination",
            "same",
        ),
        Item(
            "Method 1",
            "a cryptographically secure generator",
            "algorithms.noise.secure:two_tailed_geometric, "
            "tests.algorithms.bottom_up.test_release:test_the_command_releases_with_secure_noise",
            "shown",
        ),
        Item(
            "Method 1",
            "an inverse distribution function",
            "algorithms.bottom_up.inverse_cdf:InverseCdf, bottom_up_curve",
            "differs",
            lambda n: (
                "at 53 bits a proof with probability "
                + ", ".join(f"{row['witness']:.0e}" for row in n("bottom_up_curve")["inverse"][::6])
                + " at epsilon "
                + ", ".join(f"{row['epsilon']:g}" for row in n("bottom_up_curve")["inverse"][::6])
            ),
            why="bounded noise breaks the promise; that uniforms have 53 bits is assumed",
        ),
        Item(
            "Method 2",
            "sensitivity 1 of unweighted counts",
            "tests.algorithms.bottom_up.test_bottom_up:test_exact_loss_is_epsilon",
            "same",
        ),
        Item(
            "Method 2",
            "L1 and L2: average absolute and squared distance, by epsilon",
            "algorithms.bottom_up.accuracy:accuracy, "
            "tests.algorithms.bottom_up.test_bottom_up:test_norms_are_averages_with_the_expectation_that_theory_has",
            "same",
        ),
        Item(
            "Method 2, figure",
            "a curve of accuracy against epsilon to choose by",
            "bottom_up_curve",
            "shown",
            lambda n: _chosen(n, "as drawn"),
            why="its sample curve is an image without numbers",
        ),
        Item("Method 2", "budgets of all products are added up", "audit.claims:compose", "shown"),
        Item(
            "Data",
            "the 1960 long form, sex by group quarters in all counties",
            "bottom_up_curve",
            "not to be had",
            lambda n: f"{n('bottom_up_curve')['people']:,} people of 437 counties by five races",
            why="a special tabulation that is not public; counties of the Midwest stand in",
        ),
        Item(
            "Data",
            "calibrated to published totals that agree; others left alone, or not reported",
            "algorithms.bottom_up:PublishedTotals, tests.algorithms.bottom_up.test_bottom_up:"
            "test_consistent_areas_are_raked_inconsistent_ones_blank_others_left_alone, bottom_up_curve",
            "shown",
            lambda n: (
                "reported: "
                + ", ".join(f"{state} {part:.0%}" for state, part in n("bottom_up_curve")["reported"].items())
            ),
        ),
        Item(
            "Data",
            "weights raise the sensitivity; global sensitivity is taken",
            "algorithms.bottom_up:WeightedBottomUp, bottom_up_curve",
            "shown",
            lambda n: f"weights to 6: {_chosen(n, 'weighted sample')}",
        ),
        Item(
            "Data",
            "L2 reached one faster than L1, since populations are high",
            "bottom_up_curve",
            "same",
            lambda n: f"{_chosen(n, 'as drawn')}; weighted: {_chosen(n, 'weighted sample')}",
        ),
        Item(
            "Data",
            "secrecy of the sample, in future",
            "",
            "not to be had",
            why="the authors have not done it; nothing here counts on it",
        ),
    ],
)
