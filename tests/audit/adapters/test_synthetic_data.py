"""A generator of synthetic data by others, of half a second a run: 600 runs, or five minutes, are enough for a verdict.

It runs where DataSynthesizer is installed: `make libraries`.
"""

import contextlib
import io
import warnings

import numpy as np
import pytest

from audit import NeighborPair, PureDP, measure_loss, per_run

NAMES, ROWS = ["sex", "age", "job", "ill"], 30
PEOPLE = [
    [sex, str(age), job, "no"]
    for sex, age, job in np.random.default_rng(0).integers(0, (2, 5, 4), (40, 3)).astype(str).tolist()
]


@pytest.mark.slow
@pytest.mark.parametrize(("ill", "verdict"), [("yes", "violated"), ("no", "not refuted")])
def test_a_value_that_one_person_has_is_found_in_generated_rows(ill, verdict, tmp_path):
    """PrivBayes in DataSynthesizer takes the values of columns from the data (Annamalai and others, 2024, table 1).

    False alarm: 5% for the person who has no new value.
    """
    describer = pytest.importorskip("DataSynthesizer.DataDescriber").DataDescriber
    generator = pytest.importorskip("DataSynthesizer.DataGenerator").DataGenerator
    pandas = pytest.importorskip("pandas")

    def synthetic(people, rng):
        data, description = (str(tmp_path / name) for name in ("people.csv", "description.json"))
        pandas.DataFrame(people, columns=NAMES).to_csv(data, index=False)
        first, second = (int(seed) for seed in rng.integers(2**31, size=2))
        is_category, is_key = dict.fromkeys(NAMES, True), dict.fromkeys(NAMES, False)
        with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
            described = describer(category_threshold=20)
            described.describe_dataset_in_correlated_attribute_mode(
                data,
                k=1,
                epsilon=1.0,
                attribute_to_is_categorical=is_category,
                attribute_to_is_candidate_key=is_key,
                seed=first,
            )
            described.save_dataset_description_to_file(description)
            made = generator()
            made.generate_dataset_in_correlated_attribute_mode(ROWS, description, seed=second)
        return made.synthetic_dataset.astype(str).to_numpy().tolist()

    pair = NeighborPair.declared(PEOPLE, [*PEOPLE, ["0", "3", "1", ill]], "add_remove")
    result = measure_loss(per_run(synthetic), pair, PureDP(1.0), stop="early", size=600, rng=1)
    assert result.verdict == verdict
    assert ("'yes'" in result.event) == (ill == "yes")
