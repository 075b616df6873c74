// Laws of noise, and conversions of promises to epsilon: the same numbers as algorithms.noise and audit.claims.
const laws = (() => {
  const {exp, expm1, log, log1p, sqrt, ceil, floor, max, PI, SQRT2} = Math;

  // Smallest number for which `holds` is true, by bisection: to the last digit, or the first integer.
  function bisect(holds, low, high, rounded = number => number) {
    const between = () => rounded((low + high) / 2);
    for (let middle = between(); low < middle && middle < high; middle = between()) {
      if (holds(middle)) high = middle;
      else low = middle;
    }
    return high;
  }
  const first = (holds, low, high) => bisect(holds, low, high, floor);

  // Compensated sum: the rounding error does not grow with the number of terms (Knuth).
  function sum(numbers) {
    let total = 0, lost = 0;
    for (const number of numbers) {
      const next = total + number, added = next - total;
      lost += total - (next - added) + (number - added);
      total = next;
    }
    return total + lost;
  }

  // exp(x^2) erfc(x) by the midpoint rule, corrected for the pole near the real line (Hunter and Regan, 1972).
  function erfcx(x) {
    if (x < 0) return 2 * exp(x * x) - erfcx(-x);
    let sum = 0;
    for (let t = 6.25; t > 0; t -= 0.5) sum += exp(-t * t) / (x * x + t * t);
    return x * sum / PI + (x < 6 ? 2 * exp(x * x) / (1 + exp(4 * PI * x)) : 0);
  }
  const normalTail = x => x < 0 ? 1 - normalTail(-x) : exp(-x * x / 2) * erfcx(x / SQRT2) / 2;

  // Symmetric laws on integers: tail(m) is P(K >= m), for m >= 1.
  function discreteGaussian(sigma) {
    function from(m) { // sum of the terms of the tail
      let sum = 0, term = 1;
      while (term > sum / 1e18) sum += term = exp(-0.5 * (m++ / sigma) ** 2);
      return sum;
    }
    const whole = sigma > 50 ? sqrt(2 * PI) * sigma : 1 + 2 * from(1);
    const tail = m => {
      const x = m - 0.5, slope = x / sigma ** 2;
      if (sigma <= 50 || slope > 0.1) return from(m) / whole;
      // The Euler-Maclaurin midpoint rule with two corrections, for slowly varying terms.
      const integral = erfcx(x / (SQRT2 * sigma)) / 2;
      const corrections = -slope / 24 - 7 / 5760 * slope * (3 / sigma ** 2 - slope ** 2);
      return exp(-x * slope / 2) * (integral + corrections / whole);
    };
    return {sigma, tail};
  }
  function geometric(epsilon) { // two-tailed, with this epsilon per unit
    const q = exp(-epsilon);
    return {sigma: sqrt(2 * q) / -expm1(-epsilon), tail: m => exp(-epsilon * m - log1p(q))};
  }
  function noise(kind, sensitivity, budget) { // null if the budget is too small or too large
    const scale = sensitivity / sqrt(2 * budget), epsilon = budget / sensitivity;
    if (kind === "zcdp") return scale >= 1e-12 && scale <= 1e12 ? discreteGaussian(scale) : null;
    return epsilon >= 1e-12 ? geometric(epsilon) : null;
  }

  // P(|noise| > margin), P(|noise| <= margin), the smallest margin with enough coverage.
  const beyond = (law, margin) => 2 * law.tail(floor(margin) + 1);
  const coverage = (law, margin) => 1 - beyond(law, margin);
  function exactMargin(law, confidence = 0.9) {
    const enough = margin => beyond(law, margin) <= 1 - confidence;
    let high = 1;
    while (!enough(high)) high *= 2;
    return first(enough, -1, high);
  }
  // The smallest budget whose exact margin is at most this one.
  function needed(kind, sensitivity, margin, confidence = 0.9) {
    const missed = 1 - confidence, reach = margin + 0.5;
    if (kind === "zcdp") {
      const wide = sigma => beyond(discreteGaussian(sigma), margin) > missed;
      return (sensitivity / bisect(wide, reach / 100, 100 * reach / confidence) / (1 - 1e-10)) ** 2 / 2;
    }
    const fits = epsilon => beyond(geometric(epsilon), margin) <= missed;
    return sensitivity * bisect(fits, 0, 200 / reach) / (1 - 1e-10);
  }
  // Margins around a given one, as algorithms.noise.budgets.margins_around.
  function around(margin, place) {
    return max(1, floor(margin * 2 / 5)) + floor(place * max(22, floor(margin * 21 / 10)) / 22);
  }

  // Errors relative to totals that the reader enters, as algorithms.release.sheet.
  function accuracy(kind, places) {
    const power = kind === "zcdp" ? 2 : 1;
    let spent = 0, whole = 0;
    for (const one of places) {
      const {law, margin, budget, sensitivity, totals} = one, sizes = totals ? totals.split(" ").map(Number) : [];
      sizes.sort((a, b) => a - b);
      const middle = (sizes.length - 1) / 2, median = (sizes[floor(middle)] + sizes[ceil(middle)]) / 2;
      Object.assign(one, {tenth: law && 10 * margin, relative: null, off: null, part: 0});
      if (!law || !sizes.length) continue;
      const off = sum(sizes.map(size => beyond(law, size / 10))) / sizes.length;
      Object.assign(one, {relative: margin / median, off, part: (sensitivity / median) ** power});
      spent += budget;
      whole += one.part;
    }
    return places.map(({place, tenth, relative, off, part}) =>
      [place, {tenth, relative, off, even: part ? spent * part / whole : null}]);
  }

  // Log of delta of normal laws at distance mu (Balle and Wang, 2018, theorem 8), by Mills ratios.
  function gaussianLogDelta(mu, epsilon) {
    const middle = epsilon / mu, near = middle - mu / 2, far = middle + mu / 2;
    if (near < -30) return 0; // delta is 1 in double precision
    const ratios = mu < 3e-5 ? mu * (sqrt(2 / PI) - middle * erfcx(middle / SQRT2))
      : erfcx(near / SQRT2) - erfcx(far / SQRT2);
    return log(max(0, ratios / 2)) - near * near / 2;
  }
  // A promise as rho or epsilon, and the epsilon at a delta by every conversion.
  const budgets = (kind, budget) => ({rho: null, epsilon: null, [kind === "zcdp" ? "rho" : "epsilon"]: budget});
  function promise(kind, budget, delta) {
    const high = -log(delta);
    let simple = null, tight = 0, gaussian = null;
    if (kind === "puredp") tight = max(0, budget + log1p(-delta) + log1p(-delta / (1 - delta) * exp(-budget)));
    else if (budget === 0) simple = gaussian = 0;
    else {
      simple = budget + 2 * sqrt(budget * high);
      // Canonne, Kamath and Steinke, 2020, corollary 13, at the optimal order (derivative 0)
      const above = bisect(x => budget * x * x + log1p(x) >= high, 0, sqrt(high / budget));
      tight = max(0, budget * (1 + above) - log1p(1 / above) + (high - log1p(above)) / above);
      const small = epsilon => gaussianLogDelta(sqrt(2 * budget), epsilon) <= -high;
      gaussian = small(0) ? 0 : bisect(small, 0, simple);
    }
    const ways = {epsilon_simple: simple, epsilon_tight: tight, epsilon_gaussian: gaussian};
    return {...budgets(kind, budget), guessed: guessed(kind, budget), ...ways};
  }

  // Largest probability of a right guess between two neighbors, as audit.claims: for rho, by Renyi orders or Pinsker.
  function guessed(kind, budget) {
    if (kind === "gaussian") return 1 - normalTail(budget / 2);
    if (kind !== "zcdp" || budget === 0) return 1 / (1 + exp(-budget));
    const above = max(1e-300, bisect(x => budget * (2 * x + 1) >= log1p(1 / x), 0, 2 / sqrt(budget)));
    const logDelta = above * ((above + 1) * budget - log1p(1 / above)) - log1p(above);
    return (1 + Math.min(exp(Math.min(0, logDelta)), sqrt(budget / 2))) / 2;
  }

  return {
    bisect, sum, normalTail, geometric, noise, beyond, coverage, exactMargin, gaussianLogDelta, budgets, promise, guessed,
    needed, around, accuracy,
  };
})();

// Results of a sheet, and a function that sets those of a place by name.
function found() {
  const results = {};
  function tell(place, values, before = "") {
    for (const [name, value] of Object.entries(values)) results[`${place}/${before}${name}`] = value;
  }
  return [results, tell];
}
