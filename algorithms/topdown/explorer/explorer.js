// TopDown's sheet: the numbers of algorithms/topdown/explorer/sheet.py.
sheets.topdown = (() => {
  const ALL = "topdown/all/all", STEPS = [4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80];

  // The noise of a query with a part of the budget; null where there is none for so little.
  function lawOf(kind, relation, budget) {
    const replaced = relation === "replace_one";
    if (kind === "zcdp") {
      const scale = Math.sqrt(1 / (replaced ? budget : 2 * budget));
      return scale >= 1e-12 && scale <= 1e12 ? laws.discreteGaussian(scale) : null;
    }
    const epsilon = replaced ? budget / 2 : budget;
    return epsilon >= 1e-12 ? laws.geometric(epsilon) : null;
  }

  function compute(state, {levels, queries}) {
    const kind = state[ALL + "/privacy"], relation = state[ALL + "/relation"], promised = state[ALL + "/budget"];
    const results = {}, shares = {}, parts = (query, level) => state[`topdown/${query}/${level}/parts`];
    const asked = levels.filter(level => parts("all", level) > 0 && queries.some(query => parts(query, level) > 0));
    const whole = laws.sum(asked.map(level => parts("all", level)));
    for (const level of levels) {
      const measured = asked.includes(level), all = laws.sum(queries.map(query => parts(query, level)));
      results[`topdown/all/${level}/share`] = measured ? parts("all", level) / whole : null;
      for (const query of queries) {
        const place = `topdown/${query}/${level}`, share = measured ? parts("all", level) * parts(query, level) / (whole * all) : 0;
        const law = share ? lawOf(kind, relation, promised * share) : null;
        shares[`${query}/${level}`] = share;
        results[place + "/share"] = share || null;
        results[place + "/budget"] = share ? promised * share : null;
        results[place + "/sigma"] = law && law.sigma;
        results[place + "/margin"] = law && laws.exactMargin(law);
      }
    }
    for (const [name, step] of [...STEPS.map(step => [String(step).padStart(2, "0"), step]), ["now", 20]]) {
      const budget = promised * step / 20, share = shares[state["topdown/curve/all/row"]];
      const law = share ? lawOf(kind, relation, budget * share) : null;
      results[`topdown/curve/${name}/budget`] = law && budget;
      results[`topdown/curve/${name}/margin`] = law && laws.exactMargin(law);
    }
    for (const [prefix, other] of [["replaced", "replace_one"], ["added", "add_remove"]]) {
      const budget = promised * (other === relation ? 1 : other === "replace_one" ? 2 : 0.5), total = `topdown/total/all/${prefix}_`;
      results[total + "rho"] = kind === "zcdp" ? budget : null;
      results[total + "epsilon"] = kind === "zcdp" ? null : budget;
      const ways = laws.epsilons(kind, budget, state[ALL + "/delta"]);
      for (const [way, epsilon] of Object.entries(ways)) results[`${total}epsilon_${way}`] = epsilon;
    }
    return results;
  }

  return {compute};
})();
