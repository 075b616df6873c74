// The sheet `audit`: the same numbers as audit/explorer/audits.py, which asks audit.planning and a table of plans.
sheets.audit = (() => {
  const {exp, expm1, log, log1p, log10, floor, ceil, round, min, max, abs, sinh, cosh, PI} = Math;

  // Points and weights of an integral from 0 to 1, in steps that shrink doubly exponentially towards both ends.
  const POINTS = [];
  for (let t = -3.125; t <= 3.125; t += 1 / 16) {
    const x = 1 / (1 + exp(PI * sinh(t)));
    POINTS.push([x, PI / 16 * x * (1 - x) * cosh(t)]);
  }
  // P(X >= k) of n runs with probability p, q = 1 - p: the beta law's share below p. Its density is integrated from p
  // down, and from its mean both ways, in units of the density there, to where nothing is left of it.
  function atLeast(k, n, p, q = 1 - p) {
    if (k <= 0 || q <= 0) return k <= n ? 1 : 0;
    if (k > n || p <= 0) return 0;
    const mean = k / (n + 1), rest = (n + 1 - k) / (n + 1);
    if (p > mean) return 1 - atLeast(n - k + 1, n, q, p);
    function area(from, rest, end) {
      const density = part => exp((k - 1) * log1p(end * part / from) + (n - k) * log1p(-end * part / rest));
      let sum = 0;
      while (density(0.7) < 1e-18) end *= 0.7;
      for (const [x, weight] of POINTS) sum += weight * density(x);
      return abs(end) * sum;
    }
    const gap = p < q ? mean - p : q - rest, density = exp((k - 1) * log1p(-gap / mean) + (n - k) * log1p(gap / rest));
    return min(1, density * area(p, q, -p) / (area(mean, rest, -mean) + area(mean, rest, rest)));
  }

  // Guesses at a coin: audit.methods.game. How often a guess is right by the budget of a pair, and what delta forgives.
  const expit = x => 1 / (1 + exp(-x));
  function pairOf({distance, delta}, budget) {
    const factor = exp((distance - 1) * budget) * expm1(-distance * budget) / expm1(-budget);
    const forgiven = delta && min(1, delta * factor);
    return {pure: expit(distance * budget), forgiven, right: 1 - (1 - forgiven) * expit(-distance * budget)};
  }
  const rint = x => abs(x % 1) === 0.5 ? 2 * round(x / 2) : round(x); // halves to even numbers
  function split({selection}, size) {
    const choosing = rint(size * selection);
    return [choosing, size - choosing];
  }
  function side(choosing, right) { // how often selection runs name the right side
    const [most, half] = [floor(choosing / 2) + 1, ceil(choosing / 2)].map(k => atLeast(k, choosing, right));
    return choosing === 0 ? 1 : (most + half) / 2;
  }
  // An audit of so many runs: the fewest right guesses that refute the promise, and the power at a true loss. With a
  // coin that uses up the error, power rises with the runs.
  function auditOf(plan, size) {
    const [choosing, counting] = split(plan, size), {pure, forgiven} = pairOf(plan, plan.budget);
    let limit = pure, {error} = plan;
    if (forgiven > 0) {
      limit = min(limit + forgiven * (1 - limit) / (0.1 * error) ** (1 / counting), 1);
      error *= 0.9;
    }
    const few = k => atLeast(k, counting, limit);
    const most = ceil(counting * limit + Math.sqrt(-log(error) * counting / 2)) + 1; // by Hoeffding's inequality
    const needed = laws.first(k => few(k) <= error, max(0, floor(counting * limit) - 1), min(counting + 1, most));
    function power(times, coin = false) {
      const {right} = pairOf(plan, times * plan.budget), shown = k => atLeast(k, counting, right);
      const left = coin && needed <= counting ? (error - few(needed)) / (few(needed - 1) - few(needed)) : 0;
      return min(1, ((1 - left) * shown(needed) + left * shown(needed - 1)) * side(choosing, right));
    }
    return {needed, power};
  }

  // Plans: audit.planning. First the fewest runs that choose and count an event.
  const fewest = plan => laws.first(size => {
    const [choosing, counting] = split(plan, size);
    return (plan.selection === 0 || choosing >= 8) && counting >= 2;
  }, 1, 1e9);
  function neededRuns(plan, violation, power, least) {
    const enough = (size, coin = false) => auditOf(plan, size).power(violation, coin) >= power;
    let low = least - 1, high = least;
    while (!enough(high)) {
      [low, high] = [high, high + max(1, floor(high / 2))];
      if (high > 1e12) return null;
    }
    high = laws.first(size => enough(size), low, high);
    // Power rises in teeth: the first size within a window. Before the best test by coin has enough, none has.
    const [promised, {right}] = [1, violation].map(times => pairOf(plan, times * plan.budget));
    const window = min(100000, ceil(8 / max(right - promised.right, 1e-9) / (1 - plan.selection)) + 20);
    let size = laws.first(size => enough(size, true), max(least, high - window) - 1, high);
    // Power falls with each run that must be right too: it is enough just where one more may be wrong, if anywhere, or
    // one more run chooses, where that matters.
    const sure = side(split(plan, size)[0], right) === 1;
    const wrong = size => (sure ? split(plan, size)[1] : size) - auditOf(plan, size).needed;
    while (!enough(size)) {
      const now = wrong(size), more = next => next >= high || wrong(next) > now;
      let step = 1;
      while (!more(size + step)) step *= 2;
      size = laws.first(more, size, size + step);
    }
    return size;
  }
  function computed(plan, times, leastPower) {
    const {selection, runs, violation, power} = plan, least = fewest(plan);
    if (selection > 0 && selection < 1e-6) return {refused: "selection"};
    if (runs < least) return {refused: "few"};
    const audit = auditOf(plan, runs), seen = excess => audit.power(1 + exp(excess)) >= power;
    const bottom = log(1e-9), top = log(max(60 / (plan.distance * plan.budget) - 1, 1e-9));
    const powerAt = times => audit.power(times) < leastPower ? 0 : audit.power(times);
    const smallest = !seen(top) ? null : seen(bottom) ? 1 : 1 + exp(laws.bisect(seen, bottom, top));
    const needed = neededRuns(plan, violation, power, least);
    return {power: powerAt(violation), curve: times.map(powerAt), smallest, needed, refused: needed === null && "far"};
  }

  // A table of simulated plans: audit.explorer.plans. The last node before a value, and how far it is to the next.
  function among(nodes, value) {
    const place = min(nodes.findLastIndex(node => node <= value), nodes.length - 2);
    return [place, (value - nodes[place]) / (nodes[place + 1] - nodes[place])];
  }
  function mixed(first, second, part) {
    if (part === 0 || part === 1) return part ? second : first;
    return first === null || second === null ? null : first + part * (second - first);
  }
  const within = (nodes, value) => value >= nodes[0] && value <= nodes.at(-1);
  function interpolated({quantiles, budgets, runs: sizes, excess}, {budget, runs, violation, power}, times) {
    const [rows, columns] = [budgets, sizes].map(nodes => nodes.map(node => log(node)));
    if (!within(rows, log(budget))) return null;
    const [i, across] = among(rows, log(budget));
    const [at, part] = among(quantiles, laws.bisect(z => laws.normalTail(z) <= 1 - power, 0, 40));
    const excessAt = line => mixed(line[at], line[at + 1], part), wanted = log(violation - 1);
    function lineAt(column) {
      const [j, along] = among(columns, column);
      const at = (i, k) => mixed(excess[i][j][k], excess[i][j + 1][k], along);
      return quantiles.map((_, k) => mixed(at(i, k), at(i + 1, k), across));
    }
    const line = within(columns, log(runs)) ? lineAt(log(runs)) : quantiles.map(() => null);
    const smallest = excessAt(line), known = line.filter(one => one !== null);
    function powerAt(times) {
      const excess = log(times - 1), last = excess >= known.at(-1);
      if (!(excess >= known[0]) || last && known.length < quantiles.length) return null;
      const [place, part] = last ? [known.length - 2, 1] : among(known, excess);
      return laws.normalTail(-mixed(quantiles[place], quantiles[place + 1], part));
    }
    const least = columns.map(column => excessAt(lineAt(column)));
    const place = least.findIndex(one => one !== null && one <= wanted);
    let needed = null;
    if (place >= 0) { // rounded up to three digits
      const before = least[place - 1] ?? null, part = before === null ? 1 : (wanted - before) / (least[place] - before);
      const size = exp(mixed(columns[place - 1], columns[place], part)), digits = 10 ** (floor(log10(size)) - 2);
      needed = ceil(size / digits * (1 - 1e-9)) * digits;
    }
    const loss = smallest === null ? null : 1 + exp(smallest);
    return {power: powerAt(violation), curve: times.map(powerAt), smallest: loss, needed};
  }

  function compute(state, {times, least_power: leastPower, main, families, tables, confidence}) {
    const plan = Object.fromEntries(Object.entries(state).map(([key, value]) => [key.split("/").at(-1), value]));
    const {family, budget, distance} = plan, {computed: exact, delta, growth} = families[family];
    const table = tables.find(one => one.family === family && one.selection === plan.selection);
    const group = {...plan, budget: budget * distance ** growth};
    if (!delta) plan.delta = 0;
    plan.error = (1 - plan.confidence) * (plan.selection > 0 ? main : 1);
    const losses = Object.values(times), made = exact ? computed(plan, losses, leastPower)
      : table && plan.confidence === confidence ? interpolated(table, group, losses) : null;
    const {power = null, curve = [], smallest = null, needed = null, refused} = made ?? {}, [results, tell] = found();
    tell("audit/plan/all", {
      loss: plan.violation * budget, power_found: power, times: smallest, detectable: smallest && smallest * budget,
      runs_needed: needed, refused: refused ? `audit.refused.${refused}` : null,
      known: `audit.known.${exact ? "computed" : made ? "interpolated" : "simulated"}`,
    });
    Object.entries(times).forEach(([place, one], at) => {
      tell(`audit/curve/${place}`, {times: one, loss: one * budget, power: curve[at] ?? null});
    });
    tell("audit/claim/all", {guessed: laws.guessed(family, budget)});
    return results;
  }

  return {compute};
})();
