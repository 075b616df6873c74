"""Which attacks an audit uses, and what they find together."""

from __future__ import annotations

import numpy as np
import pytest

from audit.attacks import Attack, classifiers
from audit.attacks.attack import candidate_statistics
from audit.attacks.paths import path_statistics
from audit.events import cell
from audit.neighbors import NeighborPair
from tests.audit.attacks.cases import names
from tests.audit.sampling.cases import THREE, given_runs, runs_of
from tests.helpers import noisy, refused_like

LOOKS = ("digits", "entries", "likelihood ratio", "moments", "paths", "precision", "trained", "whole", "words")
EVERYTHING = {"families": ("threshold", "cell"), "looks": LOOKS, "statistics": None}


def all_but(*names):
    return tuple(look for look in LOOKS if look not in names)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("auto", {}),
        *((name, {"families": (name,)}) for name in ("threshold", "cell")),
        *((look.replace(" ", "_"), {"looks": (look,)}) for look in LOOKS),
    ],
)
def test_a_name_asks_for_one_thing_and_leaves_the_rest(name, asked):
    attack = Attack.named(name)
    assert {field: getattr(attack, field) for field in EVERYTHING} == EVERYTHING | asked


@pytest.mark.parametrize(
    ("left_out", "changed"),
    [
        ([], {}),
        (["cell"], {"families": ("threshold",)}),
        (["likelihood_ratio", "trained"], {"looks": all_but("likelihood ratio", "trained")}),
        (["threshold", "entries"], {"families": ("cell",), "looks": all_but("entries")}),
    ],
)
def test_an_attack_can_do_without_what_is_named(left_out, changed):
    attack = Attack.without(*left_out)
    assert {field: getattr(attack, field) for field in EVERYTHING} == EVERYTHING | changed


def test_an_attack_without_a_name_tries_everything():
    assert {field: getattr(Attack(), field) for field in EVERYTHING} == EVERYTHING
    own = (cell(0), cell(1))
    assert Attack(own).statistics is own


NAMES = ", ".join(("auto", "threshold", "cell", *(look.replace(" ", "_") for look in LOOKS)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Attack.named(""), f"^attack must be an Attack or one of {NAMES}, got ''$"),
        (lambda: Attack.named("likelihood ratio"), f"^attack must be .* {NAMES}, got 'likelihood ratio'$"),
        (lambda: Attack(families=()), r'families must be of "threshold" and "cell", got \(\)'),
        (lambda: Attack(families=("cell", "cells")), r"got \('cell', 'cells'\)"),
        (lambda: Attack(looks=()), rf"looks must be of {', '.join(LOOKS)}, got \(\)"),
        (lambda: Attack(looks=("entries", "likelihood_ratio")), r"got \('entries', 'likelihood_ratio'\)"),
        (
            lambda: Attack.without("cell", "auto"),
            f"^an attack can do without {NAMES.removeprefix('auto, ')}, got 'auto'$",
        ),
        (
            lambda: Attack.without("threshold", "cell"),
            "^an attack needs a family and a place to look, got none without threshold, cell$",
        ),
        (lambda: Attack(()), "an attack needs at least one statistic, got none"),
    ],
)
def test_other_names_and_attacks_without_anything_to_search_are_refused(made, words):
    with refused_like(ValueError, words):
        made()


UNKNOWN = NeighborPair.declared("x", "y", "add_remove")
TREE = [-1, 0, 0, 0]
CHANGED = ["output[1]", "distance of output[1] from 40.5", "sum of output"]
RATIO = "log-likelihood ratio of y over x"
OTHERS = ["output[0]", "output[2]"]
ROUGHLY = Attack.without("precision")  # the noise is that of floats


def sharing(data, size, rng):
    """The same noise, and more that all entries share: then no entry tells all."""
    return noisy(data, size, rng) + rng.normal(0, 3, (size, 1))


def find(*args):
    found = candidate_statistics(*args)
    return found.statistics, found.spent


def test_statistics_of_ones_own_are_all_that_is_looked_at():
    told, own = [], (cell(0),)
    found, spent = find(runs_of(told=told), Attack(own), 10_000)
    assert found == own
    assert spent == sum(told) == 0


def test_candidates_know_which_attack_found_them():
    found = candidate_statistics(runs_of(Known()), ROUGHLY, 3000, Known())
    assert (found.tried, found.found_by(found.statistics[0])) == (("likelihood_ratio", "entries"), "likelihood_ratio")
    assert {found.found_by(statistic) for statistic in found.statistics[1:]} == {"entries"}
    own = candidate_statistics(runs_of(), Attack((cell(0), cell(1))), 3000)
    assert (own.tried, own.found_by(own.statistics[1])) == (("own statistics",), "own statistics")


@pytest.mark.parametrize("choosing", [8, 9, 100, 2999])
def test_entries_that_the_pair_changes_are_looked_at_after_a_glance_at_the_others(choosing):
    told = []
    found, spent = find(runs_of(told=told), Attack.named("entries"), choosing)
    assert names(found)[:3] == CHANGED
    assert sorted(names(found)[3:]) == OTHERS  # singly: of so few entries all are candidates
    assert spent == max(4, choosing // 10)
    assert sum(told) == spent


def test_entries_that_move_although_the_pair_leaves_them_alone_are_found():
    def leak(data, size, rng):
        outputs = noisy(data, size, rng)
        outputs[:, 0] += data[1]  # by 1 from x to y
        return outputs

    found, _ = find(runs_of(leak), Attack.named("entries"), 20_000)
    # 16 standard errors of 1,000 runs on either database; the third entry passes 5 with probability 6e-7.
    assert names(found) == [*CHANGED, "output[0]", "output[2]"]


def test_where_the_pair_does_not_tell_more_runs_find_what_moves():
    told = []
    runs = runs_of(
        lambda data, size, rng: rng.laplace([0, 0, data == "y", 0], size=(size, 4)), UNKNOWN, (4,), told=told
    )
    found, spent = find(runs, Attack.named("entries"), 3000)
    assert sum(told) == spent == 600
    # 11 standard errors; another entry passes 5 with probability 2e-6.
    assert names(found)[0] == "output[2]"
    assert names(found)[1].startswith("distance of output[2] from 0.")
    assert sorted(names(found)[2:]) == ["output[0]", "output[1]", "output[3]"]  # singly, after what moves


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_an_output_that_is_one_number_costs_a_glance_at_its_digits(shape):
    runs = runs_of(lambda data, size, rng: rng.integers(0, 9, (size, *shape)), UNKNOWN, shape)
    found, spent = find(runs, Attack(), 10_000)
    assert names(found) == [cell(*(0,) * len(shape)).name]
    assert spent == 1000
    _, spent = find(runs, Attack.named("entries"), 10_000)
    assert spent == 0


def test_classifiers_are_taught_where_there_are_runs_enough():
    told = []
    found, spent = find(runs_of(sharing, told=told), Attack.named("trained"), 3000)
    assert names(found) == ["logistic regression on 3 entries", "gradient boosting on 3 entries"]
    assert spent == 300 + 750
    assert sum(told) == spent
    everything, _ = find(runs_of(sharing), ROUGHLY, 3000)
    assert names(everything)[:3] == CHANGED
    assert sorted(names(everything)[3:5]) == OTHERS
    assert names(everything)[5:] == names(found)
    few, spent = find(runs_of(sharing), ROUGHLY, 1599)  # a quarter is below 400
    assert names(few)[:3] == CHANGED
    assert sorted(names(few)[3:]) == OTHERS
    assert spent == 159


def test_no_classifier_is_taught_where_one_entry_tells_all():
    found, spent = find(runs_of(), Attack(looks=("entries", "trained")), 3000)
    assert names(found)[:3] == CHANGED
    assert sorted(names(found)[3:]) == OTHERS
    assert spent == 300


def test_lessons_are_no_longer_than_they_need_be(monkeypatch):
    monkeypatch.setattr(classifiers, "MOST", 500)
    _, spent = find(runs_of(sharing), Attack.named("trained"), 3000)
    assert spent == 300 + 500


class Known:
    """A mechanism that tells its likelihood, or its tree."""

    def __call__(self, data, size, rng):
        return noisy(data, size, rng)

    def log_likelihood(self, outputs, data):
        return -np.abs(outputs - data).sum(axis=1)


class Tree(Known):
    areas = (TREE, [1, 2, 3], [1, 2, 3])


def test_a_likelihood_makes_classifiers_needless():
    found, _ = find(runs_of(Known()), ROUGHLY, 3000, Known())
    assert names(found)[:4] == [RATIO, *CHANGED]
    assert sorted(names(found)[4:]) == OTHERS
    assert found[0](np.array([THREE.x, THREE.y])).tolist() == [-1, 1]
    alone, spent = find(runs_of(Known()), Attack.named("likelihood_ratio"), 3000, Known())
    assert names(alone) == [RATIO]
    assert spent == 0


def test_a_tree_is_looked_at_along_its_paths():
    paths = names(path_statistics(THREE, TREE, [1, 2, 3]))
    found, spent = find(runs_of(Tree()), Attack.named("paths"), 3000, Tree())
    assert (names(found), spent) == (paths, 0)
    everything, _ = find(runs_of(Tree()), ROUGHLY, 3000, Tree())
    known = [RATIO, *paths, *CHANGED]
    assert names(everything)[: len(known)] == known
    assert sorted(names(everything)[len(known) :]) == OTHERS


@pytest.mark.parametrize(
    ("name", "look"), [("likelihood_ratio", "likelihood ratio"), ("paths", "paths"), ("trained", "trained")]
)
def test_an_attack_that_finds_nothing_is_refused(name, look):
    words = rf"an attack must find something to look at: {look} of outputs of shape \(3,\) gives nothing"
    with pytest.raises(ValueError, match=f"^{words}$"):
        find(runs_of(), Attack.named(name), 8, noisy)
    with pytest.raises(ValueError, match="likelihood ratio, trained of outputs of shape"):
        find(runs_of(), Attack(looks=("likelihood ratio", "trained")), 8)


def test_given_outputs_are_searched_like_fresh_ones():
    rng = np.random.default_rng(3)
    x, y = rng.laplace(size=(2, 2000, 4))
    y[:, [1, 3]] += 0.8, 1  # 10 and 12 standard errors: neither tells all
    runs = given_runs(x.round(6), y.round(6), UNKNOWN)
    found, spent = find(runs, Attack(), 3000)
    assert names(found)[0] == "output[3]"
    assert names(found)[-2:] == ["logistic regression on 4 entries", "gradient boosting on 4 entries"]
    assert spent == 600 + 750
    assert runs.left == [1325, 1325]
