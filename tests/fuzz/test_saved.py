"""A saved result that was cut, damaged or forged: refused by name, or read as what it was; never a pass."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random

import pytest

from audit.report.formats import FORMS, to_json
from audit.report.page import build_report
from audit.results.folder import read_results
from audit.review.compare import compare_results
from audit.review.verify import verify_result
from tests.fuzz.holding import FOREIGN
from tests.fuzz.spoiling import VALUES, changed_json, places, signed
from tests.helpers import in_full

OF_EVERY_KIND = ("count", "early", "outputs", "zcdp", "estimate", "replay", "session")


def views(found, public):
    """What commands do with results, one by one."""
    for name, audit in found.audits:
        yield lambda audit=audit: verify_result(audit)
        yield lambda named=(name, audit): compare_results([named], [named])
    yield lambda: [str(one) for some in found for _, one in some]
    yield lambda: [form(found.audits) for form in FORMS.values() if found.audits]
    yield lambda: to_json([*found.audits, *found.replays])
    yield lambda: build_report(*found, title="", public=public, published=())


def refusals(folder, public):
    """What is said where a file, or a view of it, is refused; any other error is none that anybody foresaw."""
    try:
        found = read_results(folder)
    except ValueError as error:
        yield str(error)
        return
    for view in views(found, public):
        try:
            view()
        except ValueError as error:
            yield str(error)


@pytest.mark.parametrize("cases", in_full(25, 2000))
def test_a_changed_result_is_shown_or_refused_in_our_words(cases, desk, tmp_path):
    files, said = sorted(desk.glob("*/*.json")), {}
    for number in range(cases):
        rng = Random(number)
        (tmp_path / "result.json").write_bytes(changed_json(rng, rng.choice(files).read_bytes()))
        said[number] = list(refusals(tmp_path, public=number % 2 == 0))
    assert {number: words for number, words in said.items() if any(map(FOREIGN.search, words))} == {}
    assert 0.2 < sum(map(bool, said.values())) / cases < 1


# Cut anywhere, and a bit flipped anywhere: one kind of damage each, against one checksum


def put(path, content):
    """Make a new file, not an old one shorter: some file systems wait for the disk then."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def read(path):
    """What a file says, all of it."""
    return [(name, one.to_dict()) for some in read_results(path) for name, one in some]


def wrong_with(path, contents):
    """The numbers of damaged files that are neither refused in a line with their name, nor read as the whole one is."""
    whole = read(path)
    for number, content in enumerate(contents):
        put(path, content)
        try:
            held = read(path) == whole
        except ValueError as error:
            words = str(error)
            held = path.name in words and "\n" not in words and not FOREIGN.search(words)
        if not held:
            yield number


def cut(content):
    return [content[:length] for length in range(len(content))]


def flipped(content):
    return [content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            for at in range(len(content)) for bit in range(8)]  # fmt: skip


@pytest.mark.reliability(9)
@pytest.mark.parametrize("damaged", [cut, flipped])
@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_a_damaged_result_is_refused_or_read_as_it_was(name, damaged, desk, tmp_path):
    source = desk / "session.json" if name == "session" else desk / "old" / f"{name}.json"
    (path := tmp_path / "result.json").write_bytes(source.read_bytes())
    assert list(wrong_with(path, damaged(source.read_bytes())[::199])) == []


def test_a_reader_that_looks_at_no_checksum_is_found_out(desk, tmp_path, monkeypatch):
    (path := tmp_path / "result.json").write_bytes((desk / "old" / "count.json").read_bytes())
    monkeypatch.setattr("audit.results.files._digest", lambda body: json.loads(path.read_bytes()).get("sha256"))
    assert list(wrong_with(path, flipped(path.read_bytes())[:4000:9])) != []


# Forged: signed again, by somebody who knows how


def verdict_of_forged(body, path):
    """The verdict that reading and computing again let stand, or why they refuse."""
    put(path, signed(body).encode("utf-8", "surrogatepass"))
    try:
        ((_, audit),) = read_results(path).audits
        return verify_result(audit).verdict
    except ValueError as error:
        return f"foreign: {error}" if FOREIGN.search(str(error)) else "refused"


def forgeries(body):
    """Every value of a result in turn made every other, and made a little of what it is."""
    for *way, last in places(body)[1:]:
        inside = body
        for key in way:
            inside = inside[key]
        old = inside[last]
        near = [old * by for by in (-1, 0, 0.5, 2, 1000)] if type(old) in (int, float) else []
        for value in [*VALUES, *near]:
            changed = deepcopy(body)
            inside = changed
            for key in way:
                inside = inside[key]
            inside[last] = value
            yield (*way, last), changed


@pytest.mark.reliability(9)
@pytest.mark.parametrize("step", in_full(197, 7))
@pytest.mark.parametrize("name", ["new/count", "new/early", "old/outputs"])
def test_no_forgery_of_a_violation_passes_but_by_another_promise(name, step, desk, tmp_path, record_property):
    """With one value changed it stays a violation; made a pass, it needs a claim that every view shows."""
    body = json.loads((desk / f"{name}.json").read_bytes())
    del body["schema"], body["sha256"]
    assert body["verdict"] == "violated"
    made = list(forgeries(body))[::step]
    found = [verdict_of_forged(changed, tmp_path / "result.json") for _, changed in made]
    assert set(found) <= {"refused", "violated"}
    passed = set()
    for verdict in ("not refuted", "no power"):
        for place, changed in made:
            if place[0] != "verdict":
                told = verdict_of_forged({**changed, "verdict": verdict}, tmp_path / "result.json")
                assert told in ("refused", verdict)
                passed |= {place} if told == verdict else set()
    record_property("tried", 3)  # kinds: as it is, made a pass, made one without power
    assert passed <= {("claim", "epsilon")}
