"""Files: whole or not there, of nobody's foreseeing, for whom they are meant; and JSON that fits into memory."""

import errno
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from audit.io import files
from audit.io.files import Kind, check_writable, parsed_json, read_bytes, write_atomically, writing
from audit.io.temporary import part_of

MINE = Kind("of mine", b"text")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def read_only():
    """A folder that may be read and not written, for a user to whom that matters."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_read_only_folder_is_found_before_the_work(read_only):
    for folder in (read_only, read_only / "new"):
        with pytest.raises(PermissionError, match=str(read_only)):
            check_writable(folder)
        with pytest.raises(PermissionError, match=str(read_only)):
            write_atomically(folder / "audit.json", "text", MINE)
    assert os.listdir(read_only) == []


def test_a_folder_that_can_be_written_or_made_is_left_as_it_was(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kept.json").write_text("kept")
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "a/b/c", "new", "new/../other/..", "new/../../b", tmp_path / "a" / "b"):
        check_writable(Path(folder))
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "a", tmp_path / "a" / "kept.json"]


def test_folders_are_not_made_in_each_other_without_end(tmp_path):
    for write in (check_writable, lambda folder: write_atomically(folder / "audit.json", "text", MINE)):
        write(tmp_path.joinpath(*["a"] * 100))
        with pytest.raises(ValueError, match="at most 100 folders may be new in each other, got 1"):
            write(tmp_path.joinpath("b", *["a"] * 1000))
    assert os.listdir(tmp_path) == ["a"]


def test_a_name_that_no_folder_can_have_is_found_before_the_work(tmp_path):
    folder = tmp_path / "new" / ("a" * 300)
    with pytest.raises(OSError, match=f"name too long: '{folder}'"):
        check_writable(folder)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="link"):
        check_writable(tmp_path / "link" / "new")
    assert os.listdir(tmp_path) == ["link"]


def test_what_is_in_the_way_is_found_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="file"):
            check_writable(folder)
    for path, words in ((tmp_path / "file" / "audit.json", "file"), (tmp_path / "folder", "folder")):
        with pytest.raises(OSError, match=words):
            write_atomically(path, "text", MINE)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]

    def full(**options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(OSError, match="No space left"):
        check_writable(tmp_path)


@pytest.mark.parametrize("kind", [MINE, None])
@pytest.mark.parametrize(("private", "permissions"), [(False, 0o640), (True, 0o600)])
def test_a_private_file_is_private_from_its_first_byte(tmp_path, kind, private, permissions):
    former = os.umask(0o027)
    try:
        with writing(tmp_path / "a", kind, private=private) as file:
            (part,) = tmp_path.iterdir()
            assert mode(part) == permissions
            assert re.fullmatch(r"\.[0-9a-f]{8}-\d+-\d+-[0-9a-f]{16}\.part", part.name)  # of 64 unforeseen bits
            file.write(b"text")
    finally:
        os.umask(former)
    assert (mode(tmp_path / "a"), os.listdir(tmp_path)) == (permissions, ["a"])


def test_a_link_is_neither_replaced_nor_followed(tmp_path, monkeypatch):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("text of mine")
    link.symlink_to(victim)
    for kind in (MINE, None):
        with pytest.raises(FileExistsError), writing(link, kind) as file:
            file.write(b"text")
    assert (victim.read_text(), link.is_symlink()) == ("text of mine", True)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)  # as if it had been foreseen
    part_of(tmp_path / "new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "new", "text", MINE)
    assert victim.read_text() == "text of mine"


def test_where_no_folder_can_be_synced_files_are(tmp_path, monkeypatch):
    """Some systems, and some file systems, have no such thing."""
    fsync, synced = os.fsync, []

    def only_files(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        synced.append(handle)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", only_files)
    write_atomically(tmp_path / "new" / "a", "text", MINE)
    assert ((tmp_path / "new" / "a").read_text(), len(synced)) == ("text", 1)


def test_no_pipe_or_device_is_written_over(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link"):
        with pytest.raises(FileExistsError, match="is there, and is not of mine"):
            write_atomically(tmp_path / name, "text", Kind("of mine"))
    assert (sorted(os.listdir(tmp_path)), (tmp_path / "pipe").is_fifo()) == (["link", "pipe"], True)


def test_where_no_links_are_a_name_is_taken_and_filled(tmp_path, monkeypatch):
    def fail(*_):
        raise PermissionError(errno.EPERM, "not here")

    monkeypatch.setattr(Path, "hardlink_to", fail)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with pytest.raises(PermissionError), writing(tmp_path / "b", None) as file:
            file.write(b"text")
    with writing(tmp_path / "a", None) as file:
        file.write(b"text")
    with pytest.raises(FileExistsError), writing(tmp_path / "a", None) as file:
        file.write(b"other")
    assert (os.listdir(tmp_path), (tmp_path / "a").read_text()) == (["a"], "text")


def test_a_file_is_read_as_far_as_it_may_be_large(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 10)
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 10)
    assert read_bytes(path) == b"x" * 10
    path.write_bytes(b"x" * 11)
    with pytest.raises(ValueError, match=r"a\.json must be at most 10 bytes, got 11$"):
        read_bytes(path)
    reading, writing = os.pipe()  # which has no size
    os.write(writing, b"x" * 12)
    with pytest.raises(ValueError, match=rf"^/dev/fd/{reading} must be at most 10 bytes, got 11$"):
        read_bytes(Path(f"/dev/fd/{reading}"))
    os.close(reading)
    os.close(writing)
    with pytest.raises(ValueError, match=r"^/dev/zero must be a file or a pipe, got a device$"):
        read_bytes(Path("/dev/zero"))


@pytest.mark.parametrize(("piece", "marks"), [(b"{}", 2), (b"[]", 2), (b"1", 1)])
def test_small_pieces_cannot_fill_the_memory(monkeypatch, piece, marks):
    monkeypatch.setattr(files, "MOST_VALUES", 100)
    text = b"[" + b",".join([piece] * 200) + b"]"
    with pytest.raises(ValueError, match=f"^it must have at most 100 commas and brackets, got {200 * marks}$"):
        parsed_json(text)
    few = b"[" + b",".join([piece] * 50) + b"]"
    assert parsed_json(few) == json.loads(few)


def test_a_name_stands_once_where_it_must(tmp_path):
    with pytest.raises(ValueError, match="'a' stands twice"):
        parsed_json(b'[{"b": {"a": 1, "c": 3, "a": 2}}]')
    assert parsed_json(b'\xef\xbb\xbf[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]
    for levels in (101, 100_000):
        with pytest.raises(ValueError, match="it is nested too deeply, on more than 100 levels"):
            parsed_json(b"[" * levels + b"]" * levels)
    assert parsed_json(b'{"a":' * 99 + b"[1, 2]" + b"}" * 99)
    with pytest.raises(UnicodeDecodeError):
        parsed_json(b'"\xff"')
    assert parsed_json(b'["\\ud83d\\ude00"]') == ["\U0001f600"]
    for half in (b'["a\\uD83d"]', b'{"\\ude00\\ud83d": 1}'):
        with pytest.raises(ValueError, match=r"half of a surrogate pair is no text, got '\\ud"):
            parsed_json(half)
