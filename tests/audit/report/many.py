"""Results by the thousand, all different, with words as long as usual."""

from __future__ import annotations

import numpy as np

from audit.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from audit.estimates.residuals import residual_loss
from audit.results import AuditResult, LossEstimate, verdict_of
from audit.results.provenance import provenance
from tests.helpers import audited

BOUNDS = {"pure": "guessing game", "approx": "guessing game", "zcdp": "variational Renyi divergence"}
REGION = "Gaussian trade-off of a Clopper-Pearson rectangle"


def many_results(number: int) -> tuple[list[tuple[str, AuditResult]], list[tuple[str, LossEstimate]]]:
    """Return as many results as asked for, all different, one in fifty an estimate, with words as long as usual."""
    rng = np.random.default_rng(5)
    estimate = residual_loss(np.round(rng.laplace(scale=10, size=5000)), rng=1)
    audits = [(f"audit-{k:04}", _audit(k, rng)) for k in range(number - number // 50)]
    return audits, [(f"residuals-{k:02}", estimate) for k in range(number // 50)]


def _audit(k: int, rng: np.random.Generator) -> AuditResult:
    families: tuple[Claim, ...] = (PureDP(1.0), ApproxDP(2.0, 1e-6), ZCDP(0.5), GaussianDP(0.8))
    claim = families[k % 4]
    measured = claim.at(claim.budget * float(rng.uniform(0.3, 1.1)))
    detectable = claim.budget * float(rng.uniform(1.02, 2.2))
    bins = {f"bin {b}": int(n) for b, n in enumerate(rng.multinomial(69_000, np.full(12, 1 / 12)))}
    guesses = {"guessed_x": int(rng.integers(40_000)), "guessed_y": int(rng.integers(29_000))}
    return audited(
        mechanism="RDPC",
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable),
        event="y if joint shift of un-raked counts of areas 0, 1, 13, 88 >= 0.5, x if joint shift of un-raked counts "
        "of areas 0, 1, 13, 88 <= -0.5",
        searched="thresholds and single values, to 9 decimals, of 4 statistics (log-likelihood ratio of y over x, "
        "output[0], distance of output[0] from 49561.5, ...)",
        counts={side: {"runs": 69_000} | (bins if claim.kind == "zcdp" else guesses) for side in "xy"},
        pair="1 person added to Tanger-Tetouan-Al Hoceima / Al Hoceima / Al Hoceima",
        bound=BOUNDS.get(claim.kind, REGION),
        size=200_000,
        selection=62_000,
        ceiling=8.45,
        detectable=detectable,
        seed_entropy=int(rng.integers(2**62)),
        provenance=provenance(size=200_000, selection=0.3, stop="fixed", mechanism={"epsilon": 1.0})
        | ({"command": f"plaudit audit rdpc --epsilon 1 --seed {k}"} if k % 2 else {}),
        seconds=float(rng.uniform(1, 60)),
        confidential=k % 3 == 0,
    )
