"""What several test modules share: mechanisms of one line, pairs of databases, binomial limits."""

import csv
import os
import re
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from audit import cli
from audit.claims import PureDP
from audit.neighbors import NeighborPair
from audit.results import AuditResult, LossEstimate, ReplayRecord

SEED = int(os.environ.get("PLAUDIT_TEST_SEED", "1"))  # of what rows of docs/reliability.md draw at random, day by day


def system_module(folder):
    """The module of a system, after all are registered in their order, which is that of `plaudit list`."""
    import_module("algorithms.systems").systems()
    return import_module(f"algorithms.{folder}.system")


def in_full(small, full):
    """The size of a simulation by default, and that of its slow form."""
    sizes = ((small, pytest.mark.quick), (full, pytest.mark.slow))
    return [pytest.param(*(size if isinstance(size, tuple) else [size]), marks=mark) for size, mark in sizes]


def contrast(one, other):
    """The ratio of the luminances of two colors, each of three numbers from 0 to 1, by WCAG 2."""
    parts = np.array([one, other])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (high + 0.05) / (low + 0.05)


def powers(low, high):
    """Positive numbers of every magnitude between two powers of ten."""
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


def counts(limit=2000):
    """Runs, at least one, in some of which an event was seen."""
    return st.integers(1, limit).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs)))


def most(times, confidence=0.95):
    """The most misses that are not suspicious: a bound that keeps its word has more with probability below 1e-4."""
    return int(binom.isf(1e-4, times, 1 - confidence))


def chi_square(observed, expected, least=20):
    """P-value of counts against what is expected of them; neighbors that are expected more seldom make one class."""
    classes, group = [], np.zeros(2)
    for pair in zip(observed, expected, strict=True):
        group = group + pair
        if group[1] >= least:
            classes.append(group)
            group = np.zeros(2)
    classes[-1] = classes[-1] + group
    tally, wanted = np.array(classes).T
    return chi2.sf(((tally - wanted) ** 2 / wanted).sum(), wanted.size - 1)


def noisy(data, size, rng):
    """Laplace noise of scale 1 on every count."""
    return data + rng.laplace(size=(size, *np.shape(data)))


noisy.threads = True  # it writes into no array of its own


def geometric(epsilon, size, rng):
    """Two-tailed geometric noise."""
    p = -np.expm1(-epsilon)
    return rng.geometric(p, size) - rng.geometric(p, size)


def averaged(epsilon, shape, rng):
    """The mean of four such noises."""
    return geometric(epsilon / 4, (4, *shape), rng).mean(axis=0)


def pair_of(x, y, relation="add_remove"):
    """Two databases on the caller's word."""
    return NeighborPair.declared(np.array(x), np.array(y), relation)


def audited(**changes):
    """One audit in which every field has a value of its own."""
    result = AuditResult(
        mechanism="count",
        claim=PureDP(1.0),
        measured=PureDP(0.875),
        verdict="not refuted",
        event="y if output[0] >= 13",
        searched="thresholds on output[0]",
        counts={
            "x": {"runs": 700, "guessed_x": 0, "guessed_y": 190},
            "y": {"runs": 699, "guessed_x": 0, "guessed_y": 510},
        },
        pair="1 person added to cell 0",
        relation="add_remove",
        unit="person",
        distance=1,
        adjacency="verified",
        bound="guessing game",
        confidence=0.95,
        size=2000,
        selection=601,
        ceiling=5.5,
        detectable=1.25,
        support=None,
        seed_entropy=42,
        provenance={"python": "3.11", "parameters": {"size": 2000, "mechanism": {"epsilon": 1.0}}},
        seconds=0.5,
        attack="entries",
        tried=("entries", "trained"),
        notes=("warned 3 times: UserWarning: no bounds",),
    )
    return replace(result, **changes)


def estimated(**changes):
    estimate = LossEstimate(
        method="lag_tail",
        at=np.array([0.0, 1.0, 2.0]),
        loss=np.array([0.5, -3.0, np.nan]),
        low=np.array([0.25, -np.inf, np.nan]),
        high=np.array([0.75, np.inf, np.nan]),
        value=0.5,
        interval=(0.25, np.inf),
        confidence=0.95,
        assumptions=("errors have one law", "areas are alike"),
        size=500,
        areas=9,
        settings={"lag": 1, "starts": [0, 1, 2]},
        statistic="largest |loss|",
    )
    return replace(estimate, **changes)


def replayed(**changes):
    """The record of one replay."""
    record = ReplayRecord(
        mechanism="GDPC",
        pair="1 person added to cell 0",
        relation="add_remove",
        claim=PureDP(1.0),
        queries=({"query": "counts", "draws": 3, "l1_change": 1.0, "epsilon": "inf"},),
        violations=(),
        notes=("one run only",),
        evaluated=True,
        known=True,
        size=1,
        seed=42,
        seconds=0.5,
        confidential=False,
        provenance={"command": "plaudit replay gdpc --seed 42"},
    )
    return replace(record, **changes)


def refused_by(run, *arguments):
    """The lines in which a command refuses what leaves everything as it was: findings, and the error last."""
    before, paths = contents(Path()), sorted(Path().rglob("*"))
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert (contents(Path()), sorted(Path().rglob("*"))) == (before, paths)
    *findings, last = err.splitlines()
    assert last.startswith("plaudit: error: ")
    return (*findings, last.removeprefix("plaudit: error: "))


def beside_reading(err):
    """What a command says on stderr besides how it read each column."""
    return [line for line in err.splitlines() if not re.search(r" read (as|from) ", line)]


@contextmanager
def refused(error, message):
    """What is done raises this error with this message, which is one line."""
    with pytest.raises(error) as caught:
        yield
    assert str(caught.value) == message
    assert "\n" not in message


@contextmanager
def refused_like(error, pattern):
    """What is done raises this error with such a message, which is one line."""
    with pytest.raises(error, match=pattern) as caught:
        yield
    assert "\n" not in str(caught.value)


def refuses(error, message, call, *arguments, **options):
    """A call raises this error with this message, which is one line."""
    with refused(error, message):
        call(*arguments, **options)


def whole(outputs):
    """All of the outputs, where a part would do."""
    return outputs


class BrokenError(Exception):
    """An error of the mechanism's own, with arguments."""


def raising(rate, give=lambda size, rng: rng.random(size)):
    """A mechanism each run of which raises an exception at a rate, and a batch wherever one of its runs does."""

    def mechanism(data, size, rng):
        if (rng.random(size) < rate).any():
            raise BrokenError("no such area", 17)
        return give(size, rng)

    return mechanism


def halving(farthest=12):
    """Errors whose frequencies, and whose one-sided tails, halve exactly with every person."""
    k = np.arange(-farthest, farthest + 1)
    counts = 2 ** (farthest - np.abs(k))
    counts[[0, -1]] += 1
    return np.repeat(k, counts)


def same_losses(found, wanted, at=(0.0, 0.3, 0.7, 1.2, 2.0)):
    """Two laws of the privacy loss agree, in either order of the databases."""
    for law, other in ((found, wanted), (found.reverse(), wanted.reverse())):
        assert law.maximum == pytest.approx(other.maximum, rel=1e-9)
        assert law.infinite_mass == pytest.approx(other.infinite_mass, abs=1e-12)
        for epsilon in at:
            assert law.delta_at(epsilon) == pytest.approx(other.delta_at(epsilon), abs=1e-12)


def contents(folder):
    """What the files in a folder hold."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def plaudit(*arguments):
    """The exit code of the command."""
    with pytest.raises(SystemExit) as stop:
        cli.main([str(argument) for argument in arguments])
    return stop.value.code


def anew(name):
    """The path of a file that is there no more, for what replaces nothing."""
    Path(name).unlink(missing_ok=True)
    return name


def rows_of(path):
    """The rows of a CSV file, by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
