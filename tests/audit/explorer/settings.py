"""Random states of any sheet, of every kind of value; and how its numbers are compared with those of another."""

import math

TOTALS_OF_TABLE_10 = {  # as printed: both totals, and the epsilons of three accountings
    **{"rho": "1.257281", "bounded_rho": "2.514562", "epsilon_tight": "11.412", "bounded_epsilon_tight": "16.980"},
    **{"epsilon_simple": "12.018", "bounded_epsilon_simple": "17.733"},
    **{"epsilon_gaussian": "10.944", "bounded_epsilon_gaussian": "16.308"},
}
READ_BACK = """([sheet, states]) => {
    if (explorer.open !== sheet) explorer.turn(sheet);
    const described = book.sheets.find(one => one.name === sheet);
    return states.map(state => {
        const left = explorer.take(state, store.state);
        const cells = [...document.querySelectorAll(`[data-of="${sheet}"] [data-cell]`)]
            .map(e => [e.dataset.cell, e.dataset.value]);
        return [left, cells, sheets[sheet].compute(store.ofSheet(sheet, store.state), described.data)];
    });
}"""  # what a page leaves of each state, what it shows, what it computes


def random_state(sheet, rng):
    """A whole state: each input is as published or anything that it may be."""
    state = {}
    for one in sheet.inputs:
        if one.key.endswith("/preset") or rng.random() < 0.4:
            state[one.key] = one.value
        elif one.optional and rng.random() < 0.5:
            state[one.key] = None
        elif one.kind == "flag":
            state[one.key] = bool(rng.random() < 0.8)
        elif one.kind == "choice":
            state[one.key] = str(rng.choice(one.choices))
        elif one.kind == "codes":
            state[one.key] = " ".join(rng.choice(one.choices, size=5, replace=False))
        elif one.kind == "numbers":
            state[one.key] = " ".join(str(int(10 ** rng.uniform(0, 6))) for _ in range(rng.integers(1, 6)))
        else:
            state[one.key] = random_number(one, rng)
    return sheet.checked(state)


def random_number(one, rng):
    """A number of every size in the range; of ranges that begin at 0, often 0."""
    if one.least <= 0 and rng.random() < 0.3:
        return 0 if one.kind == "integer" else max(one.least, 0.0)
    low = max(one.least, 1 if one.kind == "integer" else 1e-6)
    value = min(max(math.exp(rng.uniform(math.log(low), math.log(one.most))), one.least), one.most)
    return int(value) if one.kind == "integer" else value


def differing(numbers, wanted):
    """Return the keys at which numbers differ by more than 1e-9 of themselves, or whole ones and words at all."""
    assert numbers.keys() == wanted.keys()
    return [key for key, value in wanted.items() if not same(numbers[key], value)]


def same(number, wanted):
    if isinstance(wanted, float) and isinstance(number, int | float):
        return number == wanted or abs(number - wanted) <= 1e-9 * abs(wanted)
    return number == wanted
