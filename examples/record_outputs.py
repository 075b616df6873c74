"""Record what a mechanism outputs, in any environment: this file needs Python 3.8 or newer and no package.

python record_outputs.py mymodule:mechanism x.json y.json 5000
plaudit audit --outputs-x x.csv --outputs-y y.csv --claim pure:1 --relation add_remove
"""

import copy
import csv
import importlib
import json
import sys
from pathlib import Path


def named(output, name="entry"):
    """Return the entries of an output by name, those in lists and mappings too: numbers, and words in quotes."""
    output = output.tolist() if hasattr(output, "tolist") else output  # of NumPy
    output = dict(enumerate(output)) if isinstance(output, (list, tuple)) else output
    if isinstance(output, dict):
        return {at: text for key, entry in output.items() for at, text in named(entry, f"{name} {key}").items()}
    exact = type(output) is float or (type(output) is int and abs(output) < 2**53)
    return {name: repr(output if exact else str(output))}


def run(mechanism, database):
    """Run once, on a copy; an exception is an output, too."""
    try:
        output = mechanism(copy.deepcopy(database))
        return {"form": type(output).__name__, **named(output)}
    except Exception as error:
        return {"form": type(error).__name__}


sys.path.insert(0, "")
module, name = sys.argv[1].split(":")
mechanism = getattr(importlib.import_module(module), name)
paths = [Path(path) for path in sys.argv[2:4]]
databases = [json.loads(path.read_text("utf-8")) for path in paths]
targets = [path.with_suffix(".csv") for path in paths]
if targets[0] == targets[1] or any(target.exists() for target in targets):
    sys.exit(f"two new files must be written, got {targets[0]} and {targets[1]}")
columns, turns = [], []
for _ in range(int(sys.argv[4])):
    turns.append([run(mechanism, database) for database in databases])
    known, columns = columns, list(dict.fromkeys([*columns, *turns[-1][0], *turns[-1][1]]))
    for place, target in enumerate(targets):  # each pair as it comes; all anew where one has an entry that none had
        with target.open("a" if known == columns else "w" if known else "x", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            if known != columns:
                writer.writeheader()
            writer.writerows(turn[place] for turn in (turns[-1:] if known == columns else turns))
