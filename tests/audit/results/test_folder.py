"""Folders of results: nothing that was found is lost, and everything in them is read under a name of its own."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.claims import PureDP
from audit.results.files import read_json, write_json
from audit.results.folder import Results, name_in_files, read_audits, read_results, save_result
from tests.helpers import audited, estimated, refused_like, replayed

COMMAND = {"command": "plaudit audit mine:noisy --cell 2 --seed 42"}
VIOLATED = audited(measured=PureDP(1.5), verdict="violated")


def names(folder):
    return sorted(os.listdir(folder))


def held(path):
    """What a saved audit says, all of it."""
    ((_, result),) = read_audits(path)
    return result.to_dict()


def entry(node_id="test_release.py::test_counts", **changes):
    """One audit of a test session, as the pytest plugin writes it."""
    values = {"node_id": node_id, "attempt": 1, "call": 1, "expected": "not refuted", "audit": audited().to_dict()}
    return values | changes


def save_session(path, *entries):
    write_json(path, {"kind": "session", "seed": 0, "audits": list(entries)})
    return path


def test_another_audit_of_the_same_name_gets_the_next_name(tmp_path):
    results = [VIOLATED, audited(), audited(seed_entropy=7)]
    paths = [save_result(result, tmp_path / "new", "mine:noisy") for result in results]
    assert [path.name for path in paths] == ["mine-noisy.json", "mine-noisy-2.json", "mine-noisy-3.json"]
    assert [held(path) for path in paths] == [result.to_dict() for result in results]
    other = save_result(audited(seed_entropy=9), tmp_path / "new", "mine:noisy-2")  # a name that another has taken
    assert (other.name, len(names(tmp_path / "new"))) == ("mine-noisy-2-2.json", 4)


def test_an_audit_made_again_takes_its_own_place(tmp_path):
    first = audited(provenance={**COMMAND, "created": "yesterday"}, seconds=1.0)
    save_result(VIOLATED, tmp_path, "a")
    assert save_result(first, tmp_path, "a").name == "a-2.json"
    again = audited(provenance={**COMMAND, "created": "today"}, seconds=2.0)
    assert save_result(again, tmp_path, "a").name == "a-2.json"
    assert held(tmp_path / "a-2.json") == again.to_dict()
    assert names(tmp_path) == ["a-2.json", "a.json"]


@pytest.mark.parametrize(
    "other",
    [
        audited(provenance=COMMAND, measured=PureDP(0.5)),  # the code, or the data, have changed
        audited(provenance={"command": f"{COMMAND['command']} --early"}),
        audited(provenance={}),
    ],
)
def test_an_audit_that_is_not_the_same_in_all_is_another(tmp_path, other):
    save_result(audited(provenance=COMMAND), tmp_path, "a")
    assert save_result(other, tmp_path, "a").name == "a-2.json"
    assert held(tmp_path / "a.json") == audited(provenance=COMMAND).to_dict()


@pytest.mark.parametrize(
    "make",
    [Path.mkdir, lambda path: path.symlink_to(path.parent.parent / "victim"), lambda path: path.write_text("{}")],
    ids=["folder", "dangling link", "no result"],
)
def test_what_is_no_audit_is_left_alone(tmp_path, make):
    path = tmp_path / "a.json"
    make(path)
    before = path.lstat().st_mtime_ns
    assert save_result(audited(), tmp_path, "a").name == "a-2.json"
    assert path.lstat().st_mtime_ns == before
    assert not (tmp_path.parent / "victim").exists()


@pytest.fixture(params=["links", "no links"])
def file_system(request, monkeypatch):
    """With hard links, and without, as of some memory cards and shares."""
    if request.param == "no links":

        def refuse(*_):
            raise PermissionError("Operation not permitted")

        monkeypatch.setattr(Path, "hardlink_to", refuse)


@pytest.mark.usefixtures("file_system")
def test_writers_at_once_lose_nothing(tmp_path):
    results = [audited(seed_entropy=seed) for seed in range(24)]
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda result: save_result(result, tmp_path, "a"), results))
    assert len(set(paths)) == len(names(tmp_path)) == 24
    assert sorted(read_json(path)["seed_entropy"] for path in paths) == list(range(24))


@given(st.text(max_size=400))
def test_every_name_is_one_of_a_file(name):
    plain = name_in_files(name)
    assert plain == name_in_files(plain)
    assert not plain.startswith(".")
    assert 0 < len(plain.encode()) <= 200
    assert not set(plain) & set("/\\:\0 \n")


def test_a_test_session_is_read_by_test_and_call(tmp_path):
    bug = entry("t::bug", expected="violated", audit=VIOLATED.to_dict())
    path = save_session(tmp_path / "audits.json", entry("t"), entry("t", call=2), entry("t", attempt=2), bug, bug)
    audits = read_audits(path)
    names = ["t call 1", "t call 2", "t call 1, attempt 2"]
    assert [name for name, _ in audits] == [*names, "t::bug call 1 (known bug)", "t::bug call 1 (known bug) (2)"]
    assert [result.verdict for _, result in audits] == ["not refuted"] * 3 + ["violated"] * 2


def test_a_folder_holds_single_results_sessions_estimates_and_replays(tmp_path):
    audited().to_json(tmp_path / "sound.json")
    (tmp_path / "others").mkdir()
    for folder in (tmp_path, tmp_path / "others"):
        write_json(folder / "residuals.json", estimated().to_dict())
        write_json(folder / "again.json", replayed().to_dict())
    save_session(tmp_path / "empty.json")
    save_session(tmp_path / "monday.json", entry("t"))
    save_session(tmp_path / "tuesday.json", entry("t"))
    (tmp_path / ".part.json").write_text("half of a file that somebody else is writing")
    audits, estimates, replays, _ = read_results(tmp_path)
    assert [name for name, _ in audits] == ["t call 1", "sound", "t call 1 (2)"]
    assert [name for name, _ in estimates] == ["residuals"]
    assert [(name, str(record)) for name, record in replays] == [("again", str(replayed()))]
    with refused_like(ValueError, r"others must hold saved audits, got estimates and replays only"):
        read_audits(tmp_path / "others")
    with refused_like(ValueError, r"residuals\.json must hold saved audits or replays, got estimates only"):
        read_results(tmp_path / "residuals.json", needed=("audits", "replays"))
    with refused_like(ValueError, r"empty\.json must hold saved audits, got none"):
        read_audits(tmp_path / "empty.json")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (None, "must have node_id, attempt, call, expected, audit, got None"),
        (entry(call="1"), "must have node_id, attempt, call, expected, audit, got"),
        (entry(node_id=1), "must have node_id, attempt, call, expected, audit, got"),
        (entry(attempt=True), "attempt must be a whole number from 1 to"),
        (entry(audit=VIOLATED.to_dict() | {"verdict": "not refuted"}), "test_counts call 1: the verdict must follow"),
        (entry(expected="no power"), "expected must be one of not refuted, violated, got 'no power'"),
    ],
)
def test_a_forged_session_is_refused_in_one_line(tmp_path, wrong, words):
    with refused_like(ValueError, r"^\S*audits\.json: .*" + words):
        read_results(save_session(tmp_path / "audits.json", entry(), wrong))
    write_json(tmp_path / "audits.json", {"kind": "session", "audits": "none"})
    with refused_like(ValueError, "must have node_id, attempt, call, expected, audit, got 'none'"):
        read_results(tmp_path / "audits.json")


def test_of_a_known_bug_a_violation_alone_is_expected():
    weak = audited(detectable=9.0, verdict="no power")
    assert Results([("a", VIOLATED), ("b", weak)], [], [], {"a", "b"}).verdicts == ["no power"]
