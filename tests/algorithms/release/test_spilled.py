"""Arrays on disk: what is appended is read again, from any place to any other, and nothing is left of it."""

import tempfile

import numpy as np
import pytest

from algorithms.release import spilled
from algorithms.release.spilled import Spilled, pieces


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where private folders are, of which none is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("piece", [7, 1000])
def test_what_is_appended_is_read_again(monkeypatch, piece):
    monkeypatch.setattr(spilled, "PIECE", piece)
    rng = np.random.default_rng(1)
    whole = rng.integers(-(2**62), 2**62, 50)
    with Spilled() as store:
        for part in np.split(whole, sorted(rng.integers(0, 51, 6))):
            store.append("one", part.reshape(1, -1))
            store.append(("other", 2), -part)
        assert (store.size("one"), store.size("none")) == (50, 0)
        for start in range(0, 51, 3):
            for stop in range(start, 51, 2):
                np.testing.assert_array_equal(store.read("one", start, stop), whole[start:stop])
        np.testing.assert_array_equal(store.read(("other", 2), 0, 50), -whole)


def test_only_what_is_long_needs_a_folder_and_what_is_dropped_no_file(folder):
    with Spilled() as store:
        store.append("short", np.zeros(spilled.PIECE - 1))
        assert not list(folder.iterdir())
        store.append("long", np.zeros(2 * spilled.PIECE))
        (private,) = folder.iterdir()
        assert private.stat().st_mode & 0o077 == 0
        assert len(list(private.iterdir())) == 2
        store.drop("long")
        assert not list(private.iterdir())
        assert (store.size("long"), store.size("short")) == (0, spilled.PIECE - 1)


def test_pieces_are_of_whole_rows():
    assert list(pieces(5, 3, 7)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(pieces(2, 9, 7)) == [slice(0, 1), slice(1, 2)]
    assert list(pieces(9, 1)) == [slice(0, 9)]
    assert list(pieces(0, 1)) == []
