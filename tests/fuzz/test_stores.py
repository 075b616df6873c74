"""Whatever happens to the store of an audit, it gives the counts of an audit without one, or is refused."""

from __future__ import annotations

import functools
import io
import shutil
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from audit.sampling.checkpoint import DIGEST, BlockStore
from tests.audit.sampling.cases import Laplace, asked, same
from tests.helpers import in_full

SIZE = 400
SCALES = (1.0, 2.0)


class Hidden(Laplace):
    """Noise of a scale that no name tells: a store cannot know that it was changed, and has to find out."""

    scale_of_all = 1.0
    stops_after = 10**9  # runs, and then as if the process were ended

    def __call__(self, data, size, rng):
        Hidden.stops_after -= size
        if Hidden.stops_after < 0:
            raise KeyboardInterrupt
        return data + rng.laplace(scale=Hidden.scale_of_all, size=(size, data.size))


@functools.cache
def alone(scale):
    """The audit without a store."""
    Hidden.scale_of_all = scale
    return asked(Hidden(), size=SIZE, n_jobs=1)


class Stores(RuleBasedStateMachine):
    """A store that is used by audits which are ended, changed and made again, on a disk that loses parts of files."""

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.store = self.folder / "store"
        self.scales = set()  # of the noise of all blocks that were ever kept, and not removed since

    def teardown(self):
        Hidden.stops_after, Hidden.scale_of_all = 10**9, 1.0
        shutil.rmtree(self.folder)

    def blocks(self):
        return sorted(self.store.rglob("*.block"))

    def audit(self, scale):
        expected = alone(scale)
        Hidden.scale_of_all = scale
        return same(asked(Hidden(), size=SIZE, n_jobs=1, store=self.store), expected)

    @rule(scale=st.sampled_from(SCALES))
    def ask(self, scale):
        if self.scales <= {scale}:
            assert self.audit(scale)
            assert self.blocks()
        else:  # of another mechanism, whose first outputs are others: another question, or refused
            try:
                held = self.audit(scale)
            except ValueError as error:
                held = "must hold runs of this mechanism on these data" in str(error)
            assert held
        self.scales.add(scale)

    @rule(scale=st.sampled_from(SCALES), runs=st.integers(0, SIZE))
    def ask_and_end(self, scale, runs):
        if not self.scales <= {scale}:
            return
        self.scales.add(scale)
        Hidden.stops_after = runs
        try:
            assert self.audit(scale)
        except KeyboardInterrupt:
            pass
        finally:
            Hidden.stops_after = 10**9

    @rule(at=st.floats(0, 1, exclude_max=True), share=st.floats(0, 1), how=st.sampled_from(["flip", "cut", "gone"]))
    def lose(self, at, share, how):
        if not (blocks := self.blocks()):
            return
        path = blocks[int(at * len(blocks))]
        content = path.read_bytes()
        place = int((1 - share) * max(0, len(content) - 1))
        if how == "gone":
            path.unlink()
        elif content:
            changed = content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
            path.write_bytes(content[:place] if how == "cut" else changed)

    @rule()
    def remove(self):
        shutil.rmtree(self.store, ignore_errors=True)
        self.scales.clear()

    @invariant()
    def nothing_is_left_of_what_was_ended(self):
        if hasattr(self, "folder"):
            assert not [path for path in self.folder.rglob("*") if path.name.endswith(".part")]
            assert not [path for path in self.blocks() if stat.S_IMODE(path.stat().st_mode) != 0o600]


@pytest.mark.reliability(9)
@pytest.mark.parametrize(("examples", "steps"), in_full((3, 8), (60, 25)))
def test_a_store_gives_the_same_audit_or_is_refused(examples, steps, record_property):
    record_property("tried", 3)  # kinds of damage to a block: a bit, its end, all of it
    run_state_machine_as_test(Stores, settings=settings(max_examples=examples, stateful_step_count=steps))


def test_a_store_that_trusts_its_files_is_found_out(monkeypatch):
    def trusting(store, stream, number):
        path = store._path(stream, number)
        return np.load(io.BytesIO(path.read_bytes()[DIGEST:]), allow_pickle=False) if path.exists() else None

    monkeypatch.setattr(BlockStore, "read", trusting)
    state = Stores()
    state.begin()
    try:
        state.ask(1.0)
        for block in range(len(state.blocks())):
            state.lose(block / len(state.blocks()), 0.0, "flip")
        with pytest.raises((AssertionError, ValueError)):
            state.ask(1.0)
    finally:
        state.teardown()
