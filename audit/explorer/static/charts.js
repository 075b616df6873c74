// Draw curves of cells in SVG. A table below each curve has the same numbers.
function element(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const charts = (() => {
  const {word, number} = speech, [LEFT, RIGHT, TOP, BOTTOM] = [74, 18, 46, 46];
  const line = (name, x1, y1, x2, y2) => element("svg:line", {class: name, x1, y1, x2, y2});
  const label = (text, x, y, anchor = "start", name = "") =>
    element("svg:text", {class: name, x, y, "text-anchor": anchor}, text);

  function ticks(low, high, most) {
    const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough)), found = [];
    const step = unit * [1, 2, 5, 10].find(part => part * unit >= rough);
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12); k++) found.push(k * step);
    return found;
  }

  function curve(chart, results, before, width, published) {
    const there = point => point.every(value => (value ?? null) !== null);
    const points = chart.points.map(point => point.map(key => results[key])).filter(there);
    if (!points.length) return element("p", {class: "note"}, word("page.nothing"));
    const [now, old] = [results, before].map(values => chart.current.map(key => values[key])), known = there(now);
    const height = Math.round(Math.min(340, Math.max(240, width / 2))), floor = height - BOTTOM;
    const xs = points.map(([x]) => x).concat(known ? now[0] : []), low = Math.min(...xs), high = Math.max(...xs);
    const most = Math.max(...points.map(([, y]) => y)), share = chart.axes[1][1] === "share";
    const roof = share ? 1 : (now[1] > 0 ? Math.min(most, 6.5 * now[1]) : most) || 1;
    const x = value => LEFT + (width - LEFT - RIGHT) * (high > low ? (value - low) / (high - low) : 0.5);
    const y = value => floor - (floor - TOP) * value / roof;
    const [across, up] = chart.axes.map(([name, shown]) => {
      const text = value => number(value, shown), tick = value => number(value, shown === "number" ? "budget" : shown);
      return {name: word(name), text, tick};
    });
    const title = `${word(chart.label)}: ${word("page.now")} ${across.text(now[0])}, ${up.text(now[1])}`;
    const parts = [element("svg:title", {}, title)];
    for (const tick of ticks(0, roof, 4)) {
      const at = y(tick);
      parts.push(line("grid", LEFT, at, width - RIGHT, at), label(up.tick(tick), LEFT - 8, at + 4, "end"));
    }
    for (const tick of ticks(low, high, Math.max(2, Math.floor(width / 110)))) {
      const at = x(tick);
      parts.push(line("grid", at, floor, at, floor + 5), label(across.tick(tick), at, floor + 20, "middle"));
    }
    // Integer values are drawn as steps, if no step is missing.
    const whole = chart.axes[1][1] === "whole", drawn = (known && whole ? [...points, now] : points).filter(([, b]) => b <= roof);
    drawn.sort(([a], [b]) => a - b);
    const steps = whole && drawn.every(([, b], place) => !place || Math.abs(b - drawn[place - 1][1]) <= 1);
    const path = drawn.map(([a, b], place) => steps && place ? `H${x(a)}V${y(b)}` : `${place ? "L" : "M"}${x(a)} ${y(b)}`);
    parts.push(label(`${across.name} \u2192`, LEFT, height - 6), label(`\u2191 ${up.name}`, 0, 11),
      element("svg:path", {class: "line", d: path.join("")}));
    if (known) { // values above the drawing, outside of the curve
      const [px, py] = [x(now[0]), y(Math.min(now[1], roof))], told = [];
      const tell = (mark, name, [a, b]) =>
        told.push(`${mark} ${name}: ${across.text(a)} \u00b7 ${up.text(b)}`);
      tell("\u25cf", word("page.now"), now);
      if (there(old) && old[0] >= low && old[0] <= high && old[1] <= roof && String(old) !== String(now)) {
        const [cx, cy] = [x(old[0]), y(old[1])];
        parts.push(element("svg:path", {class: "before", d: `M${cx} ${cy - 7}l7 7l-7 7l-7 -7Z`}));
        tell("\u25c7", published, old);
      }
      parts.push(element("svg:path", {class: "drop", d: `M${LEFT} ${py}H${px}V${floor}`}),
        element("svg:circle", {class: "now", cx: px, cy: py, r: 6}),
        label(told.join("   "), width - RIGHT, 30, "end", "strong"));
    }
    const attributes = {role: "img", width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": title};
    return element("svg:svg", attributes, ...parts);
  }

  return {curve};
})();
