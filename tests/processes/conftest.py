"""Commands, each with what it leaves where nothing disturbs it, which is made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.processes.making import Making


@pytest.fixture(scope="session")
def making(good_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Making]:
    return cache(lambda command: Making(command, good_files, tmp_path_factory.mktemp("made")))
