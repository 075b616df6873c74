"""The command ``plaudit``: list, audit and check from a shell, with exit codes for scripts."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from audit.claims import PureDP, check_relation, parse_claim
from audit.neighbors import NeighborPair
from audit.results import AuditResult
from audit.storage import check_writable, read_json

__all__ = ["main"]

WITHIN, VIOLATION, USAGE, NO_POWER, INTERRUPTED = 0, 1, 2, 3, 130
LARGEST_INPUT = 2**31  # bytes of a file of outputs or counts

HELP = """Audit differentially private algorithms.

Run them on neighboring databases, force the largest privacy loss that can be proved, hold it against the promise.
Exit codes: 0 all within their claims, 1 a violation, 2 usage or input, 3 no power.
"""

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, no_args_is_help=True, pretty_exceptions_enable=False, help=HELP
)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every error a user can cause is one line and exit code 2."""
    usage_error: type[Exception] = typer.BadParameter.__bases__[0]
    try:
        code = app(arguments, prog_name="plaudit", standalone_mode=False)
    except usage_error as error:
        _fail(error.format_message())  # type: ignore[attr-defined]
    except (ValueError, TypeError, OSError, ImportError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else WITHIN)


def _fail(message: str) -> None:
    print("plaudit: error:", " ".join(message.split()), file=sys.stderr)
    sys.exit(USAGE)


@app.command("list")
def list_exhibits(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List the algorithms and known bugs that `audit` knows by name."""
    rows = {name: _about(mechanism) for name, mechanism in _entry("catalogue")(epsilon=0.5).items()}
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        width = max(map(len, rows))
        for name, about in rows.items():
            print(f"{name:{width}}  {about}")
    return WITHIN


@app.command()
def audit(
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="Names from `plaudit list`, or module:object for a mechanism of your own."),
    ] = None,
    data: Annotated[
        str,
        typer.Option(help="morocco or midwest (bundled), or a file of counts: .npy, or .csv with one count a line."),
    ] = "morocco",
    epsilon: Annotated[float, typer.Option(help="Budget that a named algorithm promises, in nats.")] = 1.0,
    claim: Annotated[str, typer.Option(help="The promise, pure:EPSILON. Default: the mechanism's own.")] = "",
    relation: Annotated[str, typer.Option(help="Neighbor relation of --claim: add_remove or replace_one.")] = "",
    cell: Annotated[int, typer.Option(help="Area whose count differs between the two databases.")] = 0,
    people: Annotated[int, typer.Option(help="People by whom they differ; the loss is divided by it.")] = 1,
    move_to: Annotated[
        int | None, typer.Option(help="Move the people to this area instead of adding them (replace_one).")
    ] = None,
    outputs_x: Annotated[
        Path | None, typer.Option(help="Outputs of a mechanism that ran elsewhere, one run a line.")
    ] = None,
    outputs_y: Annotated[Path | None, typer.Option(help="The same on the neighboring database.")] = None,
    distance: Annotated[int, typer.Option(help="With --outputs-x: steps between the two databases.")] = 1,
    size: Annotated[int, typer.Option(help="Runs in all, over both databases.")] = 200_000,
    selection: Annotated[float, typer.Option(help="Share of them that chooses the event.")] = 0.3,
    confidence: Annotated[float, typer.Option(help="One-sided confidence of each audit.")] = 0.95,
    attack: Annotated[str, typer.Option(help="auto, threshold or cell.")] = "auto",
    seed: Annotated[int | None, typer.Option(help="Seed; default: fresh entropy, recorded in the result.")] = None,
    jobs: Annotated[int, typer.Option(help="Blocks of runs at work at the same time; -1 for all cores.")] = -1,
    out: Annotated[Path | None, typer.Option(help="Folder for the JSON results and a figure.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> int:
    """Audit mechanisms against their promises."""
    from audit.loss import measure_loss, measure_loss_from_outputs

    if relation:
        check_relation(relation)
    common: dict[str, Any] = {"attack": attack, "selection": selection, "confidence": confidence, "rng": seed}
    if jobs == 0:
        raise ValueError("jobs must be a positive number, or -1 for all cores, got 0")
    if out is not None:
        check_writable(out)

    questions: list[tuple[str, Callable[[], AuditResult]]] = []
    if outputs_x is not None or outputs_y is not None:
        if outputs_x is None or outputs_y is None or targets:
            raise ValueError("--outputs-x and --outputs-y go together, and without the name of a mechanism")
        if not claim or not relation:
            raise ValueError(
                "outputs from elsewhere need --claim pure:EPSILON and --relation add_remove or replace_one"
            )
        promise = parse_claim(claim, relation)  # type: ignore[arg-type]
        x, y = _read_numbers(outputs_x), _read_numbers(outputs_y)
        files = f"{outputs_x.name} and {outputs_y.name}"
        given: dict[str, Any] = {"relation": relation, "distance": distance, "label": f"outputs in {files}"}
        questions = [("outputs", lambda: measure_loss_from_outputs(x, y, promise, **given, **common))]
    elif not targets:
        raise ValueError("name at least one mechanism (see `plaudit list`), or give --outputs-x and --outputs-y")
    else:
        counts, label = _read_counts(data)
        bundled = data if data in _bundled() else "morocco"
        catalogue = (
            _entry("catalogue")(epsilon=epsilon, data=bundled) if any(":" not in name for name in targets) else {}
        )
        for name in targets:
            mechanism = _mechanism(name, catalogue)
            pair = _pair(counts, cell, people, move_to, label)
            if relation:
                pair = pair.under(relation)  # type: ignore[arg-type]
            promised = parse_claim(claim, pair.relation) if claim else getattr(mechanism, "claim", None)
            if not isinstance(promised, PureDP):
                raise ValueError(f"{name} has no claim of its own: give --claim pure:EPSILON")
            promised = promised.under(pair.relation)
            questions.append((name, _asking(measure_loss, mechanism, pair, promised, size=size, n_jobs=jobs, **common)))
    return _answer(questions, out, as_json)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder of saved audits (*.json).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> int:
    """Read saved audits and hold them against their claims."""
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a folder of saved audits, and there is none")
    paths = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    if not paths:
        raise ValueError(f"{folder} must hold saved audits (*.json), got none")
    results = []
    for path in paths:
        try:
            results.append((path.stem, AuditResult.from_dict(read_json(path))))
        except ValueError as error:
            text = str(error)
            raise ValueError(text if str(path) in text else f"{path}: {text}") from None
    _show(results, as_json)
    return _exit_code([result for _, result in results])


def _answer(questions: list[tuple[str, Callable[[], AuditResult]]], out: Path | None, as_json: bool) -> int:
    """Run the audits one by one; what is finished is on disk, whatever happens next."""
    results: list[tuple[str, AuditResult]] = []
    try:
        for name, question in questions:
            result = question()
            results.append((name, result))
            if out is not None:
                result.to_json(out / f"{_file_name(name)}.json")
    except KeyboardInterrupt:
        kept = f", saved in {out}" if out is not None and results else ""
        print(f"plaudit: interrupted: {len(results)} of {len(questions)} audits finished{kept}", file=sys.stderr)
        return INTERRUPTED
    _show(results, as_json)
    if out is not None:
        _draw(results, out)
        if not as_json:
            print(f"Saved in {out}{'/' if out.is_dir() else ''}: one JSON file an audit, and the figure audits.png.")
    return _exit_code([result for _, result in results])


def _asking(measure: Callable[..., AuditResult], *arguments: Any, **options: Any) -> Callable[[], AuditResult]:
    return lambda: measure(*arguments, progress=True, **options)


def _show(results: list[tuple[str, AuditResult]], as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results}, indent=1, allow_nan=False))
        return
    from audit.tables import audit_table

    names, audits = zip(*results, strict=True)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=150)
    for pair in dict.fromkeys(result.pair for result in audits):
        console.print(
            f"Neighbors: x, and y = x with {pair}." if "added" in pair else f"Neighbors: {pair}.", markup=False
        )
    console.print(audit_table(audits, names))
    levels = ", ".join(sorted({f"{100 * result.confidence:.6g}%" for result in audits}))
    console.print(
        f"Losses are epsilon in nats for one step between neighbors. The true loss is at least what the runs force, at "
        f"{levels} confidence. A pass is no proof: a loss below what would have been seen, or in events of "
        "another kind, stays hidden.",
        markup=False,
    )


def _draw(results: list[tuple[str, AuditResult]], out: Path) -> None:
    from audit.plots import house_style, new_figure, plot_audits, save_figure

    names, audits = zip(*results, strict=True)
    with house_style():
        figure, (ax,) = new_figure(8.0, 1.3 + 0.45 * len(audits))
        plot_audits(audits, ax, names)
    save_figure(figure, out / "audits.png")


def _exit_code(results: list[AuditResult]) -> int:
    verdicts = {result.verdict for result in results}
    return VIOLATION if "violated" in verdicts else NO_POWER if "no power" in verdicts else WITHIN


def _entry(name: str) -> Any:
    """Return what the exhibits offer under a name, found by entry point: the instrument does not import them."""
    found = list(metadata.entry_points(group="plaudit", name=name))
    if not found:
        raise ValueError(
            "the exhibits must be installed: run `pip install plaudit`, or `pip install -e .` in a checkout"
        )
    return found[0].load()


def _bundled() -> set[str]:
    return set(_entry("extracts"))


def _mechanism(name: str, catalogue: dict[str, Any]) -> Any:
    if ":" not in name:
        if name not in catalogue:
            raise ValueError(f"no algorithm is called {name!r}; there are {', '.join(catalogue)}, and module:object")
        return catalogue[name]
    module, _, path = name.partition(":")
    sys.path.insert(0, "")  # as `python -m` does, so that a module beside the user is found
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"{module!r} cannot be imported: {error}") from None
    finally:
        sys.path.remove("")
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{module!r} has no {path!r}")
        found = getattr(found, part)
    if not callable(found) or isinstance(found, type):
        raise ValueError(f"{name} must be a mechanism, callable as (data, size, rng), got {type(found).__name__}")
    return found


def _pair(
    counts: NDArray[Any], cell: int, people: int, move_to: int | None, label: Callable[[int], str]
) -> NeighborPair:
    number = "1 person" if people == 1 else f"{people} people"
    if move_to is None:
        pair = NeighborPair.add_people(counts, cell, people)
        words = f"{number} added to {label(cell)}"
    else:
        pair = NeighborPair.move_people(counts, cell, move_to, people)
        words = f"{number} moved from {label(cell)} to {label(move_to)}"
    return NeighborPair(pair.x, pair.y, pair.relation, pair.distance, label=words)


def _read_counts(data: str) -> tuple[NDArray[Any], Callable[[int], str]]:
    """Return counts, and how to name their cells."""
    if data in _bundled():
        tree, counts = _entry("load")(data)
        return counts, tree.label
    path = Path(data)
    if path.suffix not in (".csv", ".npy"):
        raise ValueError(
            f"data must be {' or '.join(sorted(_bundled()))}, or a .csv or .npy file of counts, got {data!r}"
        )
    numbers = _read_numbers(path)
    return numbers.reshape(-1), lambda index: f"cell {index}"


def _read_numbers(path: Path) -> NDArray[Any]:
    """Read a table of numbers: .npy, or comma-separated text with or without a line of names."""
    if path.stat().st_size > LARGEST_INPUT:
        raise ValueError(f"{path} must be at most {LARGEST_INPUT} bytes, got {path.stat().st_size}")
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline()
        names = 0 if all(_is_number(word) for word in first.split(",")) else 1
        table = np.loadtxt(path, delimiter=",", skiprows=names, ndmin=2, encoding="utf-8-sig")
    except ValueError as error:
        raise ValueError(f"{path} must hold numbers, one run or count a line: {error}") from None
    if table.size == 0:
        raise ValueError(f"{path} must hold at least one number, got none")
    return table[:, 0] if table.shape[1] == 1 else table


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip(".") or "audit"


def _about(mechanism: Any) -> str:
    return (type(mechanism).__doc__ or "").strip().splitlines()[0]
