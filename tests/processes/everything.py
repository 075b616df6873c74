"""``python -m tests.processes.everything FOLDER JOBS``: what seeds decide, in audits of all kinds and releases."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.flaxman import GDPC
from audit import Canaries, NeighborPair, PureDP, measure_loss, measure_loss_one_run, search_loss
from audit.claims import ZCDP
from tests.audit.sampling.cases import PAIR, Laplace
from tests.processes.commands import RELEASES, prepare
from tests.processes.running import run_here

CONTROL = "negative control: what Python's hash seed decides"


def words(data, size, rng):
    return np.where(rng.random(size) < 0.3 + 0.3 * (data[0] > 120), "yes", "né")


def groups(data, size, rng):
    drawn = rng.integers(2, size=size), rng.laplace(data[0], 1, size)
    return [{"ab"[at]: n, "é": 1.0} for at, n in zip(*drawn, strict=True)]


def everything(desk: Path, jobs: int) -> dict[str, Any]:
    """Return counts, events and bounds of audits, and what releases hold, by name."""
    claim, once, options = PureDP(1.0), {"size": 3000, "rng": 5}, {"size": 3000, "rng": 5, "n_jobs": jobs}
    audits = {"auto": measure_loss(Laplace(), PAIR, claim, **options)}
    audits |= {"trained": measure_loss(Laplace(), PAIR, claim, attack="trained", **options | {"size": 6000})}
    audits |= {one.__name__: measure_loss(one, PAIR, claim, **options) for one in (words, groups)}
    audits |= {"zcdp": measure_loss(Laplace(), PAIR, ZCDP(0.5), **options)}
    audits |= {"early": measure_loss(Laplace(), PAIR, claim, stop="early", **options)}
    audits |= {"one run": measure_loss_one_run(GDPC(1.0), Canaries([100] * 1000), claim, rng=5)}
    pairs = [PAIR, NeighborPair.add_people([120, 75], 1)]
    found = search_loss(GDPC(1.0), pairs, claim, **once, n_jobs=jobs).results
    audits |= {f"searched {number}": one for number, one in enumerate(found)}
    told = {name: [one.counts, str(one.event), repr(one.measured)] for name, one in audits.items()}
    told |= {CONTROL: hash("a word")}
    return told | {name: released(command, desk) for name, command in RELEASES.items()}


def released(command: str, desk: Path) -> list[list[str]]:
    """Return a name of what each file of a release holds."""
    with tempfile.TemporaryDirectory() as place, redirect_stdout(StringIO()):
        folder = prepare(desk, Path(place), command)
        assert run_here(command, folder) == 0
        files = sorted(path for path in (folder / "out").rglob("*") if path.is_file())
        return [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files]


if __name__ == "__main__":
    print(json.dumps(everything(Path(sys.argv[1]), int(sys.argv[2]))))
