"""Saved results that somebody forged, signed again where that helps: every kind of forgery on every kind of file."""

import json
from contextlib import suppress
from copy import deepcopy

import pytest

from audit.results.folder import read_results
from audit.review.verify import verify_result
from tests.helpers import in_full
from tests.hostile.damage import VALUES, places, signed
from tests.hostile.running import FOREIGN

AUDITS = ("old/count", "old/outputs", "old/zcdp", "new/count", "new/early")
OTHERS = ("old/estimate", "old/replay", "session")
LONG = pytest.param("old/zcdp", marks=pytest.mark.slow)  # a score has many numbers, 1 s
REFUSED, UNPROVED, AS_BEFORE = "refused", "does not follow from its counts", "says what it said"
SHOWN = "says it of another claim or witness, and shows that"


def changed(*way, to):
    """Make one value another, which may depend on the old one."""

    def change(body):
        inside = body
        for key in way[:-1]:
            inside = inside[key]
        old = inside[way[-1]]
        inside[way[-1]] = to(old) if callable(to) else to

    return change


def both(*changes):
    def change(body):
        for one in changes:
            one(body)

    return change


def budget(body, claim="measured"):
    (name,) = {"epsilon", "rho", "mu"} & body[claim].keys()
    return name


def raised(body):
    """A bound above the promise, and an accusation."""
    body["measured"][budget(body)] = 1.1 * max(body["measured"][budget(body)], body["claim"][budget(body)])
    body["verdict"] = "violated"


def weaker(body):
    """Another promise, with all that follows from the old one left as it was but the verdict."""
    body["claim"][budget(body)] *= 10
    body["verdict"] = "not refuted" if body["detectable"] <= 2 * body["claim"][budget(body)] else "no power"


def under(relation):
    return both(*(changed(key, "relation", to=relation) for key in ("claim", "measured")))


def more_runs(factor):
    """Every count so many times: so much evidence."""

    def change(body):
        for counts in (body["counts"], *(other["counts"] for other in body["others"])):
            for side in counts.values():
                side.update({key: factor * value for key, value in side.items()})

    return change


def all_the_error(body):
    """Each event spends all of the error probability."""
    if not body["others"]:
        return False
    for event in (body, *body["others"]):
        event["basis"]["share"] = 1.0
    return True


def witness(body):
    body["support"] = {"order": "possible on x only", "probability": 0.5}
    body["verdict"] = "violated"


CLAIM = {"kind": "gaussian", "mu": 9.0, "relation": "add_remove"}
THEOREM = "Gaussian trade-off of a Clopper-Pearson rectangle"
# What is forged of an audit, and what has to become of it; `audit/review/test_verify.py` forges single numbers.
OF_AUDITS = {
    "a larger bound": (raised, UNPROVED),
    "every count ten times": (more_runs(10), UNPROVED),
    "no counts": (changed("counts", to={}), REFUSED),
    "counts of one database": (changed("counts", to=lambda old: {"x": old["x"]}), REFUSED),
    "more runs than any number holds": (changed("counts", "x", "runs", to=2**70), REFUSED),
    "a count in words": (changed("counts", "x", "runs", to="131"), REFUSED),
    "a verdict alone": (changed("verdict", to=lambda old: "violated" if old != "violated" else "not refuted"), REFUSED),
    "a verdict that there is not": (changed("verdict", to="passed"), REFUSED),
    "a weaker claim": (weaker, UNPROVED),
    "a claim of another family": (changed("claim", to=CLAIM), REFUSED),
    "a claim that cannot be": (changed("claim", to=lambda old: {**old, "kind": "none"}), REFUSED),
    "another relation of the claim": (changed("claim", "relation", to="replace_one"), REFUSED),
    "another relation of claim and bound": (under("replace_one"), REFUSED),
    "another relation of everything": (
        both(under("replace_one"), changed("relation", to="replace_one")),
        SHOWN,
    ),
    "another distance": (changed("distance", to=2), UNPROVED),
    "an impossible confidence": (changed("confidence", to=1.5), REFUSED),
    "a minimum detectable loss that suits": (changed("detectable", to=lambda old: 0.99 * old), UNPROVED),
    "the theorem of another method": (changed("bound", to=THEOREM), UNPROVED),
    "a theorem that there is not": (changed("bound", to="a lucky guess"), UNPROVED),
    "runs that chose the event, and are counted": (changed("selection", to=10**6), UNPROVED),
    "all of the error for each event": (all_the_error, UNPROVED),
    "a witness that nobody saw": (witness, SHOWN),
    "a number in words": (changed("confidence", to="0.95"), REFUSED),
    "a list in the place of a number": (changed("ceiling", to=[1.0]), REFUSED),
    "events that are none": (changed("others", to=[{}]), REFUSED),
}  # fmt: skip


# What is forged of any file, as a text.
OF_TEXTS = {
    "changed, and not signed again": lambda body: signed(body).replace(": ", ":  ", 1).replace('"kind"', '"Kind"'),
    "no checksum": lambda body: json.dumps({"schema": 2, **body}),
    "a checksum that is no text": lambda body: json.dumps({"schema": 2, **body, "sha256": 7}),
    "a schema of the future": lambda body: signed({**body, "schema": 3}),
    "no schema": lambda body: signed(body).replace('"schema": 2, ', ""),
    "a field more": lambda body: signed({**body, "checked_by": "me"}),
    "a field less": lambda body: signed({key: value for key, value in body.items() if key not in list(body)[1:2]}),
    "another kind": lambda body: signed({**body, "kind": "estimate" if body["kind"] != "estimate" else "replay"}),
    "a kind that there is not": lambda body: signed({**body, "kind": "certificate"}),
    "a key twice": lambda body: '{"kind": "none", ' + signed(body)[1:],
    "NaN": lambda body: signed({**body, "seconds": float("nan")}),
    "infinity": lambda body: signed({**body, "seconds": float("inf")}),
    "two results in one file": lambda body: signed(body) + signed(body),
    "a list of results": lambda body: f"[{signed(body)}, {signed(body)}]",
    "a result in a result": lambda body: signed({**body, "kind": body}),
    "nested without end": lambda body: '{"a":' * 100_000 + "1" + "}" * 100_000,
    "nothing": lambda body: "",
    "half a letter": lambda body: signed({**body, "kind": "\ud800"}),
}


def forged(good_files, name):
    body = json.loads((good_files / f"{name}.json").read_bytes())
    del body["schema"], body["sha256"]
    return body


def becomes(path, text, before):
    """What becomes of a forged file: refused in a line that names it, or read, and then verified."""
    path.unlink(missing_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        found = read_results(path)
    except ValueError as error:
        words = str(error)
        named = path.name in words and "\n" not in words and not FOREIGN.search(words)
        return REFUSED if named else f"foreign: {words}"
    try:
        for _, audit in found.audits:
            verify_result(audit)
    except ValueError as error:
        return f"foreign: {error}" if FOREIGN.search(str(error)) else UNPROVED
    ((_, audit),) = found.audits
    if audit.relation != before["relation"] or audit.support is not None:
        return SHOWN if "replace one" in str(audit) or "by the exact law" in str(audit) else str(audit)
    return AS_BEFORE if audit.verdict == before["verdict"] else str(audit)


# 24 files are verified.
@pytest.mark.reliability(row=7)
@pytest.mark.parametrize("name", AUDITS)
def test_a_forged_audit_is_refused_or_shows_what_was_forged(name, good_files, tmp_path, record_property):
    whole, made = forged(good_files, name), {}
    assert becomes(tmp_path / "forged.json", signed(whole), whole) == AS_BEFORE  # negative control: the forger can sign
    for kind, (change, _) in OF_AUDITS.items():
        body = deepcopy(whole)
        if change(body) is not False:
            made[kind] = becomes(tmp_path / "forged.json", signed(body), whole)
    record_property("tried", len(made))
    assert made == {kind: OF_AUDITS[kind][1] for kind in made}


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize("name", [*AUDITS, *OTHERS])
def test_a_file_of_another_form_is_refused(name, good_files, tmp_path, record_property):
    """A session may say more than its audits do."""
    whole = forged(good_files, name)
    texts = {kind: text(whole) for kind, text in OF_TEXTS.items() if name != "session" or kind != "a field more"}
    made = {kind: becomes(tmp_path / "forged.json", text, whole) for kind, text in texts.items()}
    record_property("tried", len(made))
    assert made == dict.fromkeys(texts, REFUSED)


SIGNED = {"weights", "score", "at", "loss", "low", "high", "value", "interval"}


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize("name", [*(LONG if one == "old/zcdp" else one for one in AUDITS), *OTHERS])
def test_every_number_is_checked_where_it_is_read(name, good_files, tmp_path, record_property):  # hundreds of files
    """Too large, none, negative, half a count, a truth value: in each place of the file, hundreds of files in all."""
    whole, made = forged(good_files, name), {}
    for *way, last in places(whole)[1:]:
        inside = whole
        for key in way:
            inside = inside[key]
        old, names = inside[last], {*way, last}
        if type(old) not in (int, float) or (str(last).startswith("bin ") and not last.endswith("0")):
            continue
        wrong = [10**400, float("nan")] + ["-inf"] * (last in ("ceiling", "detectable", "seconds"))
        if "mechanism" not in names:  # whose numbers are its own
            wrong += [True] + [-1] * (not names & SIGNED) + [old + 0.5] * isinstance(old, int) * (not names & {"lag"})
        for number in wrong:
            inside[last] = number
            made[*way, last, f"{number}"[:5]] = becomes(tmp_path / "forged.json", signed(whole), whole)
        inside[last] = old
    record_property("tried", len(made))
    assert {place: outcome for place, outcome in made.items() if outcome != REFUSED} == {}


def damaged(content):
    """A file that is cut, and one in which a bit is flipped, at many places."""
    yield from (content[:length] for length in range(0, len(content), 199))
    for at in range(0, 8 * len(content), 199):
        yield content[: at // 8] + bytes([content[at // 8] ^ 1 << at % 8]) + content[at // 8 + 1 :]


def accepted(content, path):
    """The damaged files that are read as something else than the whole one."""
    path.write_bytes(content)
    whole = [one.to_dict() for some in read_results(path) for _, one in some]
    for number, text in enumerate(damaged(content)):
        path.unlink()
        path.write_bytes(text)
        with suppress(ValueError):
            if [one.to_dict() for some in read_results(path) for _, one in some] != whole:
                yield number


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize("name", ["old/count", "old/zcdp", *OTHERS])
def test_a_damaged_result_is_refused_or_read_as_it_was(name, good_files, tmp_path):
    """All are one kind of damage: what finds them is one checksum."""
    assert list(accepted((good_files / f"{name}.json").read_bytes(), tmp_path / "result.json")) == []


def test_a_reader_that_looks_at_no_checksum_is_found_out(good_files, tmp_path, monkeypatch):
    content = (good_files / "old" / "count.json").read_bytes()
    monkeypatch.setattr("audit.results.files._digest", lambda body: json.loads(content).get("sha256"))
    assert list(accepted(content, tmp_path / "result.json")) != []


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


@pytest.mark.reliability(row=7)
@pytest.mark.parametrize("step", in_full(401, 7))
@pytest.mark.parametrize("name", ["new/count", "new/early", "old/outputs"])
def test_no_forgery_of_a_violation_passes_but_by_another_promise(name, step, good_files, tmp_path, record_property):
    """With one value changed it stays a violation; made a pass, it needs a claim that every view shows."""
    whole = forged(good_files, name)
    assert whole["verdict"] == "violated"
    made, passed = list(forgeries(whole))[::step], set()
    record_property("tried", 3 * len(made))
    for place, body in made:
        assert becomes(tmp_path / "forged.json", signed(body), whole) in (REFUSED, UNPROVED, AS_BEFORE), place
        for verdict in ("not refuted", "no power"):
            changed = {**body, "verdict": verdict}
            if place[0] != "verdict" and becomes(tmp_path / "forged.json", signed(changed), changed) == AS_BEFORE:
                passed.add(place)
    assert passed <= {("claim", "epsilon")}
