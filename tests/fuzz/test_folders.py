"""A release into whatever stands where it is to be: whole and nothing else, or refused and all as it was."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import tempfile
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from algorithms.bottom_up import BottomUp
from algorithms.bottom_up.release import release
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from tests.fuzz.holding import tree
from tests.helpers import in_full

TREE, SCHEMA = Hierarchy.from_codes(["A", "A", "B"], ["1", "2", "1"]), Schema({"sex": ("f", "m")})
COUNTS = np.array([[9, 4], [0, 7], [20, 1]])
FILES = {"columns.csv", "ledger.txt", "level_0.csv", "level_1.csv", "level_2.csv", "release.json"}
NAMES = st.sampled_from(["a", "b", "a/c", "a/c/d", "link"])
ERRORS = [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device"), MemoryError()]


def real(path):
    """Where a path leads; a link to itself leads to itself."""
    return Path(os.path.realpath(path))


@contextmanager
def broken_off(at, error):
    """The file system fails, or somebody interrupts, when something gets its name for the so-many-th time."""
    left = [at]

    def failing(name, *places):
        left[0] -= 1
        if left[0] < 0:
            raise error
        name(*places)

    with patch.multiple(os, replace=partial(failing, os.replace), link=partial(failing, os.link)):
        yield


@contextmanager
def as_nobody():
    """Permissions bind, though not the superuser."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def released(path):
    """What is released."""
    return release(BottomUp(1.0, TREE, SCHEMA), COUNTS, out=path, rng=np.random.default_rng(1))


@functools.cache
def imported():
    """Import what a release needs, as somebody who may."""
    with tempfile.TemporaryDirectory() as folder:
        released(Path(folder))


class Folders(RuleBasedStateMachine):
    """A place where releases are made, broken off and repeated, among files, folders and links of others."""

    @initialize()
    def begin(self):
        imported()
        self.place = Path(tempfile.mkdtemp())
        self.place.chmod(0o777)
        self.released = {}

    def teardown(self):
        for path in self.place.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o777)
        shutil.rmtree(self.place)

    def free(self, path):
        """Whether a release may be made there: nothing is, or an empty folder, and no file is in the way."""
        above = next(place for place in (path, *path.parents) if os.path.lexists(place))
        return (above != path and above.is_dir()) or (path.is_dir() and not os.listdir(path))

    def attempt(self, path, by=nullcontext):
        """Make a release; it is whole, or all is as it was."""
        before, free = tree(self.place), self.free(real(path))
        try:
            with by():
                made = released(path)
        except (ValueError, OSError, KeyboardInterrupt, MemoryError):
            assert tree(self.place) == before
            return
        assert free
        new = tree(real(path))
        assert set(new) == FILES
        assert new["ledger.txt"].decode() == f"{made.ledger}\n"
        self.released[real(path)] = new

    @rule(name=NAMES)
    def release_into(self, name):
        path = self.place / name
        free = self.free(real(path))
        self.attempt(path)
        if free and os.access(next(place for place in real(path).parents if place.exists()), os.W_OK):
            assert real(path) in self.released

    @rule(name=NAMES, at=st.integers(0, 6), error=st.sampled_from(ERRORS))
    def break_off(self, name, at, error):
        with broken_off(at, error):
            self.attempt(self.place / name)

    @rule(name=NAMES)
    def release_where_nobody_may_write(self, name):
        path = self.place / name
        above = real(path).parent
        if not above.is_dir():
            return
        mode = above.stat().st_mode & 0o777
        above.chmod(0o555)
        before = tree(self.place)
        try:
            self.attempt(path, as_nobody)
        finally:
            above.chmod(mode)
        assert tree(self.place) == before

    @rule(name=NAMES)
    def make_folder(self, name):
        path = self.place / name
        if path.parent.is_dir() and not os.path.lexists(path) and real(path.parent) not in self.released:
            path.mkdir()
            path.chmod(0o777)

    @rule(name=NAMES)
    def make_file(self, name):
        path = self.place / name
        if path.parent.is_dir() and not os.path.lexists(path) and real(path.parent) not in self.released:
            path.write_text("kept")

    @rule(name=NAMES)
    def make_link(self, name):
        link = self.place / "link"
        if not os.path.lexists(link):
            link.symlink_to(self.place / name)

    @invariant()
    def what_was_released_stays(self):
        if hasattr(self, "released"):
            assert all(files.items() <= tree(path).items() for path, files in self.released.items())


@pytest.mark.parametrize(("examples", "steps"), in_full((8, 10), (200, 30)))
def test_a_release_is_whole_or_all_is_as_it_was(examples, steps):
    run_state_machine_as_test(Folders, settings=settings(max_examples=examples, stateful_step_count=steps))


def test_a_release_that_leaves_its_staged_folder_is_found_out(monkeypatch):
    state = Folders()
    state.begin()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(AssertionError):
            state.break_off("a", 2, OSError("full"))
    state.teardown()
