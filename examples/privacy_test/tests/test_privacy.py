"""The promise is kept, and the test would notice if it were not."""

import pytest
from noisy_counts import EPSILON, noisy_counts

from audit import NeighborPair, PureDP
from audit.testing import assert_loss_detected, assert_loss_within

pytestmark = pytest.mark.audit(size=20_000)
ONE_PERSON = NeighborPair.add_people([120, 75, 0], cell=2)


def test_noisy_counts_keep_their_promise():
    assert_loss_within(noisy_counts, ONE_PERSON, PureDP(EPSILON))


def test_half_the_noise_would_be_seen():
    assert_loss_detected(noisy_counts, ONE_PERSON, PureDP(EPSILON / 2))
