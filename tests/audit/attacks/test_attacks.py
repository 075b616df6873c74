from __future__ import annotations

import pytest

from audit.attacks import Attack
from audit.events import cell

EVERYTHING = {
    "families": ("threshold", "cell"),
    "looks": ("entries", "likelihood ratio", "paths", "trained"),
    "statistics": None,
}


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("auto", {}),
        ("threshold", {"families": ("threshold",)}),
        ("cell", {"families": ("cell",)}),
        ("entries", {"looks": ("entries",)}),
        ("likelihood_ratio", {"looks": ("likelihood ratio",)}),
        ("paths", {"looks": ("paths",)}),
        ("trained", {"looks": ("trained",)}),
    ],
)
def test_a_name_asks_for_one_thing_and_leaves_the_rest(name, asked):
    attack = Attack.named(name)
    assert {field: getattr(attack, field) for field in EVERYTHING} == EVERYTHING | asked


def test_an_attack_without_a_name_tries_everything():
    assert {field: getattr(Attack(), field) for field in EVERYTHING} == EVERYTHING
    own = (cell(0), cell(1))
    assert Attack(own).statistics is own


@pytest.mark.parametrize("name", ["", "Auto", "classifier", "likelihood ratio"])
def test_other_names_are_refused(name):
    words = (
        "attack must be an Attack or one of auto, threshold, cell, entries, likelihood_ratio, paths, trained, "
        f"got '{name}'"
    )
    with pytest.raises(ValueError, match=f"^{words}$"):
        Attack.named(name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"families": ()}, r'families must be of "threshold" and "cell", got \(\)'),
        ({"families": ("cell", "cells")}, r"got \('cell', 'cells'\)"),
        ({"families": "cell"}, 'families must be of "threshold" and "cell", got cell'),
        ({"looks": ()}, r"looks must be of entries, likelihood ratio, paths, trained, got \(\)"),
        ({"looks": ("entries", "likelihood_ratio")}, r"got \('entries', 'likelihood_ratio'\)"),
        ({"looks": "paths"}, "looks must be of entries, likelihood ratio, paths, trained, got paths"),
        ({"statistics": ()}, "an attack needs at least one statistic, got none"),
    ],
)
def test_attacks_without_anything_to_search_are_refused(options, words):
    with pytest.raises(ValueError, match=words) as caught:
        Attack(**options)
    assert "\n" not in str(caught.value)
