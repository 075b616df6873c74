// PHSafe's sheet: the numbers of algorithms/phsafe/explorer.py, and its file of settings as plaudit release reads it.
sheets.phsafe = (() => {
  const Z = 1.645, STEPS = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 40, 45, 50];
  const LARGEST = 1e9, BUDGET = {zcdp: "rho", puredp: "epsilon"};
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
    for (const [table, levels] of Object.entries(data.tables)) {
      const tau = state[`phsafe/${table}/all/tau`];
      const stability = stabilities[table] = tau === undefined ? 2 : 2 * tau + 2;
      spent[table] = 0;
      if (tau !== undefined) {
        const homes = data.sizes[table], add = of => homes.reduce((all, [people, number]) => all + of(people) * number, 0);
        const left = homes ? add(people => Math.max(people - tau, 0)) : null;
        results[`phsafe/${table}/all/left_out`] = left;
        results[`phsafe/${table}/all/left_out_share`] = homes?.length ? left / add(people => people) : null;
      }
      for (const level of levels) {
        const place = `phsafe/${table}/${level}`;
        if (!state[place + "/on"]) continue;
        const budget = state[`${place}/${BUDGET[kind]}`] ?? needed(state[place + "/margin"], stability, kind);
        budgets[place] = budget;
        spent[table] += budget;
      }
    }
    const total = laws.sum(Object.values(budgets));
    for (const [table, levels] of Object.entries(data.tables)) {
      for (const level of levels) {
        const place = `phsafe/${table}/${level}`, budget = budgets[place];
        for (const name of ["rho", "epsilon", "share", "sigma", "margin", "coverage", "exact"])
          results[`${place}/${name}`] = null;
        if (budget === undefined) continue;
        const stability = stabilities[table];
        const law = kind === "zcdp" ? laws.discreteGaussian(stability / Math.sqrt(2 * budget))
          : laws.geometric(budget / stability);
        const {sigma} = law, margin = wholePart(Z * sigma);
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
      const margin = now === null ? null : Math.min(Math.max(1, Math.floor(now * step / 20)), LARGEST);
      results[`phsafe/curve/${two(step)}/margin`] = margin;
      results[`phsafe/curve/${two(step)}/budget`] =
        now === null ? null : needed(margin, stabilities[row.split("/")[0]], kind);
    }
    results["phsafe/curve/now/margin"] = now;
    results["phsafe/curve/now/budget"] = now === null ? null : results[`phsafe/${row}/${BUDGET[kind]}`];
    for (const [prefix, promised] of [["", total], ["bounded_", 2 * total]]) {
      for (const name of ["rho", "epsilon"])
        results[`phsafe/total/all/${prefix}${name}`] = name === BUDGET[kind] ? promised : null;
      for (const [way, epsilon] of Object.entries(laws.epsilons(kind, promised, delta)))
        results[`phsafe/total/all/${prefix}epsilon_${way}`] = epsilon;
    }
    return results;
  }

  // The file of settings, checked as algorithms.phsafe.budget checks it, in the same order.
  const {Real, fail, real, shown} = files, PUERTO_RICO = "72", LARGEST_FILE = 2 ** 20;

  function keys(what, values, names) {
    if (!(values instanceof Map)) fail(`${what} must be an object with the keys ${names.join(", ")}, got ${shown(values)}`);
    const missing = names.filter(name => !values.has(name)), unknown = [...values.keys()].filter(name => !names.includes(name));
    const parts = [missing.length && `no ${missing.join(", ")}`, unknown.length && `unknown ${unknown.slice(0, 5).map(shown).join(", ")}`];
    if (parts.some(Boolean)) fail(`${what} must have the keys ${names.join(", ")}, got ${parts.filter(Boolean).join(" and ")}`);
  }
  const number = given => given instanceof Real ? given.value : Number(given);
  function checked(config, data) {
    keys("config", config, ["privacy_budget", "tau", "state_filter", "reader", "privacy_defn"]);
    const [budgets, tau, codes, reader, kind] = ["privacy_budget", "tau", "state_filter", "reader", "privacy_defn"].map(name => config.get(name));
    if (!Object.hasOwn(BUDGET, kind)) fail(`privacy_defn must be "zcdp" or "puredp", got ${shown(kind)}`);
    if (reader !== "csv")
      fail(`reader must be "csv"${reader === "cef" ? ": there is no reader of the Bureau's CEF files here" : ""}, got ${shown(reader)}`);
    keys("tau", tau, data.truncated);
    for (const table of data.truncated) {
      const threshold = tau.get(table);
      if (typeof threshold !== "bigint") fail(`tau of ${table} must be a whole number, got ${shown(threshold)}`);
      if (threshold < 1n || threshold > 99999n) fail(`tau of ${table} must be from 1 to 99999, got ${shown(threshold)}`);
    }
    const list = Array.isArray(codes), bare = list && codes.findIndex(code => typeof code !== "string");
    if (bare !== -1) fail(`state_filter must be a list of FIPS codes in quotes, got ${list ? `${shown(codes[bare])} in it` : shown(codes)}`);
    const alone = codes.length === 1 && codes[0] === PUERTO_RICO;
    const wrong = codes.filter(code => code === PUERTO_RICO || !data.states.includes(code));
    const repeated = codes.filter((code, place) => codes.indexOf(code) < place);
    if (!codes.length || repeated.length || wrong.length && !alone) {
      const found = (wrong.length ? wrong : repeated).slice(0, 5).map(shown).join(", ") || "none";
      fail("state_filter must be distinct codes of states (01 to 56, without 03, 07, 14, 43, 52), or 72 alone, "
        + `got ${found}${repeated.length && !wrong.length ? " twice" : ""}`);
    }
    let spent = 0;
    keys("privacy_budget", budgets, Object.keys(data.tables));
    for (const [table, levels] of Object.entries(data.tables)) {
      keys(`privacy_budget of ${table}`, budgets.get(table), levels);
      for (const level of levels) {
        const where = `privacy_budget of ${table} ${level}`, given = budgets.get(table).get(level), budget = number(given);
        if (typeof given !== "bigint" && !(given instanceof Real)) fail(`${where} must be a number, got ${shown(given)}`);
        if (!(budget >= 0 && budget < Infinity)) fail(`${where} must be 0 or more and finite, got ${shown(given)}`);
        if (budget && level.startsWith("usa_") && alone)
          fail(`${where} must be 0 where state_filter is Puerto Rico alone, got ${real(budget)}`);
        spent += budget;
      }
    }
    if (!(2 * spent > 0 && 2 * spent < Infinity)) fail(`privacy_budget must add up to a positive finite number, got ${real(spent)}`);
  }

  function read(bytes, data) {
    let config;
    if (bytes.length > LARGEST_FILE) fail(`a config must have at most ${LARGEST_FILE} bytes, got more`);
    try {
      config = files.parsed(bytes);
    } catch (error) {
      fail(`a config must be JSON with each key once, got: ${error.message}`);
    }
    checked(config, data);
    const kind = config.get("privacy_defn");
    const state = {"phsafe/all/all/privacy": kind, "phsafe/all/all/states": config.get("state_filter").join(" ")};
    for (const [table, tau] of config.get("tau")) state[`phsafe/${table}/all/tau`] = Number(tau);
    for (const [table, levels] of config.get("privacy_budget")) {
      for (const [level, given] of levels) {
        const place = `phsafe/${table}/${level}`, budget = number(given);
        Object.assign(state, {[place + "/on"]: budget > 0, [place + "/rho"]: null, [place + "/epsilon"]: null});
        if (budget > 0) state[`${place}/${BUDGET[kind]}`] = budget;
      }
    }
    return state;
  }
  function write(state, data) {
    const results = compute(state, data), kind = state["phsafe/all/all/privacy"], from = Object.fromEntries;
    const text = JSON.stringify({
      privacy_budget: from(Object.entries(data.tables).map(([table, levels]) => [table,
        from(levels.map(level => [level, results[`phsafe/${table}/${level}/${BUDGET[kind]}`] ?? 0]))])),
      tau: from(data.truncated.map(table => [table, state[`phsafe/${table}/all/tau`]])),
      state_filter: state["phsafe/all/all/states"].split(" "), reader: "csv", privacy_defn: kind,
    }, null, 4) + "\n";
    read(new TextEncoder().encode(text), data); // what a release would refuse is not written
    return text;
  }

  return {compute, read, write};
})();
