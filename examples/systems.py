"""Bottom-up, the ONS pilot and NistDp3 in Python: their losses, and what becomes of small groups."""

import numpy as np

from algorithms.bottom_up import BottomUp, PublishedTotals, WeightedBottomUp
from algorithms.bottom_up.inverse_cdf import InverseCdf
from algorithms.hierarchy import Hierarchy
from algorithms.nist import Groups, NistDp3, choose_groups, marginal_distance
from algorithms.ons import IndependentNoise, OnsTopDown, unchanged_probability
from algorithms.ons.deaths import synthetic_deaths
from algorithms.population import halves, load_income
from audit import NeighborPair

rng = np.random.default_rng(1)
one = NeighborPair.add_people([120, 75, 43], cell=0)
print(f"bottom-up: exact loss {BottomUp(1.0).exact_loss(one).maximum}")
print(f"the authors' sampler, of 53 bits, adds no noise beyond {InverseCdf(1.0).reach} people")
published = BottomUp(1.0, Hierarchy.regular(2, 1), published=PublishedTotals(0, [21]))
print(f"noisy cells with a published total of 21 add up to {published([[10, 0], [3, 8]], 1, rng).sum():.0f}")
weighted = WeightedBottomUp(1.0, 4.5, (3,)).counts([[0, 2.25], [0, 2.25], [2, 1.2]])  # cell and weight of each record
print(f"weighted counts {weighted.tolist()}")

print(f"ONS, Laplace: {unchanged_probability('laplace', 1.0):.4f} of counts stay as they are (Table 1 of the pilot)")
deaths = synthetic_deaths(0)  # the pilot's regions exact, all else assumed
tables = IndependentNoise(deaths.tree, deaths.schema, 1.0)
print(f"ONS, independent: {tables.claim} for all tables together")
pilot = OnsTopDown(deaths.tree, deaths.schema, 2.0)  # total, nation, region, CCG by 21,600 cells
released = pilot(deaths.histogram, 1, rng)[0]
northern = deaths.tree.ancestors(1) == deaths.tree.labels.index("N99999999")
print(f"Northern Ireland: {deaths.histogram[northern].sum()} deaths become {released[northern].sum()}")
print(f"the CCGs' counts may cost epsilon {pilot.stage('measurements', only=[3]).claim.epsilon:.2f}")

schema, records = load_income()  # KDD Census-Income: 37 fields
public, protected = halves(records)
for words, groups in {"grouped": choose_groups(public, schema), "alone": Groups.single(schema)}.items():
    rows = NistDp3(schema, groups, 1.0, rows=1000).fit(protected, rng).synthesize()
    near = marginal_distance(rows, protected, schema, rng=np.random.default_rng(2))
    print(f"NistDp3, {len(groups)} groups ({words}): distance {near:.3f} of margins of three fields")
