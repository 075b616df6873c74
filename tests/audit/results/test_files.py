"""Files of results: whole or not there, exactly as written or refused."""

import errno
import hashlib
import json
import math
import os
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.results.files import SCHEMA, read_json, write_json
from tests.helpers import refused_like

SMALL = {"kind": "audit", "loss": 0.25, "event": "é\n", "counts": [1, None, True]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
VALUES = st.dictionaries(st.text().filter(lambda key: key not in ("schema", "sha256")), JSON, max_size=5)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "audit.json"
    write_json(path, SMALL)
    return path


@settings(max_examples=50)
@given(VALUES)
def test_what_is_written_is_read(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "values.json"
    path.unlink(missing_ok=True)
    write_json(path, values)
    assert json.dumps(read_json(path)) == json.dumps(values)  # the order of keys, 1 and 1.0, and the sign of zero too


def test_a_file_is_plain_json_with_schema_and_checksum(saved):
    body = {"schema": SCHEMA, **SMALL}
    plain = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    whole = {**body, "sha256": hashlib.sha256(plain).hexdigest()}
    assert saved.read_bytes().decode() == json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    assert os.listdir(saved.parent) == [saved.name]


def test_what_json_has_no_word_for_becomes_what_it_has(tmp_path):
    levels = {2: "county", 10: "state", None: "nation"}
    write_json(tmp_path / "a.json", {"large": 10**300, "numpy": np.float64(1 / 3), "tuple": (1, 2), "levels": levels})
    again = read_json(tmp_path / "a.json")
    assert (again["large"], again["numpy"], again["tuple"]) == (10**300, 1 / 3, [1, 2])
    assert again["levels"] == {"2": "county", "10": "state", "null": "nation"}


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"a": math.nan}, ValueError, "not JSON compliant"),
        ({"schema": 2}, ValueError, "values must leave schema and sha256 to the file, got schema"),
        ({"a": "\ud800"}, ValueError, "surrogates not allowed"),
        ({"a": np.int64(1)}, TypeError, "int64 is not JSON serializable"),
        ({("a", "b"): 1}, TypeError, "keys must be str"),
    ],
)
def test_what_json_cannot_hold_is_not_written(saved, values, error, words):
    before = saved.read_bytes()
    with pytest.raises(error, match=words):
        write_json(saved, values)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("existing", [True, False])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, error, existing):
    path = tmp_path / "audit.json"
    if existing:
        write_json(path, SMALL)

    def fail(*given, **options):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_json(path, {**SMALL, "kind": "audit", "other": 1})
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["audit.json"] * existing
    if existing:
        assert read_json(path) == SMALL


@pytest.mark.reliability(row=7)
def test_no_damage_changes_a_value(saved, record_property):
    """Each bit turned over, each byte left out, each end cut off: refused, or the same values as before."""
    whole = saved.read_bytes()
    places = range(len(whole))
    changed = {whole[:i] + bytes([whole[i] ^ 1 << bit]) + whole[i + 1 :] for i in places for bit in (0, 2, 5)}
    changed |= {whole[:i] + rest for i in places for rest in (whole[i + 1 :], b"")}
    record_property("tried", 3)  # kinds of damage
    refused = 0
    for damaged in changed - {whole}:
        saved.unlink()  # a new file: some file systems wait for the disk where one becomes shorter
        saved.write_bytes(damaged)
        try:
            assert read_json(saved) == SMALL  # such as another blank
        except ValueError:
            refused += 1
    assert refused > 0.8 * len(changed)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a result file: Expecting value"),
        (b"[1]", "is not a result file: it has no checksum"),
        (b'{"sha256": "", "a": NaN}', "is not a result file: Out of range float values"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not a result file: a number must have at most 308 digits, got 5000"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "is not a result file: it is nested too deeply"),
        (b'{"schema": 1, "sha256": 3}', "does not match its checksum: it was changed after it was written"),
        (b'{"sha256": ""}', "must have schema 1 to 2, got None"),
    ],
)
def test_what_is_not_a_result_file_is_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "audit.json"
    path.write_bytes(content)
    with refused_like(ValueError, f"^{re.escape(f'{path} {words}')}"):
        read_json(path)
