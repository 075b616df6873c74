"""Every bound and every kind of audit, on laws that lose exactly what is promised, at five confidences."""

import numpy as np
import pytest

from experiments.bounds.worst_laws import CASES, LOOKING, MISTAKES, ONE_RUN, OTHERS, WHOLE
from tests.helpers import most

LEVELS = (0.5, 0.8, 0.95, 0.99, 0.999)


def cases():
    """By default 1,000 of each bound at one confidence; in full 10,000 at each, of whole audits 1,000."""
    for case in CASES:
        if case.group != MISTAKES:
            whole = case.group in (WHOLE, OTHERS)
            for level in () if whole else LEVELS[1:2]:
                name = f"{case.words}, at {level:g}, in short"
                yield pytest.param(case, 1_000, level, id=name, marks=pytest.mark.quick)
            early = "early" in case.words  # .5 s an audit, others .02 s or less
            for level in (0.95,) if early else LEVELS:
                audits = 200 if early else 1_000 if whole else 10_000
                name = f"{case.words}, at {level:g}"
                yield pytest.param(case, audits, level, id=name, marks=pytest.mark.slow)


@pytest.mark.reliability(row=1)
@pytest.mark.parametrize(("case", "audits", "confidence"), list(cases()))
def test_a_bound_misses_as_seldom_as_it_says(case, audits, confidence, record_property):  # 1,000 bounds each
    """False alarm of a valid bound: 1e-4 for each."""
    rng = np.random.default_rng([CASES.index(case), round(1000 * confidence)])
    bounds = case.draw(1.0, audits, rng)(confidence)
    misses = int((bounds > 1).sum())
    row = {"group": case.group, "case": case.words, "confidence": confidence, "misses": misses}
    for name, value in {"tried": audits, **row}.items():
        record_property(name, value)
    assert misses <= most(audits, confidence)
    if confidence == 0.8 and case.group not in (WHOLE, OTHERS, ONE_RUN, LOOKING):  # where only a rejection is known
        assert np.median(bounds) > 0.3  # and it is no empty bound


@pytest.mark.parametrize("case", [case for case in CASES if case.group == MISTAKES], ids=lambda case: case.words)
def test_classical_mistakes_miss_too_often(case):
    """Negative control."""
    misses = int((case.draw(1.0, 300, np.random.default_rng(1))(0.95) > 1).sum())
    assert misses > most(300)
