"""`plaudit audit` on several pairs of databases, and on records of a user's own."""

import json
import shlex
from pathlib import Path

import pytest

from audit.results.folder import read_audits
from tests.audit.cli.desk import BUGGY, NO_POWER, PEOPLE, QUICK, TABLE, VIOLATION, WITHIN, Command, audited, results


@pytest.fixture(autouse=True)
def mechanisms(workspace: Path) -> None:
    (workspace / "helper.py").write_text(BUGGY + TABLE + ORDERED)
    (workspace / "people.csv").write_text(PEOPLE)
    (workspace / "spread.csv").write_text("people\n7\n0\n90\n3\n0\n")


FEW = ("--size", "400", "--seed", "1", "--confidence", "0.999", "--attack", "entries")
ORDERED = """
def third(people, size, rng):
    ages = [min(max(age, 0), 100) / 20 for age in people["age"][::3]]
    return (sum(ages) + rng.laplace(size=size)).round(6)
"""


def test_several_cells_share_the_confidence(plaudit: Command) -> None:  # five audits, and their figure
    words = ("audit", "helper:buggy", "mine:noisy", "--data", "counts.csv", "--claim", "pure:1", "--size", "1400")
    words += ("--seed", "1", "--confidence", "0.999", "--cell", "2", "--cell", "0", "--out", "out")
    outcome = plaudit(*words)
    shared = "Each of the 2 pairs of databases is audited at 99.95% confidence: together their lower bounds hold at "
    assert (outcome.code, f"{shared}99.9%." in " ".join(outcome.out.split())) == (VIOLATION, True)
    names = ["helper-buggy-cell-2", "helper-buggy-cell-0", "mine-noisy-cell-2", "mine-noisy-cell-0"]
    audits = dict(read_audits(Path("out")))
    found = {name: audits[name] for name in names}
    assert [result.verdict for result in found.values()] == ["violated", *["not refuted"] * 3]
    assert {result.confidence for result in found.values()} == {1 - (1 - 0.999) / 2}
    assert found[names[0]].provenance["together"] == {"pairs": 2, "confidence": 0.999}
    command = shlex.split(found[names[3]].provenance["command"])  # of that pair alone, at its own confidence
    alone = plaudit(*command[1:], "--json")
    assert (alone.code, len(results(alone))) == (WITHIN, 1)
    assert results(alone)["mine:noisy cell 0"].counts == found[names[3]].counts


def test_cells_by_their_counts_each_once(plaudit: Command) -> None:  # six audits
    words = ("audit", "mine:noisy", "--data", "spread.csv", "--claim", "pure:1", *FEW, "--json")
    found = results(plaudit(*words, "--cells", "smallest, largest,empty", "--cell", "3", "--cell", "4"))
    assert list(found) == [f"mine:noisy cell {cell}" for cell in (3, 4, 2, 1)]
    assert len({result.pair for result in found.values()}) == 4
    ((name, result),) = results(plaudit(*words, "--cells", "largest", "--people", "5")).items()
    assert (name, result.confidence, "together" in result.provenance) == ("mine:noisy cell 2 people 5", 0.999, False)
    (name,) = results(plaudit(*words, "--cell", "2", "--move-to", "0"))
    assert name == "mine:noisy cell 2 to 0"


@pytest.mark.parametrize("frames", [True, False])
def test_systems_of_counts_run_on_a_tree_of_ones_own(plaudit: Command, monkeypatch: pytest.MonkeyPatch, frames: bool):
    if not frames:
        monkeypatch.setattr("audit.cli.inputs.records._library", lambda _: None)
    Path("areas.csv").write_text("region,district,n\nN,01,120\nS,01,40\nN,02,75\nS,01,3\nS,02,0\n")
    own = ("--data", "areas.csv", "--areas", "region,district", "--count", "n")
    result = audited(plaudit, "rdpc", *own, "--cell", "1")
    assert (result.pair, result.confidential) == ("1 person added to S / 01", True)
    assert audited(plaudit, "gdpc", *own[:4], "--cells", "largest").pair == "1 person added to S / 01"  # rows count
    assert plaudit("replay", "rdpc", *own, "--seed", "1").out.count("all areas  7") == 1  # a nation, 2 regions, 4 areas
    moved = json.loads(plaudit("estimate", "bottom-up", *own, "--method", "direct", "--move-to", "3", "--json").out)
    assert moved["bottom-up cell 0 to 3 direct"]["settings"]["pair"] == "1 person moved from N / 01 to S / 02"


OLD = ("helper:old", "--data", "people.csv")


@pytest.mark.parametrize(
    ("row", "claim", "code"),
    [("Eve,80,12345", "pure:1", WITHIN), ('{"zip": "12345", "age": 80, "name": "Eve"}', "pure:0.5", VIOLATION)],
)
def test_a_record_is_added(plaudit: Command, row: str, claim: str, code: int) -> None:
    result = audited(plaudit, *OLD, "--claim", claim, "--add-row", row, code=code)
    assert (result.relation, result.distance) == ("add_remove", 1)
    assert (result.adjacency, result.confidential) == ("verified", True)


def test_a_record_is_replaced(plaudit: Command) -> None:
    replaced = (*OLD, "--claim", "pure:1", "--replace-row", "2", "Cid,65,00001")
    outcome = plaudit("audit", *replaced, *QUICK, "--out", "out")
    assert outcome.code == WITHIN
    result = dict(read_audits(Path("out")))["helper-old-replaced-row-2"]
    assert (result.claim.relation, result.pair) == ("replace_one", "row 2 replaced")
    again = results(plaudit(*shlex.split(result.provenance["command"])[1:], "--json"))
    assert again["helper:old replaced row 2"].counts == result.counts
    steps = audited(plaudit, *replaced, "--relation", "add_remove")
    assert (steps.relation, steps.distance) == ("add_remove", 2)


ROWS = ("--add-row", "Eve,80,1", "--add-row", "Al,3,1")
EXACT = """
import numpy as np
class Old:
    def exact(self, people):
        return np.array([float(sum(age >= 65 for age in people["age"]))])
    def __call__(self, people, size, rng):
        return (self.exact(people) + rng.laplace(size=(size, 1))).round(3)
old = Old()
"""


def test_records_are_searched_replayed_and_estimated(plaudit: Command) -> None:
    """Each row that is given is a pair; a search adds by turns others of rows like them, of which none is refused."""
    few = (*QUICK, "--size", "400", "--json")
    found = results(plaudit("search", *OLD, "--claim", "pure:1", *ROWS, "--keep", "4", *few))
    rows = ["added row 1", "added row 2"]
    assert [result.pair for result in found.values()] == [*rows, *(f"{row} in front" for row in rows)]
    replayed = plaudit("replay", *OLD, *ROWS)
    assert replayed.out.count("random numbers are drawn outside of the primitives") == 2
    Path("exactly.py").write_text(EXACT)
    for method in ("residual", "direct"):
        at = ("--data", "people.csv", *ROWS[:2], "--at", "1")
        printed = plaudit("estimate", "exactly:old", *at, "--method", method, "--seed", "1", "--json").out
        (estimate,) = json.loads(printed).values()
        assert estimate["settings"]["pair"] == "1 row added at index 1"
        assert 0.3 < estimate["value"] < 3  # the loss is 1


def test_what_the_order_of_records_tells_is_found_in_front_and_by_a_search(plaudit: Command) -> None:
    """The loss is 5 at least in front; at the end it is within 1: accused with probability 1e-3 at most. 3 s."""
    Path("many.csv").write_text("age\n" + "".join(f"{20 + 75 * (n % 3 == 1)}\n" for n in range(25)))
    words = ("helper:third", "--data", "many.csv", "--claim", "pure:1", "--add-row", "85", "--seed", "1")
    words += ("--confidence", "0.999", "--size", "400")
    assert plaudit("audit", *words).code in (WITHIN, NO_POWER)
    outcome = plaudit("audit", *words, "--at", "first", "--out", "out")
    assert outcome.code == VIOLATION
    ((_, result),) = read_audits(Path("out"))
    assert result.pair == "1 row added in front"
    assert " --at first " in result.provenance["command"]
    found = plaudit("search", *words, "--json")
    assert "1 row added in front" in {one.pair for one in results(found).values() if one.verdict == "violated"}


EVE = ("--add-row", "Eve,80,12345")


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("mine:noisy", "--data", "spread.csv", "--cell", "0"), [("--cells", "smallest,largest,empty")]),
        ((*OLD, *EVE), [(*EVE, "--size")]),
        ((*OLD, "--replace-row", "2", "Cid,65,0"), [("--replace-row", "2", "Cid,65,0")]),
    ],
)
def test_a_pass_names_the_commands_for_other_databases_and_all_run(plaudit, words, more):
    outcome = plaudit("audit", *words, "--claim", "pure:1", *QUICK, "--out", "out")
    assert outcome.code == WITHIN
    ((_, result),) = read_audits(Path("out"))
    commands = result.provenance["next"]
    searching = words[:3] == OLD
    several = " A search tries many, also with one row fewer." * searching
    shown = " ".join(outcome.out.split())
    assert (
        f"- Audit other databases, which may lose more, and every new version.{several} {' '.join(commands)} " in shown
    )
    for command, part in zip(commands, more, strict=True):
        assert "--seed" not in command
        name, *again = shlex.split(command)[1:]
        assert any(tuple(again[place : place + len(part)]) == part for place in range(len(again)))
        assert name == ("search" if searching else "audit")
        fewer = [{"2000": "120"}.get(word, word) for word in again]
        assert plaudit(name, *fewer, "--seed", "2").code in (WITHIN, VIOLATION, NO_POWER)


def test_a_search_is_suggested_where_it_has_enough_runs(plaudit: Command) -> None:
    words = ("audit", *OLD, *EVE, "--claim", "pure:3", "--seed", "1", "--confidence", "0.5", "--json")
    for size in ("119", "120"):
        (result,) = results(plaudit(*words, "--size", size)).values()
        assert result.verdict == "not refuted"
        assert ("next" in result.provenance) == (size == "120")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((*OLD, "--claim", "pure:0.5", *EVE), VIOLATION),
        (("mine:noisy", "--data", "counts.csv", "--claim", "pure:2", "--cell", "0", "--move-to", "1"), WITHIN),
    ],
)
def test_there_is_no_further_command_of_a_violation_and_of_people_who_move(plaudit, words, code):
    assert "next" not in audited(plaudit, *words, code=code).provenance
