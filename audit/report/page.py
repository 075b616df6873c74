"""Write saved results as one HTML page for decision makers: the verdict first, and no scripts."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from importlib import resources
from itertools import islice
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from audit.bounds import citations
from audit.bounds.citations import ESTIMATES, REFERENCES
from audit.io.files import Kind
from audit.methods.method import NAMED
from audit.report import figures, words
from audit.report.figures import END
from audit.report.words import bugs_found, visible, worst_first
from audit.results import AuditResult, LossEstimate, ReplayRecord, formatting, power
from audit.results.formatting import number_of, percent
from audit.results.provenance import PACKAGES, provenance

__all__ = ["LIMITS", "REPORT", "build_report", "report_parts"]

SIGNATURE = '<meta name="generator" content="plaudit report">'
REPORT = Kind("a report of plaudit", b"<!DOCTYPE html>", SIGNATURE.encode())
POLICY = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"
DRAWN = 40  # audits in the overview figure
OPEN = 6  # violations whose details are open
KINDS = 64  # rows of counts
READERS = {
    "public": "Anyone: what could disclose confidential data is left out.",
    "confidential": "Only those who may see the confidential data: events, counts and labels can disclose them.",
    "open": "Anyone who may see the names and commands in it: no data behind it are marked as confidential.",
}
METHODS = ("direct", "lag_tail", "histogram", "kde", "slope")  # of estimates; a public page may name these
NAMED_IN_TITLE = 3
STATISTICS = ("median |loss|", "largest |loss|", "rho", "sum over components")
MOST, LONGEST = 60, 1000  # entries of a provenance, characters of an entry
CALLS = {
    "coins": ("measure_loss", "mechanism, pair"),
    "outputs": ("measure_loss_from_outputs", "outputs_x, outputs_y"),
    "one_run": ("measure_loss_one_run", "mechanism, canaries"),
}
VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}((a|b|rc|\.post|\.dev)\d{1,4})?")


class Limit(NamedTuple):
    """A limit of audits: a wrong conclusion, the reason, a remedy, and the experiment or test that shows it."""

    what: str
    why: str
    helps: str
    experiment: str = ""
    test: str = ""


_templates = resources.files("audit.report") / "templates"
LIMITS = tuple(Limit(**limit) for limit in tomllib.loads((_templates / "limits.toml").read_text("utf-8"))["limit"])
View = dict[str, Any]  # a result with its name and number


def build_report(*results: Any, **options: Any) -> str:
    """Return the page of `report_parts` as one string."""
    return "".join(report_parts(*results, **options))


def report_parts(
    audits: Sequence[tuple[str, AuditResult]],
    estimates: Sequence[tuple[str, LossEstimate]] = (),
    replays: Sequence[tuple[str, ReplayRecord]] = (),
    known_bugs: Collection[str] = (),
    *,
    title: str = "",
    author: str = "",
    question: str = "",
    public: bool = False,
    published: Collection[str] = (),
    through: Callable[[Collection[Any]], Iterable[Any]] = iter,
) -> Iterator[str]:
    """Yield the parts of a self-contained HTML page of at least one result; the same results give the same page."""
    # A `public` page leaves out everything that could disclose the data: events, searches, databases, counts, seeds,
    # commands, parameters, times, and names of mechanisms that are not `published`. Audits named in `known_bugs` are
    # expected to show a violation, and are counted separately. `through` wraps the loop over audits to show progress.
    results: list[Any] = [result for some in (audits, replays, estimates) for _, result in some]
    if not results:
        raise ValueError("a report must have at least one result, got none")
    ordered = sorted(worst_first(audits), key=lambda entry: entry[0] in known_bugs)
    entries = [
        _view("Audit", number, name, result, public, published) | {"known_bug": name in known_bugs}
        for number, (name, result) in enumerate(ordered, 1)
    ]
    names = list(dict.fromkeys(result.mechanism for some in (audits, replays) for _, result in some))
    subject = ", ".join(names)
    if len(names) > NAMED_IN_TITLE or (public and set(names) - set(published)):
        subject = number_of(len(names), "algorithm")
    sources = {key for _, result in audits for key in _sources(result)} | set(ESTIMATES if estimates else ())
    cited = [*(key for key in REFERENCES if key in sources), *sorted(sources - REFERENCES.keys())]
    style = (_templates / "report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    confidential = not public and any(result.confidential for result in results)
    days = sorted({day_of(result) for result in results} - {""})
    values: dict[str, Any] = {"public": public, "confidential": confidential, "through": through, "entries": entries}
    stream = _environment.get_template("report.html.j2").stream(
        values,
        title=title or (f"Privacy audit of {subject}" if names else "Estimates of privacy loss"),
        days=" to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        head=[
            *(fact for fact in (("Question", question), ("Author", author)) if fact[1]),
            ("Who may read it", READERS["public" if public else "confidential" if confidential else "open"]),
        ],
        bugs_found=bugs_found(audits, known_bugs),
        policy=POLICY.format(digest),
        style=Markup(style),
        promised=[(entry["name"], entry["result"]) for entry in entries if not entry["known_bug"]],
        estimates=[_view("Estimate", k, *named, public, ()) for k, named in enumerate(estimates, 1)],
        replays=[_view("Replay", k, *named, public, published) for k, named in enumerate(replays, 1)],
        cited=lambda keys: sorted(cited.index(key) + 1 for key in keys),
        citations=cited,
        version=provenance()["software"]["plaudit"],
    )
    stream.enable_buffering(4096)
    rest = ""
    for part in stream:
        text = (rest + part).replace(">\n<", "><")  # blank text nodes would slow browsers; ">" in text is escaped
        yield text[:-2]
        rest = text[-2:]  # the pattern may continue in the next part
    yield rest


def _view(kind: str, number: int, name: str, result: Any, public: bool, published: Collection[str]) -> View:
    """Return a result with its name and number; for a public page both are redacted."""
    if public:
        mechanism = getattr(result, "mechanism", None)
        name = f"{kind} {number}" + (f": {mechanism}" if mechanism in published else "")
        result = result.redact() if kind == "Audit" else result
    return dict(number=number, name=name, result=result)


def _sources(result: AuditResult) -> set[str]:
    return {*result.claim.sources, *(NAMED[result.bound].sources if result.bound in NAMED else ())}


def _counts(result: AuditResult) -> list[list[str]]:
    kinds = {kind for side in result.counts.values() for kind in side}
    ordered = sorted(kinds, key=lambda kind: (kind != "runs", len(kind), kind))  # bins in numerical order
    first, rest = ordered[:KINDS], ordered[KINDS:]
    table = [[kind.replace("_", " "), *(f"{side.get(kind, 0):,}" for side in result.counts.values())] for kind in first]
    if rest:
        more = [sum(side.get(kind, 0) for kind in rest) for side in result.counts.values()]
        table.append([f"{len(rest)} more, together", *(f"{count:,}" for count in more)])
    return table


def origin(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Return values, such as a provenance, as rows (name, value) of a table."""
    rows = [(visible(key, LONGEST), visible(_plain(value), LONGEST)) for key, value in islice(values.items(), MOST)]
    return [*rows, ("and more", f"{len(values) - MOST} entries")] if len(values) > MOST else rows


def full_origin(result: AuditResult) -> list[tuple[str, str]]:
    """Return seed, seconds and provenance of a result as rows, without its command."""
    seed = "taken out" if result.seed_entropy is None else str(result.seed_entropy)
    provenance = {key: value for key, value in result.provenance.items() if key != "command"}
    return [("seed", seed), ("seconds", f"{result.seconds:.3g}"), *origin(provenance)]


def public_origin(result: AuditResult) -> list[tuple[str, str]]:
    """Return the public rows of a provenance: versions of known packages, and the day."""
    versions = result.provenance.get("software")
    versions = versions if isinstance(versions, dict) else {}
    software = {name: versions.get(name) for name in PACKAGES} | {"Python": result.provenance.get("python")}
    texts = {name: text for name, text in software.items() if isinstance(text, str) and VERSION.fullmatch(text)}
    rows = [("software", ", ".join(map(" ".join, texts.items()))), ("made on", day_of(result))]
    return [(name, text) for name, text in rows if text]


def day_of(result: Any) -> str:
    """Return the day on which a result was made, or an empty string if unknown."""
    provenance = result.settings if isinstance(result, LossEstimate) else result.provenance
    try:
        return datetime.fromisoformat(str(provenance.get("created"))).date().isoformat()
    except ValueError:
        return ""


def reproduction(result: AuditResult) -> tuple[str, list[str]]:
    """Return instructions for repeating a result, and lines of code: the recorded command, or Python."""
    # In the Python code, values from the file are numbers or stand in comments, so that a file cannot inject code.
    command = result.provenance.get("command")
    if isinstance(command, str):
        return "In a shell. The command is from the result file: read it before you run it.", [visible(command)]
    parameters, design = result.parameters, result.design
    numbers = {name: value for name, value in parameters.items() if isinstance(value, int | float)}
    early = parameters.get("stop") == "early"
    options: dict[str, Any] = {"stop": "early"} if early else {}
    if design == "coins":
        options = {"size": numbers.get("size", result.size)} | options
    elif design == "outputs":
        options = {"relation": result.relation, "distance": result.distance, "unit": result.unit} | options
    event = ["event=event"] if result.selection == 0 and design != "one_run" else []
    share = "share" if design == "one_run" else "selection"
    options |= {share: numbers[share]} if share in numbers and not (event or early) else {}
    options |= {"confidence": result.confidence, "rng": result.seed_entropy}
    arguments = [*event, *(f"{name}={value!r}" for name, value in options.items())]
    lines = [
        f"from audit import {type(result.claim).__name__}, {CALLS[design][0]}",
        "",
        f"# mechanism: {visible(result.mechanism, LONGEST)}",
        f"# databases: {visible(result.pair, LONGEST)}",
        *([f"# event: {visible(result.event, LONGEST)}"] if event else []),
        f"result = {CALLS[design][0]}(",
        f"    {CALLS[design][1]}, {result.claim!r},",
        f"    {', '.join(arguments)},",
        ")",
    ]
    words = f"In Python, with the same mechanism, databases and software, at {percent(result.confidence)} confidence:"
    if parameters.get("seedable") is False:
        words = f"Its randomness is not from the seed: other runs, other counts. {words}"
    return words, lines


def _plain(value: Any) -> str:
    """Return a JSON value as text, or a remark if it is nested too deeply."""
    try:
        if isinstance(value, dict):
            entries = ((key, entry) for key, entry in islice(value.items(), MOST) if entry != {})
            return ", ".join(
                f"{key} ({_plain(entry)})" if isinstance(entry, dict) else f"{key} {_plain(entry)}"
                for key, entry in entries
            )
        return str(value)
    except RecursionError:
        return "(nested too deeply)"


_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("audit.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    # Escape invisible characters of hostile text; jinja escapes HTML afterwards.
    finalize=lambda value: visible(value) if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
)
_modules = (citations, figures, formatting, power, words)  # their public names are available in templates
_environment.globals |= {name: getattr(module, name) for module in _modules for name in module.__all__}
_environment.globals |= {"SIGNATURE": Markup(SIGNATURE), "DRAWN": DRAWN, "OPEN": OPEN, "END": END, "LIMITS": LIMITS}
_environment.globals |= {"NAMED": NAMED, "METHODS": METHODS, "STATISTICS": STATISTICS}
_environment.globals |= {one.__name__: one for one in (day_of, full_origin, origin, public_origin, reproduction)}
_environment.globals |= {"rough": lambda value: f"{value:.4g}" if value == value else "unknown"}
_environment.globals |= {"counts": _counts, "sources": _sources}
