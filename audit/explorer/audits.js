// The sheet `audit`: the same numbers as audit/explorer/audits.py, which asks audit.planning.
sheets.audit = (() => {
  // Binomial probabilities -----------------------------------------------------------------------------------------

  // Nodes and weights of Gauss and Legendre on (0, 1).
  const [NODES, WEIGHTS] = (count => {
    const nodes = [], weights = [];
    for (let place = 0; place < count; place++) {
      let x = Math.cos(Math.PI * (place + 0.75) / (count + 0.5)), slope;
      for (let step = 0; step < 8; step++) {
        let before = 1, now = x;
        for (let k = 2; k <= count; k++) [before, now] = [now, ((2 * k - 1) * x * now - (k - 1) * before) / k];
        slope = count * (x * now - before) / (x * x - 1);
        x -= now / slope;
      }
      nodes.push((1 - x) / 2);
      weights.push(1 / ((1 - x * x) * slope * slope));
    }
    return [nodes, weights];
  })(48);

  const STIRLING = [0];
  for (let n = 1, log = 0; n < 16; n++) {
    log += Math.log(n);
    STIRLING.push(log - (n + 0.5) * Math.log(n) + n - 0.5 * Math.log(2 * Math.PI));
  }
  // log(n!) less Stirling's formula, and x log(x / mean) + mean - x: Loader, 2000.
  const stirling = n => n < 16 ? STIRLING[n]
    : (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / n / n) / n / n) / n / n) / n / n) / n;
  function deviance(x, mean) {
    if (Math.abs(x - mean) >= 0.1 * (x + mean)) return x * Math.log(x / mean) + mean - x;
    const v = (x - mean) / (x + mean);
    let sum = (x - mean) * v, term = 2 * x * v;
    for (let k = 1; k < 100; k++) {
      const next = sum + (term *= v * v) / (2 * k + 1);
      if (next === sum) break;
      sum = next;
    }
    return sum;
  }

  // P(X = k) of n runs with probability p, q = 1 - p.
  function mass(k, n, p, q) {
    if (k < 0 || k > n) return 0;
    if (p <= 0 || q <= 0) return k === (p <= 0 ? 0 : n) ? 1 : 0;
    if (k === 0) return Math.exp(n * (p < 0.1 ? Math.log1p(-p) : Math.log(q)));
    if (k === n) return Math.exp(n * (q < 0.1 ? Math.log1p(-q) : Math.log(p)));
    const rest = n - k, log = stirling(n) - stirling(k) - stirling(rest) - deviance(k, n * p) - deviance(rest, n * q);
    return Math.exp(log) * Math.sqrt(n / (2 * Math.PI * k * rest));
  }

  // P(X >= k): an integral over the beta law from p away from its middle, so that all terms fall.
  function atLeast(k, n, p, q = 1 - p) {
    if (k <= 0) return 1;
    if (k > n || p <= 0) return 0;
    if (q <= 0) return 1;
    if (p * (n + 1) > k) return 1 - below(n - k + 1, n, q, p);
    return below(k, n, p, q);
  }
  function below(k, n, p, q) {
    const log = d => (k - 1) * Math.log1p(-d / p) + (n - k) * Math.log1p(d / q);
    const slope = (k - 1) / p - (n - k) / q;
    let end = Math.min(p, Math.sqrt(84 * p * q / n), slope > 0 ? 42 / slope : p);
    while (end < p && log(end) > -40) end = Math.min(p, 1.3 * end);
    while (log(0.8 * end) < -44) end *= 0.8;
    let sum = 0;
    for (let place = 0; place < NODES.length; place++) sum += WEIGHTS[place] * Math.exp(log(end * NODES[place]));
    return Math.min(1, sum * end * k / p * mass(k, n, p, q));
  }

  // The least k with P(X > k) <= error: from about there by single steps.
  function upperQuantile(error, n, p, q = 1 - p) {
    const z = -laws.normalQuantile(error), guess = n * p + z * Math.sqrt(n * p * q) + (z * z - 1) * (q - p) / 6;
    let k = Math.min(n, Math.max(0, Math.floor(guess))), beyond = atLeast(k + 1, n, p, q), here = mass(k, n, p, q);
    while (beyond > error && k < n) {
      k++;
      here = mass(k, n, p, q);
      beyond = k === n ? 0 : beyond - here;
    }
    while (k > 0 && beyond + here <= error) {
      beyond += here;
      here = mass(--k, n, p, q);
    }
    return k;
  }

  // The probability with which so many successes or more are as rare as an error: the exact lower limit.
  function lowerLimit(successes, n, error) {
    if (successes === 0) return 0;
    if (successes === n) return Math.exp(Math.log(error) / n);
    const spread = Math.sqrt(successes * (n - successes + 1) / n) / n;
    let low = 0, high = 1, p = successes / n + laws.normalQuantile(error) * spread;
    for (let step = 0; step < 100; step++) {
      if (!(p > low && p < high)) p = (low + high) / 2;
      const apart = atLeast(successes, n, p) - error;
      if (apart > 0) high = p;
      else low = p;
      const next = p - apart / (successes / p * mass(successes, n, p, 1 - p));
      if (Math.abs(next - p) <= 1e-15 * p || high - low <= 1e-16 * high) return next;
      p = next;
    }
    return p;
  }

  // Methods: of a pair of promises, how often so many runs refute one if the other is true -----------------------------

  const expit = x => 1 / (1 + Math.exp(-x));

  // Guesses at a coin: audit.methods.game. `budget` and `forgiven` are those of the pair.
  const GAME = {
    largest: 60,
    group: (plan, budget) => {
      const people = plan.distance;
      if (!plan.delta || people === 1) return {budget: people * budget, forgiven: plan.delta};
      const log = (people - 1) * budget + Math.log(Math.expm1(-people * budget) / Math.expm1(-budget));
      return {budget: people * budget, forgiven: Math.min(1, plan.delta * (log < 709 ? Math.exp(log) : Infinity))};
    },
    right: pair => 1 - Math.max(0, 1 - pair.forgiven) * expit(-pair.budget),
    side(choosing, right) { // how often selection runs name the right side
      if (choosing === 0) return 1;
      const half = Math.floor(choosing / 2), wrong = 1 - right;
      return atLeast(half + 1, choosing, right, wrong) + (choosing % 2 ? 0 : mass(half, choosing, right, wrong) / 2);
    },
    limit(pair, counting, confidence) { // what right guesses are held against, and with what error
      const right = expit(pair.budget);
      let error = 1 - confidence;
      if (!(pair.forgiven > 0)) return [right, error];
      const rate = Math.exp(Math.log(1 - (1 - 0.1 * error)) / counting);
      return [Math.min(right + pair.forgiven * (1 - right) / Math.max(rate, 1e-300), 1), error *= 0.9];
    },
    needed(plan, promise, counting) { // the fewest right guesses that refute the promise
      const [limit, error] = this.limit(promise, counting, plan.confidence);
      return counting > 0 && limit < 1 ? upperQuantile(error, counting, limit) + 1 : counting + 1;
    },
    // With a coin that uses up the error, power rises with the runs: that of the best test there is.
    power(plan, truth, choosing, counting, coin = false) {
      const right = this.right(truth), promise = this.group(plan, plan.budget);
      const needed = this.needed(plan, promise, counting);
      let shown = atLeast(needed, counting, right);
      if (coin && needed <= counting) {
        const [limit, error] = this.limit(promise, counting, plan.confidence);
        const left = (error - atLeast(needed, counting, limit)) / mass(needed - 1, counting, limit, 1 - limit);
        shown += left * mass(needed - 1, counting, right, 1 - right);
      }
      return shown * this.side(choosing, right);
    },
  };

  // One region of two normal laws, registered beforehand: audit.methods.gaussian.
  const GAUSSIAN = {
    largest: 30,
    simulated: true,
    group: (plan, budget) => ({budget: plan.distance * budget, shift: plan.distance * budget}),
    power(plan, truth, choosing, counting) {
      const mu = this.group(plan, plan.budget).budget, error = (1 - plan.confidence) / 2;
      const likely = laws.normalCdf(truth.shift / 2), rare = laws.normalCdf(-truth.shift / 2);
      const runsLikely = Math.floor(counting / 2), runsRare = counting - runsLikely, all = runsRare < 65;
      let sum = 0;
      for (let node = 0; node < (all ? runsRare + 1 : 65); node++) {
        const met = all ? node : upperQuantile(1 - (node + 0.5) / 65, runsRare, rare, likely);
        const chance = all ? mass(met, runsRare, rare, likely) : 1 / 65;
        const highest = 1 - lowerLimit(runsRare - met, runsRare, error);
        const promised = laws.normalCdf(laws.normalQuantile(highest) + mu);
        sum += chance * atLeast(upperQuantile(error, runsLikely, promised) + 1, runsLikely, likely, rare);
      }
      return sum;
    },
  };

  // A clipped likelihood ratio of two normal laws, registered beforehand: audit.methods.renyi_power.
  const ORDERS = [1, 1.25, 1.5, 2, 4], CLIPS = [1, 2, 3, 4, 6, 9], GRID = 8000;
  const unique = numbers => [...new Set(numbers.sort((a, b) => a - b))];
  const LEVELS = (() => {
    const tail = Array.from({length: 16}, (_, k) => 10 ** (-5 + k / 15 * (5 - Math.log10(64))));
    return unique([...tail, ...Array.from({length: 63}, (_, k) => (k + 1) / 64), ...tail.map(x => 1 - x)]);
  })();
  const RENYI = {
    largest: 450,
    simulated: true,
    group: (plan, budget) => ({budget: plan.distance ** 2 * budget, shift: Math.sqrt(2 * plan.distance ** 2 * budget)}),
    bins(shift) { // probabilities of bins of the score on either database, and the mean score of each
      const reach = 8 + shift / 2, score = place => place === GRID ? reach : -reach + place * (2 * reach / GRID);
      const known = [], mixture = place => known[place] ??=
        (laws.normalCdf(score(place) - shift / 2) + laws.normalCdf(score(place) + shift / 2)) / 2;
      const inner = unique(LEVELS.map(level => {
        let low = 0, high = GRID;
        while (high - low > 1) {
          const middle = low + high >> 1;
          if (mixture(middle) <= level) low = middle;
          else high = middle;
        }
        const start = mixture(low), slope = (score(low + 1) - score(low)) / (mixture(low + 1) - start);
        return Math.round((slope * (level - start) + score(low)) * 1e6) / 1e6;
      }));
      const cumulative = mean => [0, ...inner.map(edge => laws.normalCdf(edge - mean)), 1];
      const density = mean =>
        [0, ...inner.map(edge => Math.exp(-((edge - mean) ** 2) / 2) / Math.sqrt(2 * Math.PI)), 0];
      const differences = values => values.slice(1).map((value, place) => value - values[place]);
      const [x, y] = [-shift / 2, shift / 2].map(mean => differences(cumulative(mean)));
      const [falling, rising] = [-shift / 2, shift / 2].map(mean => differences(density(mean)));
      const center = x.map((share, k) => share + y[k] > 0
        ? (shift / 2 * (y[k] - share) - falling[k] - rising[k]) / (share + y[k]) : 0);
      return {x, y, center};
    },
    power(plan, truth, choosing, counting) {
      const runs = Math.floor(counting / 2), error = (1 - plan.confidence) / 2;
      if (runs < 2) return 0;
      const {x, y, center} = this.bins(truth.shift), rho = this.group(plan, plan.budget).budget;
      const pull = Math.sqrt(2 * Math.log(4 / (1 - plan.confidence)) / runs), log = Math.log(2 / error) / (runs - 1);
      function limit(values, law, least) { // the lower limit of a mean at its expected counts, and its variance
        let mean = 0, variance = 0, most = -Infinity, spread = 0;
        for (let k = 0; k < law.length; k++) {
          mean += law[k] * values[k];
          most = Math.max(most, values[k]);
        }
        for (let k = 0; k < law.length; k++) variance += law[k] * (values[k] - mean) ** 2;
        variance = Math.max(variance, 1e-300);
        const low = Math.max(least, mean - Math.sqrt(2 * variance * log) - (most - least) * (7 * log / 3));
        if (!(low > least)) return [low, 0];
        const bent = pull / (2 * Math.sqrt(variance));
        for (let k = 0; k < law.length; k++) {
          const apart = values[k] - mean;
          spread += law[k] * (apart - bent * (apart * apart - variance)) ** 2;
        }
        return [low, spread / runs];
      }
      let best = -Infinity;
      for (const clip of CLIPS) {
        const weights = center.map(score => Math.min(Math.max(score * truth.shift, -clip), clip));
        const most = Math.max(...weights), centered = weights.map(weight => weight - most);
        for (const order of ORDERS) {
          const [above, strays] = limit(centered.map(one => -Math.expm1(order * one)), x, 0);
          let moment = Math.max(1 - above, 1e-16), bound = -Math.log(moment) / order;
          let variance = strays / (moment * order) ** 2;
          const excess = order === 1 ? 1 : order - 1;
          const values = order === 1 ? centered : centered.map(one => Math.expm1(excess * one));
          const [below, others] = limit(values, y, Math.min(...values));
          moment = order === 1 ? 1 : Math.max(1 + below, 1e-16);
          bound += order === 1 ? below : Math.log(moment) / excess;
          variance += others / (moment * excess) ** 2;
          best = Math.max(best, (bound - rho) / Math.sqrt(Math.max(variance, 1e-300)));
        }
      }
      return laws.normalCdf(best);
    },
  };
  const METHODS = {pure: GAME, approx: GAME, gaussian: GAUSSIAN, zcdp: RENYI};

  // Plans: audit.planning --------------------------------------------------------------------------------------------

  const MOST = 1e12;
  const rint = x => Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x); // halves to even numbers
  function split(plan, size) {
    const choosing = rint(size * plan.selection);
    return [choosing, size - choosing];
  }
  function fewest(plan) { // runs that choose and count an event
    const {selection} = plan;
    let size = 2;
    if (selection > 0) size = Math.max(size, Math.trunc(7.5 / selection), Math.trunc(1.5 / (1 - selection)));
    for (;; size++) {
      const [choosing, counting] = split(plan, size);
      if ((selection === 0 || choosing >= 8) && Math.floor(counting / 2) >= 1) return size;
    }
  }
  const powerOf = (plan, size, violation) =>
    Math.min(1, plan.method.power(plan, plan.method.group(plan, violation * plan.budget), ...split(plan, size)));

  function neededRuns(plan, violation, power, least) {
    const {method} = plan, at = size => powerOf(plan, size, violation);
    let low = least - 1, high = least;
    while (at(high) < power) {
      [low, high] = [high, high + Math.max(1, Math.floor(high / 2))];
      if (high > MOST) return null;
    }
    while (high - low > 1) {
      const middle = low + Math.floor((high - low) / 2);
      if (at(middle) >= power) high = middle;
      else low = middle;
    }
    // Power rises in teeth: the first size within a window. Before the power of the best test by coin is enough, none is.
    const [promise, truth] = [1, violation].map(times => method.group(plan, times * plan.budget));
    const sawtooth = 8 / Math.max(method.right(truth) - method.right(promise), 1e-9);
    const first = Math.max(least, high - Math.min(100000, Math.ceil(sawtooth / (1 - plan.selection)) + 20));
    const withCoin = size => method.power(plan, truth, ...split(plan, size), true);
    let out = first - 1, size = high;
    while (size - out > 1) {
      const middle = Math.floor((out + size) / 2);
      if (withCoin(middle) >= power) size = middle;
      else out = middle;
    }
    // Power falls with each run that must be right too: it is enough just where one more may be wrong, if anywhere, or
    // one more run chooses, where that matters.
    const right = method.right(truth), sure = method.side(split(plan, size)[0], right) === 1;
    const wrong = size => {
      const counting = split(plan, size)[1];
      return (sure ? counting : size) - method.needed(plan, promise, counting);
    };
    while (at(size) < power) {
      let before = size, step = 1;
      const now = wrong(size), same = next => next < high && wrong(next) <= now;
      while (same(before + step)) [before, step] = [before + step, 2 * step];
      while (step > 1) {
        step /= 2;
        if (same(before + step)) before += step;
      }
      size = before + 1;
    }
    return size;
  }

  function smallestViolation(plan, size, power) {
    const largest = Math.max(plan.method.largest / plan.method.group(plan, plan.budget).budget, 1);
    const bottom = Math.log(1e-9), top = Math.log(Math.max(largest - 1, 1e-9));
    const seen = log => powerOf(plan, size, 1 + Math.exp(log)) >= power;
    if (!seen(top)) return null;
    return seen(bottom) ? 1 : 1 + Math.exp(laws.bisect(seen, bottom, top));
  }

  // A number as Python's format "g" writes it.
  function written(x, digits) {
    const [number, exponent] = x.toExponential(digits - 1).split("e");
    if (exponent >= -4 && exponent < digits) return String(Number(x.toPrecision(digits)));
    return `${Number(number)}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }
  const PARAMETER = {pure: "epsilon", approx: "epsilon", gaussian: "mu", zcdp: "rho"};

  function compute(state, data) {
    const given = name => state[`audit/plan/all/${name}`];
    const family = state["audit/claim/all/family"], budget = state["audit/claim/all/budget"];
    const delta = family === "approx" ? state["audit/claim/all/delta"] : 0;
    const runs = given("runs"), violation = given("violation"), power = given("power"), selection = given("selection");
    const plan = {method: METHODS[family], budget, delta, selection};
    Object.assign(plan, {confidence: given("confidence"), distance: given("distance")});
    const found = {}, tell = (name, value) => found[`audit/plan/all/${name}`] = value;
    for (const name of ["detectable", "times", "power_found", "runs_needed", "refused"]) tell(name, null);
    tell("loss", violation * budget);
    const curve = data.times.map(times => [times, `audit/curve/${Math.round(100 * times)}%`]);
    for (const [times, place] of curve) {
      Object.assign(found, {[place + "/times"]: times, [place + "/loss"]: times * budget, [place + "/power"]: null});
    }
    const known = !plan.method.simulated ? "computed" : selection === 0 ? "registered" : "simulated";
    tell("known", `audit.known.${known}`);
    if (known === "simulated") return found;
    if (selection > 0 && selection < 1e-6) {
      tell("refused", `selection must be 0, or 1e-06 to 1 - 1e-06, got ${written(selection, 17)}`);
      return found;
    }
    const least = fewest(plan);
    if (runs < least) {
      tell("refused", `size must be at least ${least}, got ${runs}`);
      return found;
    }
    const powerAt = times => {
      const chance = powerOf(plan, runs, times);
      return chance >= data.least_power ? chance : 0;
    };
    tell("power_found", powerAt(violation));
    for (const [times, place] of curve) found[place + "/power"] = powerAt(times);
    if (known !== "computed") return found;
    const smallest = smallestViolation(plan, runs, power);
    if (smallest !== null) {
      tell("times", smallest);
      tell("detectable", smallest * budget);
    }
    tell("runs_needed", neededRuns(plan, violation, power, least));
    if (found["audit/plan/all/runs_needed"] === null) {
      const promise = `${PARAMETER[family]} ${written(budget, 4)}${delta ? `, delta ${written(delta, 4)}` : ""}`;
      tell("refused", `not even 1,000,000,000,000 runs would see ${written(violation, 6)} times ${promise} (add/remove) `
        + `with power ${written(power, 6)}`);
    }
    return found;
  }

  return {compute};
})();
