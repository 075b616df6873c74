"""Sentences of a report that explain the numbers of an audit."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Sequence

from audit.methods.method import NAMED, Method
from audit.report.figures import excess
from audit.results import AuditResult, Design, Verdict
from audit.results.formatting import NEIGHBORS, at_least, at_most, nearest, number_of, percent, row, texts
from audit.results.power import largest_bound, reach

__all__ = [
    "actions",
    "assumptions",
    "bugs_found",
    "event_class",
    "headline",
    "meaning",
    "promise",
    "quotable",
    "remedy",
    "unseen",
    "visible",
    "worst_first",
]

TABULATE = "Outputs are rows: tabulate them, and audit how often each occurs, too. Drawn rows blur what counts show."
RUNS: dict[Design, str] = {  # assumptions on the runs
    "coins": "The runs are independent: no random stream served two blocks of runs, or both databases.",
    "outputs": "The runs were made elsewhere and are taken to be independent: only copies, and what shows in their "
    "order, would be noticed.",
    "one_run": "Fair coins, independent and secret until the guesses were made, decided who was in the one run.",
}
UNBOUNDED = "The unbounded loss follows from the law that the algorithm states: no count shows it."
ORDER: tuple[Verdict, ...] = ("violated", "no power", "not refuted")
LONGEST = 10_000  # characters of one text; the rest is cut off
FARTHEST = 1e6  # ratio of excesses beyond which no number of runs is advised, since nobody makes so many
RARE = 1e-4  # error probability above which a violation should be confirmed
HALF = 0.5  # of a promise: a smaller bound says little about the true loss
STACKED = 3  # combining marks on one letter; more would cover the lines above and below
UNSEEN = set("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # printable according to Unicode, but invisible


def visible(words: str, most: int = LONGEST) -> str:
    """Return hostile text with escapes for characters that are invisible, or reverse or cover other text."""
    head, rest = words[:most], len(words) - most
    ending = f" ... ({rest:,} more letters)" if rest > 0 else ""
    if head.isascii() and head.isprintable():
        return head + ending
    letters, marks = [], 0
    for letter in head:
        marks = marks + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        harmless = letter.isprintable() and letter not in UNSEEN and marks <= STACKED
        letters.append(letter if harmless else letter.encode("unicode_escape").decode())
    return "".join(letters) + ending


def event_class(result: AuditResult) -> str:
    """Return the kind of counted event, with its article; it is public."""
    return NAMED.get(result.bound, Method).counted


def promise(result: AuditResult) -> str:
    """Explain the promise without mathematics."""
    secret = f"which of two values one {result.unit} has"
    if result.relation == "add_remove":
        secret = f"whether one {result.unit} is included"
    others = "everyone else" if result.unit == "person" else f"all other {result.unit}s"
    promised, _ = _in_100(result.claim.guessed_right, result.measured.guessed_right)
    delta = texts(result.summary())["delta"]
    failures = f" Failures of probability {delta} are set aside." if delta else ""
    return (
        f"An attacker who knows {others}, starting from even odds, guesses from one release {secret}. The promise: the "
        f"guess is right at most {promised} times in 100.{failures}"
    )


def meaning(result: AuditResult) -> list[str]:
    """Explain without mathematics whether the promise holds."""
    claim, cells, sure = result.claim, texts(result.summary()), f"With {percent(result.confidence)} confidence"
    _, proved = _in_100(claim.guessed_right, result.measured.guessed_right)
    if result.support is not None:
        chance = result.support.get("probability")  # missing in a redacted audit
        likely = "" if chance is None else f" of probability {nearest(chance)}"
        return [
            "The promise is broken without limit.",
            f"By the exact law of the algorithm, an output{likely} is possible on only one of the two databases.",
            "Whoever sees it is certain.",
        ]
    if result.verdict == "violated":
        certain = f"for some outputs the guess is right at least {proved} times in 100."
        strictest = f"the smallest {claim.parameter} that the runs do not refute allows up to {proved} times in 100."
        return [f"{sure} it is broken: {certain if claim.epsilon_delta else strictest}"]
    if result.verdict == "no power":
        return [
            "These runs would often miss even twice the promised loss. They say nothing for or against the promise."
        ]
    least = f"{sure} the true {claim.parameter} is {cells['measured']} or more."
    doubt = f"This neither refutes nor proves the promised {cells['promised']}: the true one may be larger."
    return [least if result.measured.budget else "These runs prove no loss at all.", doubt]


def worst_first(audits: Sequence[tuple[str, AuditResult]]) -> list[tuple[str, AuditResult]]:
    """Sort audits by verdict, and then by the ratio of lower bound to promise, largest first."""
    return sorted(audits, key=lambda entry: (ORDER.index(entry[1].verdict), -excess(entry[1]), entry[0]))


def headline(audits: Sequence[tuple[str, AuditResult]]) -> str:
    """Return the conclusion from one or more audits in one sentence."""
    verdicts = [result.verdict for _, result in audits]
    broken, idle, every = verdicts.count("violated"), verdicts.count("no power"), number_of(len(audits), "audit")
    if len(audits) > 1:
        if broken:
            return f"{broken} of {every} {'shows' if broken == 1 else 'show'} a broken promise of privacy."
        return f"No violation found{f', but {idle} of {every} had too few runs' if idle else f' in {every}'}."
    if broken or idle:
        return "The promise of privacy is broken." if broken else "No power: there were too few runs."
    result = audits[0][1]
    little = f", but this audit shows little: it proves {at_least(100 * excess(result), 2)}% of the promise"
    return f"No violation found{little if result.far_below_claim else ''}."


def actions(result: AuditResult, option: str = "") -> list[tuple[str, list[str]]]:
    """Return the next steps after an audit as sentences with commands; `option` is passed to `remedy`."""
    if result.verdict == "violated":
        advice: list[tuple[str, list[str]]] = [("Stop releases by this algorithm until you know the cause.", [])]
        if result.support is None and 1 - result.confidence > RARE:
            chance = f"up to 1 audit in {1 / (1 - result.confidence):.0f} of a sound algorithm accuses it by chance"
            again = "Audit again with fresh runs at 99.9999% confidence."
            advice.append((f"{again} At {percent(result.confidence)}, {chance}.", []))
        if not result.redacted:
            advice.append(("Look at the counted event: it says which outputs tell the two databases apart.", []))
        if result.support is None:
            cells = row(result.summary())
            least = f"{result.claim.parameter} above {cells['measured']} ({cells['confidence']} confidence)"
            only = f"If the algorithm is as you intended, it can only promise {least}. No audit says how far above."
            advice.append((only, []))
        return advice
    if result.interrupted:
        return [("Let the audit go on: it was interrupted, and its other runs may prove more.", [])]
    if result.verdict == "no power":
        return [(f"Audit again with {remedy(result, option) or 'more runs'}.", [])]
    saved, share = result.provenance.get("next"), excess(result)
    several = saved if isinstance(saved, list) else [saved]  # earlier files have a string, forged ones anything
    commands = [command for command in several if isinstance(command, str)]
    searches = any(one.startswith("plaudit search ") for one in commands)
    many = " A search tries many, also with one row fewer." if searches else ""
    advice = [(f"Audit other databases, which may lose more, and every new version.{many}", commands)]
    if "rows" in result.tried:
        advice.append((TABULATE, ["return collections.Counter(map(str, rows))"]))
    if share < HALF:
        little = f"This audit proves {at_least(100 * share, 2)}% of the promise. "
        advice.insert(0, (f"{little}More runs, or outputs of an earlier step, may prove more.", []))
    return advice


def bugs_found(audits: Sequence[tuple[str, AuditResult]], known_bugs: Collection[str]) -> str:
    """Return a sentence on how many known bugs were detected, or an empty string if there are none."""
    verdicts = [result.verdict for name, result in audits if name in known_bugs]
    detected = verdicts.count("violated")
    parts = [f"{detected} detected, as expected"] if detected else []
    parts += [f"{len(verdicts) - detected} not detected"] if detected < len(verdicts) else []
    return f"Known bugs: {'; '.join(parts)}." if parts else ""


def quotable(audits: Sequence[tuple[str, AuditResult]]) -> str:
    """Return a quotable paragraph on audits, sorted by `worst_first`; names are not escaped."""
    name, first = audits[0]
    violated, alone = first.verdict == "violated", len(audits) == 1
    sentences = [headline(audits)]
    if violated and not alone:
        sentences.append(f"The clearest violation is that of {name}.")
    if violated or alone:  # the largest of several bounds does not have its nominal confidence
        sentences += [promise(first), *meaning(first)]
    levels = sorted(result.confidence for _, result in audits)
    sure = " to ".join(dict.fromkeys(map(percent, (levels[0], levels[-1]))))
    steps = " or ".join(sorted({_step(result) for _, result in audits}))
    sentences.append(
        f"An audit runs an algorithm many times on two databases that differ by {steps}. It measures how well releases "
        f"tell the two apart. A violation is stated at {sure} confidence."
    )
    if not (violated and alone):
        sentences.append("A promise that is not refuted is not proved: smaller or rarer losses stay hidden.")
    return " ".join(sentences)


def unseen(result: AuditResult) -> list[str]:
    """Return sentences on losses that this audit could have missed, besides those that every audit can miss."""
    known = result.verdict == "violated" or result.far_below_claim or result.detectable == math.inf
    return [
        *(() if result.verdict == "violated" else result.power or (reach(result),)),
        *([] if known else ["Any loss in other events may have been missed."]),
        "How large the loss is, or whether it has a limit: a lower bound never says."
        if result.ceiling == math.inf
        else f"That a loss exceeds {at_most(result.ceiling)}, the largest possible bound from so many runs.",
    ]


def remedy(result: AuditResult, option: str = "") -> str:
    """Return how many runs, or how large a group, would give power to an audit without it; else an empty string."""
    # `option` is the option for more runs. The minimum detectable loss must shrink to twice the promise. Its excess
    # over the promise is proportional to 1/sqrt(runs) and to 1/people; for rho, this holds for the square root of the
    # loss. The advice adds 20%: the next event may be rarer, and the delta of a group is larger.
    claim = result.claim
    if result.verdict != "no power" or not claim.budget:  # twice a promise of 0 is 0
        return ""
    how = f" ({option})" if option and result.design != "outputs" else ""
    unit = "people" if result.unit == "person" else f"{result.unit}s"
    power = 1 / claim.growth
    beyond = ((result.detectable / claim.budget) ** power - 1) / (2**power - 1)
    if result.design == "one_run":
        return f"more cells, or more {unit} in each of them"
    if result.distance > 1 and largest_bound(result):  # the bound for the group is divided by its size
        fewer = math.ceil(result.distance * (result.ceiling / claim.budget) ** power) - 1
        return f"databases that differ in {fewer} {unit} at most, or more runs{how}" if fewer else f"more runs{how}"
    if beyond > FARTHEST:
        return f"more runs{how}, or databases that differ in several {unit}"
    runs, steps = float(f"{1.2 * result.size * beyond**2:.1e}"), math.ceil(1.2 * beyond * result.distance)
    group = f", or databases that differ in {steps} {unit}"
    return f"about {runs:,.0f} runs in all{how}{group if claim.group(steps).budget <= 1 else ''}"  # else rare events


def assumptions(result: AuditResult) -> list[str]:
    """Return sentences on assumptions and checks of this audit, besides the assumptions of all audits."""
    steps = "one step" if result.distance == 1 else f"{result.distance:,} steps"
    known = "computed from the databases" if result.adjacency == "verified" else "declared by the auditor"
    runs = RUNS[result.design]
    if inflation := result.basis.get("inflation"):
        more = f"{inflation:.3g} times as much as those of independent runs"
        runs += f" The counts vary {more}, and the bound allows for it."
    return [
        f"Neighboring databases differ by {_step(result)}. These two are {steps} apart, which was {known}. Every loss "
        f"is for one step{', as group privacy allows' if result.distance > 1 else ''}.",
        runs,
        "Each run counted, on the rule that all runs before it had chosen; the last rule is shown."
        if result.selection > 0 and "bets" in result.basis
        else f"The event was chosen on {result.selection:,} runs and counted on others."
        if result.selection > 0
        else "The event was fixed before any run, and all runs counted.",
        *([] if result.support is None else [UNBOUNDED]),
    ]


def _step(result: AuditResult) -> str:
    return f"one {NEIGHBORS[result.relation].format(result.unit)}"


def _in_100(promised: float, proved: float) -> tuple[str, str]:
    """Format two probabilities in percent, the first rounded up and the second down, so that their order stays."""
    for digits in range(4, 12):
        words = at_most(100 * promised, digits), at_least(100 * proved, digits)
        if (float(words[1]) > float(words[0])) == (proved > promised):
            break
    return words
