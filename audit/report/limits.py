"""What an audit cannot tell, each with the experiment that shows it: the list of every report and of LIMITATIONS.md."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limit"]


@dataclass(frozen=True)
class Limit:
    """What does not follow from an audit, why, what helps, and the experiment in ``figures/`` that shows it."""

    what: str
    why: str
    helps: str
    experiment: str


LIMITS = (
    Limit(
        "A small excess stays hidden.",
        "Runs are few. A loss below the minimum detectable loss is found with a probability of less than 0.8.",
        "plaudit plan says how many runs detect which excess.",
        "runs",
    ),
    Limit(
        "A loss in rare outputs stays hidden.",
        "What happens once in a million runs is not seen in a thousand. Averages of several noisy counts, and sums of "
        "many small shares, lose most of their budget that way.",
        "The exact loss of a system, where it is known, stands beside its lower bound. Groups of people raise it.",
        "flaxman_direct",
    ),
    Limit(
        "One pair of databases was asked.",
        "An algorithm may lose more on another pair. The worst pair known of PHSafe spends far less than is declared, "
        "and no search proves that there is none worse.",
        "plaudit search looks for pairs; name those that your algorithm may fear.",
        "phsafe_spent",
    ),
    Limit(
        "A promise is one about neighbors.",
        "Noise for a person added or removed loses twice as much of a person moved. A verdict holds for the relation "
        "beside it alone.",
        "Ask for the relation that your promise names, with the option --relation.",
        "neighbor_relation",
    ),
    Limit(
        "Events of another kind may show more.",
        "Attacks look at entries, sums, paths, words, digits and what classifiers learn. One count of a raked table "
        "shows a fraction of what all levels show together.",
        "Register an attack of your own: it cannot make a bound wrong.",
        "flaxman_audit",
    ),
    Limit(
        "Some places in an output are not looked at.",
        "Differences beyond nine decimals that are no bits of floats; letters deep inside long words; products of many "
        "signs; a change of scale of more than some 13,000 entries; forms of an output, such as -0.0 or an order of "
        "keys, that the runs which explore do not meet; whatever is encrypted or encoded.",
        "Audit what is encoded before it is, and give a statistic that reads what you fear.",
        "libraries",
    ),
    Limit(
        "Published tables may tell more than audits of them find.",
        "Post-processing spreads a change thinly. What attacks do not find in tables, others may.",
        "Audit the measurements, too: by theorem tables lose no more.",
        "topdown_loss",
    ),
    Limit(
        "A bug behind post-processing can escape.",
        "Some known bugs of TopDown are not found by counting its published tables.",
        "plaudit replay compares all answers of one pair of runs before noise.",
        "replayed",
    ),
    Limit(
        "An estimate is no bound.",
        "Direct and residual estimates rest on assumptions that no run checks. They are too high where the largest of "
        "many ratios is taken, and too low where errors are raked or averaged.",
        "Read the lower bound beside it. An estimate never becomes a verdict.",
        "all_systems",
    ),
    Limit(
        "One audit can be wrong by chance.",
        "With confidence 95%, one in twenty sound algorithms may be called violated. Many audits make many chances.",
        "Publish at 1 - 1e-6. The summaries of folders and of pytest add the chances up.",
        "bounds",
    ),
    Limit(
        "One release proves little of tables that add up.",
        "An audit of one run takes areas for independent. Counts above them hold many people in or out at once.",
        "Take runs of one pair where you can have them.",
        "one_run",
    ),
    Limit(
        "Noise in floating point is not what its formula says.",
        "Its last bits can tell the exact count. Such mechanisms are refuted, rightly, although textbooks prove them.",
        "Release exact noise, as plaudit release does. Simulations with a seed are for audits alone.",
        "libraries",
    ),
    Limit(
        "Data here stand in for data that are not public.",
        "Households, deaths and the population of 1940 are simulated from published facts. Promises do not depend on "
        "them, errors and biases do.",
        "Run the systems on data of your own.",
        "topdown_errors",
    ),
)
