"""What auditors are asked: outputs of noise whose loss is known, and what ours proves of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.flaxman import GDPC
from audit import ApproxDP, Canaries, GaussianDP, PureDP, measure_loss_from_outputs, measure_loss_one_run
from audit.claims import Claim

CONFIDENCE, SELECTION = 0.95, 0.3  # of every bound, one-sided; the share of outputs that choose, where we split them
OURS = "plaudit"
EACH, SMALL, CANARIES, PEOPLE = 600_000, 1_000, 100_000, 100  # outputs on either database; one release, and its counts
AUDITS, MANY = 20, 400
DIGITS = 6  # of released Gaussian noise: the last bits of a float tell more than its law
DELTA = 0.01
# Deltas from which bounds on epsilon gave the peers the largest mu, of two to five each: in a look at other seeds, but
# for few outputs at ten of these audits.
MIDDLE, SMALL_DELTA, ONE_RUN_DELTA = 0.3, 0.1, 1e-5
ALL, TAIL = 1.0, 3.0  # scores from which a canary is guessed to be in: fixed beforehand, TAIL on other seeds
GEOMETRIC, GAUSSIAN = "geometric", "Gaussian"


@dataclass(frozen=True)
class Case:
    """Outputs of a law, what is asked about them, and the answer."""

    name: str
    claim: Claim
    truth: float
    law: str = GEOMETRIC
    epsilon: float = 1.0  # of geometric noise; Gaussian noise has a standard deviation of 1
    delta: float = 0.0
    each: int = EACH
    audits: int = AUDITS
    apart: int = 1  # by how much the count differs
    threshold: float | None = None  # that is fixed beforehand, of scores of one run
    cited: str = ""  # under which name others have published bounds
    besides: bool = False  # whether to ask for what peers offer besides bounds

    @property
    def one_run(self) -> bool:
        """Whether outputs are scores of canaries in one release."""
        return self.threshold is not None

    def noisy(self, counts: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return noisy releases of counts, shape (size, counts)."""
        if self.law == GEOMETRIC:
            return GDPC(self.epsilon)(counts, size, rng)
        released: NDArray[Any] = np.round(counts + rng.normal(0, 1, (size, len(counts))), DIGITS)
        return released

    def asked(self) -> dict[str, Any]:
        """Return the question, as peers read it."""
        question = {"parameter": self.claim.parameter, "delta": self.delta, "threshold": self.threshold}
        return {**question, "confidence": CONFIDENCE, "selection": SELECTION, "besides": self.besides}

    def saved(self) -> dict[str, Any]:
        """Return the question and its answer, as they are saved."""
        about = {"name": self.name, "parameter": self.claim.parameter, "truth": self.truth, "delta": self.delta}
        outputs = self.each if self.one_run else 2 * self.each
        return {**about, "outputs": outputs, "one_run": self.one_run, "cited": self.cited}


def small(case: Case, **changed: Any) -> Case:
    return replace(case, each=SMALL, audits=MANY, cited="", **changed)


COUNT = Case("geometric noise: epsilon", PureDP(1.0), 1.0, cited="geometric 1", besides=True)
NORMAL = Case("Gaussian noise: mu", GaussianDP(1.0), 1.0, GAUSSIAN, delta=MIDDLE)
ONCE = Case("one run, geometric noise: epsilon", PureDP(1.0), 1.0, each=CANARIES, threshold=ALL)
NO_LOSS: dict[str, Any] = {"truth": 0.0, "apart": 0, "besides": False}
CASES = (
    replace(COUNT, claim=PureDP(0.1), truth=0.1, epsilon=0.1, cited="geometric 0.1", besides=False),
    COUNT,
    NORMAL,
    replace(
        NORMAL,
        name=f"Gaussian noise: epsilon at delta {DELTA}",
        claim=ApproxDP(1.0, DELTA),
        truth=GaussianDP(1.0).epsilon_at(DELTA),
        delta=DELTA,
    ),
    ONCE,
    replace(
        ONCE,
        name="one run, Gaussian noise: mu",
        claim=GaussianDP(1.0),
        law=GAUSSIAN,
        delta=ONE_RUN_DELTA,
        threshold=TAIL,
    ),
    small(COUNT),
    small(NORMAL, delta=SMALL_DELTA),
    small(COUNT, **NO_LOSS),
    small(NORMAL, delta=SMALL_DELTA, **NO_LOSS),
)


@dataclass(frozen=True)
class Ours:
    """The outputs of one audit, and what ours proves of them: by rule, bounds and seconds of the processor."""

    x: NDArray[Any]
    y: NDArray[Any]
    bounds: dict[str, tuple[float, float]]


def repeated(case: Case, stream: np.random.SeedSequence) -> Ours:
    outputs, looking = stream.spawn(2)
    rng = np.random.default_rng(outputs)
    x, y = (case.noisy(np.array([count]), case.each, rng).ravel() for count in (0, case.apart))
    begun = time.process_time()
    result = measure_loss_from_outputs(
        x, y, case.claim, relation="add_remove", selection=SELECTION, confidence=CONFIDENCE, rng=looking
    )
    return Ours(x, y, {OURS: (result.measured.budget, time.process_time() - begun)})


def one_run(case: Case, stream: np.random.SeedSequence) -> Ours:
    counts, releases = np.full(CANARIES, PEOPLE), []

    def release(data: Any, size: int, rng: np.random.Generator) -> Any:
        began = time.process_time()
        releases.append((data != counts, case.noisy(data, size, rng), time.process_time() - began))
        return releases[-1][1]

    begun = time.process_time()
    result = measure_loss_one_run(release, Canaries(counts), case.claim, confidence=CONFIDENCE, rng=stream)
    [(inside, released, noise)] = releases
    scores = released[0] - counts
    return Ours(scores[~inside], scores[inside], {OURS: (result.measured.budget, time.process_time() - begun - noise)})
