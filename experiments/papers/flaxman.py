"""Flaxman (2019): counting algorithms, and two estimates of what they lose."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.audits import down, opened, share
from experiments.papers.item import Item, Paper, Saved


def _largest(n: Saved, event: str) -> str:
    return ", ".join(f"{np.median(events[event]['largest']):.2f}" for events in n("flaxman_direct")["paper"].values())


def _middle(n: Saved, name: str) -> str:
    return f"{np.median(n('flaxman_figure1')['medians'][name]):.4f}"


def _estimates(n: Saved, name: str, algorithm: str, part: int = 0, method: str = "kde") -> str:
    rows = [row for row in n("flaxman_sweep")["rows"] if row["range"] == name]
    return ", ".join(f"{row['estimates'][f'{algorithm}, {method}'][part]:.2f} at {row['value']:g}" for row in rows)


def _exact(n: Saved, system: str) -> str:
    row = next(row for row in n("seeds_audited")["rows"] if row["system"] == system)
    return f"exact loss {float(row['exact']):g} of epsilon 1, one person added or removed"


def _witness(n: Saved, name: str) -> str:
    return down(share(n("joint_witness")["rows"][name]["audit"]))


def _moved(n: Saved) -> str:
    row: dict[str, Any] = next(row for row in n("neighbor_relation")["rows"] if row["case"] == "moved")
    return f"exact loss {row['exact'] / row['epsilon']:g} epsilon of GDPC when a person moves"


FLAXMAN = Paper(
    'Flaxman (2019), "Empirical quantification of privacy loss with examples relevant to the 2020 US Census"',
    [
        Item(
            "Section 2",
            "epsilon-DP: databases that are the same but for one person's data",
            "audit.claims:PureDP, neighbor_relation",
            "differs",
            _moved,
            "epsilon",
            "its noise is that of a person added or removed; who moves changes two counts",
        ),
        Item(
            "Section 2",
            "TopDown splits epsilon over six levels, which compose",
            "algorithms.topdown:TopDown, topdown_audit",
            "shown",
        ),
        Item(
            "Section 2.1",
            "synthetic people: N, J, mu, C = floor((N/mu)^(1/J))",
            "algorithms.population:uniform_population, tests.algorithms.test_population:test_the_setting_of_the_paper",
            "same",
        ),
        Item("Section 2.1", "total counts TC at every level", "algorithms.hierarchy:Hierarchy.totals", "same"),
        Item(
            "Section 2.2",
            "the law of G(z), and GDPC = TC + G(epsilon)",
            "algorithms.noise:TwoTailedGeometric, algorithms.flaxman:GDPC, "
            "tests.algorithms.noise.test_noise:test_two_tailed_geometric_is_scipys_dlaplace",
            "same",
        ),
        Item(
            "Section 2.2",
            "RDPC: noise for epsilon / (J + 1) a level, raked from N + G down",
            "algorithms.flaxman:RDPC, tests.algorithms.flaxman.test_flaxman:test_rdpc_is_the_paper_s_loop",
            "same",
        ),
        Item(
            "Section 2.2",
            "ADPC: the mean of P releases of GDPC with epsilon / P each",
            "algorithms.flaxman:ADPC, tests.algorithms.flaxman.test_flaxman:test_errors_of_adpc_follow_their_exact_law",
            "same",
        ),
        Item(
            "Section 2.3",
            "GDPC, RDPC and ADPC are epsilon-DP",
            "seeds_audited",
            "same",
            lambda n: "; ".join(f"{name}: {_exact(n, name)}" for name in ("GDPC", "RDPC", "ADPC")),
            "epsilon",
        ),
        Item(
            "Section 2.3",
            "a search for databases and events (Ding et al.)",
            "audit.measure.search:search_loss",
            "shown",
        ),
        Item(
            "Section 2.3, direct estimate",
            "500 + 500 runs, a person moved from area 0 to area 1001",
            "audit.estimates.direct:direct_loss, flaxman_direct",
            "shown",
        ),
        Item(
            "Section 2.3, direct estimate",
            "the maximum log-ratio is an estimate, each one a noisy lower bound",
            "flaxman_direct",
            "differs",
            lambda n: (
                f"lower bounds of GDPC, RDPC, ADPC from {opened(n('flaxman_direct')['one_person']['GDPC']).size:,} "
                "runs and fewer: "
                + ", ".join(down(share(one)) for one in n("flaxman_direct")["one_person"].values())
                + " epsilon"
            ),
            why="a frequency is no bound; held-out runs with a confidence limit give one",
        ),
        Item(
            "Section 2.3, less-obvious estimate",
            "frequencies of all areas' errors for the probability of one's",
            "audit.estimates.residuals:residual_loss, "
            "tests.audit.estimates.test_residuals:test_the_histogram_of_a_geometric_law_is_exact_and_changes_sign_at_zero",
            "same",
        ),
        Item(
            "Section 2.3, less-obvious estimate",
            "without smoothing, fluctuations are undesirable",
            "flaxman_sweep",
            "same",
            lambda n: f"median / epsilon of GDPC's histogram: {_estimates(n, 'epsilon', 'GDPC', 0, 'histogram')}",
            why="they are, below a budget of 0.25",
        ),
        Item(
            "Section 2.3, less-obvious estimate",
            "a range of N, J, mu and epsilon",
            "flaxman_sweep",
            "shown",
            lambda n: f"RDPC's median / epsilon over J: {_estimates(n, 'levels', 'RDPC')}",
        ),
        Item(
            "Section 2.3, less-obvious estimate",
            "the maximum log-ratio compared with epsilon",
            "flaxman_figure1, flaxman_sweep",
            "differs",
            lambda n: ", ".join(f"{np.median(v):.4f}" for v in n("flaxman_figure1")["largest"].values()),
            "0.025 (figure 1)",
            "the maximum is made by noise at the ends of the window; the figure shows the middle of the curves",
        ),
        Item(
            "Section 2.3, less-obvious estimate",
            "K from a percentile and a factor, such as 1.5 and 95",
            "flaxman_sweep",
            "shown",
            lambda n: f"ADPC's median / epsilon by multiplier: {_estimates(n, 'multiplier', 'ADPC')}",
            why="its notebook has 2 behind figure 1",
        ),
        Item(
            "Section 2.3, less-obvious estimate",
            "Gaussian kernels of several bandwidths",
            "flaxman_sweep",
            "shown",
            lambda n: f"GDPC's largest / epsilon: {_estimates(n, 'bandwidth', 'GDPC', 1)}",
        ),
        Item(
            "Section 3",
            "errors of exactly k: too noisy to be interpretable",
            "flaxman_direct",
            "same",
            lambda n: f"largest log-ratios at epsilon 0.1: {_largest(n, 'equal')}",
        ),
        Item(
            "Section 3",
            "errors of k or more: visually consistent with epsilon",
            "flaxman_direct",
            "same",
            lambda n: f"largest log-ratios at epsilon 0.1: {_largest(n, 'at_least')}",
            why="and with much else: intervals are wider than epsilon",
        ),
        Item(
            "Section 3",
            "2 hours for the direct estimate",
            "flaxman_direct",
            "differs",
            lambda n: f"{n('flaxman_direct')['paper_seconds']:.1f} s",
            "2 hours",
            "faster code",
        ),
        Item(
            "Section 3",
            "20 seconds for the less-obvious estimate",
            "flaxman_figure1",
            "differs",
            lambda n: f"{n('flaxman_figure1')['seconds_a_fit']:.2f} s a fit",
            "20 s",
            "faster code",
        ),
        Item(
            "Figure 1(a)",
            "distributions of residuals",
            "flaxman_figure1",
            "shown",
            lambda n: f"{n('flaxman_figure1')['areas']:,} areas",
        ),
        Item(
            "Figure 1(b), section 3",
            "GDPC's loss is its budget of 0.025",
            "flaxman_figure1",
            "close",
            lambda n: _middle(n, "GDPC"),
            "0.025",
        ),
        Item(
            "Figure 1(b), section 3",
            "ADPC's (P = 4) is half of its budget of 0.05",
            "flaxman_figure1, flaxman_sweep",
            "differs",
            lambda n: f"{_middle(n, 'ADPC')}; median / epsilon by P: {_estimates(n, 'parts', 'ADPC')}",
            "0.025",
            "the estimate is reproduced; the exact loss has no plateau and rises to all of 0.05",
        ),
        Item(
            "Figure 1(b), section 3",
            "RDPC's (J = 3) is a quarter of its budget of 0.1",
            "flaxman_figure1, joint_witness",
            "differs",
            lambda n: f"{_middle(n, 'RDPC')}; lower bound from the whole table {_witness(n, 'auto')} epsilon",
            "0.025",
            "the estimate is reproduced; it is of one count, and the table loses nearly all",
        ),
        Item(
            "Abstract, section 4",
            "the loss of hierarchical algorithms is likely far below the bound of composition",
            "joint_witness",
            "differs",
            lambda n: f"lower bound {_witness(n, 'auto')} epsilon of RDPC, exact loss 1",
            why="its own section 4 fears an event that shows more: the joint event of a path is one",
        ),
    ],
)
