"""NistDp3: correlated fields grouped on public data, noisy histograms of the groups, synthetic rows."""

from __future__ import annotations

from algorithms.nist.groups import Groups, choose_groups, read_groups
from algorithms.nist.mechanism import NistDp3
from algorithms.nist.utility import marginal_distance

__all__ = ["Groups", "NistDp3", "choose_groups", "marginal_distance", "read_groups"]
