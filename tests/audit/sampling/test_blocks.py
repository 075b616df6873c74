import joblib
import numpy as np
import pytest
import threadpoolctl

from audit.mechanism import per_run
from audit.outputs import Kind
from audit.sampling import blocks as blocks_module
from audit.sampling import calls
from audit.sampling.blocks import WAVE, draw
from audit.sampling.calls import Caller
from audit.values import RAISED
from tests.audit.sampling.cases import ALONE, DATA, SEED, audit, drawn, in_threads, noting, same
from tests.helpers import noisy, raising, whole

KIND = Kind(DATA.shape)


def assert_same(blocks, others):
    for block, other in zip(blocks, others, strict=True):
        np.testing.assert_array_equal(block, other)


@pytest.mark.parametrize(
    ("data", "shape", "runs"),
    [
        (np.zeros(16), (), 4),
        (np.zeros(3), (), 20),  # of calls of 5: a thirty-second of 130
        (np.zeros((0, 2)), (), 60),
        (np.zeros(3), (2, 16), 2),
        (None, (100,), 1),
    ],
)
def test_blocks_hold_as_many_runs_as_fit_the_data_or_the_output(data, shape, runs, small_blocks):
    sizes, progress = [], []
    mechanism = noting(sizes, lambda data, size, rng: rng.random((size, *shape)))
    blocks = drawn(mechanism, data, 130, reduce=whole, shape=shape, advance=progress.append)
    assert progress == [len(block) for block in blocks] == in_parts(130, runs)
    assert sizes == in_parts(130, min(runs, 5))


def in_parts(size, each):
    full, rest = divmod(size, each)
    return [each] * full + [rest] * (rest > 0)


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 1000, 10_001])
def test_no_call_makes_more_than_a_thirty_second_of_the_runs(size):
    sizes = []
    (block,) = drawn(noting(sizes), size=size)
    assert sizes == in_parts(size, -(-size // 32))
    assert len(block) == size
    assert len(np.unique(block)) == size  # each has a stream of its own
    sizes.clear()
    drawn(noting(sizes), size=size, least=100)
    assert sizes == in_parts(size, max(100, -(-size // 32)))


def test_blocks_are_kept_by_their_stream_and_so_are_their_calls(monkeypatch):
    """A call is what the stream of its number gives, in blocks of whichever size."""
    by_stream = [noisy(DATA, 4, np.random.default_rng(child)) for child in np.random.SeedSequence(2020).spawn(32)]
    for cells, runs in ((64, 4), (128, 8), (2**21, 128)):
        monkeypatch.setattr(calls, "CELLS", cells)
        found = drawn(size=128, reduce=whole)
        assert {len(block) for block in found} == {runs}
        np.testing.assert_array_equal(np.concatenate(found), np.concatenate(by_stream))


@pytest.mark.parametrize(("mechanism", "shape"), [(noisy, None), (in_threads(raising(0.1)), ())])
def test_results_do_not_depend_on_jobs_or_backend(mechanism, shape, small_blocks):
    alone = drawn(mechanism, size=399, shape=shape, reduce=whole)
    assert len(alone) == 100
    assert (np.concatenate(alone) == RAISED).any() == (shape == ())
    for n_jobs in (2, 3):
        assert_same(drawn(mechanism, size=399, shape=shape, reduce=whole, n_jobs=n_jobs), alone)
        for backend in ("threading", "sequential"):
            with joblib.parallel_config(backend=backend):
                assert_same(drawn(mechanism, size=399, shape=shape, reduce=whole, n_jobs=n_jobs), alone)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_workers_stay_a_few_blocks_ahead_of_the_consumer(n_jobs, small_blocks):
    begun, ahead = [], []
    mechanism = noting(begun)

    for number, _ in enumerate(draw(Caller(mechanism, DATA, KIND), 400, reduce=whole, seed=SEED, n_jobs=n_jobs)):
        ahead.append(len(begun) - number)
    assert len(ahead) == len(begun) == 100
    assert 1 <= max(ahead) <= (1 if n_jobs == 1 else WAVE * n_jobs)


@pytest.mark.filterwarnings("ignore:.*tasks have been successfully executed")  # joblib, of blocks under way
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_whoever_stops_early_stops_the_work(n_jobs, small_blocks):
    begun = []
    blocks = draw(Caller(noting(begun), DATA, KIND), 4000, reduce=whole, seed=SEED, n_jobs=n_jobs)
    next(blocks)
    blocks.close()
    assert len(begun) <= WAVE * n_jobs


def test_blocks_are_kept_whatever_a_mechanism_does_with_its_array(small_blocks):
    """It says that it never writes into an array again, and does."""
    array = np.empty((5, DATA.size))

    def reusing(data, size, rng):
        array[:size] = noisy(data, size, rng)
        return array[:size]

    in_threads(reusing)
    assert_same(drawn(reusing, size=16, reduce=whole), drawn(noisy, size=16, reduce=whole))
    assert_same(drawn(reusing, size=160, reduce=whole), drawn(noisy, size=160, reduce=whole))


@pytest.mark.parametrize("wave", [3, *(pytest.param(wave, marks=pytest.mark.slow) for wave in (1, 2, 5, 100))])
def test_counts_do_not_depend_on_chunks(wave, monkeypatch, record_property):
    record_property("tried", 2)
    monkeypatch.setattr(blocks_module, "WAVE", wave)
    assert same(audit(n_jobs=2), ALONE())
    with joblib.parallel_config(backend="threading"):
        assert same(audit(n_jobs=2), ALONE())


@pytest.mark.slow
def test_counts_of_classifiers_do_not_depend_on_threads():
    with threadpoolctl.threadpool_limits(1):
        one = audit(attack="trained", size=7000)
    with threadpoolctl.threadpool_limits(4):
        assert same(audit(attack="trained", size=7000), one)


def test_slow_functions_come_in_small_blocks():
    sizes = []
    mechanism = noting(sizes, per_run(lambda data, rng: data + rng.laplace(size=data.size)))
    assert per_run(len).runs_per_block == 256
    mechanism.runs_per_block = 256
    audit(mechanism, size=20_000)
    assert max(sizes) == 256
    mechanism.runs_per_block = 0
    with pytest.raises(ValueError, match="runs_per_block must be at least 1, got 0"):
        audit(mechanism, size=2000)
