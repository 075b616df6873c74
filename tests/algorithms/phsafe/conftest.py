"""What the tests of PHSafe share."""

from contextlib import closing

import pytest

from algorithms.release.duck import DuckDB
from tests.golden.phsafe import PATHS


@pytest.fixture(scope="module")
def database():
    """An engine that may read the golden households."""
    with closing(DuckDB(PATHS, threads=1)) as engine:
        yield engine
