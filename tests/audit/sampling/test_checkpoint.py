import functools
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from audit.attacks import Attack
from audit.claims import PureDP
from audit.events import Event, Statistic
from audit.neighbors import NeighborPair
from audit.outputs import Kind
from audit.sampling import blocks as sampling
from audit.sampling.calls import Caller
from audit.sampling.checkpoint import BlockStore, fingerprint, source, stored_seed
from audit.sampling.probes import probe_runs
from tests.audit.sampling.cases import PAIR, SIZE, Laplace, audit, noting, same
from tests.helpers import noisy


def blocks(folder):
    return sorted(folder.rglob("*.block"))


@pytest.mark.parametrize(
    "options",
    [
        {"stop": "early", "size": 200},
        pytest.param({"attack": "trained", "size": 7000}, marks=pytest.mark.slow),
        {"claim": PureDP(0.3), "n_jobs": 2},
    ],
)
def test_an_audit_with_a_store_is_the_same_and_so_is_one_that_goes_on(tmp_path, options):  # three audits each
    """Also where blocks are gone, or are not as they were written."""
    alone = audit(**options)
    assert same(audit(store=tmp_path, **options), alone)
    paths = blocks(tmp_path)
    assert len(paths) > 20
    for path in paths[::2]:
        path.unlink()
    for path in paths[1::4]:
        path.write_bytes(path.read_bytes()[:-1])
    assert same(audit(store=tmp_path, **options), alone)
    assert blocks(tmp_path) == paths


def test_blocks_that_are_kept_are_not_run_again(tmp_path):
    sizes = []
    mechanism = noting(sizes)
    mechanism.runs_per_block = 100
    first = audit(mechanism, store=tmp_path)
    made = sum(sizes)
    assert made >= SIZE
    sizes.clear()
    assert same(audit(mechanism, store=tmp_path), first)
    # Only the look at the mechanism, and one block of either database.
    assert 0 < sum(sizes) <= probe_runs(SIZE) + 2 * 100


@pytest.mark.reliability(row=7)
def test_a_flipped_bit_and_a_lost_end_of_a_block_are_seen_wherever_they_are(tmp_path, record_property):
    store, stream = BlockStore.of(tmp_path, "a", "b"), np.random.SeedSequence(1, spawn_key=(2, 3))
    kept = np.arange(6.0).reshape(3, 2)
    store.write(stream, 4, kept)
    path = tmp_path / "a" / "b" / "2-3.4.block"
    content = path.read_bytes()
    assert np.array_equal(store.read(stream, 4), kept)
    places = [*range(0, len(content), 9), 31, 32, len(content) - 1]
    for at in places:
        flipped = [content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :] for bit in range(8)]
        for damaged in (*flipped, content[:at]):
            path.unlink()
            path.write_bytes(damaged)
            assert store.read(stream, 4) is None
    record_property("tried", 2)  # kinds of damage
    assert store.read(stream, 5) is None


@pytest.mark.slow
def test_another_question_has_blocks_of_its_own(tmp_path):
    first_entry = Event.at_least(0, 121.0)
    others = [{}, {"mechanism": Laplace(2.0)}, {"mechanism": Laplace(runs_per_block=40)}, {"claim": PureDP(1.1)}]
    others += [{"pair": NeighborPair.add_people(*people)} for people in (([120, 75], 1), ([121, 75], 0))]
    others += [{"rng": 8}, {"size": SIZE + 1}, {"selection": 0.4}, {"confidence": 0.9}, {"attack": "cell"}]
    others += [{"event": first_entry}, {"stop": "early", "size": 500}]
    others += [{"event": replace(first_entry, statistic=Statistic("first", lambda outputs: outputs[:, 0]))}]
    folders = set()
    for options in others:
        before = set(blocks(tmp_path))
        alone = audit(**options)
        assert same(audit(store=tmp_path, **options), alone)
        new = {path.parent for path in set(blocks(tmp_path)) - before}
        assert len(new) == 1, options
        folders |= new
    assert len(folders) == len(others)


def made(scale):
    def counting(data, size, rng):
        return counting.factor * data + rng.laplace(scale=scale, size=(size, data.size))

    counting.factor = 1.0  # of itself, which it encloses
    return counting


def test_values_have_names_by_what_they_hold_and_functions_by_their_code():
    def empty():
        return later

    values = [noisy, functools.partial(noisy, 1), functools.partial(noisy, 2), noting, Laplace(), Laplace(2.0)]
    values += [Laplace().__call__, 1, 1.0, "1", b"1", None, True, np.int64(1), [1], (1,), {1}, {1: 1}, int, np, print]
    values += [np.arange(3), np.arange(3.0), np.arange(3).reshape(3, 1), np.array([None]), object, range(3), iter([1])]
    values += [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]}), pd.Series([1, 2]), {"a": noisy}]
    values += [np.array({1: 2}, dtype=object), *(np.ma.array([1, 2], mask=mask) for mask in ([0, 0], [0, 1]))]
    values += [Attack(statistics=(Statistic("s", lambda outputs, k=k: outputs[:, k]),)) for k in range(2)]
    values += [made(1.0), made(2.0), (lambda data: data), (lambda data: data + 1), empty]
    names = [fingerprint(value) for value in values]
    assert len(set(names)) == len(names)
    assert names[4:6] == [fingerprint(value) for value in (Laplace(), Laplace(2.0))]
    assert names[-5:-3] == [fingerprint(value) for value in (made(1.0), made(2.0))]
    assert fingerprint(pd.DataFrame({"a": [1, 2]})) in names
    later = 1
    assert fingerprint(empty) not in names
    assert fingerprint(1, 2) != fingerprint((1, 2))
    around = []
    around.append(around)
    assert fingerprint(around) == fingerprint(around) != fingerprint([[]])
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert list(frozenset([8, 0])) != list(frozenset([0, 8]))  # as the words in code, `in {"a", "b"}`, in two processes
    assert fingerprint(frozenset([8, 0])) == fingerprint(frozenset([0, 8])) != fingerprint((0, 8))
    nested = []
    for _ in range(20_000):
        nested = [nested]
    with pytest.raises(ValueError, match="not nested deeply"):
        fingerprint(nested)


def test_the_text_of_a_module_is_part_of_the_question():
    assert "small audits that the tests" in source(Laplace())
    assert source(audit) == source(Laplace())
    assert source(print) == ""


def test_without_a_seed_the_one_that_was_begun_with_is_taken(tmp_path):
    first = audit(rng=None, store=tmp_path)
    assert same(audit(rng=None, store=tmp_path), first)
    assert audit(rng=None, size=SIZE + 1, store=tmp_path).seed_entropy != first.seed_entropy
    assert stored_seed(tmp_path, "other", 5).entropy == 5
    (tmp_path / "spoiled").mkdir()
    (tmp_path / "spoiled" / "seed").write_text("no seed\n")
    with pytest.raises(ValueError, match=r"seed must hold a seed, got 'no seed\\n'"):
        stored_seed(tmp_path, "spoiled", None)


@pytest.mark.reliability(row=6)
def test_a_store_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    calls = []
    mechanism = noting(calls)
    with pytest.raises(OSError, match="file"):
        audit(mechanism, store=tmp_path / "file")
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(OSError, match="locked"):
            audit(mechanism, store=tmp_path / "locked")
    assert calls == []


def test_blocks_of_another_function_of_one_name_are_not_taken_where_a_seed_does_not_repeat_them(tmp_path):
    def unseeded(scale):
        return lambda data, size, _: (data + elsewhere.laplace(scale=scale, size=(size, data.size))).round(6)

    elsewhere = np.random.default_rng()
    options = {"size": 4000, "confidence": 1 - 1e-6, "store": tmp_path}  # no seed: a false alarm may come on any day
    first, other = (audit(unseeded(scale), **options) for scale in (1.0, 0.2))
    assert (first.verdict, other.verdict) == ("not refuted", "violated")


def test_a_store_of_other_code_or_data_is_refused(tmp_path):
    class Hidden:
        """Reads what is not its own: a global, a file, a table."""

        __slots__ = ()
        runs_per_block = 50

        def __call__(self, data, size, rng):
            return data + rng.laplace(scale=SETTINGS["noise"], size=(size, data.size))

    first = audit(Hidden(), store=tmp_path)
    assert same(audit(Hidden(), store=tmp_path), first)
    SETTINGS["noise"] = 3.0
    (place,) = tmp_path.glob("*/*")  # taken although the first output is another, as it might by chance not be
    stream = np.random.SeedSequence(first.seed_entropy, spawn_key=(4, 0))
    caller = Caller(Hidden(), PAIR.x, Kind((2,)))
    blocks = sampling.draw(caller, 50, reduce=np.copy, seed=stream, store=BlockStore(place))
    try:
        with pytest.raises(ValueError, match="must hold runs of this mechanism on these data"):
            next(blocks)
    finally:
        SETTINGS["noise"] = 1.0


SETTINGS = {"noise": 1.0}
