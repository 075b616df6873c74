"""Worker processes of one's own: the environment is as it was, before and after."""

from __future__ import annotations

import os

import pytest

from audit.io.workers import SAFE, shielded


def test_the_shield_is_there_while_workers_start_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (None, "", "1"):
        if before is None:
            monkeypatch.delenv(SAFE, raising=False)
        else:
            monkeypatch.setenv(SAFE, before)
        with shielded() as as_before:
            work = as_before(lambda *words: (words, os.environ.get(SAFE)))
            assert os.environ[SAFE] == "1"
        assert os.environ.get(SAFE) == before
        monkeypatch.setenv(SAFE, "1")  # as in a worker that has started
        assert work("a", "b") == (("a", "b"), before)
