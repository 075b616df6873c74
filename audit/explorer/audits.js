// The sheet `audit`: the same numbers as audit/explorer/audits.py, which asks audit.planning and a table of plans.
sheets.audit = (() => {
  const {exp, expm1, log, log1p, sqrt, floor, min, max, abs, PI} = Math;

  // Binomial probabilities: log(n!) less Stirling's formula, and x log(x / mean) + mean - x (Loader, 2000).
  const STIRLING = [0];
  for (let n = 1, sum = 0; n < 16; n++) STIRLING.push((sum += log(n)) - (n + 0.5) * log(n) + n - 0.5 * log(2 * PI));
  const stirling = n => n < 16 ? STIRLING[n]
    : (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / n / n) / n / n) / n / n) / n / n) / n;
  function deviance(x, mean) {
    if (abs(x - mean) >= 0.1 * (x + mean)) return x * log(x / mean) + mean - x;
    const v = (x - mean) / (x + mean);
    let sum = (x - mean) * v, term = 2 * x * v;
    for (let k = 1; k < 30; k++) sum += (term *= v * v) / (2 * k + 1);
    return sum;
  }
  function mass(k, n, p, q) { // P(X = k) of n runs with probability p, q = 1 - p
    if (k < 0 || k > n) return 0;
    if (p <= 0 || q <= 0) return k === (p <= 0 ? 0 : n) ? 1 : 0;
    if (k === 0) return exp(n * (p < 0.1 ? log1p(-p) : log(q)));
    if (k === n) return exp(n * (q < 0.1 ? log1p(-q) : log(p)));
    const rest = n - k, shape = stirling(n) - stirling(k) - stirling(rest) - deviance(k, n * p) - deviance(rest, n * q);
    return exp(shape) * sqrt(n / (2 * PI * k * rest));
  }
  // P(X >= k): the integral of the beta law from p away from its middle to where nothing is left of it, in steps that
  // shrink doubly exponentially towards both ends.
  function atLeast(k, n, p, q = 1 - p) {
    if (k <= 0 || q <= 0) return k <= n ? 1 : 0;
    if (k > n || p <= 0) return 0;
    if (p * (n + 1) > k) return 1 - atLeast(n - k + 1, n, q, p);
    const density = d => exp((k > 1 && (k - 1) * log1p(-d / p)) + (n - k) * log1p(d / q));
    let end = p, sum = 0;
    while (density(0.7 * end) < 1e-18) end *= 0.7;
    for (let t = -3.625; t <= 3.625; t += 1 / 16) {
      const x = 1 / (1 + exp(PI * Math.sinh(t)));
      sum += density(end * x) * x * (1 - x) * Math.cosh(t);
    }
    return min(1, sum * PI / 16 * end * k / p * mass(k, n, p, q));
  }
  // The least k with P(X > k) <= error: from about there by single steps.
  function upperQuantile(error, n, p) {
    const q = 1 - p, z = -laws.normalQuantile(error), guess = n * p + z * sqrt(n * p * q) + (z * z - 1) * (q - p) / 6;
    let k = min(n, max(0, floor(guess))), beyond = atLeast(k + 1, n, p), here = mass(k, n, p, q);
    while (beyond > error && k < n) beyond = ++k === n ? 0 : beyond - (here = mass(k, n, p, q));
    for (here = mass(k, n, p, q); k > 0 && beyond + here <= error; here = mass(--k, n, p, q)) beyond += here;
    return k;
  }

  // Guesses at a coin: audit.methods.game. `budget` and `forgiven` are those of the pair.
  const expit = x => 1 / (1 + exp(-x));
  function pairOf(plan, budget) {
    const people = plan.distance, factor = exp((people - 1) * budget) * expm1(-people * budget) / expm1(-budget);
    return {budget: people * budget, forgiven: plan.delta && min(1, plan.delta * factor)};
  }
  const rightOf = pair => 1 - max(0, 1 - pair.forgiven) * expit(-pair.budget);
  function side(choosing, right) { // how often selection runs name the right side
    if (choosing === 0) return 1;
    const half = floor(choosing / 2), wrong = 1 - right;
    return atLeast(half + 1, choosing, right, wrong) + (choosing % 2 ? 0 : mass(half, choosing, right, wrong) / 2);
  }
  function against(plan, counting) { // what right guesses are held against, with what error; the fewest that refute it
    const promise = pairOf(plan, plan.budget), right = expit(promise.budget);
    let limit = right, error = 1 - plan.confidence;
    if (promise.forgiven > 0) {
      const rate = exp(log(1 - (1 - 0.1 * error)) / counting);
      limit = min(right + promise.forgiven * (1 - right) / max(rate, 1e-300), 1);
      error *= 0.9;
    }
    return {limit, error, needed: counting > 0 && limit < 1 ? upperQuantile(error, counting, limit) + 1 : counting + 1};
  }
  const rint = x => abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x); // halves to even numbers
  function split(plan, size) {
    const choosing = rint(size * plan.selection);
    return [choosing, size - choosing];
  }
  // With a coin that uses up the error, power rises with the runs: that of the best test there is.
  function powerOf(plan, size, violation, coin = false) {
    const [choosing, counting] = split(plan, size), right = rightOf(pairOf(plan, violation * plan.budget));
    const {limit, error, needed} = against(plan, counting);
    let shown = atLeast(needed, counting, right);
    if (coin && needed <= counting) {
      const left = (error - atLeast(needed, counting, limit)) / mass(needed - 1, counting, limit, 1 - limit);
      shown += left * mass(needed - 1, counting, right, 1 - right);
    }
    return min(1, shown * side(choosing, right));
  }

  // Plans: audit.planning. The first of whole numbers from which on a test holds, of which the last holds.
  function first(low, high, holds) {
    while (high - low > 1) {
      const middle = low + floor((high - low) / 2);
      if (holds(middle)) high = middle;
      else low = middle;
    }
    return high;
  }
  function fewest({selection}) { // runs that choose and count an event
    let size = 2;
    if (selection > 0) size = max(size, Math.trunc(7.5 / selection), Math.trunc(1.5 / (1 - selection)));
    for (;; size++) {
      const [choosing, counting] = split({selection}, size);
      if ((selection === 0 || choosing >= 8) && counting >= 2) return size;
    }
  }
  function neededRuns(plan, violation, power, least) {
    const enough = size => powerOf(plan, size, violation) >= power;
    let low = least - 1, high = least;
    while (!enough(high)) {
      [low, high] = [high, high + max(1, floor(high / 2))];
      if (high > 1e12) return null;
    }
    high = first(low, high, enough);
    // Power rises in teeth: the first size within a window. Before the power of the best test by coin is enough, none is.
    const [promised, right] = [1, violation].map(times => rightOf(pairOf(plan, times * plan.budget)));
    const window = min(100000, Math.ceil(8 / max(right - promised, 1e-9) / (1 - plan.selection)) + 20);
    let size = first(max(least, high - window) - 1, high, size => powerOf(plan, size, violation, true) >= power);
    // Power falls with each run that must be right too: it is enough just where one more may be wrong, if anywhere, or
    // one more run chooses, where that matters.
    const sure = side(split(plan, size)[0], right) === 1;
    const wrong = size => {
      const counting = split(plan, size)[1];
      return (sure ? counting : size) - against(plan, counting).needed;
    };
    while (!enough(size)) {
      const now = wrong(size), more = next => next >= high || wrong(next) > now;
      let step = 1;
      while (!more(size + step)) step *= 2;
      size = first(size, size + step, more);
    }
    return size;
  }
  function smallestViolation(plan, size, power) {
    const bottom = log(1e-9), top = log(max(60 / pairOf(plan, plan.budget).budget - 1, 1e-9));
    const seen = excess => powerOf(plan, size, 1 + exp(excess)) >= power;
    if (!seen(top)) return null;
    return seen(bottom) ? 1 : 1 + exp(laws.bisect(seen, bottom, top));
  }
  function computed(plan, times, leastPower) {
    const {selection, runs, violation, power} = plan, least = fewest(plan);
    if (selection > 0 && selection < 1e-6) return {refused: "selection"};
    if (runs < least) return {refused: "few"};
    const chance = times => powerOf(plan, runs, times), powerAt = times => chance(times) >= leastPower ? chance(times) : 0;
    const runsNeeded = neededRuns(plan, violation, power, least), smallest = smallestViolation(plan, runs, power);
    return {power: powerAt(violation), curve: times.map(powerAt), smallest, runsNeeded, refused: runsNeeded === null && "far"};
  }

  // A table of simulated plans: audit.explorer.plans.
  function between(nodes, value) {
    if (!(value >= nodes[0] && value <= nodes.at(-1))) return null;
    const place = min(nodes.findLastIndex(node => node <= value), nodes.length - 2);
    return [place, log(value / nodes[place]) / log(nodes[place + 1] / nodes[place])];
  }
  function mixed(first, second, part) {
    if (part === 0 || part === 1) return part ? second : first;
    return first === null || second === null ? null : first + part * (second - first);
  }
  function interpolated({quantiles, budgets, runs: sizes, excess}, budget, {runs, violation, power}, times) {
    const row = between(budgets, budget), wanted = log(violation - 1), last = quantiles.length - 1;
    if (!row) return null;
    function lineAt(runs) {
      const column = between(sizes, runs), [i, across] = row, [j, along] = column ?? [];
      const at = (i, k) => mixed(excess[i][j][k], excess[i][j + 1][k], along);
      return column && quantiles.map((_, k) => mixed(at(i, k), at(i + 1, k), across));
    }
    const z = laws.normalQuantile(power), at = min(quantiles.findLastIndex(one => one <= z), last - 1);
    const part = (z - quantiles[at]) / (quantiles[at + 1] - quantiles[at]);
    const excessAt = line => line && mixed(line[at], line[at + 1], part);
    const line = lineAt(runs), smallest = excessAt(line), known = (line ?? []).filter(one => one !== null);
    function powerAt(times) {
      const wanted = log(times - 1), below = known.findLastIndex(one => one <= wanted), end = below === known.length - 1;
      if (below < 0 || end && below < last) return null;
      const part = end ? 0 : (wanted - known[below]) / (known[below + 1] - known[below]);
      return laws.normalTail(-quantiles[below] - (end ? 0 : part * (quantiles[below + 1] - quantiles[below])));
    }
    const found = sizes.map(runs => excessAt(lineAt(runs))), place = found.findIndex(one => one !== null && one <= wanted);
    let runsNeeded = null;
    if (place >= 0) {
      const before = found[place - 1] ?? null, from = log(sizes[max(place - 1, 0)]), part = before === null ? 1 : (wanted - before) / (found[place] - before);
      const size = exp(from + part * (log(sizes[place]) - from)), digits = 10 ** (floor(Math.log10(size)) - 2);
      runsNeeded = Math.ceil(size / digits * (1 - 1e-9)) * digits;
    }
    return {power: powerAt(violation), curve: times.map(powerAt), smallest: smallest === null ? null : 1 + exp(smallest), runsNeeded};
  }

  function compute(state, {times, least_power: leastPower, tables, confidence}) {
    const plan = Object.fromEntries(Object.entries(state).map(([key, value]) => [key.split("/").at(-1), value]));
    const {family, budget, selection, distance} = plan, exact = family === "pure" || family === "approx";
    const table = plan.confidence === confidence && tables.find(one => one.family === family && one.selection === selection);
    if (family !== "approx") plan.delta = 0;
    const made = exact ? computed(plan, times, leastPower) : table ? interpolated(table, budget * distance ** (family === "zcdp" ? 2 : 1), plan, times) : null;
    const {power = null, curve = [], smallest = null, runsNeeded = null, refused} = made ?? {};
    const results = {}, tell = (place, found) => { for (const [name, value] of Object.entries(found)) results[`${place}/${name}`] = value; };
    tell("audit/plan/all", {
      loss: plan.violation * budget, power_found: power, times: smallest, detectable: smallest && smallest * budget, runs_needed: runsNeeded,
      refused: refused ? `audit.refused.${refused}` : null, known: `audit.known.${exact ? "computed" : made ? "interpolated" : "simulated"}`,
    });
    times.forEach((one, at) => tell(`audit/curve/${Math.round(100 * one)}%`, {times: one, loss: one * budget, power: curve[at] ?? null}));
    return results;
  }

  return {compute};
})();
