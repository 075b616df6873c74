"""Pages of the site with their source elsewhere: docstrings, the command, saved numbers, pages of the repository."""

from __future__ import annotations

import importlib
import inspect
import os
import posixpath
import re
import shutil
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from pydoc import locate

from experiments.experiment import NAMES, by_subject, load_numbers

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "figures"

# Pages of the repository, where GitHub shows them, and where they are on the site.
PROJECT = {
    "LIMITATIONS.md": "limitations",
    "THREAT_MODEL.md": "threat_model",
    "SECURITY.md": "security",
    "CONTRIBUTING.md": "contributing",
    "CODE_OF_CONDUCT.md": "conduct",
    "CHANGELOG.md": "changelog",
    "algorithms/data/NOTICE.md": "data",
}
SITE = {
    **{page: f"generated/project/{name}" for page, name in PROJECT.items()},
    "figures/README.md": "generated/findings/index",
    "README.md": "index",
}

# The names of `audit` in the order in which they are needed.
EVERYDAY = {
    "Run an audit": (
        *("measure_loss", "measure_loss_from_outputs", "measure_loss_one_run", "search_loss", "replay.replay"),
    ),
    "Promise": ("PureDP", "ApproxDP", "ZCDP", "GaussianDP", "compose"),
    "Neighbors": ("NeighborPair", "neighbors_within", "Canaries", "RecordCanaries"),
    "Result": ("AuditResult",),
    "Plan": ("plan_size", "plan_power", "plan_violation", "plan_early", "plan_table", "explore"),
    "Mechanism": ("Mechanism", "per_run"),
    "Where to look": ("Attack", "Event", "Statistic"),
    "Estimates and exact losses": (
        *("residual_loss", "direct_loss", "LossEstimate", "loss_distribution", "LossDistribution"),
    ),
}

# Whose names the reference describes besides, in which order; a name that several offer stands where it comes first.
MODULES = {
    "Measure": ("audit", "audit.neighbors", "audit.claims", "audit.events", "audit.exact", "audit.testing"),
    "Saved results, plans, replay": ("audit.results", "audit.planning", "audit.replay"),
    "Libraries": ("audit.adapters.opendp", "audit.adapters.diffprivlib"),
    "Extend": ("audit.attacks", "audit.methods", "algorithms.registry"),
    "Bounds": (
        *(
            f"audit.bounds.{name}"
            for name in ("game", "rectangle", "limits", "gaussian", "renyi", "betting", "one_run")
        ),
    ),
    "Systems and noise": (
        *(f"algorithms.{name}" for name in ("flaxman", "topdown", "phsafe", "ons", "bottom_up", "nist", "noise")),
        *(f"algorithms.{name}" for name in ("hierarchy", "schema", "population", "benchmarks", "bugs")),
    ),
}


def relinked(text: str, page: str) -> str:
    """Return a page with links that lead to pages of the site; what the site does not have keeps its words only.

    Code is left as it is.
    """
    folder = posixpath.dirname(page if page.startswith("/") else f"docs/{page}").lstrip("/")

    def lead(match: re.Match[str]) -> str:
        words, path, place = (part or "" for part in match.groups())
        if not path or ":" in path or path.startswith("/"):
            return match[0]
        target = posixpath.normpath(posixpath.join(folder, path))
        if target == "figures/README.md":
            name = place.lstrip("#") or words
            return f"[{words}](/generated/findings/{name if name in NAMES else 'index'}.md)"
        if target in SITE:
            return f"[{words}](/{SITE[target]}.md{place})"
        if target.startswith("docs/"):
            return f"[{words}](/{target.removeprefix('docs/')}{place})"
        return words

    link = re.compile(r"(?<!!)\[([^\]\n]*(?:\n[^\]\n]*)?)\]\(([^()\s#]*)(#[^()\s]*)?\)")
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if place % 2 else link.sub(lead, part) for place, part in enumerate(parts))


def write_pages(folder: Path) -> None:
    """Write all of them anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in (write_project, write_findings, write_commands, write_reference, write_theorems):
        part(folder)


def _write(path: Path, *parts: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _list(names: list[str], title: str, *, hidden: bool = False) -> str:
    lines = ["```{toctree}", ":maxdepth: 1", *([":hidden:"] if hidden else [f":caption: {title}"]), "", *names, "```"]
    return "\n".join(lines)


def write_project(folder: Path) -> None:
    """Pages of the repository that the site has, too."""
    for page, name in PROJECT.items():
        if (ROOT / page).exists():
            _write(folder / "project" / f"{name}.md", relinked((ROOT / page).read_text("utf-8"), f"/{page}").strip())


def write_findings(folder: Path) -> None:
    """One page an experiment: its answer, figure, numbers and expectation, and how to have it again."""
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    cards, lists = [], []
    for subject, experiments in by_subject(NAMES).items():
        lines = []
        for experiment in experiments:
            name, numbers = experiment.name, load_numbers(experiment.name, FIGURES)
            title = experiment.figure_title(numbers)
            lines.append(f"- [{experiment.title}]({name}.md): {title}")
            parts = [f"# {experiment.title}", f"**{experiment.question}**"]
            parts.append(experiment.finding(numbers))
            for shown, ending in (("page", ".svg"), ("phone", ".phone.svg")):
                parts.append(f":::{{image}} {name}{ending}\n:alt: {title}\n:class: for-{shown}\n:::")
                shutil.copy(FIGURES / f"{name}{ending}", folder / "findings")
            parts += ["## The numbers", str(experiment.table(numbers))]
            parts += ["## What was expected", experiment.expectation]
            if experiment.first:
                options = f":link: {name}\n:link-type: doc\n:img-top: {name}.svg\n:img-alt: {title}"
                cards.append(f":::{{grid-item-card}} {experiment.title}\n{options}\n\n{title}\n:::")
            commands = f"python -m experiments run {name}\npython -m experiments check {name}"
            parts += ["## Run it again", f"```\n{commands}\n```", f"All numbers are in {{download}}`{name}.json`."]
            _write(folder / "findings" / f"{name}.md", *parts)
            shutil.copy(FIGURES / f"{name}.json", folder / "findings")
        lists += [f"## {subject}", "\n".join(lines)]
    _write(
        folder / "findings" / "index.md",
        "# What was found",
        "What everybody should know, then all findings by system. Each page has the numbers, what was "
        "expected beforehand, and the command that makes them again.",
        "::::{grid} 1 1 2 2\n:gutter: 3\n\n" + "\n\n".join(cards) + "\n::::",
        *lists,
        _list(list(NAMES), "", hidden=True),
    )


def write_commands(folder: Path) -> None:
    """One page a command, with its help as lists that fit a phone."""
    names = []
    for words in _commands(()):
        name, blocks = "_".join(words) or "plaudit", _help(words).split("\n\n")
        _write(folder / "commands" / f"{name}.md", f"# {' '.join(('plaudit', *words))}", *map(_help_block, blocks))
        names.append(name)
    _write(
        folder / "commands" / "index.md",
        "# Commands",
        "What `--help` says of every command. Exit codes: 0 all within their promises, 1 a violation, 2 usage, "
        "input or whatever else went wrong, 3 no power, 130 interrupted.",
        _list(names, "Commands"),
    )


def _help_block(block: str) -> str:
    """Return a block of a help in Markdown: usage and examples as code, options as a list, all else as a paragraph."""
    title, _, body = block.partition("\n")
    if title.startswith("Usage:") or title == "  Examples:":
        return f"```text\n{textwrap.dedent(body) or title}\n```"
    if title.startswith(" "):
        return _plain(block)
    entries = [entry.partition("  ") for entry in re.split(r"^  (?=\S)", body, flags=re.MULTILINE)[1:]]
    return f"## {title.rstrip(':')}\n\n" + "\n\n".join(
        f"`{name.strip()}`\n: {_plain(text)}" for name, _, text in entries
    )


def _plain(text: str) -> str:
    """Return text whose options are code, so that their dashes stay, and whose other marks are no Markdown."""
    text = re.sub(r"(`[^`]*`)|(?<![\w-])(--[a-z][a-z-]*)", lambda m: m[1] or f"`{m[2]}`", " ".join(text.split()))
    return re.sub(r"([<*])", r"\\\1", text)


def _commands(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return a command and those below it."""
    below = re.search(r"^Commands:\n(.*)", _help(words), flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"^  ([a-z][a-z0-9-]*)", below[1], flags=re.MULTILINE) if below else []
    return [words, *(one for name in names for one in _commands((*words, name)))]


@cache
def _help(words: tuple[str, ...]) -> str:
    command, environment = [sys.executable, "-m", "audit", *words], os.environ | {"NO_COLOR": "1", "TERM": "dumb"}
    options = ["--help-all"] if "--help-all" in _run(command, ["--help"], environment) else ["--help"]
    return _run(command, options, environment)


def _run(command: list[str], options: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run([*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip("\n")


def write_reference(folder: Path) -> None:
    """One table of the names of `audit`, with a page each, and one page a module for all others, from docstrings."""
    first = "Python\n======\n\nThe names of ``audit``, which ``import plaudit`` has, too. Others are below, by module."
    rows = [".. list-table::\n   :widths: 20 80\n"]
    described, tables, modules = set(), [], []
    for title, names in EVERYDAY.items():
        rows.append(f"   * - {title}\n     - " + ", ".join(f":py:obj:`~audit.{name}`" for name in names))
        described |= {id(locate(f"audit.{name}")) for name in names}
        listed = "\n".join(f"   ~audit.{name}" for name in names)
        tables.append(f".. rubric:: {title}\n\n.. autosummary::\n   :toctree: .\n   :nosignatures:\n\n{listed}")
    for title, names in MODULES.items():
        written = []
        for module in names:
            if parts := _described(module, described):
                _write(folder / "api" / f"{module}.rst", *parts)
                written.append(module)
        modules.append(f".. toctree::\n   :maxdepth: 1\n   :caption: {title}\n\n   " + "\n   ".join(written))
    _write(folder / "api" / "index.rst", first, "\n".join(rows), *tables, *modules)


def _described(module: str, described: set[int]) -> list[str]:
    loaded = importlib.import_module(module)
    parts = [f"{module}\n{'=' * len(module)}", f".. automodule:: {module}\n   :no-members:"]
    for name in getattr(loaded, "__all__", ()):
        thing = getattr(loaded, name)
        if id(thing) in described:
            continue
        if inspect.isclass(thing):
            parts.append(
                f".. autoclass:: {module}.{name}\n   :members:\n   :inherited-members: Exception, tuple, Protocol"
            )
        elif inspect.isfunction(thing):
            parts.append(f".. autofunction:: {module}.{name}")
        else:
            continue
        described.add(id(thing))
    return parts if len(parts) > 2 else []


def write_theorems(folder: Path) -> None:
    """Which theorem makes which bound valid, as reports cite it."""
    from audit.bounds.citations import REFERENCES
    from audit.methods.method import NAMED

    rows = ["| bound | why it holds | sources |", "|---|---|---|"]
    for made in NAMED.values():
        sources = "; ".join(REFERENCES.get(one, one).rstrip(".") for one in made.sources)
        rows.append(f"| {made.bound} | {made.theorem} | {sources}. |")
    _write(folder / "theorems.md", "# Every bound with its theorem", "\n".join(rows))
