"""Commands that write something, each with good files, and small enough to be run hundreds of times."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.fuzz.desk import AREAS, HOUSEHOLDS, RELEASED, RUNS

AUDIT = f"plaudit audit gdpc --epsilon 1 {RUNS} --data counts.csv --out out --store kept"
RELEASES = {
    "bottom-up": f"plaudit release bottom-up {RELEASED} --geo geo.csv --seed 1",
    "ons": f"plaudit release ons {RELEASED} --method top-down --geo geo.csv --seed 1",
    "nist": "plaudit release nist --data persons.csv --spec spec.json --epsilon 2 --groups groups.json --rows 50 "
    "--out out --seed 1",
    "topdown": f"plaudit release topdown --preset micro --data adults.csv {AREAS} --geo geo.csv --seed 1 --out out",
    "phsafe": f"plaudit release phsafe {HOUSEHOLDS} --config config.json --seed 1 --out out",
}
EXPERIMENT = "experiments run phsafe_table10 --quick --jobs 1 --out out"
RESULTS = {
    "audit": AUDIT,
    "outputs": "plaudit audit --outputs-x x.csv --outputs-y y.csv --claim pure:1 --relation add_remove --seed 1 "
    "--out out",
    "search": "plaudit search gdpc --data counts.csv --pairs 4 --keep 2 --size 2000 --seed 1 --jobs 1 --out out",
    "replay": "plaudit replay gdpc --data counts.csv --cell 0 --seed 1 --out out",
    "estimate": "plaudit estimate --residuals errors.csv --method lag-tail --seed 1 --out out",
    "report": "plaudit report old --out out/page.html",
    "plan": "plaudit plan pure:1 --violation 1.5 --out out/plan.svg",
    "explore": "plaudit explore phsafe --config config.json --margin PH3:state_A-G=20 --save out/settings.json",
    "explore page": "plaudit explore phsafe --config config.json --html out/page.html",
    "explore workbook": "plaudit explore phsafe --config config.json --xlsx out/book.xlsx",
    "experiments run": EXPERIMENT,
    "experiments draw": "experiments draw phsafe_table10 --out out",
}
COMMANDS = RESULTS | {f"release {name}": command for name, command in RELEASES.items()}


def prepare(desk: Path, place: Path, command: str) -> Path:
    """Copy the good files; where results go, there is one of yesterday, and numbers to draw."""
    folder = place / "desk"
    shutil.copytree(desk, folder, symlinks=True)
    if " release " not in command:
        (folder / "out").mkdir()
        shutil.copy(desk / "new" / "count.json", folder / "out" / "yesterday.json")
    if " draw " in command:
        shutil.copy(Path(__file__).parents[2] / "figures" / "phsafe_table10.json", folder / "out")
    return folder
