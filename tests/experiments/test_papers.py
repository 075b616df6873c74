"""The index of the five papers: every item has a status, a place that exists, and numbers from the saved files."""

import copy
import importlib
from functools import cache
from operator import attrgetter

import pytest

from experiments.__main__ import FIGURES, PAPERS, main
from experiments.experiment import NAMES, load_numbers
from experiments.papers.index import STATUSES, Item, load_papers
from experiments.papers.values import values

FIVE = load_papers()
ITEMS = [item for paper in FIVE for item in paper.items]
saved = cache(lambda name: load_numbers(name, FIGURES))
named = cache(lambda: values(saved))


def test_the_command_writes_the_page_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.__main__.PAPERS", tmp_path / "papers.md")
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["papers"])
    assert (tmp_path / "papers.md").read_text() == PAPERS.read_text()


def faults(item):
    """What an item says too little of, or wrong."""
    status, experiments = item.status(named()), [name for name in item.where if ":" not in name]
    counted = experiments and item.how not in ("shown", "not available")
    broken = {
        "it names no place, or says nothing": not (item.place and item.says),
        "its status is none": status not in STATUSES,
        "it is somewhere, or not available for a reason": not (item.why if status == "not available" else item.where),
        "what is the same has no condition": item.how == "same" and item.why,
        "how close is computed": item.how in ("close", "direction") or (experiments and item.how == "same"),
        "numbers of an experiment come from its file": counted and "{" not in item.ours,
        "an experiment that there is not": not set(experiments) <= set(NAMES),
    }
    yield from (words for words, wrong in broken.items() if wrong)
    for module, _, inside in (name.partition(":") for name in item.where if ":" in name):
        try:
            attrgetter(inside)(importlib.import_module(module))
        except AttributeError:
            yield "a place that there is not"


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.place}: {item.says}"[:60])
def test_every_item_has_a_status_and_a_place_that_exists(item):
    assert list(faults(item)) == []
    assert "\n" not in item.line(named())


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        (Item("", "b", "shown", ("one_run",)), "it names no place"),
        (Item("a", "b", "guessed", ("one_run",), "{x}"), "its status is none"),
        (Item("a", "b", "not available"), "it is somewhere"),
        (Item("a", "b", "same", ("audit.claims:PureDP",), why="c"), "what is the same"),
        (Item("a", "b", "same", ("one_run",), "{x}"), "how close"),
        (Item("a", "b", "differs", ("one_run",), "0.5"), "numbers of an experiment"),
        (Item("a", "b", "shown", ("no_such",)), "an experiment"),
        (Item("a", "b", "same", ("audit.claims:Nothing",)), "a place"),
    ],
)
def test_items_that_say_too_little_are_seen(item, fault):
    assert [words for words in faults(item) if words.startswith(fault)]


def test_what_does_not_hold_differs():
    """A status is that of the saved numbers: others change it, and every condition decides one item."""
    other = copy.deepcopy(saved("nist_rows"))
    other["rows"] = 799_999
    changed = values(lambda name: other if name == "nist_rows" else saved(name))["how"]
    assert named()["how"]["rows"] == "same"
    assert changed == named()["how"] | {"rows": "differs"}
    decided = [item.how.removeprefix("{how[").removesuffix("]}") for item in ITEMS if item.how.startswith("{how[")]
    assert sorted(decided) == sorted(named()["how"])


def numbered(word, last):
    return {f"{word} {number}" for number in range(1, last + 1)}


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("Sexton", numbered("Table", 10) | numbered("Algorithm", 4) | {"Proposition 1", "Corollary 1", "Corollary 2"}),
        ("Sexton", {"Lemma 4", "Lemma 5", "Lemma 6, figure 1", "Algorithm 5, definition 9", "Definition 10"}),
        ("Sexton", {"Theorems 1 and 2", "Theorems 3 and 4"}),
        ("Office", numbered("Table", 12) | {"Figure 1", "Figure 2, method 2"} | {f"Figure {n}" for n in (3, 4, 5, 6)}),
        ("Flaxman", {"Figure 1(a)", "Figure 1(b), section 3", "Section 2.3, direct estimate"}),
    ],
)
def test_what_a_paper_numbers_is_there(title, wanted):
    (paper,) = [paper for paper in FIVE if paper.title.startswith(title)]
    assert wanted <= {item.place for item in paper.items}
