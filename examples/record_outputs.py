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


def run(mechanism, database):
    """Run once, on a copy; return the form of the output and its entries, with words in quotes."""
    try:
        output = mechanism(copy.deepcopy(database))
    except Exception as error:  # an output, too
        return {"form": type(error).__name__}
    output = output.tolist() if hasattr(output, "tolist") else output  # of NumPy
    entries = dict(enumerate(output)) if isinstance(output, (list, tuple)) else output
    entries = entries if isinstance(entries, dict) else {"value": output}
    exact = {key: type(x) is float or (type(x) is int and abs(x) < 2**53) for key, x in entries.items()}
    fields = {f"entry {key}": repr(x if exact[key] else str(x)) for key, x in entries.items()}
    return {"form": f"{type(output).__name__} of {len(fields)}", **fields}


sys.path.insert(0, "")
module, name = sys.argv[1].split(":")
mechanism, paths = getattr(importlib.import_module(module), name), [Path(path) for path in sys.argv[2:4]]
databases = [json.loads(path.read_text("utf-8")) for path in paths]
turns = [[run(mechanism, database) for database in databases] for _ in range(int(sys.argv[4]))]
columns = list(dict.fromkeys(column for turn in turns for fields in turn for column in fields))
for place, path in enumerate(paths):
    with path.with_suffix(".csv").open("x", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(turn[place] for turn in turns)
