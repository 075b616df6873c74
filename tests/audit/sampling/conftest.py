"""What the tests of sampling ask for."""

import pytest

from audit.sampling import calls


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 numbers: of 4 runs on `DATA`."""
    monkeypatch.setattr(calls, "CELLS", 64)
