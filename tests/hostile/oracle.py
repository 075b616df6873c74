"""The verdict of an audit a second time, from nothing but its saved counts: slow, plain, and none of plaudit's code.

Every promise is tested where it stands, by the theorem that the method's docstring cites: no bound is computed, and no
root is looked for but an exact limit of a probability.
"""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from statistics import NormalDist
from typing import Any

import numpy as np

WITHIN, VIOLATION, NO_POWER = 0, 1, 3
VERDICTS = {"violated", "not refuted", "no power"}
BUDGETS = {"pure": "epsilon", "approx": "epsilon", "zcdp": "rho", "gaussian": "mu"}
CLOSE = 1e-5  # relative: so near to the promise a rounding error may decide, and either verdict is right
MOST = 100_000  # runs, beyond which sums of all terms take too long
PLAYERS = 1, 0.5, 0.25  # shares of the best stake
POWER, UNSEEN = 0.8, 0.9  # of a minimum detectable loss; share of strange outputs from which on there is no power
ORDERS = [10 ** (k / 500) for k in range(1, 2001)]  # of Renyi divergences: any is valid
NORMAL = NormalDist()
SHAPES = (0.5, 0.2), (0.35, 0.07), (0.2, 0.03)  # of weights of numbers of right guesses

Json = dict[str, Any]


def tail(least: int, runs: int, chance: float) -> float:
    """Return how likely so many of the runs, or more, succeed."""
    if least <= 0 or chance >= 1:
        return float(least <= runs)
    if chance <= 0:
        return 0.0
    hit, missed, ways = math.log(chance), math.log1p(-chance), math.lgamma(runs + 1)
    terms = (
        math.exp(ways - math.lgamma(k + 1) - math.lgamma(runs - k + 1) + k * hit + (runs - k) * missed)
        for k in range(least, runs + 1)
    )
    return math.fsum(terms)


def limit_below(hits: int, runs: int, error: float) -> float:
    """Return the probability at which so many hits are as likely as the error: Clopper and Pearson's lower limit."""
    low, high = 0.0, 1.0
    while hits and high - low > 1e-15:
        middle = (low + high) / 2
        low, high = (middle, high) if tail(hits, runs, middle) <= error else (low, middle)
        if middle in (low, high) and high - low < 1e-12 * high:
            break
    return low


def limit_above(hits: int, runs: int, error: float) -> float:
    """Return the upper limit, from what was missed."""
    return 1 - limit_below(runs - hits, runs, error)


class Event:
    """One event of an audit, with what was counted of it and the promise for the pair at any budget of one step."""

    def __init__(self, audit: Json, counts: Json, basis: Json, shares: float = 1.0) -> None:
        self.counts, self.basis, self.claim = counts, basis, audit["claim"]
        self.kind, self.distance, self.bound = self.claim["kind"], audit["distance"], audit["bound"]
        self.all_error = 1 - float(audit["confidence"])
        self.error = self.all_error * basis.get("share", 1.0) / max(1.0, shares)  # all have one error together
        if (inflation := basis.get("inflation", 1.0)) > 1:  # runs that depend on each other count as fewer
            self.error = min(self.error, max(self.error**inflation, 1e-13))
        x, y = counts["x"], counts["y"]
        self.runs = x["runs"] + y["runs"]
        self.right = x.get("guessed_x", 0) + y.get("guessed_y", 0)
        self.guesses = self.right + x.get("guessed_y", 0) + y.get("guessed_x", 0)

    def lines(self, budget: float) -> list[tuple[float, float]]:
        """Return epsilons and deltas that follow from the promise for the pair: tangents of its trade-off curve."""
        if self.kind == "gaussian":
            mu = budget * self.distance
            nears = [-mu / 2 + k / 59 * (6 + mu / 2) for k in range(60)]
            cdf = NORMAL.cdf
            return [(e := mu * (z + mu / 2), cdf(-z) - math.exp(e) * cdf(-z - mu) + 1e-15) for z in nears]
        if self.kind == "zcdp":
            root, low, high = math.sqrt(budget) * self.distance, 0.0, 10.0
            at = lambda far: 2 * far * root + root**2 - math.log1p(root / far)  # noqa: E731
            for _ in range(100):
                low, high = (low, middle) if at(middle := (low + high) / 2) > 0 else (middle, high)
            fars = [high + 6 * (k / 59) ** 2 for k in range(60)]
            return [(max(at(far), 0.0), math.exp(-(far**2)) * root / (root + far)) for far in fars]
        if self.claim.get("delta") and not float(self.claim["epsilon"]):
            return [(0.0, budget * self.distance)]
        return [(budget * self.distance, self.forgiven(budget))]

    def rejects(self, budget: float) -> bool:
        """Return whether the counts reject a promise of this budget for one step."""
        return TESTS[self.bound](self, budget)

    def powerful(self, budget: float) -> bool:
        """Return whether as many guesses reject the promise with power .8 if a step loses this budget.

        The power is the mean over what the choice of the event may have missed.
        """
        promise = float(self.claim[BUDGETS[self.kind]])

        def rejected(right: int) -> bool:
            self.right = right
            return self.rejects(promise)

        counted = self.right
        low, high = self.guesses // 2, self.guesses + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if rejected(middle) else (middle, high)
        self.right = counted
        if not self.guesses or high > self.guesses:
            return False

        def power(missing: float) -> float:
            odds = 1 / (1 + math.exp(missing - budget * self.distance))
            forgiven = min(1.0, self.forgiven(budget) * self.runs / self.guesses)
            return tail(high, self.guesses, odds + forgiven * (1 - odds))

        missed = self.basis.get("shortfalls") or [0.0]
        return min(power(0.0), math.fsum(map(power, missed)) / len(missed)) >= POWER

    def forgiven(self, epsilon: float) -> float:
        """Return the delta of the pair, by group privacy."""
        delta = self.claim.get("delta", 0.0)
        return delta and delta * sum(math.exp(min(step * epsilon, 700.0)) for step in range(self.distance))

    def regions(self) -> Iterator[tuple[int, int, int, int]]:
        """Return for either database how often its region was met, and of how many runs, there and on the other."""
        for likely, other, guess in (("y", "x", "guessed_y"), ("x", "y", "guessed_x")):
            here, there = self.counts[likely], self.counts[other]
            yield here[guess], here["runs"], there[guess], there["runs"]

    def corners(self, error: float) -> Iterator[tuple[float, float]]:
        """Return for each region the lower limit where it is likely and the upper one on the other database."""
        for hits, runs, others, other_runs in self.regions():
            if low := limit_below(hits, runs, error / 2):
                yield low, limit_above(others, other_runs, error / 2)

    def each(self) -> float:
        """Return the error of each region that the rule names."""
        return self.error / self.basis["regions"]


def game(event: Event, epsilon: float) -> bool:
    """Steinke, Nasr and Jagielski: a guess is right at most so often; a tenth of the error is for how many."""
    odds = 1 / (1 + math.exp(-epsilon * event.distance))
    if not event.guesses or not event.claim.get("delta"):
        return bool(event.guesses) and tail(event.right, event.guesses, odds) < event.error
    made = limit_below(event.guesses, event.runs, 0.1 * event.error)
    most = odds + event.forgiven(epsilon) * (1 - odds) / made
    return most < 1 and tail(event.right, event.guesses, most) < 0.9 * event.error


def bets(event: Event, budget: float) -> bool:
    """Ville: the money of whoever bets against a promise that is kept grows so far with probability `error` only."""
    money, most = [0.0] * 3, 0.0
    for bet in event.basis["bets"]:
        paid = _score_paid(bet, budget * event.distance**2) if "score" in bet else _paid(bet, event.lines(budget))
        money = [
            log + math.fsum(n * math.log1p(by * pay) for n, pay in paid) for log, by in zip(money, PLAYERS, strict=True)
        ]
        most = max(most, math.log(math.fsum(map(math.exp, money)) / 3) if max(money) < 700 else 700.0)
    return most >= -math.log(event.error)


def _paid(bet: Json, lines: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return numbers of runs and what each paid, at the line and the stake that were expected to grow fastest."""
    right, wrong, regions, hits, misses = (
        bet[name] for name in ("right_share", "wrong_share", "regions", "right", "wrong")
    )
    none, best, fastest = max(0.0, 1 - right - wrong), (0.0, 0.0, 0.0), 0.0
    for epsilon, delta in lines:
        pays = 1 - delta * regions / 2, -math.exp(min(epsilon, 700.0)) - delta * regions / 2, -delta * regions / 2
        shares = tuple(zip((right, wrong, none), pays, strict=True))
        low, high = 0.0, -1 / pays[1]
        for _ in range(60):
            middle = (low + high) / 2
            up = middle < high and math.fsum(share * pay / (1 + middle * pay) for share, pay in shares) > 0
            low, high = (middle, high) if up else (low, middle)
        grown = math.fsum(share * math.log1p(low * pay) for share, pay in shares)
        if grown > fastest:
            fastest, best = grown, tuple(low * pay for pay in pays)
    return list(zip((hits, misses, bet["runs"] - hits - misses), best, strict=True))


def _score_paid(bet: Json, rho: float) -> list[tuple[float, float]]:
    """Donsker and Varadhan: return numbers of runs and what each paid, for a score that was shifted to suit."""
    score, of_other, of_likely = bet["score"], bet["share_other"], bet["share_likely"]
    shift = math.log(math.fsum(p * math.exp(one) for p, one in zip(of_other, score, strict=True)))
    wins, losses = [2 * (one - shift) - rho for one in score], [2 - 2 * math.exp(one - shift) - rho for one in score]
    chances = [*zip(of_likely, wins, strict=True), *zip(of_other, losses, strict=True)]
    mean, square = (math.fsum(p * pay**k for p, pay in chances) / 2 for k in (1, 2))
    stake = min(max(mean / square, 0.0), -0.9 / min(wins + losses))
    return [(n, stake * pay) for n, pay in zip(bet["runs_likely"] + bet["runs_other"], wins + losses, strict=True)]


def two_samples(event: Event, epsilon: float) -> bool:
    """Liptak: for all probabilities that a promise allows, both counts together are too surprising.

    Promises are tested in steps, and the first one above `epsilon` tells.
    """
    step = (math.floor(epsilon * event.distance / 0.005 + 1e-9) + 1) * 0.005 / event.distance
    factor, delta = math.exp(min(step * event.distance, 700.0)), event.forgiven(step)
    return any(_surprising(*region, factor, delta, event.each()) for region in event.regions())


def _surprising(hits: int, runs: int, others: int, other_runs: int, factor: float, delta: float, error: float) -> bool:
    """Return whether every cell of probabilities is refuted: by hits alone in the first, by others where p may be 1."""
    cells = math.ceil(60 * math.sqrt(max(runs, other_runs)))
    rates, needed = [math.sin(math.pi / 2 * k / cells) ** 2 for k in range(cells)] + [1.0], NORMAL.inv_cdf(1 - error)
    for k in range(cells):
        p = next(rate for rate in rates[k + 1 :] if rate >= min(1.0, factor * rates[k + 1] + delta))
        many, few = tail(hits, runs, p), 1 - tail(others + 1, other_runs, rates[k])
        by = math.sqrt(p * (1 - p) / runs), factor * math.sqrt(rates[k + 1] * (1 - rates[k + 1]) / other_runs)
        by = (0.0, 1.0) if p == 1 else (1.0, 0.0) if k == 0 else by
        found = math.fsum(weight * _quantile(chance) for weight, chance in zip(by, (many, few), strict=True) if weight)
        if found < needed * math.hypot(*by):
            return False
    return True


def _quantile(chance: float) -> float:
    """Return how many standard errors the upper tail of this probability begins; far out it hardly matters."""
    return -NORMAL.inv_cdf(min(max(chance, 1e-300), 1 - 1e-16))


def gaussian(event: Event, mu: float) -> bool:
    """Dong, Roth and Su: quantiles of the two probabilities lie at most so far apart."""
    corners = event.corners(event.each())
    return any(high < 1 and NORMAL.inv_cdf(low) - NORMAL.inv_cdf(high) > mu * event.distance for low, high in corners)


def renyi(event: Event, rho: float) -> bool:
    """Bun and Steinke: no Renyi divergence is more than its order times rho, nor that of an event or of a score."""
    pair = rho * event.distance**2
    if "weights" in event.basis:
        return _score(event, pair)
    return any(
        low > high and max(_divergence(low, high), _divergence(high, low)) > pair
        for low, high in event.corners(event.each())
    )


def _divergence(p: float, q: float) -> float:
    """Return the largest divergence between two coins over its order."""
    if not (0 < p < 1 and 0 < q < 1):
        return 0.0
    ratios = math.log(p / q), math.log1p(-p) - math.log1p(-q)
    rates = [p * ratios[0] + (1 - p) * ratios[1]]
    for order in ORDERS:
        parts = math.log(q) + order * ratios[0], math.log1p(-q) + order * ratios[1]
        top = max(parts)
        rates.append((top + math.log(sum(math.exp(part - top) for part in parts))) / (order * (order - 1)))
    return max(rates)


def _score(event: Event, rho: float) -> bool:
    """Return whether bets on a score refute a divergence of its order times rho."""
    weights, toward, number = event.basis["weights"], event.basis["toward"], len(event.basis["weights"])
    sides = [
        [event.counts[side].get(f"bin {k}", 0) for k in range(number)] for side in (toward, "yx"["xy".index(toward)])
    ]
    how = event.basis["order"], -math.log(event.error), event.basis.get("lots", 0)
    return score_money(weights, *sides, *how, rho) >= -math.log(event.error)


def score_money(
    weights: list[float], likely: list[int], other: list[int], order: float, needed: float, lots: int, rho: float
) -> float:
    """Waudby-Smith and Ramdas: the log of the most money of whoever bets on a score against a divergence of rho.

    A run on the likely database multiplies it by ``1 + s (y - m)``, on the other by ``1 + t (x + m)``, as in the
    docstring of the bound; stakes aim at `needed` with the runs that are left, by normal laws.
    """
    kinds = sorted({weight - max(weights) for weight in weights})
    place = [kinds.index(weight - max(weights)) for weight in weights]
    sides = [
        [sum(n for n, at in zip(side, place, strict=True) if at == k) for k in range(len(kinds))]
        for side in (likely, other)
    ]
    blocks = _lots(lots, sides)
    if len(kinds) == 1:
        return 0.0
    tilt = lambda g: g if order == 1 else math.exp((order - 1) * g)  # noqa: E731
    pays_at = lambda g, at: g - at if order == 1 else math.expm1((order - 1) * (g - at)) / (order - 1)  # noqa: E731
    money = at_reference = most = fall = 0.0
    reference: float | None = None
    for block in range(1, len(blocks[0])):
        now = [[side[block][k] for k in range(len(kinds))] for side in blocks]
        past = [[sum(row[k] for row in side[:block]) for k in range(len(kinds))] for side in blocks]
        rest = [sum(map(sum, side[block:])) for side in blocks]
        if min(map(sum, now)) == 0:
            continue
        laws = [[(n + 1 / len(kinds)) / (sum(side) + 1) for n in side] for side in past]
        means, parts = [], []
        for law, values in zip(laws, ([tilt(g) for g in kinds], [math.exp(order * g) for g in kinds]), strict=True):
            means.append(math.fsum(p * value for p, value in zip(law, values, strict=True)))
            parts.append(math.fsum(p * (value - means[-1]) ** 2 for p, value in zip(law, values, strict=True)))
        shift = math.log(means[1]) / order
        estimate = (means[0] if order == 1 else math.log(means[0]) / (order - 1)) - shift
        parts[0] *= (1 if order == 1 else (order - 1) * means[0]) ** -2 / rest[0]
        parts[1] *= (order * means[1]) ** -2 / rest[1]
        if reference is None:
            reference = max(0.0, estimate - math.sqrt(2 * needed * sum(parts)))
        lack = needed - at_reference + fall * (estimate - reference)
        below = sum(parts) * (math.sqrt(max(0.0, fall**2 + 2 * lack / sum(parts))) - fall)
        if below <= 0:
            continue
        shift += below * parts[1] / sum(parts)
        x = [(1 - math.exp(order * (g - shift))) / order for g in kinds]
        lost = max(1e-16, -pays_at(kinds[0], shift + max(reference, estimate - below))), max(1e-16, -x[-1])
        total = min(below / sum(parts) * sum(side) / runs for side, runs in zip(now, rest, strict=True))
        total = min(total, *(0.9 * sum(side) / each for side, each in zip(now, lost, strict=True)))
        gain = math.fsum(n * math.log1p(total / sum(now[1]) * pay) for n, pay in zip(now[1], x, strict=True))
        y = [[total / sum(now[0]) * pays_at(g, shift + at) for g in kinds] for at in (reference, rho)]
        logs = [
            math.fsum(n * math.log1p(pay) for n, pay in zip(now[0], row, strict=True)) if row[0] > -1 else -math.inf
            for row in y
        ]
        at_reference, money, fall = at_reference + logs[0] + gain, money + logs[1] + gain, fall + total
        most = max(most, money)
    return most


def _lots(seed: int, sides: list[list[int]]) -> list[list[list[int]]]:
    """Return how many runs with each score are in each of 16 blocks or fewer, for either database: as plaudit does."""
    chance = np.random.default_rng([seed, *(n for side in sides for n in side if n)])
    number, blocks = max(1, min(16, *map(sum, sides))), []
    for side in sides:
        if sum(side) > 10_000:
            blocks.append(chance.multinomial(side, [1 / number] * number).T.tolist())
            continue
        line = chance.permutation([k for k, n in enumerate(side) for _ in range(n)]).tolist()
        ends = [-(-block * len(line) // number) for block in range(number + 1)]
        parts = [line[start:end] for start, end in pairwise(ends)]
        blocks.append([[part.count(k) for k in range(len(side))] for part in parts])
    return blocks


def variation(event: Event, delta: float) -> bool:
    """Barthe and Olmedo: right guesses exceed wrong ones by the total variation, by half of it if one side is named."""
    right = limit_below(event.right, event.runs, 0.9 * event.error)
    wrong = limit_above(event.guesses - event.right, event.runs, 0.1 * event.error)
    shown = 2 / event.basis["regions"] * max(right - wrong, 2 * right - 1)
    return shown > delta * event.distance


def one_run(event: Event, budget: float) -> bool:
    """Steinke, Nasr and Jagielski with a delta by Stein's equation; for curves Mahloujifar and others, or weights."""
    if event.kind == "gaussian":
        mu = budget * event.distance
        return _least_mass(event, mu) > 1 or any(_weighed(event, mu, *shape) for shape in SHAPES)
    odds, delta = 1 / (1 + math.exp(-budget * event.distance)), event.forgiven(budget)
    chance = tail(event.right, event.guesses, odds)
    if delta and chance < 1:
        here = chance - tail(event.right + 1, event.guesses, odds)
        chance += event.runs * delta * (1 - chance) * chance / here / event.right
    return delta < 1 and chance < event.all_error


def _least_mass(event: Event, mu: float) -> float:
    """Return the least probability of all outcomes together, if so many right guesses have that of the error."""
    mass, number = event.all_error, event.runs
    right, wrong = mass * event.right / number, mass * (event.guesses - event.right) / number
    for fewer in range(event.right - 1, -1, -1):
        more = (NORMAL.cdf(NORMAL.inv_cdf(right) - mu) if 0 < right < 1 else right) - wrong
        if more <= 0 or mass > 1:
            break
        added = more * number / (event.guesses - fewer)
        mass, wrong, right = mass + added, wrong + more, right + added * fewer / number
    return mass


def _weighed(event: Event, mu: float, power: float, part: float) -> bool:
    """Weigh each number of other right guesses; the weights and odds of `one_run_curve_p_value`, for all numbers."""
    right, guesses, number, error = event.right, event.guesses, event.runs, event.all_error
    low = math.exp(max(0.0, mu * (mu / 2 - NORMAL.inv_cdf(right / number)))) if 0 < right < number else 1.0
    base = max(part * error, tail(right, guesses, low / (1 + low)))
    if right <= guesses * low / (1 + low) or mu == 0:
        return False

    def paid(weight: float, rise: float) -> float:
        return weight * (low + rise * weight**power / (1 + power))

    def weights(rise: float) -> tuple[list[float], list[float]]:
        """Return those below the number of right guesses, and the others downwards; the last of both should agree."""
        below, above = [0.0], [0.0]
        for w in range(right):
            least, most = 0.0, (w * below[-1] + base) / (guesses - w) / low
            for _ in range(50):
                middle = (least + most) / 2
                owed = (w * below[-1] + base) / (guesses - w)
                least, most = (middle, most) if paid(middle, rise) < owed else (least, middle)
            below.append(most)
        for w in range(guesses, right - 1, -1):
            above.append(min(1.0, (1 - base + (guesses - w) * paid(above[-1], rise)) / w))
        return below, above

    near, far = -20.0, 30.0
    for _ in range(40):
        middle = (near + far) / 2
        below, above = weights(math.exp(middle))
        near, far = (middle, far) if below[-1] > above[-1] else (near, middle)
    below, above = weights(math.exp(far))
    below[-1] = max(below[-1], above[-1])
    both = [*below, *above[-2:0:-1], 0.0]
    excess = max(
        (w >= right) - w * both[w] + (guesses - w) * paid(both[w + 1], math.exp(far)) for w in range(guesses + 1)
    )
    levels = [max(both) * (k / 200) ** 2 for k in range(201)]
    deltas = [_normal_delta(mu, math.log(low + math.exp(far) * level**power)) for level in levels]
    price = sum((b - a) * (p + q) / 2 for a, b, p, q in zip(levels, levels[1:], deltas, deltas[1:], strict=False))
    return excess + number * price < error


def _normal_delta(mu: float, epsilon: float) -> float:
    return NORMAL.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * NORMAL.cdf(-mu / 2 - epsilon / mu)


TESTS: dict[str, Callable[[Event, float], bool]] = {
    "guessing game": game,
    "bets on guesses": bets,
    "two samples": two_samples,
    "Gaussian trade-off of a Clopper-Pearson rectangle": gaussian,
    "variational Renyi divergence": renyi,
    "total variation of a guessing game": variation,
    "one-run guessing game": one_run,
}
GAMES = ("guessing game", "one-run guessing game")


def verdicts(audit: Json) -> set[str]:
    """Return the verdicts that the counts of an audit allow: two only where a rounding error decides; none if unknown.

    Power is computed again for guessing games; of the others the minimum detectable loss is read as it was saved, and
    so is the outcome that one database alone gives.
    """
    every = (audit, *audit["others"])
    shares = math.fsum(one["basis"].get("share", 1.0) for one in every)
    events = [Event(audit, one["counts"], one["basis"], shares) for one in every]
    claim, bound = audit["claim"], audit["bound"]
    if max(event.runs for event in events) > MOST or (bound in GAMES[1:] and claim["kind"] == "zcdp"):
        return set()
    budget = float(claim[BUDGETS[claim["kind"]]]) or claim["delta"]
    near = 1e-3 if bound == "variational Renyi divergence" else CLOSE  # of orders between those of a grid
    violated = {any(event.rejects(budget * by) for event in events) for by in (1 - near, 1 + near)}
    if audit["support"] is not None:
        violated = {True}
    found = {"violated"} if True in violated else set()
    if False in violated:
        telling = [event for event in events if event.basis.get("unseen", 0.0) <= UNSEEN]
        if bound in GAMES and claim["kind"] in ("pure", "approx"):
            powerful = {any(event.powerful(2 * budget * by) for event in telling) for by in (1 - CLOSE, 1 + CLOSE)}
        else:
            powerful = {float(audit["detectable"]) <= 2 * budget}
        found |= {"not refuted" if one else "no power" for one in powerful}
    return found


def codes(every: list[set[str]]) -> set[int]:
    """Return the exit codes that a command may have whose results have these verdicts; none where one is no verdict."""
    sure = [one for one in every if len(one) == 1]
    doubtful = [one for one in every if len(one) != 1]
    found = set()
    for chosen in product(*doubtful):
        names = {*chosen, *(name for one in sure for name in one)}
        if names <= VERDICTS:
            found.add(VIOLATION if "violated" in names else NO_POWER if "no power" in names else WITHIN)
    return found
