"""Gardner (2019): NistDp3, synthetic records from noisy histograms of groups of fields."""

from __future__ import annotations

import numpy as np

from experiments.papers.item import Item, Paper, Saved


def _cut(n: Saved, factor: str) -> str:
    row = n("nist_cut")["rows"]["0.3"][factor]
    return f"{row['left']:,.0f} bins, {row['widest']:,.0f} in the histogram of the most"


def _distances(n: Saved) -> str:
    found = n("nist_synthesis")["distance"]["grouped"]
    return ", ".join(f"{np.mean(values):.3f} at {epsilon}" for epsilon, values in found.items())


NIST = Paper(
    'Gardner (2019), "NistDp3: Differential Privacy 3, Write-up and Privacy Proof"',
    [
        Item(
            "Introduction",
            "98 fields of the 1940 census of Colorado",
            "nist_synthesis",
            "not to be had",
            lambda n: f"{n('nist_synthesis')['fields']} fields of KDD Census-Income",
            "98 fields",
            "the census records may not be passed on",
        ),
        Item(
            "Introduction",
            "epsilon 8, 1 and 0.3",
            "nist_synthesis",
            "shown",
            lambda n: f"distance of 3-way margins: {_distances(n)}",
            "8.0, 1.0, 0.3",
        ),
        Item(
            "Pre-processing",
            "values from codebook.cbk, or 0 to maxval of colorado-specs.json",
            "algorithms.nist.contest:read_contest, "
            "tests.algorithms.nist.test_contest:"
            "test_values_are_of_the_codebook_then_of_maxval_and_special_bins_come_first",
            "same",
        ),
        Item(
            "Pre-processing",
            "special bins for very wide fields",
            "algorithms.nist.contest:read_contest",
            "shown",
            why="which bins is not printed: they are the user's",
        ),
        Item(
            "Pre-processing",
            "values of five state-dependent fields sampled from the data, as allowed",
            "algorithms.bugs.systems.nist:DomainFromData, nist_synthesis",
            "differs",
            lambda n: (
                f"{sum(audit['what'] == 'domain from the data' for audit in n('nist_synthesis')['audits'])} audits, "
                "all with a witness of probability 1"
            ),
            why="the contest's rule, and no differential privacy: a new value shows with certainty",
        ),
        Item(
            "Pre-processing",
            "correlated fields grouped by public data: 39 groups of 98 fields",
            "algorithms.nist:choose_groups, nist_synthesis",
            "not to be had",
            lambda n: f"{len(n('nist_synthesis')['groups'])} groups of {n('nist_synthesis')['fields']} fields",
            "39 groups",
            "neither the groups nor the rule is printed; ours are chosen by association on a public half",
        ),
        Item(
            "Pre-processing",
            "bins of a group are the product of its fields' bins; each row is in one",
            "tests.algorithms.nist.test_nist:test_histograms_count_every_record_once_in_each_group",
            "same",
        ),
        Item(
            "Privatization",
            "Laplace noise of scale groups / epsilon on every bin",
            "algorithms.nist:NistDp3, tests.algorithms.nist.test_nist:test_noise_has_the_scale_of_groups_over_epsilon",
            "same",
        ),
        Item(
            "Privacy proof",
            "sensitivity one of each histogram, and groups compose to epsilon",
            "nist_synthesis",
            "same",
            lambda n: f"exact loss / promise {n('nist_synthesis')['composed']['laplace']:.6f}",
            "epsilon",
        ),
        Item(
            "Post-processing",
            "a cut proportional to scale x log10(bins), then rounding",
            "tests.algorithms.nist.test_nist:test_the_cut_is_the_factor_times_scale_times_log10_of_the_bins",
            "same",
            why="its factor is not printed; ours is the logarithm of 10",
        ),
        Item(
            "Post-processing",
            "necessary, or noise fills bins and inflates totals",
            "nist_cut",
            "same",
            lambda n: (
                f"epsilon 0.3: without {_cut(n, '0')}; with {_cut(n, '2.303')}; {n('nist_cut')['records']:,} records"
            ),
        ),
        Item(
            "Post-processing",
            "a bin of each group drawn in proportion to its noisy count",
            "algorithms.nist.synthesis:draw_bins, "
            "tests.algorithms.nist.test_nist:test_bins_are_drawn_in_proportion_to_their_counts",
            "same",
        ),
        Item(
            "Post-processing",
            "800,000 rows",
            "nist_synthesis",
            "same",
            lambda n: f"{n('nist_synthesis')['rows']:,}",
            "800,000",
        ),
    ],
)
