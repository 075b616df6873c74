// PHSafe's sheet: the numbers of algorithms/phsafe/explorer.py, and its file of settings as plaudit release reads it.
sheets.phsafe = (() => {
  const Z = 1.645, STEPS = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 40, 45, 50];
  const BUDGET = {zcdp: "rho", puredp: "epsilon"};
  const wholePart = margin => Math.floor(margin * (1 + 1e-12));
  const two = step => String(step).padStart(2, "0");

  function exactEpsilon(margin, stability) { // the least epsilon whose exact 90% margin is no larger
    const missed = 1 - 0.9, reach = Math.floor(margin) + 0.5;
    const fits = logScale => laws.beyond(laws.geometric(1 / (reach * Math.exp(logScale))), margin) <= missed;
    const logScale = -laws.bisect(t => fits(-t), -Math.log(100 / 0.9), -Math.log(0.01));
    return stability / (reach * Math.exp(logScale) * (1 - 1e-10));
  }
  const needed = (margin, stability, kind) =>
    kind === "zcdp" ? (Z * stability / Math.floor(margin)) ** 2 / 2 : exactEpsilon(margin, stability);

  function compute(state, data) {
    const kind = state["phsafe/all/all/privacy"], delta = state["phsafe/all/all/delta"];
    const results = {}, budgets = {}, stabilities = {}, spent = {};
    let total = 0;
    for (const [table, levels] of Object.entries(data.tables)) {
      const tau = state[`phsafe/${table}/all/tau`];
      const stability = stabilities[table] = tau === undefined ? 2 : 2 * tau + 2;
      spent[table] = 0;
      for (const level of levels) {
        const place = `phsafe/${table}/${level}`;
        if (!state[place + "/on"]) continue;
        const budget = state[`${place}/${BUDGET[kind]}`] ?? needed(state[place + "/margin"], stability, kind);
        budgets[place] = budget;
        spent[table] += budget;
        total += budget;
      }
    }
    for (const [table, levels] of Object.entries(data.tables)) {
      for (const level of levels) {
        const place = `phsafe/${table}/${level}`, budget = budgets[place];
        for (const name of ["rho", "epsilon", "share", "sigma", "margin", "coverage", "exact"])
          results[`${place}/${name}`] = null;
        if (budget === undefined) continue;
        const stability = stabilities[table];
        const law = kind === "zcdp" ? laws.discreteGaussian(stability / Math.sqrt(2 * budget))
          : laws.geometric(budget / stability);
        const sigma = kind === "zcdp" ? law.scale : Math.sqrt(law.variance), margin = wholePart(Z * sigma);
        results[`${place}/${BUDGET[kind]}`] = budget;
        results[place + "/share"] = budget / total;
        results[place + "/sigma"] = sigma;
        results[place + "/margin"] = margin;
        results[place + "/coverage"] = laws.coverage(law, margin);
        results[place + "/exact"] = laws.exactMargin(law);
      }
      results[`phsafe/${table}/all/share`] = total ? spent[table] / total : null;
      for (const name of ["rho", "epsilon"])
        results[`phsafe/${table}/all/${name}`] = name === BUDGET[kind] ? spent[table] : null;
    }
    const row = state["phsafe/curve/all/row"], now = results[`phsafe/${row}/margin`];
    for (const step of STEPS) {
      const margin = now === null ? null : Math.max(1, Math.floor(now * step / 20));
      results[`phsafe/curve/${two(step)}/margin`] = margin;
      results[`phsafe/curve/${two(step)}/budget`] =
        now === null ? null : needed(margin, stabilities[row.split("/")[0]], kind);
    }
    results["phsafe/curve/now/margin"] = now;
    results["phsafe/curve/now/budget"] = now === null ? null : results[`phsafe/${row}/${BUDGET[kind]}`];
    for (const [prefix, promised] of [["", total], ["bounded_", 2 * total]]) {
      for (const name of ["rho", "epsilon"])
        results[`phsafe/total/all/${prefix}${name}`] = name === BUDGET[kind] ? promised : null;
      const pure = kind === "puredp";
      results[`phsafe/total/all/${prefix}epsilon_simple`] = pure ? null : laws.simpleEpsilon(promised, delta);
      results[`phsafe/total/all/${prefix}epsilon_tight`] =
        pure ? laws.pureEpsilon(promised, delta) : laws.zcdpEpsilon(promised, delta);
      results[`phsafe/total/all/${prefix}epsilon_gaussian`] =
        pure ? null : laws.gaussianEpsilon(Math.sqrt(2 * promised), delta);
    }
    return results;
  }

  return {compute};
})();
