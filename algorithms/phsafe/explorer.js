// PHSafe's sheet: the numbers of algorithms/phsafe/explore.py, and its file of settings as plaudit release reads it.
sheets.phsafe = (() => {
  const {floor, min, max} = Math, Z = 1.645, BUDGET = {zcdp: "rho", puredp: "epsilon"}, {fail, shown} = files;
  const mapped = (names, of) => Object.fromEntries(names.map(name => [name, of(name)]));

  const sensitivities = state => table => 2 * (state[`phsafe/${table}/all/tau`] ?? 0) + 2;
  // The budget of a margin: by the paper's formula, or the least epsilon whose exact 90% margin is no larger.
  const needed = (margin, sensitivity, kind) =>
    kind === "zcdp" ? (Z * sensitivity / margin) ** 2 / 2 : laws.needed(kind, sensitivity, margin);

  function compute(state, {tables, sizes, steps}) {
    const [results, tell] = found(), kind = state["phsafe/all/all/privacy"], delta = state["phsafe/all/all/delta"];
    const sensitivity = sensitivities(state), places = [];
    const budgets = mapped(Object.keys(tables), table => mapped(tables[table], level => {
      const at = name => state[`phsafe/${table}/${level}/${name}`];
      return at("on") ? at(BUDGET[kind]) ?? needed(at("margin"), sensitivity(table), kind) : 0;
    }));
    const total = laws.sum(Object.values(budgets).flatMap(Object.values));
    for (const [table, levels] of Object.entries(budgets)) {
      for (const [level, budget] of Object.entries(levels)) {
        const law = laws.noise(kind, sensitivity(table), budget), margin = law && floor(Z * law.sigma * (1 + 1e-12));
        const place = `phsafe/${table}/${level}`, exact = law && laws.exactMargin(law);
        tell(place, {
          ...laws.budgets(kind, budget || null), share: budget / total || null, sigma: law && law.sigma, margin,
          coverage: law && laws.coverage(law, margin), exact,
        });
        const totals = state[`${place}/totals`];
        places.push({place, law, margin: exact, budget, sensitivity: sensitivity(table), totals});
      }
      const spent = laws.sum(Object.values(levels)), tau = state[`phsafe/${table}/all/tau`], homes = sizes[table];
      tell(`phsafe/${table}/all`, {...laws.budgets(kind, spent), share: total ? spent / total : null});
      if (tau === undefined) continue;
      const people = most => (homes ?? []).reduce((all, [size, number]) => all + min(size, most) * number, 0);
      const everybody = people(Infinity), left = homes ? everybody - people(tau) : null;
      tell(`phsafe/${table}/all`, {left_out: left, left_out_share: everybody ? left / everybody : null});
    }
    for (const [place, values] of laws.accuracy(kind, places)) tell(place, values);
    const row = state["phsafe/curve/all/row"], now = results[`phsafe/${row}/margin`];
    for (const [name, step] of Object.entries(steps)) {
      const margin = now === null ? null : min(max(1, floor(now * step / 20)), 1e9);
      tell(`phsafe/curve/${name}`, {margin, budget: margin && needed(margin, sensitivity(row.split("/")[0]), kind)});
    }
    tell("phsafe/curve/now", {margin: now, budget: results[`phsafe/${row}/${BUDGET[kind]}`]});
    tell("phsafe/total/all", laws.promise(kind, total, delta));
    tell("phsafe/total/all", laws.promise(kind, 2 * total, delta), "bounded_");
    return results;
  }

  // The file of settings, checked as algorithms.phsafe.budget checks it, in the same order.
  const refuse = (what, rule, got) => fail(`${what} must ${rule}, got ${got}`);
  const must = (fits, what, rule, got) => fits || refuse(what, rule, shown(got));
  function entries(what, values, names) {
    must(values instanceof Map, what, `be an object with the keys ${names.join(", ")}`, values);
    const missing = names.filter(name => !values.has(name));
    const unknown = [...values.keys()].filter(name => !names.includes(name)).slice(0, 5).map(shown);
    const wrong = [["no", missing], ["unknown", unknown]].filter(([, some]) => some.length > 0);
    const got = wrong.map(([how, some]) => `${how} ${some.join(", ")}`).join(" and ");
    if (got) refuse(what, `have the keys ${names.join(", ")}`, got);
    return names.map(name => [name, values.get(name)]);
  }

  const LARGEST = 2 ** 20, KEYS = ["privacy_budget", "tau", "state_filter", "reader", "privacy_defn"];
  function read(bytes, {tables, truncated, states}) {
    const [state, tell] = found();
    let config, spent = 0;
    if (bytes.length > LARGEST) refuse("a config", `have at most ${LARGEST} bytes`, "more");
    try {
      config = files.parsed(bytes);
    } catch (error) {
      fail(`a config must be JSON with each key once, got: ${error.message}`);
    }
    const [budgets, taus, codes, reader, kind] = entries("config", config, KEYS).map(([, value]) => value);
    must(Object.keys(BUDGET).includes(kind), "privacy_defn", 'be "zcdp" or "puredp"', kind);
    const hint = reader === "cef" ? ": there is no reader of the Bureau's CEF files here" : "";
    must(reader === "csv", "reader", `be "csv"${hint}`, reader);
    for (const [table, tau] of entries("tau", taus, truncated)) {
      must(typeof tau === "bigint", `tau of ${table}`, "be a whole number", tau);
      must(tau >= 1n && tau <= 99999n, `tau of ${table}`, "be from 1 to 99999", tau);
      tell(`phsafe/${table}/all`, {tau: Number(tau)});
    }
    const LIST = "be a list of FIPS codes in quotes";
    must(Array.isArray(codes), "state_filter", LIST, codes);
    const bare = codes.find(code => typeof code !== "string"), alone = codes.join() === "72";
    if (bare !== undefined) refuse("state_filter", LIST, `${shown(bare)} in it`);
    const wrong = codes.filter(code => !states.includes(code)), twice = wrong.length ? "" : " twice";
    const repeated = codes.filter((code, place) => codes.indexOf(code) < place), some = wrong.length ? wrong : repeated;
    if (!codes.length || repeated.length || wrong.length && !alone)
      refuse("state_filter", "be distinct codes of states (01 to 56, without 03, 07, 14, 43, 52), or 72 alone",
        some.length ? some.slice(0, 5).map(shown).join(", ") + twice : "none");
    const sensitivity = sensitivities(state);
    for (const [table, levels] of entries("privacy_budget", budgets, Object.keys(tables))) {
      for (const [level, given] of entries(`privacy_budget of ${table}`, levels, tables[table])) {
        const what = `privacy_budget of ${table} ${level}`, budget = Number(given);
        must(typeof given === "number" || typeof given === "bigint", what, "be a number", given);
        must(budget >= 0 && budget < Infinity, what, "be 0 or more and finite", given);
        const local = alone && level.startsWith("usa_"), law = laws.noise(kind, sensitivity(table), budget);
        must(!budget || !local, what, "be 0 where state_filter is Puerto Rico alone", budget);
        if (budget && !law) fail(`${what} is out of reach of the noise, got ${shown(budget)}`);
        tell(`phsafe/${table}/${level}`, {on: budget > 0, ...laws.budgets(kind, budget || null)});
        spent += budget;
      }
    }
    must(spent > 0 && 2 * spent < Infinity, "privacy_budget", "add up to a positive finite number", spent);
    tell("phsafe/all/all", {privacy: kind, states: codes.join(" ")});
    return state;
  }
  function write(state, data) {
    const results = compute(state, data), kind = state["phsafe/all/all/privacy"], {tables, truncated} = data;
    const budget = (table, level) => results[`phsafe/${table}/${level}/${BUDGET[kind]}`] ?? 0;
    const text = JSON.stringify({
      privacy_budget: mapped(Object.keys(tables), table => mapped(tables[table], level => budget(table, level))),
      tau: mapped(truncated, table => state[`phsafe/${table}/all/tau`]),
      state_filter: state["phsafe/all/all/states"].split(" "), reader: "csv", privacy_defn: kind,
    }, null, 4) + "\n";
    read(new TextEncoder().encode(text), data); // what a release would refuse is not written
    return text;
  }

  // The same total, for the same relative error wherever there are totals.
  function spend(state, results) {
    const even = Object.keys(results).filter(key => key.endsWith("/even") && results[key] !== null);
    const unit = BUDGET[state["phsafe/all/all/privacy"]];
    return Object.fromEntries(even.map(key => [key.replace(/even$/, unit), results[key]]));
  }

  return {compute, read, write, spend};
})();
