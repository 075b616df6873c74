"""One folder of good files for all cases, each of which works on a copy."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def desk(good_files):
    return good_files
