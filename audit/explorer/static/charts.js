// Charts: drawings of cells in SVG, each with a table of the same numbers.
function element(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

const charts = (() => {
  const {word, number} = speech;

  function ticks(low, high, most) {
    const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find(part => part * unit >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12); k++) found.push(k * step);
    return found;
  }

  function tableOf(chart, results) {
    const used = chart.axes.map((_, place) => chart.points.some(point => cell(chart, point, place, results) !== null));
    const named = chart.kind === "bars";
    const head = element("tr", {}, ...(named ? [element("th", {scope: "col"}, word("page.item"))] : []),
      ...chart.axes.filter((_, place) => used[place]).map(([label]) => element("th", {scope: "col"}, word(label))));
    const rows = chart.points.map(point => element("tr", {},
      ...(named ? [element("th", {scope: "row"}, word(point[0]))] : []),
      ...chart.axes.map(([, shown], place) => element("td", {}, number(cell(chart, point, place, results), shown)))
        .filter((_, place) => used[place])));
    return [element("caption", {}, word(chart.label)), element("thead", {}, head), element("tbody", {}, ...rows)];
  }
  const cell = (chart, point, place, results) => results[point[place + (chart.kind === "bars" ? 1 : 0)]] ?? null;

  function bars(chart, results, before) {
    const values = chart.points.flatMap(([, key]) => [results[key] ?? 0, before[key] ?? 0]);
    const most = chart.axes[0][1] === "share" ? 1 : Math.max(...values);  // of a share, the track is the whole
    return chart.points.map((point, place) => {
      const value = results[point[1]] ?? null, old = before[point[1]] ?? null;
      const at = part => most ? `${100 * part / most}%` : "0";
      const svg = element("svg:svg", {class: "bar", "aria-hidden": "true", height: 18, width: "100%"},
        element("svg:rect", {class: "track", width: "100%", height: 12, y: 3, rx: 2}),
        element("svg:rect", {class: "value", width: at(value ?? 0), height: 12, y: 3, rx: 2}),
        old !== null && old !== value ? element("svg:line", {class: "before", x1: at(old), x2: at(old), y1: 0, y2: 18}) : null);
      return element("li", {}, element("span", {class: "who"}, word(point[0])), svg,
        element("span", {class: "much"}, value === null ? word("page.none") : number(value, chart.axes[0][1])));
    });
  }

  function curve(chart, results, before, width) {
    const points = chart.points.map(([across, up]) => [results[across], results[up]]).filter(([across, up]) => across !== null && up !== null);
    if (!points.length) return element("p", {class: "note"}, word("page.nothing"));
    const height = Math.round(Math.min(340, Math.max(240, width * 0.5))), [left, right, top, bottom] = [74, 18, 26, 46];
    const now = chart.current.map(key => results[key]), old = chart.current.map(key => before[key]);
    const known = now.every(value => value !== null), xs = [...points.map(([x]) => x), ...(known ? [now[0]] : [])];
    const low = Math.min(...xs), high = Math.max(...xs), most = Math.max(...points.map(([, y]) => y));
    const roof = (now[1] > 0 ? Math.min(most, 6.5 * now[1]) : most) || 1;
    const x = value => left + (width - left - right) * (high > low ? (value - low) / (high - low) : 0.5);
    const y = value => height - bottom - (height - top - bottom) * value / roof;
    const shown = ([across, up]) => across !== null && up !== null && across >= low && across <= high && up <= roof;
    const [acrossShown, upShown] = chart.axes.map(([, kind]) => kind), ticked = kind => kind === "number" ? "budget" : kind;
    const title = `${word(chart.label)}: ${word("page.now")} ${number(now[0], acrossShown)}, ${number(now[1], upShown)}`;
    const parts = [element("svg:title", {}, title)];
    for (const tick of ticks(0, roof, 4))
      parts.push(element("svg:line", {class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick)}),
        element("svg:text", {x: left - 8, y: y(tick) + 4, "text-anchor": "end"}, number(tick, ticked(upShown))));
    for (const tick of ticks(low, high, Math.max(2, Math.floor(width / 110))))
      parts.push(element("svg:line", {class: "grid", x1: x(tick), x2: x(tick), y1: height - bottom, y2: height - bottom + 5}),
        element("svg:text", {x: x(tick), y: height - bottom + 20, "text-anchor": "middle"}, number(tick, ticked(acrossShown))));
    parts.push(
      element("svg:text", {class: "axis", x: left, y: height - 6}, `${word(chart.axes[0][0])} \u2192`),
      element("svg:text", {class: "axis", x: 0, y: 11}, `\u2191 ${word(chart.axes[1][0])}`),
      element("svg:polyline", {class: "line", points: points.filter(([, up]) => up <= roof).map(([a, b]) => `${x(a)},${y(b)}`).join(" ")}));
    if (known && shown(old) && (old[0] !== now[0] || old[1] !== now[1])) {
      const [cx, cy] = [x(old[0]), y(old[1])];
      parts.push(element("svg:path", {class: "before", d: `M${cx} ${cy - 7}L${cx + 7} ${cy}L${cx} ${cy + 7}L${cx - 7} ${cy}Z`}),
        element("svg:text", {class: "tag", x: cx + 11, y: cy - 7}, word("page.published")));
    }
    if (known) {
      const [px, py] = [x(now[0]), y(Math.min(now[1], roof))], flip = px > width - 190;
      const place = {x: flip ? px - 11 : px + 11, y: Math.max(py - 9, 24), "text-anchor": flip ? "end" : "start"};
      parts.push(element("svg:path", {class: "drop", d: `M${left} ${py}H${px}V${height - bottom}`}),
        element("svg:circle", {class: "now", cx: px, cy: py, r: 6}),
        element("svg:text", {class: "tag strong", ...place}, `${word("page.now")}: ${number(now[0], acrossShown)} \u00b7 ${number(now[1], upShown)}`));
    }
    return element("svg:svg", {role: "img", width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": title}, ...parts);
  }

  return {bars, curve, tableOf};
})();
