"""Functions of one's own as noise primitives."""

import numpy as np
import pytest

from algorithms.flaxman import ADPC, RDPC
from algorithms.noise import Laplace, TwoTailedGeometric, add_noise
from algorithms.ons.laws import CountNoise
from audit.claims import PureDP
from audit.neighbors import NeighborPair
from audit.replay import primitive, replay
from audit.replay.recording import Recorder, Sensitivity, run
from tests.audit.replay.cases import ADDED, PEOPLE, TREE, kinds, topdown


def test_primitives_made_of_others_are_one():
    law = CountNoise("laplace", 1.0)
    trace = run(lambda data, size, rng: add_noise(data, law, size, rng), [3], np.random.SeedSequence(0))
    assert [call.law for call in trace.calls] == [law]
    recorder = Recorder(np.random.default_rng(0))
    assert recorder(lambda: 3, law=None, shape=(0,), rng=None) == 3
    assert recorder.calls == []  # a draw of nothing is none


@primitive("exact", law="scale", sensitivity=1)
def no_negatives(exact, scale, rng):
    noisy = exact + rng.laplace(scale=scale)
    if noisy < 0:
        raise ValueError("negative")
    return noisy


def test_an_exception_of_a_primitive_is_an_answer():
    def caught(data, size, rng):
        try:
            return no_negatives(data[0], 1.0, rng)
        except ValueError:
            return 0.0

    nobody = NeighborPair.add_people([0], 0)
    assert replay(caught, nobody, PureDP(1.0), size=30).violations == ()
    passed = replay(lambda data, size, rng: no_negatives(data[0], 1.0, rng), nobody, size=30)
    assert passed.violations == ()


@primitive("exact", law=lambda scale: Laplace(scale), sensitivity="bound", query="name")
def own(exact, scale, rng, *, bound=1.0, name="own"):
    return exact + rng.laplace(scale=scale, size=np.shape(exact))


def test_primitives_of_ones_own_are_recorded():
    def mechanism(data, size, rng):
        return own(data, 2.0, rng, name="counts")[None]

    found = replay(mechanism, ADDED, PureDP(0.5))
    [query] = found.queries
    assert (query.name, query.declared, query.law) == ("counts", Sensitivity(1, 1), "laplace, scale 2")
    assert found.exact_loss.maximum == 0.5
    assert found.verdict == "not refuted"
    assert kinds(replay(mechanism, ADDED, PureDP(0.4))) == ["loss"]
    assert kinds(replay(lambda data, size, rng: own(data.sum(), 1.0 / data[0], rng), ADDED)) == ["law"]
    assert kinds(replay(lambda data, size, rng: own(2 * data, 1.0, rng), ADDED)) == ["sensitivity"]


def test_a_primitive_may_be_any_function_and_tell_little():
    calls = []

    @primitive("scores", sensitivity=(None, 1))
    def best(scores, rng):
        """Return a place."""
        calls.append(scores)
        return {"place": int(np.argmax(scores + rng.gumbel(size=len(scores))))}

    assert (best.__name__, best.__doc__) == ("best", "Return a place.")
    assert best([0, 1e9], np.random.default_rng(0)) == {"place": 1}
    found = replay(lambda data, size, rng: best(data, rng), ADDED)
    [query] = found.queries
    assert (query.name, query.law, query.declared, query.l2_change) == ("best", "unknown", Sensitivity(None, 1), 1.0)
    assert str(query.declared) == "L2 1"
    assert (found.exact_loss, found.verdict, query.rho) == (None, "not refuted", None)
    assert len(calls) == 8  # drawn in replays too, so that what follows draws the same
    scaled = primitive("value", law="scale")(lambda value, scale, rng=None: value)
    assert kinds(replay(lambda data, size, rng: scaled(0, float(data[0])), ADDED)) == ["law"]
    assert replay(lambda data, size, rng: scaled(0, 3.0), ADDED).queries[0].law == "of scale 3"


def test_methods_can_be_primitives():
    class Release:
        @primitive("exact", law=Laplace, sensitivity=1)
        def noisy(self, exact, scale, rng):
            return exact + rng.laplace(scale=scale)

        def __call__(self, data, size, rng):
            return self.noisy(data.sum(), 1.0, rng)

    assert replay(Release(), ADDED, PureDP(1.0)).exact_loss.maximum == 1


@pytest.mark.parametrize(("named", "wrong"), [({"value": "exakt"}, "exakt"), ({"law": lambda sigma: sigma}, "sigma")])
def test_a_primitive_without_such_an_argument(named, wrong):
    with pytest.raises(ValueError, match=f"^noisy has no argument '{wrong}', it has exact, rng$"):

        @primitive(**{"value": "exact", **named})
        def noisy(exact, rng):
            return exact


def test_a_primitive_that_is_called_wrongly_raises_as_ever():
    found = replay(lambda data, size, rng: own(data), ADDED)
    assert found.notes[0].startswith("both runs raise the same exception: TypeError (missing a required argument")


def test_a_recorded_run_is_the_run():
    seed = np.random.SeedSequence(5)
    for mechanism, data in ((RDPC(1.0, TREE), PEOPLE[:, 0]), (topdown(), PEOPLE), (ADPC(1.0), [3, 4])):
        trace = run(mechanism, data, seed)
        assert np.array_equal(trace.output, mechanism(data, 1, np.random.default_rng(seed)))
        again = run(mechanism, data, seed, trace.calls)
        assert np.array_equal(again.output, trace.output)
        other = run(mechanism, data, np.random.SeedSequence(6), trace.calls)
        assert np.array_equal(other.output, trace.output)
        assert not np.array_equal(run(mechanism, data, np.random.SeedSequence(6)).output, trace.output)


def test_answers_are_recorded_before_the_mechanism_works_on():
    def clipped(data, size, rng):
        noisy = add_noise(data, TwoTailedGeometric(0.1), size, rng, sensitivity=1)
        noisy[noisy < 40] = 0
        return noisy

    assert replay(clipped, ADDED).verdict == "not refuted"


def test_parts_that_a_mechanism_goes_on_to_change_are_kept():
    scaled = primitive("value", law="scale", sensitivity=1)(lambda value, scale, rng: value + rng.laplace() * scale)

    def mechanism(data, size, rng):
        scale = np.array([float(data.max())])
        noisy = scaled(data.sum(), scale, rng)
        scale[:] = 0
        return noisy

    assert kinds(replay(mechanism, ADDED)) == ["law"]
