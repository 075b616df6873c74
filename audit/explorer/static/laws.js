// Laws of noise, and what promises mean as epsilon: the same numbers as algorithms.noise and audit.claims in Python.
const laws = (() => {
  const ROOT_PI = Math.sqrt(Math.PI);

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

  // exp(x^2) erfc(x): by the series of erf below 1, by the continued fraction from there on.
  function erfcx(x) {
    if (x < 0) return 2 * Math.exp(x * x) - erfcx(-x);
    if (x < 1) {
      let term = x, sum = x;
      for (let k = 1; term > sum * 1e-17; k++) sum += term *= 2 * x * x / (2 * k + 1);
      return Math.exp(x * x) - 2 / ROOT_PI * sum;
    }
    let rest = x;
    for (let k = x < 2 ? 250 : x < 4 ? 120 : 40; k > 0; k--) rest = x + k / 2 / rest;
    return 1 / (ROOT_PI * rest);
  }

  const normalTail = x => x < 0 ? 1 - normalTail(-x) : Math.exp(-x * x / 2) * erfcx(x / Math.SQRT2) / 2;
  const normalCdf = x => normalTail(-x);

  // Hastings' approximation and two steps of Halley.
  function normalQuantile(p) {
    if (p > 0.5) return -normalQuantile(1 - p);
    if (p <= 0) return -Infinity;
    const t = Math.sqrt(-2 * Math.log(p));
    let x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
    for (let step = 0; step < 2; step++) {
      const newton = (normalCdf(x) - p) * Math.sqrt(2 * Math.PI) * Math.exp(x * x / 2);
      x -= newton / (1 + x * newton / 2);
    }
    return x;
  }

  // The discrete Gaussian law: tail(m) is P(K >= m), for m >= 1.
  function discreteGaussian(scale) {
    let above = 0, moment = 0;
    if (scale < 1) {
      for (let k = 1; k < 40; k++) {
        const weight = 2 * Math.exp(-0.5 * (k / scale) ** 2);
        above += weight;
        moment += k * k * weight;
      }
    } else {
      for (let m = 1; m < 7; m++) {
        const weight = 2 * Math.exp(-2 * (Math.PI * scale * m) ** 2);
        above += weight;
        moment += (2 * Math.PI * scale * scale * m) ** 2 * weight;
      }
    }
    const normalizer = (scale < 1 ? 1 : Math.sqrt(2 * Math.PI) * scale) * (1 + above);
    const variance = scale < 1 ? moment / (1 + above) : scale * scale - moment / (1 + above);
    function tail(m) {
      if (scale <= 50) { // term by term, the smallest first
        let sum = 0;
        for (let k = m + Math.ceil(12 * scale) + 40; k >= m; k--) sum += Math.exp(-0.5 * (k / scale) ** 2);
        return sum / normalizer;
      }
      const x = m - 0.5, slope = x / scale ** 2; // the Euler-Maclaurin midpoint rule with two corrections
      const integral = Math.sqrt(Math.PI / 2) * scale * erfcx(x / (Math.SQRT2 * scale));
      const corrections = -slope / 24 - 7 / 5760 * slope * (3 / scale ** 2 - slope ** 2);
      return Math.exp(-0.5 * (x / scale) ** 2) / normalizer * (integral + corrections);
    }
    return {scale, variance, tail};
  }

  // The two-tailed geometric law of an epsilon per unit.
  function geometric(epsilon) {
    const q = Math.exp(-epsilon);
    return {
      epsilon,
      variance: 2 * q / Math.expm1(-epsilon) ** 2,
      tail: m => Math.exp(-epsilon * m - Math.log1p(q)),
    };
  }

  // Of a symmetric law on whole numbers: P(|noise| > margin), P(|noise| <= margin), the least margin that covers enough.
  const beyond = (law, margin) => 2 * law.tail(Math.floor(margin) + 1);
  const coverage = (law, margin) => 1 - beyond(law, margin);
  function exactMargin(law, confidence = 0.9) {
    const missed = 1 - confidence;
    let short = -1, enough = 1;
    while (beyond(law, enough) > missed) [short, enough] = [enough, 2 * enough];
    while (enough - short > 1) {
      const middle = Math.floor((short + enough) / 2);
      if (beyond(law, middle) > missed) short = middle;
      else enough = middle;
    }
    return enough;
  }

  // The smallest epsilon of a promise at a delta: of pure privacy, and of a rho by three conversions.
  function pureEpsilon(epsilon, delta) {
    const odds = delta / (1 - delta) * Math.exp(-epsilon);
    return odds < 1 ? Math.max(0, epsilon + Math.log1p(-delta) + Math.log1p(-odds)) : 0;
  }
  const simpleEpsilon = (rho, delta) => rho + 2 * Math.sqrt(rho * -Math.log(delta));
  function zcdpEpsilon(rho, delta) { // Canonne, Kamath and Steinke, 2020, corollary 13: the least over the orders
    if (rho === 0) return 0;
    const at = t => { // at the order 1 + exp(t)
      const above = Math.exp(t);
      return rho * (1 + above) - Math.log1p(1 / above) + (-Math.log(delta) - Math.log1p(above)) / above;
    };
    const golden = (Math.sqrt(5) - 1) / 2;
    let low = -40, high = 60, left = high - golden * (high - low), right = low + golden * (high - low);
    let atLeft = at(left), atRight = at(right);
    while (high - low > 1e-9) {
      if (atLeft <= atRight) {
        [high, right, atRight] = [right, left, atLeft];
        atLeft = at(left = high - golden * (high - low));
      } else {
        [low, left, atLeft] = [left, right, atRight];
        atRight = at(right = low + golden * (high - low));
      }
    }
    return Math.max(0, Math.min(atLeft, atRight));
  }
  function gaussianLogDelta(mu, epsilon) { // Balle and Wang, 2018, theorem 8, by Mills ratios
    const near = epsilon / mu - mu / 2, far = epsilon / mu + mu / 2;
    let ratios;
    if (mu < 1e-5) {
      const middle = epsilon / mu;
      ratios = mu * (Math.sqrt(2 / Math.PI) - middle * erfcx(middle / Math.SQRT2));
    } else if (near >= 0) {
      ratios = erfcx(near / Math.SQRT2) - erfcx(far / Math.SQRT2);
    } else {
      const p = Math.log1p(-normalTail(-near)), q = Math.log(erfcx(far / Math.SQRT2) / 2) - near * near / 2;
      return p + Math.log(-Math.expm1(q - p));
    }
    return ratios > 0 ? Math.log(ratios) - Math.LN2 - near * near / 2 : -Infinity;
  }
  function gaussianEpsilon(mu, delta) {
    const target = Math.log(delta), small = epsilon => gaussianLogDelta(mu, epsilon) <= target;
    if (mu === 0 || small(0)) return 0;
    let high = 1;
    while (!small(high)) high *= 2;
    while (small(high / 2)) high /= 2;
    return bisect(small, high / 2, high);
  }

  function epsilons(kind, budget, delta) { // of zero-concentrated or pure privacy, by every conversion
    if (kind === "puredp") return {simple: null, tight: pureEpsilon(budget, delta), gaussian: null};
    return {simple: simpleEpsilon(budget, delta), tight: zcdpEpsilon(budget, delta), gaussian: gaussianEpsilon(Math.sqrt(2 * budget), delta)};
  }

  return {
    bisect, sum, erfcx, normalTail, normalCdf, normalQuantile, discreteGaussian, geometric, beyond, coverage, exactMargin,
    pureEpsilon, simpleEpsilon, zcdpEpsilon, gaussianLogDelta, gaussianEpsilon,
    epsilons,
  };
})();
