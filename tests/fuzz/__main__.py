"""Run the command on hostile command lines and files: ``python -m tests.fuzz --cases N --seed S``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from audit.io.text import printable
from tests.fuzz.cases import Case, case_of
from tests.fuzz.desk import make_desk
from tests.fuzz.holding import Counted, faults
from tests.fuzz.past import PAST
from tests.fuzz.running import run, warm
from tests.reliability.numbers import sums

STEP = 500  # cases after each of which the command says that it is at work


def main() -> int:
    """Run past failures and fresh cases, and say what was tried and what failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="fresh cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first fresh case")
    parser.add_argument("--only", type=int, help="this case alone, with all that it printed")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        desk = Path(folder)
        make_desk(desk)
        warm()
        numbers = range(options.first, options.first + options.cases) if options.only is None else [options.only]
        fresh = (case_of(options.seed, number, desk) for number in numbers)
        alone = options.only is not None
        failed = count_failures(fresh if alone else chain(PAST, fresh), desk, loud=alone)
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if failed else 0


def count_failures(cases: Iterable[Case], desk: Path, *, loud: bool) -> int:
    """Run cases one by one; print each that fails and how to run it again, and a summary; return how many failed."""
    counted = Counted()
    kinds: Counter[str] = Counter()
    failed = 0
    for number, case in enumerate(cases, 1):
        outcome = run(case, desk)
        wrong = faults(case, outcome)
        counted.add(case, outcome)
        kinds.update(fault.partition(":")[0] for fault in wrong)
        failed += bool(wrong)
        if wrong or loud:
            print(f"{case.name}: exit code {outcome.code}: {printable('; '.join(wrong))}", flush=True)
            print(f"    {printable(ascii(case.arguments))[:600]} {list(case.files)}", flush=True)
        if not number % STEP:
            print(f"tried {number}", file=sys.stderr, flush=True)
        if loud:
            print(outcome.out, outcome.err, sep="", file=sys.stderr)
    print(*sums([counted.kinds]), sep="\n")
    print(f"failed {failed}: " + (", ".join(f"{times} {kind}" for kind, times in kinds.items()) or "nothing found"))
    return failed


if __name__ == "__main__":
    sys.exit(main())
