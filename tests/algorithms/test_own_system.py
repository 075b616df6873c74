"""A system of one's own, registered from outside: `plaudit list`, `audit` and `release` know it."""

from pathlib import Path

import numpy as np
import pytest

from algorithms.noise import TwoTailedGeometric, add_noise
from algorithms.registry import REGISTERED
from algorithms.systems import counting, register
from audit.claims import PureDP
from tests.helpers import plaudit


class Toy:
    """Toy counts: two-tailed geometric noise on every count."""

    def __init__(self, epsilon):
        self.claim = PureDP(epsilon)
        self.noise = TwoTailedGeometric(epsilon)

    def __call__(self, counts, size, rng):
        return add_noise(counts, self.noise, size, rng)


def release_toy(out: Path) -> int:
    """Release toy counts."""
    out.write_text(str(Toy(1.0)([120, 75], 1, np.random.default_rng())[0]))
    return 0


@pytest.fixture(autouse=True)
def toy():
    register(counting("toy", Toy, commands={"release": release_toy}))
    yield
    del REGISTERED["toy"]


def test_plaudit_knows_it(tmp_path, capsys):
    assert plaudit("list", "toy") == 0
    assert "- toy: " in capsys.readouterr().out
    assert plaudit("audit", "toy", "--epsilon", "0.5", "--size", "2000", "--seed", "1") == 0
    assert "epsilon 0.5" in capsys.readouterr().out
    assert plaudit("release", "toy", tmp_path / "counts") == 0
    assert (tmp_path / "counts").read_text().startswith("[")
