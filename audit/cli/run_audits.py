"""Run the requested audits; save and print each."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from audit.cli.exits import INTERRUPTED, VIOLATION, complain, exit_code
from audit.cli.inputs.groups import ResultOptions
from audit.cli.inputs.targets import blaming, source_of
from audit.io.files import recorded
from audit.io.temporary import find_leftovers
from audit.io.text import printable

if TYPE_CHECKING:
    from audit.results import AuditResult

__all__ = ["NOT_IN_COMMAND", "AuditTask", "caption", "check_out", "command_of", "run_audits", "saved_message", "show"]

# Options that a recorded command omits, or that `command_of` adds itself; then options that name a file.
NOT_IN_COMMAND = set(["targets", "seed", "jobs", "backend", "out", "name", "store", "timeout", "as_json", "verbose"])
FILES = {"data", "spec", "outputs_x", "outputs_y", "residuals"}
IN_SET = {"geo", "public", "groups", "units", "config", "recode"}  # names of --set whose value is a file
FEWEST = 120  # runs that a search needs
AUDIT = "plaudit audit "


@dataclass(frozen=True)
class AuditTask:
    """One audit: the name of its result, the function that runs it, its mechanism, and the options of its pair."""

    name: str
    run: Callable[[], AuditResult]
    target: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    pairs: int = 1  # pairs of databases that share the confidence
    command: str = "audit"
    seed: int | None = None  # of the command, if each audit has another seed
    next_command: tuple[str, dict[str, Any]] | None = None  # suggested after a pass: pairs that may lose more


def check_out(out: Path | None, figure: str = "") -> None:
    """Check before the work that results and the figure can be written to `out`, and look for leftovers."""
    from audit.io.files import check_replaceable, check_writable

    find_leftovers(Path(tempfile.gettempdir()))
    if out is not None:
        if out.exists() and not out.is_dir():
            raise ValueError(f"out must be a folder, got the file {out}")
        check_writable(out)
        if figure and os.path.lexists(out / figure):
            from audit.results.plots import FIGURES

            check_replaceable(out / figure, FIGURES[".png"])


def saved_message(out: Path, names: list[str], saved: list[Path], what: str) -> str:
    """Return a message that names the folder of results, and the files renamed because the name was taken."""
    from audit.results.folder import name_in_files

    files = [f"{name_in_files(name)}.json" for name in names]
    for name, path in zip(files, saved, strict=True):
        if name != path.name:
            what += f" {name} is there from another result, and stays: this one is {path.name}."
    return printable(f"Saved in {out}/: {what}")


def run_audits(tasks: list[AuditTask], result_options: ResultOptions, context: typer.Context) -> int:
    """Run the audits in sequence; each result is saved before the next audit begins."""
    from audit.report.formats import to_json
    from audit.results.folder import save_result

    check_out(out := result_options.out)
    results: list[tuple[str, AuditResult]] = []
    saved: list[Path] = []
    stopped = False
    for number, task in enumerate(tasks):
        try:
            with blaming(task.target) if task.target else nullcontext():
                result = task.run()
            seed = result.seed_entropy if task.seed is None else task.seed
            made_by = command_of(context, [task.command, task.target], task.options, seed)
            provenance = {**result.provenance, "command": made_by, **source_of(task.target)}
            if task.pairs > 1:
                provenance["together"] = {"pairs": task.pairs, "confidence": context.params["confidence"]}
            few = (context.params.get("size") or FEWEST) < FEWEST
            if result.verdict == "not refuted" and task.next_command and not (few and task.next_command[0] == "search"):
                command, options = task.next_command
                provenance["next"] = [command_of(context, [command, task.target], options)]
            results.append((task.name, replace(result, provenance=provenance)))
            if out is not None:
                saved.append(save_result(results[-1][1], out, task.name))
            if stopped := result.interrupted:
                break
        except KeyboardInterrupt as interrupt:
            if out is not None and number:  # the current audit is not counted: its file may exist or not
                interrupt.add_note(f"{number} of {len(tasks)} audits finished before that, saved in {out}")
            raise
    if result_options.as_json:
        print(to_json(results), end="")
    else:
        show(results, verbose=result_options.verbose)
    if out is not None and not result_options.as_json:
        print(saved_message(out, [name for name, _ in results], saved, "one JSON file an audit."))
    elif out is None and not result_options.as_json and context.params.get("seed") is None:
        commands = dict.fromkeys(f"    {printable(one.provenance['command'])}" for _, one in results)
        print("The same runs again:", *commands, sep="\n")
    code = exit_code(result.verdict for _, result in results)
    if not stopped:
        return code
    name, result = results[-1]
    rest = f"; not begun: {len(tasks) - len(results)} of {len(tasks)} audits" if len(results) < len(tasks) else ""
    store = context.params.get("store")
    way = f"the same command will go on from {store}" if store else "with --store FOLDER, the same command would go on"
    complain(f"plaudit: interrupted: the result of {name} is that of its first {result.size:,} runs; {way}{rest}")
    return code if code == VIOLATION else INTERRUPTED


def command_of(context: typer.Context, names: list[str], options: dict[str, Any], seed: object = None) -> str:
    """Return the command that repeats a result: the current command with `options` replaced, and the seed."""
    # If `names` starts with another command, it gets those options that it accepts. Files outside of the current folder
    # are named without their folders, so that a result does not disclose paths.
    words = ["plaudit", *filter(None, names)]
    group: Any = None if context.parent is None else context.parent.command
    command = (group and group.get_command(context, names[0])) or context.command
    for option in command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        explicit = source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP") and name not in NOT_IN_COMMAND
        value = options.get(name, context.params[name] if explicit else None)
        if name in FILES and value is not None:
            value = recorded(value)
        if name == "set" and value is not None:
            parts = [word.partition("=") for word in value]
            value = [f"{key}={recorded(text)}" if key in IN_SET else f"{key}={text}" for key, _, text in parts]
        if value is True:
            words.append(option.opts[0])
        elif value is not None:
            for part in value if option.multiple else [value]:
                words += [option.opts[0], *map(str, part if isinstance(part, tuple) else (part,))]
    return shlex.join(words if seed is None else [*words, "--seed", str(seed)])


def show(results: list[tuple[str, AuditResult]], known_bugs: Collection[str] = (), *, verbose: bool = False) -> None:
    """Print the verdict, the evidence and the next steps; if `verbose`, databases, events and power, too."""
    from audit.io.terminal import console, say
    from audit.report.tables import audit_table
    from audit.report.words import actions, headline, meaning, promise, worst_first
    from audit.results.formatting import WARNING

    audits = [audit for _, audit in results]
    if any(audit.confidential for audit in audits):
        say(WARNING)
    promises = worst_first([entry for entry in results if entry[0] not in known_bugs])
    if promises:
        name, worst = promises[0]
        say(headline(promises), style="bold")
        if worst.verdict != "not refuted" or len(results) == 1:
            say(" ".join([f"{name}:", promise(worst), *(meaning(worst) if worst.verdict != "not refuted" else [])]))
    console().print(audit_table(results))
    rules = [entry for entry in promises[:1] if entry[1].verdict == "violated"]  # of the clearest violation
    pairs = promises[:1] if len({audit.pair for audit in audits}) > 1 else rules
    if verbose:
        rules = pairs = results
    say(*(f"Databases of {name}: {audit.pair}." for name, audit in pairs))
    say(*(f"Rule of {name} that guesses the database: {audit.event}{audit.witness}" for name, audit in rules))
    say(*(f"{name}: {' '.join(audit.power)}" for name, audit in results if verbose and audit.power))
    say(caption(audits, "" if verbose or len(rules) == len(results) else " Databases, events and power: --verbose."))
    steps: dict[str, dict[str, list[str]]] = {}  # sentence -> audit -> commands; shared sentences are printed once
    for name, audit in promises:
        for sentence, commands in actions(audit, "--size"):
            steps.setdefault(sentence, {})[name] = commands
    for sentence, of in steps.items():
        which = "" if len(of) == len(promises) else f"{', '.join(of)}: "
        say(f"- {which}{sentence}")
        for command in _merged(chain.from_iterable(of.values())):
            print(f"    {printable(command)}")  # unwrapped, to be copied


def caption(audits: list[AuditResult], more: str = "") -> str:
    """Return what the numbers of a table mean, and what they do not show."""
    from audit.results.formatting import CAUTION, row

    scales = ", ".join(sorted({audit.claim.scale for audit in audits}))
    steps = {row(audit.summary())["neighbors"] for audit in audits}
    step = steps.pop() if len(steps) == 1 else "step between neighboring databases"
    passes = [audit for audit in audits if audit.verdict == "not refuted"]
    caution = CAUTION if any(not audit.far_below_claim for audit in passes) else "A pass is no proof."  # no number
    return f"Losses are {scales}, for one {step}.{f' {caution}' if passes else ''}{more}"


def _merged(commands: Iterable[str]) -> list[str]:
    """Return different commands; those of `plaudit audit` that differ in the name only become one."""
    merged: dict[tuple[str, str], dict[str, None]] = {}  # command and options -> names
    for line in commands:
        name, _, options = line.removeprefix(AUDIT).partition(" ")
        of_audit = line.startswith(AUDIT) and "'" not in name
        merged.setdefault((AUDIT, options) if of_audit else ("", line), {})[name if of_audit else ""] = None
    return [f"{command}{' '.join(names)} {options}".strip() for (command, options), names in merged.items()]
