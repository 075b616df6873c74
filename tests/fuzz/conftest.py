"""One folder of good files for all cases, each of which works on a copy."""

from __future__ import annotations

import pytest

from tests.fuzz.desk import make_desk


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    make_desk(folder)
    return folder
