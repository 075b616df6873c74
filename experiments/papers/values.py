"""What comes out here beside what a paper says, in words made from saved numbers: `papers.toml` names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from experiments.audits import down, opened, share, violations
from experiments.experiment import Numbers
from experiments.ons import bias, matrices

Saved = Callable[[str], Numbers]  # name of a part -> its saved numbers


class Values(Mapping[str, Any]):
    """The values that a template may name: a function below, or the numbers of a part."""

    def __init__(self, saved: Saved) -> None:
        self.saved = saved

    def __getitem__(self, name: str) -> Any:
        """Return a value by its name."""
        return FUNCTIONS[name](self.saved) if name in FUNCTIONS else self.saved(name)

    def __iter__(self) -> Iterator[str]:
        return iter(FUNCTIONS)

    def __len__(self) -> int:
        return len(FUNCTIONS)


# Flaxman


def moved(n: Saved) -> float:
    """Exact loss / epsilon of GDPC when a person moves."""
    return float(
        next(row["exact"] / row["epsilon"] for row in n("neighbor_relation")["rows"] if row["case"] == "moved")
    )


def exact(n: Saved) -> dict[str, str]:
    """Return exact losses by system."""
    words = "exact loss {:g} of epsilon 1, one person added or removed"
    return {row["system"]: words.format(float(row["exact"])) for row in n("seeds_audited")["rows"]}


def one_person(n: Saved) -> dict[str, Any]:
    """Return runs of the direct estimate's audits, and their lower bounds / epsilon."""
    audits = n("flaxman_direct")["one_person"]
    return {"runs": opened(audits["GDPC"]).size, "bounds": ", ".join(down(share(one)) for one in audits.values())}


def log_ratio(n: Saved) -> dict[str, str]:
    """Return the median largest log-ratio of each algorithm, by event."""
    paper = n("flaxman_direct")["paper"].values()
    return {
        event: ", ".join(f"{np.median(events[event]['largest']):.2f}" for events in paper)
        for event in ("equal", "at_least")
    }


def estimates(n: Saved) -> dict[str, str]:
    """Return estimates by algorithm, method, statistic of the curve and range: "RDPC, kde, median by levels"."""
    rows = n("flaxman_sweep")["rows"]
    return {
        f"{name}, {words} by {kind}": ", ".join(
            f"{row['estimates'][name][place]:.2f} at {row['value']:g}" for row in rows if row["range"] == kind
        )
        for kind in {row["range"] for row in rows}
        for name in rows[0]["estimates"]
        for place, words in enumerate(("median", "largest"))
    }


def largest(n: Saved) -> str:
    """Return the largest of a curve, by algorithm."""
    return ", ".join(f"{np.median(values):.4f}" for values in n("flaxman_figure1")["largest"].values())


def middle(n: Saved) -> dict[str, float]:
    """Return the median of the curves' medians, by algorithm."""
    return {name: float(np.median(values)) for name, values in n("flaxman_figure1")["medians"].items()}


def whole_table(n: Saved) -> str:
    """Return the lower bound / epsilon that RDPC's leaves show to the default search."""
    return down(share(n("joint_witness")["rows"]["auto"]["audit"]))


# PHSafe


def phsafe_bound(n: Saved) -> dict[str, str]:
    """Return bounds by case."""
    found = {}
    for key, row in n("phsafe_audit")["rows"].items():
        audit = opened(row["audit"])
        spent = f"spent {float(row['spent']):.3f}, promised {audit.claim.budget:g}"
        found[key] = f"lower bound {down(audit.measured.budget)}, {spent}"
    return found


def phsafe_published(n: Saved) -> dict[str, str]:
    """Return the least and the largest share of the counts' loss that tables show."""
    shares = [row["published"]["mu"] / row["spent"] for row in n("phsafe_published")["rows"]]
    return {"least": down(min(shares)), "most": down(max(shares))}


def phsafe_joint(n: Saved) -> dict[str, str]:
    """Return shares of the promise by model of neighbors."""
    joint, ledger = n("phsafe_slack")["joint"], n("phsafe_table10")["ledgers"]["us"]
    return {
        model: f"{model}: {joint[f'{model} add_remove']['rho'] / ledger['unbounded']:.1%} of it, "
        f"{joint[f'{model} replace_one']['rho'] / ledger['bounded']:.1%} for a person replaced"
        for model in ("VAL", "DER", "API")
    }


def coverage(n: Saved) -> dict[str, float]:
    """Return the least and the largest coverage of the printed margin, and the least of the targets."""
    found = [row["coverage"] for row in n("phsafe_table10")["rows"]]
    printed = [one["printed"] for one in found]
    return {"least": min(printed), "most": max(printed), "targets": min(one["target"] for one in found)}


def same_digits(n: Saved) -> dict[str, str]:
    """Return how many budgets each constant gives."""
    rows, found = n("phsafe_table10")["rows"], {}
    for name in ("printed", "production"):
        same = [f"{row['formula'][name]:.6f}" == f"{float(row['unbounded']):.6f}" for row in rows]
        found[name] = f"{sum(same)} of {len(same)} budgets"
    return found


def left_out(n: Saved) -> str:
    """People whom production's thresholds leave out, by table."""
    numbers = n("phsafe_truncation")
    rows = [row for row in numbers["rows"] if row["tau"] == numbers["production"][row["table"]]]
    return ", ".join(f"{row['lost']} of {row['people']:,} ({row['table']})" for row in rows)


# The pilot of the Office for National Statistics


def laplace_ratio(n: Saved) -> float:
    """Return the largest log-ratio of the densities on two neighbors."""
    return float(np.abs(np.subtract(*n("ons_illustrated")["log_densities"])).max())


def unchanged(n: Saved) -> dict[str, str]:
    """Return shares by law of the noise."""
    rows = n("ons_unchanged")["rows"]
    return {
        law: ", ".join(f"{row['formula']:.4f}" for row in rows if row["law"] == law)
        for law in ("laplace", "gaussian", "geometric")
    }


def zeros_kept(n: Saved) -> str:
    """How many audits of synthetic people find zeros without noise."""
    (audits,) = [row["audits"] for row in n("ons_zeros")["zeros"] if row["name"] == "zeros kept: synthetic people"]
    return f"{violations(audits)} of {len(audits)}"


def lift(n: Saved) -> dict[str, float]:
    """How much raised negative values lift a count at epsilon 1: measured, and by the law."""
    row = n("ons_pilot")["kinds"]["laplace"]["1"]
    return {name: float(row[name]) for name in ("lift", "expected")}


def pilot_mean(n: Saved) -> dict[str, str]:
    """Return the mean over tables, by kind of release and measure, as in "gaussian, on_diagonal"."""
    kinds = n("ons_pilot")["kinds"]
    return {
        f"{kind}, {measure}": ", ".join(
            f"{np.mean(np.array(kinds[kind][epsilon][measure], float)):,.2f} at {epsilon}"
            for epsilon in ("0.1", "1", "10")
        )
        for kind in ("gaussian", "top-down, pilot")
        for measure in ("on_diagonal", "l1", "l2", "hellinger")
    }


def top_down_ratio(n: Saved) -> str:
    """L1 of the top-down method over that of independent noise."""
    kinds = n("ons_pilot")["kinds"]
    ratio = np.divide(kinds["top-down, pilot"]["1"]["l1"], kinds["laplace"]["1"]["l1"])
    return f"{ratio.min():.2f} to {ratio.max():.0f} times, above 1 in {(ratio > 1).sum()} of 14 tables"


def equal_shares(n: Saved) -> str:
    """L1 of tables of regions with equal shares over that with the pilot's."""
    equal, pilot = (n("ons_pilot")["kinds"][f"top-down, {name}"]["1"]["l1"][10:] for name in ("equal", "pilot"))
    return ", ".join(f"{a / b:.2f}" for a, b in zip(equal, pilot, strict=True))


def nearest(n: Saved) -> dict[str, str]:
    """Return distances by matrix and method, as in "good, laplace"."""
    found = {}
    for name, method in (("good", "laplace"), ("good", "top-down"), ("poor", "top-down")):
        epsilon, apart = matrices.nearest(n("ons_matrices"), name, method)
        found[f"{name}, {method}"] = f"{method} at epsilon {epsilon:g}: {apart:.2f} of cells in other classes"
    return found


def regions(n: Saved) -> dict[str, str]:
    """Return deaths of three regions after the release, as in "with NA", and as printed: "with NA, printed"."""
    found = {}
    for words, variant in (("with", bias.WITH), ("without", bias.WITHOUT)):
        for region in bias.RARE:
            here = [row["regions"][region] for row in n("ons_bias")["rows"][variant].values()]
            for key, counts in (("", here), (", printed", bias.PRINTED_REGIONS[variant][region][1:])):
                shown = ", ".join(f"{count:,.0f}" for count in counts)
                found[f"{words} {region}{key}"] = f"{bias.NAMES[region]}: {shown}"
    return found


def areas(n: Saved) -> dict[str, str]:
    """Deaths of areas after the release over those printed, by variant."""
    found = {}
    for words, variant in (("with", bias.WITH), ("without", bias.WITHOUT)):
        ratios = [
            row["areas"][area] / shown[1 + place]
            for place, row in enumerate(n("ons_bias")["rows"][variant].values())
            for area, shown in bias.PRINTED_AREAS[variant].items()
            if shown[1 + place]
        ]
        found[words] = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return found


def orders(n: Saved) -> str:
    """Deaths of Northern Ireland at epsilon 2, by order of the levels."""
    numbers = n("ons_orders")
    smallest = [name for _, name in numbers["names"]].index("N99999999")
    rows = [row for row in numbers["rows"] if (row["law"], row["epsilon"]) == ("laplace", 2.0)]
    return ", ".join(f"{row['after'][smallest]:,.0f} ({row['order']})" for row in rows)


# Clark and Dajani, and Gardner


def inverse(n: Saved) -> dict[str, str]:
    """Return the probability of a proof, and the epsilons of these."""
    rows = n("bottom_up_curve")["inverse"][::6]
    return {
        "witness": ", ".join(f"{row['witness']:.0e}" for row in rows),
        "epsilon": ", ".join(f"{row['epsilon']:g}" for row in rows),
    }


def chosen(n: Saved) -> dict[str, str]:
    """Return epsilons by table."""
    return {
        words: f"99% of L1 accuracy at epsilon {found['l1']:g}, of L2 at {found['l2']:g}"
        for words, found in n("bottom_up_curve")["chosen"].items()
    }


def reported(n: Saved) -> str:
    """Return the share of each state's areas that is reported."""
    return ", ".join(f"{state} {part:.0%}" for state, part in n("bottom_up_curve")["reported"].items())


def distances(n: Saved) -> str:
    """Of margins, by epsilon."""
    found = n("nist_synthesis")["distance"]["grouped"]
    return ", ".join(f"{np.mean(values):.3f} at {epsilon}" for epsilon, values in found.items())


def domain_audits(n: Saved) -> int:
    """How many audits there are of a domain read from the data."""
    return sum(audit["what"] == "domain from the data" for audit in n("nist_synthesis")["audits"])


def nist_groups(n: Saved) -> int:
    """How many groups of fields there are."""
    return len(n("nist_synthesis")["groups"])


def cut(n: Saved) -> dict[str, str]:
    """Bins that are left with and without the cut, at epsilon 0.3."""
    rows = n("nist_cut")["rows"]["0.3"]
    return {
        words: f"{rows[factor]['left']:,.0f} bins, {rows[factor]['widest']:,.0f} in the histogram of the most"
        for words, factor in (("without", "0"), ("with", "2.303"))
    }


FUNCTIONS: dict[str, Callable[[Saved], Any]] = {
    function.__name__: function
    for function in (
        *(moved, exact, one_person, log_ratio, estimates, largest, middle, whole_table),
        *(phsafe_bound, phsafe_published, phsafe_joint, coverage, same_digits, left_out),
        *(laplace_ratio, unchanged, zeros_kept, lift, pilot_mean, top_down_ratio, equal_shares, nearest),
        *(regions, areas, orders, inverse, chosen, reported, distances, domain_audits, nist_groups, cut),
    )
}
