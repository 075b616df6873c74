"""Which attacks an audit uses, and what they find together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from audit.attacks import Attack
from audit.attacks.paths import path_statistics
from audit.attacks.protocol import candidate_statistics, registered
from audit.events import cell
from tests.audit.attacks.cases import exploration, names
from tests.audit.sampling.cases import THREE, runs_of
from tests.helpers import noisy, refused_like

BUNDLED = (
    *("digits", "entries", "likelihood ratio", "moments", "novelty"),
    *("paths", "precision", "trained", "whole", "words"),
)
LOOKS = tuple(sorted(look.name for look in registered()))
AUTOMATIC = tuple(sorted(look.name for look in registered() if look.automatic))
EVERYTHING = {"families": ("threshold", "cell"), "looks": AUTOMATIC, "statistics": None}
OWN = (cell(0), cell(1))


def all_but(*names):
    return tuple(look for look in AUTOMATIC if look not in names)


@pytest.mark.parametrize(
    ("attack", "changed"),
    [
        (Attack(), {}),
        (Attack(OWN), {"statistics": OWN}),
        *((Attack.named(name), {"families": (name,)}) for name in ("threshold", "cell")),
        *((Attack.named(look.replace(" ", "_")), {"looks": (look,)}) for look in LOOKS),
        (Attack.without("likelihood_ratio", "trained"), {"looks": all_but("likelihood ratio", "trained")}),
        (Attack.without("threshold", "entries"), {"families": ("cell",), "looks": all_but("entries")}),
    ],
)
def test_a_name_asks_for_one_thing_and_leaves_the_rest(attack, changed):
    assert {field: getattr(attack, field) for field in EVERYTHING} == EVERYTHING | changed


NAMES = ", ".join(("auto", "threshold", "cell", *(look.replace(" ", "_") for look in LOOKS)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Attack.named(""), f"^attack must be an Attack or one of {NAMES}, got ''$"),
        (lambda: Attack(families=()), r'families must be of "threshold" and "cell", got \(\)'),
        (lambda: Attack(looks=()), rf"looks must be of {', '.join(LOOKS)}, got \(\)"),
        (lambda: Attack.without("cell", "auto"), "^an attack can do without threshold, cell, .*, got 'auto'$"),
        (lambda: Attack.without("threshold", "cell"), "a family and a place to look, got none without"),
        (lambda: Attack(()), "an attack needs at least one statistic, got none"),
        *(
            (
                lambda look=look: find(runs_of(), Attack(looks=(look,)), 8),
                rf"^an attack must find something to look at: {look} of outputs of shape \(3,\) gives nothing$",
            )
            for look in ("likelihood ratio", "paths", "trained")
        ),
    ],
)
def test_other_names_and_attacks_without_anything_to_search_are_refused(made, words):
    with refused_like(ValueError, words):
        made()


TREE = [-1, 0, 0, 0]
CHANGED = ["output[1]", "distance of output[1] from 40.5", "sum of output"]
RATIO = "log-likelihood ratio of y over x"
OTHERS = ["output[0]", "output[2]"]
ROUGHLY = Attack(looks=tuple(look for look in BUNDLED if look != "precision"))  # the noise is that of floats


def sharing(data, size, rng):
    """The same noise, and more that all entries share: then no entry tells all."""
    return noisy(data, size, rng) + rng.normal(0, 3, (size, 1))


def leaking(data, size, rng):
    """Noise on every count, of which the first moves by 1 although the pair leaves it alone."""
    return noisy(data, size, rng) + np.eye(3)[0] * data[1]


class Known:
    """A mechanism that tells its likelihood."""

    def __call__(self, data, size, rng):
        return noisy(data, size, rng)

    def log_likelihood(self, outputs, data):
        return -np.abs(outputs - data).sum(axis=1)


class Tree(Known):
    """And its tree."""

    areas = (TREE, [1, 2, 3], [1, 2, 3])


def find(runs, attack, choosing):
    """What an attack finds, and the runs that it spends."""
    found = candidate_statistics(runs, attack, choosing)
    return found.statistics, found.spent


PATHS = names(path_statistics(THREE, TREE, [1, 2, 3]))
GAP = "gap that holds an entry"
TRAINED = ["logistic regression on 3 entries", "gradient boosting on 3 entries"]


@pytest.mark.parametrize(
    ("mechanism", "attack", "choosing", "found", "spent"),
    [
        (noisy, Attack(OWN), 10_000, names(OWN), 0),  # statistics of one's own are all that is looked at
        # Entries that the pair changes are looked at after a glance at the others, all of which are candidates.
        *((noisy, Attack.named("entries"), choosing, CHANGED + OTHERS, max(4, choosing // 10)) for choosing in (8, 9)),
        (noisy, Attack.named("entries"), 2999, CHANGED + OTHERS, 299),
        # 16 standard errors of 1,000 runs on either database; the third entry passes 5 with probability 6e-7.
        (leaking, Attack.named("entries"), 20_000, CHANGED + OTHERS, 2000),
        # Classifiers are taught where there are runs enough, so that a quarter is 400, and no entry tells all.
        (sharing, Attack.named("trained"), 3000, TRAINED, 300 + 750),
        (sharing, ROUGHLY, 3000, [*CHANGED, *OTHERS, *TRAINED, GAP], 300 + 750),  # what taught them shows gaps, too
        (sharing, ROUGHLY, 1599, [*CHANGED, *OTHERS, GAP], 159 + 240),  # or as many runs as make it a quarter
        (noisy, Attack(looks=("entries", "trained")), 3000, CHANGED + OTHERS, 300),
        (noisy, Attack.named("trained"), 3000, TRAINED, 300 + 750),
        # A likelihood makes them needless, and so does a tree.
        (Known(), ROUGHLY, 3000, [RATIO, *CHANGED, *OTHERS], 300),
        (Known(), Attack.named("likelihood_ratio"), 3000, [RATIO], 0),
        (Tree(), Attack.named("paths"), 3000, PATHS, 0),
        (Tree(), ROUGHLY, 3000, [RATIO, *PATHS, *CHANGED, *OTHERS], 300),
    ],
)
def test_each_attack_finds_what_it_knows_and_spends_no_more_than_it_needs(mechanism, attack, choosing, found, spent):
    """Other entries in alphabetical order."""
    made = []
    statistics, runs = find(runs_of(mechanism, progress=made), attack, choosing)
    assert sum(made) == runs == spent
    several = names(statistics)
    places = [place for place, name in enumerate(several) if name in OTHERS]
    for place, name in zip(places, sorted(several[place] for place in places), strict=True):
        several[place] = name
    assert several == found


def test_candidates_know_which_attack_found_them():
    found = candidate_statistics(runs_of(Known()), ROUGHLY, 3000)
    assert (found.tried, found.attack_of(found.statistics[0])) == (("likelihood_ratio", "entries"), "likelihood_ratio")
    assert {found.attack_of(statistic) for statistic in found.statistics[1:]} == {"entries"}
    assert found.statistics[0](np.array([THREE.x, THREE.y])).tolist() == [-1, 1]
    own = candidate_statistics(runs_of(), Attack(OWN), 3000)
    assert own.statistics == OWN
    assert (own.tried, own.attack_of(own.statistics[1])) == (("own statistics",), "own statistics")


@settings(max_examples=20)
@given(arrays(np.float64, (8, 3), elements=st.floats(allow_nan=False)), st.sampled_from([np.float64, np.int64, bool]))
def test_any_numbers_can_be_searched(outputs, dtype):
    with np.errstate(all="ignore"):
        runs = np.tile(outputs.astype(dtype), (20, 1))
    for look in registered():
        if look.name in BUNDLED and look.name != "trained":  # of the others, none learns
            for statistic in look.candidates(exploration(runs, runs[::-1], look.name, times=20)):
                assert np.isfinite(statistic(runs)).all()
