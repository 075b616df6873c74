"""PHSafe as a registered system on households of the user's own: what is added to them is counted with them."""

import numpy as np
import pytest

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.neighbors.worst import joint_pair
from algorithms.phsafe.schema import FRAMES
from algorithms.phsafe.tabulation.tabulate import tabulation
from algorithms.release.frames import Frame
from algorithms.systems import systems
from tests.households import synthetic_households, write_csv

US = read_config("us")


@pytest.fixture(scope="module")
def homes():
    return synthetic_households(90, rng=5, states=3)


@pytest.fixture(scope="module")
def own(homes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("homes")
    write_csv(homes, folder)
    persons, units, geo = (str(folder / f"{name}.csv") for name in FRAMES)
    return systems()["phsafe"].on(persons, units=units, geo=geo)


@pytest.mark.parametrize("model", ["DER", *(pytest.param(model, marks=pytest.mark.slow) for model in ("VAL", "API"))])
def test_the_pair_is_what_counting_all_households_together_gives(homes, own, model):  # counts them three times
    pair = own.pair(model)
    first = min(homes.geo["TABBLKST"].tolist())
    moved = joint_pair(model, config=read_config(US.to_dict() | {"state_filter": [first]}))
    for side, more in ((pair.x, moved.x), (pair.y, moved.y)):
        parts = zip(FRAMES, (homes.persons, homes.units, homes.geo), more, strict=True)
        together = [
            Frame.concatenate([Frame({column: part[column] for column in FRAMES[name]}) for part in (given, added)])
            for name, given, added in parts
        ]
        expected = tabulation(*together, config=US, validation="full" if model == "VAL" else "none")
        assert side.states == expected.states
        assert len(side.states) == 3
        for query, counts in expected.counts.items():
            np.testing.assert_array_equal(side.counts[query], counts)


def test_what_is_spent_is_what_the_pair_spends_by_itself(own):
    """Noise is added, so that what a person changes costs the same among any households."""
    usual = systems()["phsafe"]
    assert list(own.pairs) == list(usual.pairs)
    assert own.mechanism().spent(own.pair()) == pytest.approx(usual.mechanism().spent(usual.pair()))
    assert own.runs == usual.runs * usual.pair().x.size // own.pair().x.size < usual.runs
