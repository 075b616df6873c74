"""Worker processes of one's own: they share large arrays, and the environment is as it was."""

from __future__ import annotations

import os

import numpy as np
import pytest

from audit.io.workers import SAFE, Workers, shielded


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


def test_a_large_array_is_mapped_into_processes_and_not_sent_with_every_task() -> None:
    large = np.arange(1_000_000)
    done = Workers(lambda place: (type(large).__name__, int(large[place]), os.getpid()), 2).finished([7, 8, 9])
    assert [result[:2] for _, result in sorted(done)] == [("memmap", place) for place in (7, 8, 9)]
