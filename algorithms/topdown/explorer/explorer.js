// TopDown's sheet: the numbers of algorithms/topdown/explorer/sheet.py.
sheets.topdown = (() => {
  function compute(state, {levels, queries, steps}) {
    const given = name => state[`topdown/all/all/${name}`];
    const kind = given("privacy"), relation = given("relation"), promised = given("budget");
    // A record that is replaced changes two counts.
    const sensitivity = relation === "add_remove" ? 1 : kind === "zcdp" ? Math.SQRT2 : 2;
    const lawOf = budget => laws.noise(kind, sensitivity, budget);
    const [results, tell] = found(), shares = {}, parts = (query, level) => state[`topdown/${query}/${level}/parts`];
    const add = (list, of) => list.reduce((all, one) => all + of(one), 0);
    const ofQueries = level => add(queries, query => parts(query, level));
    const asked = levels.filter(level => parts("all", level) > 0 && ofQueries(level) > 0);
    const whole = add(asked, level => parts("all", level));
    for (const level of levels) {
      const share = asked.includes(level) ? parts("all", level) / whole : null;
      tell(`topdown/all/${level}`, {share});
      for (const query of queries) {
        const part = share && share * parts(query, level) / ofQueries(level), law = lawOf(promised * part);
        shares[`${query}/${level}`] = part;
        tell(`topdown/${query}/${level}`, {
          share: part || null, budget: promised * part || null,
          sigma: law && law.sigma, margin: law && laws.exactMargin(law),
        });
      }
    }
    for (const [name, step] of Object.entries(steps)) {
      const budget = promised * step / 20, law = lawOf(budget * shares[state["topdown/curve/all/row"]]);
      tell(`topdown/curve/${name}`, {budget: law && budget, margin: law && laws.exactMargin(law)});
    }
    for (const [before, other, times] of [["replaced_", "replace_one", 2], ["added_", "add_remove", 0.5]]) {
      const budget = other === relation ? promised : promised * times;
      tell("topdown/total/all", laws.promise(kind, budget, given("delta")), before);
    }
    return results;
  }

  return {compute};
})();
