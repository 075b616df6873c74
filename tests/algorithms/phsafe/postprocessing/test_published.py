"""Published tables as a mechanism: the numbers of a release, and no more than the measurements promise."""

from dataclasses import replace

import numpy as np

from algorithms.phsafe.budget import read_config
from algorithms.phsafe.layout import lay_out
from algorithms.phsafe.measurement import PHSafe, tabulated
from algorithms.phsafe.neighbors.worst import worst_pair
from algorithms.phsafe.postprocessing.postprocess import postprocess
from algorithms.phsafe.postprocessing.published import PublishedTables
from tests.helpers import refuses

US = read_config("us")
PH4 = [("PH4", "state_*")]
PAIR = tabulated(worst_pair("PH4", "state_*", "DER"), US)


def test_outputs_are_the_estimates_and_intervals_of_a_release():
    phsafe = PHSafe(US, PH4)
    frame = postprocess(lay_out(phsafe.measured(PAIR.x, np.random.default_rng(3)), US))["PH4"]
    wanted = [*frame["ESTIMATE"], *frame["LOWER"], *frame["UPPER"]]
    first, second = PublishedTables(phsafe)(PAIR.x, 2, np.random.default_rng(3))
    assert first.tolist() == wanted
    assert second.tolist() != wanted
    assert PublishedTables(phsafe).claim == phsafe.claim


def test_averages_are_published_of_both_parts():
    both = PHSafe(US, [("PH1_num", "state_*"), ("PH1_denom", "state_*")])
    assert PublishedTables(both)(PAIR.x, 1, np.random.default_rng(1)).shape == (1, 9)


def test_what_cannot_be_published_is_refused():
    for query in ("PH1_num", "PH1_denom", "PH8_denom"):
        half = PHSafe(US, [(query, "state_*")])
        refuses(ValueError, f"queries must be enough for a table, got {query}", PublishedTables, half)
    pure = PHSafe(replace(US, privacy_definition="puredp"), PH4)
    refuses(ValueError, "post-processing must be of discrete Gaussian noise, got puredp", PublishedTables, pure)


def test_runs_published_together_are_those_published_one_by_one(monkeypatch):
    averages = PublishedTables(PHSafe(US, [("PH7", "state_H,I"), ("PH8_denom", "state_H,I")]))
    pair = tabulated(worst_pair("PH7", "state_H,I", "DER"), US)
    together = averages(pair.x, 3, np.random.default_rng(1))
    monkeypatch.setattr("algorithms.phsafe.postprocessing.published.AT_ONCE", 1)
    assert np.array_equal(averages(pair.x, 3, np.random.default_rng(1)), together)
