// Laws of noise, and what promises mean as epsilon: the same numbers as algorithms.noise and audit.claims in Python.
const laws = (() => {
  const {exp, expm1, log, log1p, sqrt, floor, max, PI, SQRT2} = Math;

  // The point between a low end, where the test fails, and a high end, where it holds: to the last digit.
  function bisect(holds, low, high) {
    for (let step = 0; step < 200; step++) {
      const middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      if (holds(middle)) high = middle;
      else low = middle;
    }
    return high;
  }

  // A sum whose rounding does not grow with the number of terms (Neumaier).
  function sum(numbers) {
    let total = 0, lost = 0;
    for (const number of numbers) {
      const next = total + number;
      lost += Math.abs(total) >= Math.abs(number) ? total - next + number : number - next + total;
      total = next;
    }
    return total + lost;
  }

  // exp(x^2) erf(x) by its series, whose terms are all positive; exp(x^2) erfc(x), from 1 on by the continued fraction.
  function erfx(x) {
    let term = x, sum = x;
    for (let k = 1; term > sum * 1e-17; k++) sum += term *= 2 * x * x / (2 * k + 1);
    return 2 / sqrt(PI) * sum;
  }
  function erfcx(x) {
    if (x < 0) return 2 * exp(x * x) - erfcx(-x);
    if (x < 1) return exp(x * x) - erfx(x);
    let rest = x;
    for (let k = x < 2 ? 250 : x < 4 ? 120 : 40; k > 0; k--) rest = x + k / 2 / rest;
    return 1 / (sqrt(PI) * rest);
  }
  const normalTail = x => x < 0 ? 1 - normalTail(-x) : exp(-x * x / 2) * erfcx(x / SQRT2) / 2;
  const normalQuantile = p => p > 0.5 ? -normalQuantile(1 - p) : bisect(x => normalTail(-x) >= p, -40, 0);

  // Symmetric laws on whole numbers: tail(m) is P(K >= m), for m >= 1.
  function discreteGaussian(sigma) {
    let above = 0; // of the normalizer, by Poisson's sum where sigma is large
    for (let k = 1; k < 40; k++) above += 2 * exp(sigma < 1 ? -0.5 * (k / sigma) ** 2 : -2 * (PI * sigma * k) ** 2);
    const normalizer = (sigma < 1 ? 1 : sqrt(2 * PI) * sigma) * (1 + above);
    function tail(m) {
      if (sigma <= 50) { // term by term, the smallest first
        let sum = 0;
        for (let k = m + Math.ceil(12 * sigma) + 40; k >= m; k--) sum += exp(-0.5 * (k / sigma) ** 2);
        return sum / normalizer;
      }
      const x = m - 0.5, slope = x / sigma ** 2; // the Euler-Maclaurin midpoint rule with two corrections
      const integral = sqrt(PI / 2) * sigma * erfcx(x / (SQRT2 * sigma));
      const corrections = -slope / 24 - 7 / 5760 * slope * (3 / sigma ** 2 - slope ** 2);
      return exp(-0.5 * (x / sigma) ** 2) / normalizer * (integral + corrections);
    }
    return {sigma, tail};
  }
  function geometric(epsilon) { // two-tailed, of an epsilon per unit
    const q = exp(-epsilon), variance = 2 * q / expm1(-epsilon) ** 2;
    return {variance, sigma: sqrt(variance), tail: m => exp(-epsilon * m - log1p(q))};
  }

  // P(|noise| > margin), P(|noise| <= margin), the least margin that covers enough.
  const beyond = (law, margin) => 2 * law.tail(floor(margin) + 1);
  const coverage = (law, margin) => 1 - beyond(law, margin);
  function exactMargin(law, confidence = 0.9) {
    const missed = 1 - confidence;
    let short = -1, enough = 1;
    while (beyond(law, enough) > missed) [short, enough] = [enough, 2 * enough];
    while (enough - short > 1) {
      const middle = floor((short + enough) / 2);
      if (beyond(law, middle) > missed) short = middle;
      else enough = middle;
    }
    return enough;
  }

  // The smallest epsilon of a promise at a delta: of pure privacy, and of a rho by three conversions.
  function pureEpsilon(epsilon, delta) {
    const odds = delta / (1 - delta) * exp(-epsilon);
    return odds < 1 ? max(0, epsilon + log1p(-delta) + log1p(-odds)) : 0;
  }
  function zcdpEpsilon(rho, delta) { // Canonne, Kamath and Steinke, 2020, corollary 13, at the order where its slope is 0
    if (rho === 0) return 0;
    const high = -log(delta), above = bisect(x => rho * x * x + log1p(x) >= high, 0, sqrt(high / rho));
    return max(0, rho * (1 + above) - log1p(1 / above) + (high - log1p(above)) / above);
  }
  function gaussianLogDelta(mu, epsilon) { // Balle and Wang, 2018, theorem 8, by Mills ratios
    const near = epsilon / mu - mu / 2, far = epsilon / mu + mu / 2, middle = epsilon / mu;
    if (near < 0 && mu >= 1e-5) {
      const p = log1p(-normalTail(-near)), q = log(erfcx(far / SQRT2) / 2) - near * near / 2;
      return p + log(-expm1(q - p));
    }
    const ratios = mu < 1e-5 ? mu * (sqrt(2 / PI) - middle * erfcx(middle / SQRT2)) : erfcx(near / SQRT2) - erfcx(far / SQRT2);
    return ratios > 0 ? log(ratios) - Math.LN2 - near * near / 2 : -Infinity;
  }
  function gaussianEpsilon(mu, delta) {
    const target = log(delta), small = epsilon => gaussianLogDelta(mu, epsilon) <= target;
    if (mu === 0 || small(0)) return 0;
    let high = 1;
    while (!small(high)) high *= 2;
    while (small(high / 2)) high /= 2;
    return bisect(small, high / 2, high);
  }
  function epsilons(kind, budget, delta) { // of zero-concentrated or pure privacy, by every conversion
    if (kind === "puredp") return {simple: null, tight: pureEpsilon(budget, delta), gaussian: null};
    const simple = budget + 2 * sqrt(budget * -log(delta));
    return {simple, tight: zcdpEpsilon(budget, delta), gaussian: gaussianEpsilon(sqrt(2 * budget), delta)};
  }

  return {bisect, sum, erfx, erfcx, normalTail, normalQuantile, discreteGaussian, geometric, beyond, coverage, exactMargin, gaussianLogDelta, epsilons};
})();
