"""Known truth: scipy.optimize."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from audit.exact import roots
from audit.exact.roots import brentq
from tests.helpers import refuses


@pytest.mark.parametrize("options", [{}, {"xtol": 1e-13, "rtol": 1e-13}, {"xtol": 1e-300, "rtol": 1e-14}])
def test_zeros_are_those_of_scipy_to_the_bit(options):
    """Scales of noise depend on them, and so do the bits of releases with a seed."""
    rng, smooth = np.random.default_rng(1), (math.tanh, math.expm1, math.sinh, lambda x: x**3 + x)
    functions = (*smooth, lambda x: math.copysign(math.sqrt(abs(x)), x), lambda x: math.inf if x > 1 else x)
    for function, at in itertools.product(functions, rng.normal(size=40) * 3):
        ends = rng.permutation([at - rng.exponential(), at + rng.exponential()])
        calls = brentq, optimize.brentq
        one, other = (solve(lambda x, at=at, of=function: of(x - at), *ends, **options) for solve in calls)
        assert one == other


def test_zeros_that_cannot_be_found_are_refused(monkeypatch):
    monkeypatch.setattr(roots, "STEPS", 2)
    refuses(ValueError, "the signs at 1 and 2 must be unlike, got 1.0 and 2.0", brentq, lambda x: x, 1, 2)
    refuses(ValueError, "the function has no value at 2.0", brentq, lambda x: math.nan if x > 1 else -1, 1, 2)
    with pytest.raises(RuntimeError, match=r"^no zero was found in 2 steps: the last point is 1\.\d+$"):
        brentq(lambda x: x**3 - 2, 1, 2)
