"""The command ``python -m experiments``: list, run, draw and check."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from audit.cli.exits import USAGE, finished, run_typed
from audit.cli.inputs.groups import WorkerOptions
from audit.cli.inputs.options import with_options
from audit.cli.supervision import supervised
from audit.io.files import Kind, check_replaceable, write_atomically
from audit.results.files import kind_of
from audit.results.plots import FIGURES as DRAWN
from audit.results.plots import PAGE as WIDE
from audit.results.plots import house_style, save_figure
from experiments.drawing import PHONE, compact
from experiments.experiment import NAMES, by_subject, find, load_numbers, run_experiment

FIGURES = Path(__file__).parent.parent / "figures"
QUICK = Path("results") / "quick"
PAPERS = FIGURES.parent / "docs" / "papers.md"
LIMITATIONS = FIGURES.parent / "LIMITATIONS.md"

PAGE = Kind("a page of experiments", b"<!-- python -m experiments ", b" writes this page: edits are lost -->")
LIMITS = Kind("the page of limits", b"# What an audit cannot tell\n")

HOLDS, FAILS = 0, 1  # exit codes: whether all expectations hold

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Run the experiments, draw their figures, check their expectations, and index the papers.",
)

Folder = Annotated[
    Path | None, typer.Option("--out", help="Folder for results. Default: figures/, or results/quick/ for quick runs.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Small version, for a first look.")]


@app.command("list")
def list_experiments() -> int:
    """List the experiments with their questions."""
    width = max(map(len, NAMES))
    for name in NAMES:
        print(f"{name:{width}}  {find(name).question}")
    return HOLDS


@app.command()
@with_options
def run(
    context: typer.Context,
    *,
    names: Annotated[list[str], typer.Argument(help="Names from the list, or all.")],
    quick: Quick = False,
    workers: WorkerOptions,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 1,
    out: Folder = None,
) -> int:
    """Run experiments in full, or quickly, save their numbers and draw their figures."""
    folder = out or (QUICK if quick else FIGURES)
    selected = _known(names)
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, got {seed}")
    if quick and folder.resolve() == FIGURES.resolve():
        raise ValueError(f"--quick must not replace full numbers, got --out {out}")
    for name in selected:
        check_replaceable(folder / f"{name}.json", kind_of("experiment"))
    _check_drawn(selected, folder)
    context.with_resource(workers.started())
    for number, name in enumerate(selected):
        print(f"{name}: {find(name).question}", flush=True)
        try:
            run_experiment(name, folder, quick=quick, seed=seed, jobs=workers.jobs)
            _draw(name, folder)
        except KeyboardInterrupt as interrupt:
            if number:
                interrupt.add_note(f"{number} of {len(selected)} experiments finished before that, saved in {folder}")
            raise
        _report(name, folder)
        print(f"  {find(name).finding(load_numbers(name, folder))}")
    _write_page(folder)
    print(f"Saved in {folder}/: numbers, figures and the page of findings.")
    return HOLDS


@app.command()
def draw(names: Annotated[list[str], typer.Argument(help="Names from the list, or all.")], out: Folder = None) -> int:
    """Draw figures from saved numbers, and from nothing else."""
    selected = _known(names)
    _check_drawn(selected, out or FIGURES)
    for name in selected:
        print(_draw(name, out or FIGURES))
    _write_page(out or FIGURES)
    return HOLDS


@app.command()
def check(
    names: Annotated[list[str] | None, typer.Argument(help="Names from the list; default all.")] = None,
    out: Folder = None,
) -> int:
    """Compare saved numbers with what the experiments expect."""
    outcomes = [_report(name, out or FIGURES) for name in _known(names or ["all"])]
    return HOLDS if all(outcomes) else FAILS


@app.command()
def papers() -> int:
    """Write docs/papers.md: where to find each item of the five papers, and how close."""
    _write_papers()
    print(PAPERS)
    return HOLDS


def _write_papers() -> None:
    from experiments.papers.index import load_papers, page  # slow: it imports modules of the pilot

    write_atomically(PAPERS, page(load_papers(), lambda name: load_numbers(name, FIGURES)), PAGE)


def _known(names: list[str]) -> list[str]:
    selected = list(NAMES) if names == ["all"] else names
    for name in selected:
        find(name)
    return selected


def _check_drawn(names: list[str], folder: Path) -> None:
    """Check before the work that figures and the page of findings replace only files of their kind."""
    for name in names:
        for ending in (".svg", ".phone.svg"):
            check_replaceable(folder / f"{name}{ending}", DRAWN[".svg"])
    check_replaceable(folder / "README.md", PAGE)


def _draw(name: str, folder: Path) -> Path:
    """Draw a figure twice: as wide as a page, and for phones."""
    path, numbers = folder / f"{name}.svg", load_numbers(name, folder)
    for drawn, width in ((path, WIDE), (path.with_suffix(".phone.svg"), PHONE)):
        with house_style():
            save_figure(find(name).figure(numbers, width), drawn)
        write_atomically(drawn, compact(drawn.read_text("utf-8")), DRAWN[".svg"])
    return path


def _write_page(folder: Path) -> None:
    """Write the page of findings; all its numbers come from the saved files."""
    first: list[str] = []
    rest: list[str] = []
    for subject, experiments in by_subject(name for name in NAMES if (folder / f"{name}.json").exists()).items():
        rest.append(f"## {subject}")
        for experiment in experiments:
            name, title, numbers = experiment.name, experiment.title, load_numbers(experiment.name, folder)
            if experiment.first:
                first.append(f"- [{experiment.figure_title(numbers)}](#{name})")
            rest += [f'<a id="{name}"></a>', f"### {title}", experiment.finding(numbers)]  # describes the figure
            phone = f'<source media="(max-width:600px)" srcset="{name}.phone.svg">'
            image = f'<img src="{name}.svg" alt="{escape(experiment.figure_title(numbers))}">'
            rest += [f"<picture>{phone}{image}</picture>", str(experiment.table(numbers))]
            rest.append(
                f"<details><summary>Expected before the run</summary>\n\n{experiment.expectation}\n\n</details>"
            )
            rest.append(f"[Numbers]({name}.json)")
    lines = ["<!-- python -m experiments draw all writes this page: edits are lost -->", "# What was found"]
    lines.append(
        "Each finding has an answer, a figure and a table. What was expected before the run is folded. "
        "`python -m experiments check` compares every expectation with the numbers."
    )
    lines += ["## What everybody should know", "\n".join(first)] if first else []
    write_atomically(folder / "README.md", "\n\n".join([*lines, *rest]) + "\n", PAGE)
    if folder.resolve() == FIGURES.resolve() and (folder / "all_systems.json").exists():
        _write_papers()
        write_atomically(LIMITATIONS, limitations(), LIMITS)


def limitations() -> str:
    """Return the page LIMITATIONS.md: the limits listed in reports, with links to the experiments."""
    from audit.report.page import LIMITS

    lines = [
        "# What an audit cannot tell",
        "Every report has this list. [What plaudit protects, and from whom](THREAT_MODEL.md).",
    ]
    for limit in LIMITS:
        shown = f"[{limit.experiment}](figures/README.md#{limit.experiment})" if limit.experiment else f"`{limit.test}`"
        lines += [f"## {limit.what.rstrip('.')}", f"{limit.why} **What helps:** {limit.helps} Shown by {shown}."]
    return "\n\n".join(lines) + "\n"


def _report(name: str, folder: Path) -> bool:
    checks = list(find(name).functions.check(load_numbers(name, folder)))
    for outcome in checks:
        print(f"  {'ok  ' if outcome.holds else 'FAIL'} {name}: {outcome.words}")
    return all(outcome.holds for outcome in checks)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every error is one line and exit code 2."""
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(finished(lambda: _run(words), "experiments", debug=words[:1] == ["--debug"]))


def _run(words: list[str]) -> int:
    code = run_typed(typer.main.get_command(app), "python -m experiments", words or ["--help"])
    return code if words else USAGE


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Print a traceback before the error message.")] = False,
) -> None:
    """Parse the options before the command."""


if __name__ == "__main__":
    supervised(main, "experiments")
