"""Power of guesses at coins as formulas that Excel and LibreOffice both know: `audit.methods.game` in cells."""

from __future__ import annotations

__all__ = ["CLAIM", "PLAN", "STEPS", "Cells", "at_least", "limit", "needed", "power", "right", "runs", "settings"]

Cells = dict[str, str | float]

CLAIM, PLAN, STEPS = "audit/claim/all", "audit/plan/all", "audit/plan/steps"
BUDGET, DISTANCE, SHARE = f"[in {CLAIM}/budget]", f"[in {PLAN}/distance]", f"[in {PLAN}/selection]"
ERROR, LIMIT, FORGIVEN = f"[{STEPS}/error]", f"[{STEPS}/limit of pure privacy]", f"[{STEPS}/forgiven]"
BITS = 2**22  # of a share: times them, numbers of runs up to 2**30 are exact
NEAR = (-2, 3)  # from the guess at a quantile: at least as far as the exact one is at random laws (a test)


def at_least(successes: str, runs: str, chance: str) -> str:
    """Return the probability of so many successes or more, from 1 to all."""
    return f"BETADIST({chance},{successes},{runs}-{successes}+1)"


def settings() -> Cells:
    """Return the steps that need neither the runs nor the true loss: the promise for the pair, and its error."""
    return {
        f"{STEPS}/budget": f"{DISTANCE}*{BUDGET}",
        f"{STEPS}/forgiven": _forgiven("1"),
        f"{STEPS}/limit of pure privacy": f"1/(1+EXP(-[{STEPS}/budget]))",
        f"{STEPS}/error of guesses": f"1-[in {PLAN}/confidence]",
        f"{STEPS}/error": f"IF({FORGIVEN}>0,0.9,1)*[{STEPS}/error of guesses]",
        f"{STEPS}/quantile": f"-NORMSINV({ERROR})",
        f"{STEPS}/share in bits": f"INT({SHARE}*{BITS})/{BITS}",
        f"{STEPS}/rest of share": f"{SHARE}-[{STEPS}/share in bits]",
    }


def _forgiven(times: str) -> str:
    """Return the delta of the pair, if the true loss is so many times the promise."""
    people = f"({DISTANCE}-1)*{times}*{BUDGET}"
    factor = f"LN((1-EXP(-{times}*[{STEPS}/budget]))/(1-EXP(-{times}*{BUDGET})))"
    return f'IF([in {CLAIM}/family]="approx",EXP(MIN(0,LN([in {CLAIM}/delta])+{people}+{factor})),0)'


def right(times: str) -> str:
    """Return how often a guess is right, if the true loss is so many times the promise."""
    return f"1-(1-{_forgiven(times)})/(1+EXP(MIN(700,{times}*[{STEPS}/budget])))"


def runs(place: str, size: str) -> Cells:
    """Return the runs that choose the event and those that count it: halves go to even numbers, as in binary floats.

    The product of size and share is compared with a half before it is rounded, because a spreadsheet takes for a half
    what is very near.
    """
    whole, beyond = f"[{place}/whole]", f"[{place}/beyond half]"
    product = f"{size}*{SHARE}"
    return {
        f"{place}/whole": f"INT({product})",
        f"{place}/beyond half": f"{size}*[{STEPS}/share in bits]-{whole}-0.5+{size}*[{STEPS}/rest of share]",
        f"{place}/choosing": f"{whole}+IF(ABS({beyond})<=2^(INT(LN(MAX({product},0.5))/LN(2))-53),MOD({whole},2),"
        f"IF({beyond}>0,1,0))",
        f"{place}/counting": f"{size}-[{place}/choosing]",
    }


def limit(counting: str) -> str:
    """Return what right guesses are held against; with a delta it depends on the runs that count."""
    rate = f"EXP(LN(0.1*[{STEPS}/error of guesses])/{counting})"
    return f"IF({FORGIVEN}>0,MIN(1,{LIMIT}+{FORGIVEN}*(1-{LIMIT})/{rate}),{LIMIT})"


def needed(place: str) -> Cells:
    """Return the fewest right guesses that refute the promise: about the normal law's number, whose tails are tried."""
    counting, bar, guess = f"[{place}/counting]", f"[{place}/limit]", f"[{place}/guess]"
    z, spread = f"[{STEPS}/quantile]", f"{counting}*{bar}*(1-{bar})"
    more = "+".join(
        f"(({counting}>{guess}{step:+})*"
        f"BETADIST({bar},{guess}{step + 1:+},MAX(1,{counting}-({guess}{step:+})))>{ERROR})"
        for step in range(NEAR[0], NEAR[1] + 1)
    )
    return {
        f"{place}/limit": limit(counting),
        f"{place}/guess": f"MAX(2,INT({counting}*{bar}+{z}*SQRT({spread})+({z}^2-1)*(1-2*{bar})/6))",
        f"{place}/needed": f"IF({bar}<1,MIN({counting},{guess}{NEAR[0]:+}+{more})+1,{counting}+1)",
    }


def _side(choosing: str, chance: str) -> str:
    """Return how often selection runs name the right side; of an even number, as often as of one less."""
    half = f"INT(({choosing}+1)/2)"
    return f"IF({choosing}=0,1,BETADIST({chance},MAX(1,{half}),MAX(1,{half})))"


def power(place: str, where: str, chance: str) -> Cells:
    """Return the power of runs whose numbers stand somewhere, where guesses are right with some probability."""
    wanted, counting = f"[{where}/needed]", f"[{where}/counting]"
    return {
        f"{place}/seen": f"IF({wanted}>{counting},0,{at_least(f'MIN({wanted},{counting})', counting, chance)})",
        f"{place}/side": _side(f"[{where}/choosing]", chance),
        f"{place}/power at loss": f"[{place}/seen]*[{place}/side]",
    }
