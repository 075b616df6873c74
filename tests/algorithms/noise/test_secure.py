"""Whether noise is secure follows from its draws; a sampler is tested before a release has any of it."""

import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from algorithms.hierarchy import Hierarchy
from algorithms.noise import DiscreteGaussian, Laplace, TwoTailedGeometric, add_noise, counted, drawing, secure, watched
from algorithms.release.engine import Published
from algorithms.topdown import preset
from algorithms.topdown.release import release
from audit.io import workers
from tests.helpers import chi_square, most, powers

LAWS = [law(size) for law in (TwoTailedGeometric, DiscreteGaussian) for size in (0.02, 0.3, 1.0, 5.0)]
SECURE = "secure: exact, on the operating system's entropy"
SEEDED = "from a seeded generator: a simulation, not to be published"
UNKNOWN = "unknown: drawn elsewhere, not to be published"


def rng(seed=0):
    return np.random.default_rng(seed)


def filled(law, source):
    """A sampler that is right: the seeded one."""

    def fill(out):
        out[:] = law.sample(out.size, source)

    return fill


# What is said of noise is what was drawn


def test_the_source_of_noise_is_that_of_the_draws():
    pytest.importorskip("opendp")
    law = TwoTailedGeometric(1.0)
    with counted() as outer:
        with counted() as inner:
            law.sample(3, "secure")
        assert (inner.source, outer.source) == (SECURE, SECURE)
        with counted() as seeded:
            law.sample((2, 2), rng())
            law.sample(3, "secure")
        assert (inner.source, seeded.source, outer.source) == (SECURE, SEEDED, SEEDED)
    law.sample(1, rng())
    assert (inner.source, inner.secure) == (SECURE, True)  # over is over


def test_secure_noise_imports_nothing_slow():
    """OpenDP's prelude would take two seconds, and 130 MiB. A new process takes half a second."""
    pytest.importorskip("opendp")
    draw = "import sys; from algorithms.systems import secure_noise; print(secure_noise()); "
    slow = "print([name for name in ('opendp.prelude', 'sklearn', 'pandas', 'scipy.optimize') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", draw + slow], capture_output=True, text=True)
    assert done.stdout == f"{SECURE}\n[]\n"


def test_nothing_that_was_not_drawn_here_is_secure():
    law = DiscreteGaussian(2.0)
    with counted() as none:
        pass
    with counted() as empty:
        law.sample(0, rng())
    with counted() as replayed, watched(lambda draw, **_: np.zeros(3, np.int64)):
        law.sample(3, "secure")
    with counted() as elsewhere:
        thread = threading.Thread(target=lambda: law.sample(3, rng()))
        thread.start()
        thread.join()
    for drawn in (none, empty, replayed, elsewhere, secure.Draws()):
        assert (drawn.source, drawn.secure) == (UNKNOWN, False)
    with counted() as continuous:
        Laplace(1.0).sample(2, rng())
    assert continuous.source == SEEDED


def test_a_release_made_by_hand_claims_nothing(tmp_path, monkeypatch):
    pytest.importorskip("opendp")
    topdown = preset("micro", Hierarchy.regular(2, 1), epsilon=200.0)
    data = [[5, 0, 3, 1], [2, 2, 2, 2]]
    monkeypatch.setattr(drawing, "LEAST", 1)
    with joblib.parallel_config(backend="threading"):
        of_workers = release(replace(topdown, n_jobs=2), data, out=tmp_path / "3")
    assert (of_workers.record["noise"], of_workers.draws._secure) == (SECURE, 12)
    made, simulated = release(topdown, data, out=tmp_path / "1"), release(topdown, data, out=tmp_path / "2", rng=rng())
    assert (made.record["noise"], simulated.record["noise"]) == (SECURE, SEEDED)
    parts = {name: getattr(simulated, name) for name in ("claim", "files", "ledger", "summary", "about")}
    for release_by_hand in (Published(**parts), replace(made, files=simulated.files)):
        assert release_by_hand.record["noise"] == UNKNOWN


# The test of a sampler: `secure.ALARM` is the probability of a false alarm of a whole release


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_sampler_that_is_right_passes_as_often_as_is_said(law):
    """At an alarm of 0.2 a sampler is refused at most so often: more than the most has probability below 1e-4."""
    source, refused = rng(3), 0
    for _ in range(200):
        try:
            secure.check_law(law, filled(law, source), alarm=0.2)
        except ValueError:
            refused += 1
    assert refused <= most(200, 0.8)
    if law in (TwoTailedGeometric(1.0), DiscreteGaussian(5.0)):  # and the tests are no fiction
        assert refused > 0


def constant(out):
    out[:] = 0


@pytest.mark.parametrize("law", LAWS[:3] + LAWS[6:], ids=str)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("zeros", r"secure noise must follow its law, \S+ and 1000 of 1000 test draws were 0, where [\d.e-]+ are exp"),
        ("repeats", "secure noise must be new in every draw, and 500 of 500 came again in the same places"),
        ("positive", r"test draws were above 0, where"),
        ("half the parameter", "nothing may be released"),
        ("twice the parameter", "nothing may be released"),
    ],
)
def test_a_sampler_that_is_wrong_is_refused(law, fault, words):
    (parameter,) = vars(law).values()
    kept = law.sample(secure.TESTED // 2, rng(4))
    faults = {
        "zeros": constant,
        "repeats": lambda out: np.copyto(out, kept),
        "positive": lambda out: np.abs(filled(law, rng(5))(out) or out, out=out),
        "half the parameter": filled(type(law)(parameter / 2), rng(6)),
        "twice the parameter": filled(type(law)(parameter * 2), rng(7)),
    }
    with pytest.raises(ValueError, match=words) as caught:
        secure.check_law(law, faults[fault], alarm=secure.ALARM / 100)
    assert "\n" not in str(caught.value)


def test_every_law_is_tested_once_in_a_release_and_the_alarms_add_up(monkeypatch):
    checks = []
    monkeypatch.setattr(secure, "check_law", lambda law, fill, alarm: checks.append((law, alarm)))
    monkeypatch.setattr(secure, "two_tailed_geometric", lambda epsilon: constant)
    with counted():
        for epsilon in (1.0, 2.0, 1.0, 0.5):
            TwoTailedGeometric(epsilon).sample(3, "secure")
    assert [law.epsilon for law, _ in checks] == [1.0, 2.0, 0.5]
    assert [alarm / secure.ALARM for _, alarm in checks] == pytest.approx([1 / 2, 1 / 6, 1 / 12])
    TwoTailedGeometric(3.0).sample(3, "secure")  # no release
    assert len(checks) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_broken_sampler_writes_no_release(tmp_path, monkeypatch, jobs):
    monkeypatch.setattr(drawing, "LEAST", 1)
    monkeypatch.setattr(secure, "two_tailed_geometric", lambda epsilon: constant)
    monkeypatch.setattr(secure, "discrete_gaussian", lambda scale: constant)
    topdown = preset("micro", Hierarchy.regular(2, 1), epsilon=2.0, n_jobs=jobs)
    wrong = pytest.raises(ValueError, match=r"^secure noise must follow its law, \S+ and 1000 of 1000")
    with wrong, joblib.parallel_config(backend="threading"):
        release(topdown, [[5, 0, 3, 1], [2, 2, 2, 2]], out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("law", [TwoTailedGeometric(1e-12), TwoTailedGeometric(1e308), DiscreteGaussian(1e5)], ids=str)
def test_laws_at_the_ends_of_their_parameters_can_be_tested(law):
    secure.check_law(law, filled(law, rng(8)), alarm=secure.ALARM)


@settings(max_examples=60)
@given(st.integers(1, 1000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), powers(-12, 0))
def test_tails_are_those_of_the_binomial_law(counts, chance):
    hits, trials = counts
    wanted = binom.sf(hits - 1, trials, chance)
    assert secure._at_least(hits, trials, chance) == pytest.approx(wanted, rel=1e-8, abs=1e-280)


# Draws of workers

SIZE = 2 * drawing.LEAST  # the fewest that go to workers, in two blocks
WIDE = DiscreteGaussian(1e6)  # of which two draws hardly ever agree


class SeededInBlocks:
    """A law that is secure in the caller, and seeded where a worker draws it."""

    def sample(self, size, source):
        here = threading.current_thread() is threading.main_thread()
        return WIDE.sample(size, source if here else rng())


def distinct(noise):
    """Whether no draws come twice in the same order: of 4,096 ten in a row."""
    rows = noise.reshape(-1)[: noise.size // 10 * 10].reshape(-1, 10)
    return len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize("backend", ["loky", "threading"])  # processes take seconds to start
def test_workers_draw_as_many_by_the_law_and_they_are_counted(backend):
    """P(chi-square test refuses) is 1e-6."""
    pytest.importorskip("opendp")
    law = TwoTailedGeometric(0.5)
    with joblib.parallel_config(backend=backend), counted() as outer:
        law.sample(1, "secure")
        with counted() as draws:
            noise = add_noise(np.full((SIZE // 2, 2), 7), law, None, "secure", n_jobs=2) - 7
            wide = add_noise(np.zeros(SIZE), WIDE, 1, "secure", n_jobs=2)
    assert (noise.shape, wide.shape) == ((SIZE // 2, 2), (1, SIZE))
    assert (draws.source, draws._secure, draws._seeded) == (SECURE, 2 * SIZE, 0)
    assert (outer.source, outer._secure, outer._shares) == (SECURE, 2 * SIZE + 1, 5)  # two laws, of two blocks each
    k = np.arange(-40, 41)
    assert chi_square((noise.reshape(-1, 1) == k).sum(axis=0), noise.size * np.exp(law.logpmf(k))) > 1e-6
    assert distinct(wide)


def test_a_seeded_generator_in_a_worker_is_told():
    pytest.importorskip("opendp")
    with joblib.parallel_config(backend="threading"), counted() as draws:
        add_noise(0, SeededInBlocks(), 100, "secure", n_jobs=2)
        assert draws.source == SECURE
        add_noise(0, SeededInBlocks(), SIZE, "secure", n_jobs=2)
    assert draws.source == SEEDED


def test_workers_get_sizes_and_no_counts_and_their_alarms_add_up(monkeypatch):
    pytest.importorskip("opendp")
    alarms, calls = [], []

    def here(work, n_jobs):
        """Workers that keep what they were given, and draw in the caller."""

        def finished(tasks):
            calls.append((n_jobs, work.func, work.args, tasks))
            return [(place, work(task)) for place, task in enumerate(tasks)]

        return SimpleNamespace(number=2, finished=finished)

    monkeypatch.setattr(workers, "Workers", here)
    monkeypatch.setattr(secure, "check_law", lambda law, fill, alarm: alarms.append(alarm / secure.ALARM))
    with counted():
        WIDE.sample(1, "secure")
        add_noise(np.full(SIZE, 7), WIDE, None, "secure", n_jobs=2)
    ((*call, tasks),) = calls
    assert call == [2, secure.block, (WIDE,)]
    sizes, shares = zip(*tasks, strict=True)
    assert sizes == (SIZE // 2, SIZE // 2)
    assert [alarm / secure.ALARM for alarm in shares] == pytest.approx([1 / 6, 1 / 12])
    assert alarms == pytest.approx([1 / 2, 1 / 12, 1 / 24])  # a block has more tests left, if it has more laws


def test_seeded_and_few_draws_stay_in_the_caller(monkeypatch):
    pytest.importorskip("opendp")
    alone = add_noise(np.arange(SIZE), WIDE, None, rng(2))
    monkeypatch.setattr(workers, "Workers", None)  # which nothing asks for
    np.testing.assert_array_equal(add_noise(np.arange(SIZE), WIDE, None, rng(2), n_jobs=2), alone)
    assert add_noise(np.zeros(SIZE - 1), WIDE, None, "secure", n_jobs=2).size == SIZE - 1
    with pytest.raises(TypeError, match=r"^rng must be a numpy Generator or "):
        add_noise(np.zeros(SIZE), WIDE, None, "sure", n_jobs=2)
