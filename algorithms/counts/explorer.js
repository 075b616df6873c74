// The sheet `counts`: the same numbers as algorithms/counts/explorer.py.
sheets.counts = (() => {
  const SPAN = 38, WIDE = 3.5; // of the integral for mean errors; from which normal noise on rounding is smooth

  const erf = x => Math.exp(-x * x) * (x < 3 ? laws.erfx(x) : Math.exp(x * x) - laws.erfcx(x));

  // Laws on whole numbers; of each: sigma before rounding, tail(m) = P(K >= m), P(K = 0), the log of the
  // characteristic function at the angle whose half has a tangent.
  function geometric(epsilon) {
    const law = laws.geometric(epsilon);
    const logs = tangent => -Math.log1p(law.variance * 2 / (1 + tangent ** -2));
    return {...law, unchanged: Math.tanh(epsilon / 2), logs};
  }

  function laplace(epsilon) {
    const q = Math.exp(-epsilon), square = Math.expm1(-epsilon) ** 2;
    const logs = tangent => {
      const turned = 2 / (1 + tangent ** -2);
      return Math.log1p(-Math.sqrt(q) * (1 + q) * turned / (square + 2 * q * turned));
    };
    const tail = m => Math.exp(-epsilon * (m - 0.5)) / 2;
    return {sigma: Math.SQRT2 / epsilon, variance: 2 / epsilon ** 2, tail, unchanged: -Math.expm1(-epsilon / 2), logs};
  }

  function gaussian(scale) {
    const tail = m => laws.normalTail((m - 0.5) / scale), masses = [];
    if (scale <= WIDE) for (let k = 1; k < 42; k++) masses.push(tail(k) - tail(k + 1));
    const logs = tangent => {
      const half = Math.atan(tangent);
      if (scale <= WIDE) {
        let moved = 0;
        for (let k = 0; k < masses.length; k++) moved += 4 * Math.sin((k + 1) * half) ** 2 * masses[k];
        return Math.log1p(-Math.min(moved, 1));
      }
      const y = half * half;
      const rounding = half < 0.05 ? -y / 6 * (1 + y / 30 * (1 + y * 4 / 63 * (1 + y * 3 / 40)))
        : Math.log(Math.sin(half) / half);
      return -2 * scale * scale * y + rounding;
    };
    return {sigma: scale, variance: scale * scale, masses, tail, unchanged: erf(Math.SQRT1_2 / 2 / scale), logs};
  }

  // The least scale of normal noise that keeps (epsilon, delta), as algorithms.ons.laws.CountNoise has it.
  function tightScale(epsilon, delta) {
    const target = Math.log(delta);
    const logMu = laws.bisect(log => laws.gaussianLogDelta(Math.exp(log), epsilon) >= target, -30, 30);
    return Math.exp(-logMu) * (1 + 1e-12);
  }
  const classicalScale = (epsilon, delta) => Math.sqrt(2 * Math.log(1.25 / delta)) / epsilon;

  // Mean absolute error of a sum of so many counts: the trapezoid rule of algorithms.noise.quadrature.mean_magnitude.
  function meanError(law, cells) {
    let sum = 0;
    const start = -0.5 * Math.log(cells * law.variance + 1) - SPAN, h = law.masses?.length ? 1 / 16 : 1 / 8;
    for (let step = 0, x = start; x < SPAN; x = start + ++step * h) {
      sum += -Math.expm1(cells * law.logs(Math.exp(x))) * Math.exp(-x);
    }
    return h * sum / Math.PI;
  }

  // Noise by the inverse distribution function at a uniform of so many bits: how many uniforms of either half give a
  // magnitude or a larger one; its largest magnitude; the mass of outputs that one more person makes impossible.
  function inverse(epsilon, bits) {
    const q = Math.exp(-epsilon), half = 2 ** (bits - 1), whole = 2 ** bits;
    const atLeast = m => m === 0 ? half : Math.min(half, Math.floor(whole * Math.exp(-epsilon * m - Math.log1p(q)) + 0.5));
    const count = m => atLeast(m) - atLeast(m + 1);
    const reach = Math.floor((-Math.log(0.5 / whole) - Math.log1p(q)) / epsilon);
    const sure = Math.floor((Math.log(whole * (1 - q) / (1 + q)) - Math.log(4)) / epsilon) - 2; // up to here none is 0
    let infinite = 0;
    for (let m = Math.max(0, sure); m <= reach; m++) {
      if (m === 0) {
        if (count(1) === 0) infinite += 2 * count(0);
      } else infinite += count(m) * ((count(m - 1) === 0) + (count(m + 1) === 0));
    }
    return {unchanged: 2 * count(0) / whole, reach, infinite: infinite / whole};
  }

  function compute(state, {cells, steps, published, pilot_delta: pilotDelta}) {
    const at = quantity => state[`counts/all/all/${quantity}`], found = {};
    const epsilon = at("epsilon"), confidence = at("confidence");
    const describe = (place, law) => {
      const margin = laws.exactMargin(law, confidence);
      found[`${place}/sigma`] = law.sigma;
      found[`${place}/unchanged`] = law.unchanged;
      found[`${place}/margin`] = margin;
      found[`${place}/covers`] = laws.coverage(law, margin);
      found[`${place}/error`] = meanError(law, 1);
    };
    const whole = {
      geometric: geometric(epsilon), laplace: laplace(epsilon), gaussian: gaussian(tightScale(epsilon, at("delta"))),
    };
    for (const [name, law] of Object.entries(whole)) {
      describe(`counts/${name}/all`, law);
      for (const number of cells) found[`counts/sum/cells_${number}/${name}`] = meanError(law, number);
      found[`counts/sum/all/${name}`] = meanError(law, at("cells"));
    }

    const share = epsilon / state["counts/ons/all/tables"];
    const scale = classicalScale(share, state["counts/ons/all/delta"]);
    found["counts/ons/all/epsilon"] = share;
    found["counts/ons/all/kept_delta"] = Math.exp(laws.gaussianLogDelta(1 / scale, share));
    for (const [name, make] of Object.entries({geometric, laplace})) {
      describe(`counts/ons/${name}`, make(share));
      published.forEach((one, place) => found[`counts/pilot/epsilon_${place}/${name}`] = make(one).unchanged);
    }
    describe("counts/ons/gaussian", gaussian(scale));
    published.forEach((one, place) =>
      found[`counts/pilot/epsilon_${place}/gaussian`] = gaussian(classicalScale(one, pilotDelta)).unchanged);

    const drawn = inverse(epsilon, state["counts/bottom_up/all/bits"]);
    found["counts/bottom_up/all/unchanged"] = drawn.unchanged;
    found["counts/bottom_up/all/reach"] = drawn.reach;
    found["counts/bottom_up/all/beyond"] = laws.beyond(whole.geometric, drawn.reach);
    found["counts/bottom_up/all/infinite"] = drawn.infinite;
    found["counts/bottom_up/all/sum_error"] = found["counts/sum/all/geometric"];
    const point = (place, one, some) => {
      found[`counts/curve/${place}/epsilon`] = one;
      found[`counts/curve/${place}/margin`] = laws.exactMargin(laws.geometric(one), confidence);
      found[`counts/curve/${place}/cells`] = some;
      found[`counts/curve/${place}/error`] = meanError(whole.geometric, some);
    };
    point("now", epsilon, at("cells"));
    for (const step of steps) {
      point(String(step).padStart(2, "0"), epsilon * step / 20, Math.max(1, Math.floor(at("cells") * step / 20)));
    }
    return found;
  }

  return {compute};
})();
