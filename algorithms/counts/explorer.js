// The sheet `counts`: the same numbers as algorithms/counts/explorer.py.
sheets.counts = (() => {
  const {exp, expm1, log, log1p, sin, atan, sqrt, floor, abs, min, max, PI, SQRT2} = Math;
  const SPAN = 38, WIDE = 3.5; // of the integral for mean errors; from which normal noise on rounding is smooth

  // Laws on whole numbers; of each: sigma before rounding, tail(m) = P(K >= m), the log of the characteristic function
  // at the angle whose half has a tangent. Geometric noise and rounded Laplace noise fall by the same factor.
  function falling(epsilon, {sigma, tail}) {
    const q = exp(-epsilon), square = expm1(-epsilon) ** 2, most = 2 * tail(1) * (1 + q);
    return {sigma, tail, logs: tangent => log1p(-most / (square * (1 + tangent ** -2) / 2 + 2 * q))};
  }
  function gaussian(scale) {
    const tail = m => laws.normalTail((m - 0.5) / scale), masses = [];
    for (let k = 1; k < 42; k++) masses.push(tail(k) - tail(k + 1));
    const moved = half => masses.reduce((all, mass, k) => all + 4 * sin((k + 1) * half) ** 2 * mass, 0);
    const rounding = half => half < 0.01 ? -half * half / 6 - half ** 4 / 180 : log(sin(half) / half);
    const logs = tangent => {
      const half = atan(tangent);
      return scale > WIDE ? rounding(half) - 2 * (scale * half) ** 2 : log1p(-min(moved(half), 1));
    };
    return {sigma: scale, tail, logs};
  }
  const lawsOf = (epsilon, scale) => ({
    geometric: falling(epsilon, laws.geometric(epsilon)),
    laplace: falling(epsilon, {sigma: SQRT2 / epsilon, tail: m => exp(-epsilon * (m - 0.5)) / 2}),
    gaussian: gaussian(scale),
  });

  // The least scale of normal noise that keeps a promise, as algorithms.ons.laws.CountNoise has it; the textbook's.
  const tightScale = (epsilon, delta) =>
    (1 + 1e-12) / laws.bisect(mu => laws.gaussianLogDelta(mu, epsilon) >= log(delta), 0, 100);
  const classicalScale = (epsilon, delta) => sqrt(2 * log(1.25 / delta)) / epsilon;

  // Mean absolute error of a sum of so many counts: the trapezoid rule of algorithms.noise.quadrature.mean_magnitude.
  function meanError(law, cells) {
    let sum = 0;
    for (let x = -0.5 * log(cells * law.sigma ** 2 + 1) - SPAN; x < SPAN; x += 1 / 12)
      sum += -expm1(cells * law.logs(exp(x))) * exp(-x);
    return sum / 12 / PI;
  }

  // Noise by the inverse distribution function at a uniform of so many bits: how many uniforms of either half give a
  // magnitude or a larger one; its largest magnitude; the mass of outputs that one more person makes impossible.
  function inverse(epsilon, bits) {
    const below = log1p(exp(-epsilon)), whole = 2 ** bits;
    const atLeast = m => min(whole / 2, floor(whole * exp(-epsilon * m - below) + 0.5));
    const count = m => atLeast(m) - atLeast(m + 1), reach = floor((-log(0.5 / whole) - below) / epsilon);
    let infinite = 0;
    for (let m = 0; m <= reach; m++)
      for (const next of [m - 1, m + 1]) if (count(abs(next)) === 0) infinite += count(m) / whole;
    return {unchanged: 2 * count(0) / whole, reach, infinite};
  }

  function compute(state, {cells, steps, points, published, pilot_delta: pilotDelta}) {
    const [results, tell] = found();
    const given = name => state[`counts/all/all/${name}`];
    const epsilon = given("epsilon"), confidence = given("confidence"), many = given("cells");
    const each = (known, of) => Object.fromEntries(Object.entries(known).map(([name, law]) => [name, of(law)]));
    const unchanged = law => laws.coverage(law, 0);
    function describe(place, law) {
      const margin = laws.exactMargin(law, confidence);
      const covers = laws.coverage(law, margin);
      tell(place, {sigma: law.sigma, unchanged: unchanged(law), margin, covers, error: meanError(law, 1)});
    }
    const share = epsilon / state["counts/ons/all/tables"];
    const scale = classicalScale(share, state["counts/ons/all/delta"]);
    const whole = lawsOf(epsilon, tightScale(epsilon, given("delta"))), pilot = lawsOf(share, scale);
    for (const name in whole) {
      describe(`counts/${name}/all`, whole[name]);
      describe(`counts/ons/${name}`, pilot[name]);
    }
    tell("counts/ons/all", {epsilon: share, kept_delta: exp(laws.gaussianLogDelta(1 / scale, share))});
    published.forEach((one, place) =>
      tell(`counts/pilot/epsilon_${place}`, each(lawsOf(one, classicalScale(one, pilotDelta)), unchanged)));
    tell("counts/sum/all", each(whole, law => meanError(law, many)));
    for (const number of cells) tell(`counts/sum/cells_${number}`, each(whole, law => meanError(law, number)));

    const drawn = inverse(epsilon, state["counts/bottom_up/all/bits"]);
    const beyond = laws.beyond(whole.geometric, drawn.reach), sum_error = results["counts/sum/all/geometric"];
    tell("counts/bottom_up/all", {...drawn, beyond, sum_error});
    for (const [name, step] of Object.entries(steps)) {
      const some = max(1, floor(many * step / 20));
      tell(`counts/curve/${name}`, {cells: some, error: meanError(whole.geometric, some)});
    }
    const now = results["counts/geometric/all/margin"];
    for (const place of points) {
      const margin = laws.around(now, place), epsilon = laws.needed("puredp", 1, margin, confidence);
      tell(`counts/curve/point ${String(place).padStart(2, "0")}`, {margin, epsilon});
    }
    tell("counts/curve/now", {epsilon, margin: now});
    tell("counts/all/all", {guessed: laws.guessed("puredp", epsilon)});
    return results;
  }

  return {compute};
})();
