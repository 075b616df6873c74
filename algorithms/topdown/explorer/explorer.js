// TopDown's sheet: the numbers of algorithms/topdown/explorer/sheet.py.
sheets.topdown = (() => {
  const WIDEST = 1e10, add = (list, of) => list.reduce((all, one) => all + of(one), 0);

  function compute(state, {levels, queries, points}) {
    const given = name => state[`topdown/all/all/${name}`], row = state["topdown/curve/all/row"];
    const kind = given("privacy"), relation = given("relation"), wanted = given("margin"), share = given("pays") === "share";
    // A record that is replaced changes two counts.
    const sensitivity = relation === "add_remove" ? 1 : kind === "zcdp" ? Math.SQRT2 : 2;
    const [results, tell] = found(), shares = {}, places = [], parts = (query, level) => state[`topdown/${query}/${level}/parts`];
    const ofQueries = level => add(queries, query => parts(query, level));
    const asked = levels.filter(level => parts("all", level) > 0 && ofQueries(level) > 0);
    const whole = add(asked, level => parts("all", level));
    for (const level of asked)
      for (const query of queries)
        shares[`${query}/${level}`] = parts("all", level) / whole * parts(query, level) / ofQueries(level);

    // A margin that is wanted of one query: the total follows, or its share does, and the others have the rest.
    let total = given("budget"), refused = null;
    const own = shares[row] ?? 0, least = wanted && own ? laws.needed(kind, sensitivity, wanted) : null;
    if (least && !share) total = least / own;
    else if (least && own < 1 && least < total) {
      for (const place in shares)
        shares[place] = place === row ? least / total : shares[place] * (1 - least / total) / (1 - own);
    } else if (wanted) refused = `topdown.refused.${own ? "share" : "measured"}`;

    for (const level of levels) {
      tell(`topdown/all/${level}`, {share: add(queries, query => shares[`${query}/${level}`] ?? 0) || null});
      for (const query of queries) {
        const part = shares[`${query}/${level}`] || null, budget = part && total * part;
        let law = laws.noise(kind, sensitivity, budget);
        if (law?.sigma > WIDEST) law = null;
        const margin = law && laws.exactMargin(law);
        const place = `topdown/${query}/${level}`, totals = state[`${place}/totals`];
        tell(place, {share: part, budget, sigma: law && law.sigma, margin});
        places.push({place, law, margin, budget, sensitivity, totals});
      }
    }
    for (const [place, values] of laws.accuracy(kind, places)) tell(place, values);
    const now = results[`topdown/${row}/margin`];
    tell("topdown/all/all", {budget: total, needed: least, refused, margin: wanted && share ? null : now});
    tell("topdown/curve/now", {margin: now, budget: now === null ? null : total});
    points.forEach((name, place) => {
      const margin = now === null ? null : laws.around(now, place);
      tell(`topdown/curve/${name}`, {
        margin, budget: margin && laws.needed(kind, sensitivity, margin) / shares[row],
      });
    });
    for (const [before, other, times] of [["replaced_", "replace_one", 2], ["added_", "add_remove", 0.5]]) {
      tell("topdown/total/all", laws.promise(kind, other === relation ? total : total * times, given("delta")), before);
    }
    return results;
  }

  // The same total, for the same relative error wherever there are totals: as parts of the largest.
  function spend(state, results, {levels, queries}) {
    const next = {"topdown/all/all/budget": results["topdown/all/all/budget"], "topdown/all/all/margin": null};
    const of = (query, level) =>
      results[`topdown/${query}/${level}/even`] ?? results[`topdown/${query}/${level}/budget`] ?? 0;
    const whole = level => add(queries, query => of(query, level));
    const part = (size, sizes) => Math.ceil(999_999 * size / Math.max(...sizes)) || 0;
    for (const level of levels) {
      next[`topdown/all/${level}/parts`] = part(whole(level), levels.map(whole));
      if (queries.some(query => results[`topdown/${query}/${level}/even`])) for (const query of queries)
        next[`topdown/${query}/${level}/parts`] = part(of(query, level), queries.map(query => of(query, level)));
    }
    return next;
  }

  return {compute, spend};
})();
