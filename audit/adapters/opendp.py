"""Measurements of OpenDP; the promise comes from their privacy map, the relation from their input metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.adapters.adapting import adapted, made_by, needing, plain, promised
from audit.claims import ZCDP, Claim, Relation
from audit.mechanism import Mechanism

__all__ = ["mechanism", "promise"]

RUNS_PER_BLOCK = 4096  # runs that share a call: about 0.2 seconds
# Relations of metrics between databases of rows. Other metrics are between numbers, and have no fixed relation.
ROWS: dict[str, Relation] = {
    "SymmetricDistance": "add_remove",
    "InsertDeleteDistance": "add_remove",
    "SymmetricIdDistance": "add_remove",
    "ChangeOneDistance": "replace_one",
    "HammingDistance": "replace_one",
    "ChangeOneIdDistance": "replace_one",
    "DiscreteDistance": "replace_one",
}


def mechanism(
    measurement: Any,
    d_in: Any = 1,
    *,
    delta: float | None = None,
    relation: Relation | None = None,
    entrywise: bool = False,
) -> Mechanism:
    """Return a measurement of OpenDP as a mechanism to audit, with a ``claim`` and randomness of the operating system.

    Parameters
    ----------
    measurement : Measurement or callable
        A measurement, or a function without arguments that makes one, so that several processes can run it.
    d_in : object
        Distance of neighboring databases in the input metric. The distance of the audited pair must not be larger.
    delta : float, optional
        Delta of the promise if the privacy map gives a curve, as under ``smoothed_max_divergence``.
    relation : {"add_remove", "replace_one"}, optional
        For metrics between numbers, such as ``absolute_distance``: the change of one person that changes the numbers
        by `d_in`; default ``"add_remove"``. Metrics between rows imply their relation.
    entrywise : bool
        For measurements of vectors that add independent noise to each entry: the runs of a block share one call on a
        longer vector. Do not set it for a measurement whose output entries depend on several input entries.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    >>> mechanism(lambda: space >> dp.m.then_laplace(1.0), entrywise=True).claim
    PureDP(epsilon=1.0, relation='add_remove')
    """
    with needing("opendp"):
        from opendp.mod import Measurement

    make, made = made_by(measurement, Measurement, "a measurement of OpenDP")
    claim, name = promise(made, d_in, delta=delta, relation=relation), f"opendp {made.input_domain}"
    if entrywise:
        return Entrywise(make, name, claim)
    return adapted(make, lambda built, data: built(plain(data)), name, claim)


def promise(measurement: Any, d_in: Any = 1, *, delta: float | None = None, relation: Relation | None = None) -> Claim:
    """Return the promise of a measurement of OpenDP; parameters as in `mechanism`."""
    metric, measure = (str(part).partition("(")[0] for part in (measurement.input_metric, measurement.output_measure))
    known = ROWS.get(metric)
    if relation not in (None, known or relation):
        raise ValueError(f"the relation of {metric} is {known}, got {relation}")
    under, d_out = relation or known or "add_remove", measurement.map(d_in)
    if measure == "MaxDivergence":
        return promised(float(d_out), 0.0, under)
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(float(d_out), under)
    if str(measurement.output_measure) in ("Approximate(MaxDivergence)", "FixedSmoothedMaxDivergence()"):
        epsilon, fixed = d_out
        return promised(float(epsilon), float(fixed), under)
    if measure == "SmoothedMaxDivergence" and delta is not None:
        return promised(float(d_out.epsilon(delta)), delta, under)
    needs = ": give a delta" if measure == "SmoothedMaxDivergence" else ""
    raise ValueError(f"no claim says what {measurement.output_measure} promises{needs}")


class Entrywise:
    """A mechanism whose runs share one call of a measurement on a long vector."""

    runs_per_block = RUNS_PER_BLOCK
    seedable = False

    def __init__(self, make: Callable[[], Any], name: str, claim: Claim) -> None:
        self.__name__, self.claim = name, claim
        self._make, self._built = make, None

    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> NDArray[Any]:
        if self._built is None:
            self._built = self._make()
        values = np.asarray(data)
        outputs = np.asarray(self._built(plain(np.tile(values.reshape(-1), size))))  # type: ignore[misc]
        if outputs.shape != (size * values.size,):
            raise ValueError(
                f"entrywise noise gives an output for each entry, {size * values.size}, got {outputs.shape}"
            )
        return outputs.reshape(size, *values.shape)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_built": None}
