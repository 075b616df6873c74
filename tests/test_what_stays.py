"""What is there stays: every command that writes a file replaces its own kind alone, and says so before its work."""

from inspect import signature
from pathlib import Path

import pytest
import typer

from algorithms.systems import sheets, systems
from audit.claims import PureDP
from audit.cli.app import app
from audit.explorer.page import PAGE
from audit.io.files import Kind
from audit.report.page import REPORT
from audit.results.files import kind_of
from audit.results.plots import FIGURES
from experiments import __main__ as experiments
from tests.helpers import audited, contents, plaudit

RUNS = "--data counts.csv --seed 1 --jobs 1 --out out"
SHEETS = {sheet.name: f"explore {sheet.name}" for sheet in sheets()}
# A command, what does its work, what it writes, and what it may replace: None is nothing.
TABLE: list[tuple[str, str, str, Kind | None]] = [
    (f"estimate gdpc {RUNS}", "audit.estimates.running.estimate_loss", "out/gdpc-lag_tail.png", FIGURES[".png"]),
    ("estimate --residuals counts.csv --out out", "audit.estimates.residuals.residual_loss",
     "out/counts.csv-lag_tail.png", FIGURES[".png"]),
    *((f"plan pure:1 --out a{end}", "audit.planning.table.plan_table", f"a{end}", kind)
      for end, kind in FIGURES.items()),
    ("report saved", "audit.results.folder.read_results", "saved/report.html", REPORT),
    ("report saved --out page.html", "audit.results.folder.read_results", "page.html", REPORT),
    *((f"{words} --html a.html", "audit.explorer.views.build_page", "a.html", PAGE) for words in SHEETS.values()),
    ("explore phsafe --xlsx a.xlsx", "algorithms.phsafe.workbook.formulas", "a.xlsx", None),
    ("explore phsafe --save a.json", "algorithms.phsafe.system.choose", "a.json", None),
    *((f"experiments {verb} invariants --out out", work, f"out/{name}", kind)
      for verb, work in (("run", "experiments.__main__.run_experiment"), ("draw", "experiments.__main__._draw"))
      for name, kind in (("invariants.svg", FIGURES[".svg"]), ("README.md", experiments.PAGE))),
    ("experiments run invariants --out out", "experiments.__main__.run_experiment", "out/invariants.json",
     kind_of("experiment")),
]  # fmt: skip
# Of folders: a result has a file of its own there, a release takes an empty one, a block is named by a fingerprint.
IN_FOLDERS = {("replay", "out"), ("audit", "out"), ("search", "out"), ("audit", "store")}
IN_FOLDERS |= {(f"release {name}", "out") for name in systems()}
OPTIONS = {"out", "html", "xlsx", "save", "store"}
REACHED = "the work was reached"


def run(*words):
    if words[0] != "experiments":
        return plaudit(*words)
    with pytest.raises(SystemExit) as stop:
        experiments.main([*words[1:]])
    return stop.value.code


@pytest.mark.parametrize(("command", "work", "name", "kind"), TABLE, ids=[f"{row[0]} {row[2]}" for row in TABLE])
def test_what_is_there_is_replaced_by_its_own_kind_alone(command, work, name, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    audited().to_json("saved/sound.json")
    Path("counts.csv").write_text("120\n75\n43\n")
    audited(verdict="violated", measured=PureDP(1.5)).to_json("violation.json")
    path = Path(name)
    path.parent.mkdir(exist_ok=True)

    def reached(*_, **__):
        raise ValueError(REACHED)

    monkeypatch.setattr(work, reached)
    begins = b"<!DOCTYPE html>" if kind is None else kind.begins
    own = begins + b"\n" + (b"" if kind is None else kind.mark) + b" of ours"
    held = {"data": b"age,sex\n30,f\n", "a result": Path("violation.json").read_bytes(), "none": b""}
    held |= {"of this format": begins + b"\n of others", "a mark elsewhere": b"a," + own, "own": own, "link": own}

    for what, content in held.items():
        path.unlink(missing_ok=True)
        if what == "link":
            Path("elsewhere").write_bytes(content)
            path.symlink_to(Path("elsewhere").absolute())
        else:
            path.write_bytes(content)
        before = contents(tmp_path)
        assert (run(*command.split()), contents(tmp_path), path.is_symlink()) == (2, before, what == "link")
        stays = f"{name}: is there{'' if kind is None else f', and is not {kind.words}'}: it stays, so name a new file"
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(f": {REACHED if what == 'own' and kind else stays}"), what


def test_every_option_that_writes_is_in_the_table():
    commands = {name: [one.name for one in each.params] for name, each in typer.main.get_command(app).commands.items()}
    for system in systems().values():
        commands |= {f"{verb} {system.name}": signature(system.commands[verb]).parameters for verb in system.commands}
    commands |= {words: ["html", *["xlsx"] * (words == "explore phsafe")] for words in SHEETS.values()}
    options = {(name, option) for name, known in commands.items() for option in OPTIONS.intersection(known)}
    tried = {(" ".join(words[: 1 + (words[0] == "explore")]), word.removeprefix("--"))
             for words in (row[0].split() for row in TABLE) for word in words}  # fmt: skip
    assert options <= tried | IN_FOLDERS
    assert IN_FOLDERS & tried == set()
