// The page: updates every cell and control of the open sheet from the settings. `sheet.html.j2` has the layout.
const explorer = (() => {
  const {word, number} = speech, described = Object.fromEntries(book.sheets.map(sheet => [sheet.name, sheet]));
  const $ = id => document.getElementById(id), syncs = {}; // sheet -> functions that update its parts, once it was opened
  let open = book.opened, results = {}, before = {}, remembered = "", spoken = 0, written = 0;
  const parts = (name, selector) => document.querySelectorAll(`[data-of="${name}"] :is(${selector})`);
  function said(kind, text, seen = true) { // a screen reader says it, unless it is busy; it is seen for some seconds
    const place = $(kind);
    place.classList.toggle("visually-hidden", !seen);
    place.replaceChildren(text);
    for (const fading of place.getAnimations()) fading.play();
  }
  const empty = key => (results[key] ?? null) === null;
  // Text that names the initial settings: "published" if the sheet has published settings.
  const start = key => word(Object.keys(described[open].presets).length ? key : key + ".start");
  const differs = key => !Object.is(store.state[key], store.published[key]);

  function update() {
    const {data, charts} = described[open], from = store.ofSheet(open, store.published);
    for (const {inputs: [row]} of charts) if (row) from[row] = store.state[row]; // the subject of a chart
    results = sheets[open].compute(store.ofSheet(open, store.state), data);
    const asked = JSON.stringify(from);
    if (asked !== remembered) before = sheets[open].compute(from, data);
    remembered = asked;
    for (const sync of syncs[open]) sync();
    document.documentElement.style.setProperty("--bar", `${$("bar").offsetHeight}px`);
    $("undo").disabled = !store.undoable;
    clearTimeout(written);
    written = setTimeout(() => history.replaceState(null, "", store.address(open)), 200);
  }
  function changed() {
    update();
    said("problem", "");
    clearTimeout(spoken);
    spoken = setTimeout(() => {
      const shown = [...parts(open, ".totals > div:not([hidden])")].filter((total, place) => place < 2 || total.querySelector("[data-as=text]"));
      const told = shown.map(total => ["dt", ".much"].map(name => total.querySelector(name).textContent).join(": "));
      said("status", told.join("; "), false);
    }, 600);
  }
  function undo() { // on the sheet of the change
    const last = store.state;
    store.undo();
    const key = Object.keys(last).find(key => !Object.is(last[key], store.state[key])) ?? open;
    if (key.split("/")[0] !== open) turn(key.split("/")[0]);
    changed();
  }

  // Description of valid values of an input.
  function rule({kind, least, most}) {
    return word(`page.rule.${kind}`, {low: speech.boxed(least), high: speech.boxed(most)});
  }
  // Write a line beside a control, and make the line if it is missing.
  function beside(box, kind, text) {
    const line = box.parentNode.querySelector("." + kind), id = `${kind} ${box.dataset.input}`.replace(/\W/g, "-");
    if (line) line.textContent = text;
    else if (text) box.parentNode.append(element("small", {class: kind, id}, text));
    const lines = [...box.parentNode.querySelectorAll("small:not(:empty)")].map(one => one.id);
    box.setAttribute("aria-describedby", lines.join(" "));
  }

  function choice(box) { // a box to tick, or a list to choose from
    const key = box.dataset.input, held = box.type === "checkbox" ? "checked" : "value";
    box.onchange = () => { store.set(key, box[held], results); changed(); };
    return () => {
      box[held] = store.state[key];
      box.classList.toggle("changed", differs(key));
      const was = [...box.options ?? []].find(one => differs(key) && one.value === store.published[key]);
      beside(box, "was", was ? `${start("page.published")}: ${was.text}` : "");
    };
  }
  function entry(box) {
    const key = box.dataset.input, input = store.inputs[key], list = input.kind === "numbers";
    const codes = list || input.kind === "codes";
    box.autocomplete = "off";
    // A number that is not set, or that another input overrules, is the computed one. If the result is the published
    // one, the number is shown as published, rounded or not.
    const overruled = () => (input.clears ?? []).some(other => store.state[other] !== null && !empty(other));
    const computed = () => store.state[key] === null || overruled() && (differs(key) || results[key] !== before[key]);
    const current = () => (computed() ? results[key] : null) ?? store.state[key];
    const text = () => codes ? current() ?? "" : speech.boxed(current(), computed() ? 6 : differs(key) ? 17 : 7);
    function parse(typed) {
      if (list && typed) return typed.split(/,?\s+|;\s*/).map(speech.read).join(" ");
      return typed === "" && input.optional ? null : codes ? typed.replace(/[\s,;]+/g, " ") : speech.read(typed);
    }
    function invalid(problem) {
      box.ariaInvalid = problem ? "true" : null;
      beside(box, "wrong", problem);
      if (problem) said("problem", `${box.ariaLabel ?? box.labels[0].textContent}: ${problem}`);
    }
    box.onkeydown = ({key}) => { if (key === "Escape") { box.value = text(); box.onchange(); } };
    box.onchange = () => {
      const typed = box.value.trim(), same = typed === text();
      const value = parse(typed);
      if (!same && !store.fits(input, value)) return invalid(rule(input));
      invalid("");
      if (!same) store.set(key, value, results);
      changed();
    };
    return () => {
      if (box.ariaInvalid && box === document.activeElement) return; // keep invalid text while the user types
      if (box.ariaInvalid) invalid("");
      if (box.value !== text()) box.value = text();
      const published = store.published[key] ?? before[key] ?? null;
      const other = !Object.is(current() ?? null, published) && !(computed() && results[key] === before[key]);
      box.classList.toggle("computed", computed());
      box.classList.toggle("changed", other);
      const was = codes ? "\u2026" : speech.boxed(published, 7);
      beside(box, "was", other && published !== null ? `${start("page.published")}: ${was}` : "");
    };
  }

  // A result: formatted text for the reader, the full number for tests.
  function cell(place) {
    const {cell, shown, as} = place.dataset, key = cell ?? shown, was = place.nextElementSibling;
    let told = "";
    return () => {
      const now = results[key] ?? null, then = before[key] ?? null, next = `${now} ${then} ${speech.language}`;
      if (next === told) return;
      told = next;
      place.textContent = number(now, as);
      place.dataset.value = now ?? "";
      if (was?.className !== "was") return;
      const old = [element("span", {}, `${start("page.published")}: `), number(then, as)];
      was.replaceChildren(...then !== now && then !== null ? old : []);
    };
  }
  function bar(rect) { // bar of a share, with a line at its former value
    const key = rect.dataset.bar, line = rect.nextElementSibling, part = values => `${100 * (values[key] ?? 0)}%`;
    return () => {
      rect.setAttribute("width", part(results));
      line.classList.toggle("none", (before[key] ?? null) === null || before[key] === results[key]);
      for (const end of ["x1", "x2"]) line.setAttribute(end, part(before));
    };
  }
  // Hide columns without results, and their explanations; rows without results are pale.
  function table(made) {
    const rows = [...made.querySelectorAll("tbody tr:not(.group)")].map(row => [...row.cells]);
    const heads = [...made.tHead.rows[0].cells], terms = made.closest(".table")?.querySelectorAll(".terms > div") ?? [];
    function keyed(cells) {
      const held = cells.map(cell => (cell.querySelector("[data-input], [data-shown]") ?? cell).dataset);
      return held.map(({input, cell, shown}) => input ?? cell ?? shown);
    }
    const columns = heads.map((head, place) => {
      const cells = rows.map(row => row[place]);
      return {parts: [head, ...cells, terms[place - 1]].filter(Boolean), keys: keyed(cells)};
    });
    const own = rows.map(cells => // every row with noise has the result `tenth`
      [cells[0].parentNode.dataset.place + "/tenth", ...keyed(cells.filter(cell => cell.className !== "in"))]);
    function gone(keys) {
      const some = keys.filter(key => Object.hasOwn(results, key));
      return some.length > 0 && some.every(empty);
    }
    return () => {
      for (const {parts, keys} of columns) {
        const hidden = gone(keys);
        for (const part of parts) part.hidden = hidden;
      }
      rows.forEach(([cell], place) => cell.parentNode.classList.toggle("off", gone(own[place])));
    };
  }

  // Table of published, pinned and current settings side by side, with totals and differences.
  function scenarios(made, name) {
    const [head, body] = [made.tHead, made.tBodies[0]], known = {};
    const row = (tag, first, cells) => element("tr", {}, element("th", {scope: tag === "td" ? "row" : "col"}, first),
      ...cells.map(cell => element(tag, tag === "td" ? {} : {scope: "col"}, ...[cell].flat())));
    function pinned(letter) {
      const at = store.pins[`${name}/pin/${letter}`];
      if (at === undefined) return [];
      const state = store.ofSheet(name, store.stateAt(at));
      known[at] ??= sheets[name].compute(state, described[name].data);
      return [{label: word("page.scenario", {name: letter}), state, found: known[at]}];
    }
    function told(key, as, {state, found}) {
      const value = found[key] ?? state[key] ?? null, {kind} = store.inputs[key] ?? {};
      if (as || typeof value === "number") return number(value, as ?? (kind === "integer" ? "whole" : "budget"));
      const option = [...document.querySelectorAll(`[data-input="${key}"] option`)].find(one => one.value === value);
      return option?.text ?? (typeof value === "boolean" ? word(value ? "page.yes" : "page.no") : value ?? "");
    }
    function change(key, as, {found}, {found: from}) { // in points for a share, in percent for other numbers
      const [value, old] = [found[key], from[key]], share = as === "share" || as === "guess";
      if (![value, old].every(Number.isFinite) || value === old || !share && old === 0) return [];
      const size = share ? 100 * (value - old) : value / old - 1;
      const text = speech.signed(size, share ? "decimal" : "percent");
      return [element("small", {}, share ? word("page.points", {number: text}) : text)];
    }
    return () => {
      const published = {label: start("page.published"), state: store.published, found: before};
      const now = {label: word("page.now"), state: store.state, found: results};
      const columns = [published, ...pinned("A"), ...pinned("B"), now], rows = [];
      const value = (key, {state, found}) => found[key] ?? state[key] ?? null;
      const differ = key => new Set(columns.map(column => value(key, column))).size > 1;
      const add = (label, key, as) => rows.push(row("td", label, columns.map((column, place) =>
        [told(key, as, column), ...place ? change(key, as, column, published) : []])));
      for (const one of parts(name, ".totals [data-shown]")) {
        const {shown: key, as} = one.dataset;
        if (columns.some(column => value(key, column) !== null)) add(one.closest("div").querySelector("dt").textContent, key, as);
      }
      for (const box of parts(name, "[data-input]")) {
        const key = box.dataset.input, group = box.closest("tbody")?.querySelector("h4").textContent;
        if (box.closest("td") || key.startsWith(`${name}/curve/`)) continue;
        const label = (group ? `${group}: ` : "") + box.labels[0].textContent;
        if (new Set(columns.map(({state}) => state[key])).size > 1) add(label, key);
      }
      for (const th of parts(name, "[data-decides]"))
        for (const td of th.closest("table").querySelectorAll(`td:nth-child(${th.cellIndex + 1})`)) {
          const key = td.dataset.cell ?? td.querySelector("[data-input]")?.dataset.input;
          if (key && differ(key)) add(td.dataset.name, key, th.dataset.as);
        }
      head.replaceChildren(row("th", word("page.compared"), columns.map(({label}) => label)));
      body.replaceChildren(...rows);
    };
  }

  function bind(name) {
    const made = syncs[name] = [], sheet = described[name];
    tell(parts(name, "[data-word]"));
    label(name);
    for (const place of parts(name, "[data-cell], [data-shown]")) made.push(cell(place));
    for (const box of parts(name, "[data-input]")) made.push(box.type === "text" ? entry(box) : choice(box));
    for (const one of parts(name, "[data-when]")) {
      const keys = one.dataset.when.split(" ");
      made.push(() => { one.hidden = keys.every(empty); });
    }
    for (const one of parts(name, "table:not([data-scenarios])")) made.push(table(one));
    for (const one of parts(name, "[data-bar]")) made.push(bar(one));
    for (const one of parts(name, "[data-chart]")) {
      const chart = sheet.charts[one.dataset.chart];
      const width = () => Math.max(280, one.clientWidth || 600);
      made.push(() => one.replaceChildren(charts.curve(chart, results, before, width(), start("page.published"))));
    }
    for (const one of parts(name, "[data-preset]")) {
      const {preset} = one.dataset, whole = {...store.ofSheet(name, store.defaults), ...sheet.presets[preset]};
      one.onclick = () => { store.take(whole, store.state); changed(); };
      made.push(() => { one.ariaPressed = store.state[`${name}/all/all/preset`] === preset; });
    }
    for (const one of parts(name, "[data-save]")) one.onclick = () => exported(one.dataset.save, sheet);
    for (const one of parts(name, "[data-spend]")) {
      one.onclick = () => {
        store.take(sheets[name].spend(store.ofSheet(name, store.state), results, sheet.data), store.state);
        changed();
      };
      made.push(() => { one.disabled = !Object.keys(results).some(key => key.endsWith("/even") && !empty(key)); });
    }
    for (const one of parts(name, "[data-scenarios]")) made.push(scenarios(one, name));
    for (const one of parts(name, "[data-print]")) one.onclick = () => {
      document.documentElement.classList.add("deciding");
      print();
    };
    for (const one of parts(name, "[type=file]")) one.onchange = () => read(one, sheet);
  }
  // Give cells of a table the keys and names of their row and column, since a narrow page hides the headings.
  function label(name) {
    for (const td of parts(name, "[data-place] td")) {
      const row = td.parentNode, head = td.closest("table").tHead.rows[0].cells[td.cellIndex];
      const key = `${row.dataset.place}/${head.dataset.quantity}`, box = td.querySelector("input, select");
      const shown = td.className === "in" ? td.querySelector(".printed") : td;
      const group = row.parentNode.querySelector("h4").textContent;
      td.dataset.label = head.textContent;
      td.dataset.name = `${group}, ${row.cells[0].textContent}: ${head.textContent}`;
      if (shown) Object.assign(shown.dataset, {cell: key, as: head.dataset.as});
      if (!box) continue;
      box.dataset.input = key;
      box.ariaLabel = `${head.textContent}: ${group}, ${row.cells[0].textContent}`;
    }
  }
  function tell(places) {
    for (const one of places) {
      const sheet = described[one.closest("[data-of]")?.dataset.of];
      one.textContent = one.dataset.word.split(" ").map(key => word(key, sheet)).join(": ");
    }
  }
  function speak(language) {
    speech.speak(language);
    document.documentElement.lang = language;
    for (const one of $("language").children) one.ariaPressed = one.lang === language;
    $("sheets").ariaLabel = word("page.sheets");
    tell(document.querySelectorAll("[data-word]"));
    for (const one of document.querySelectorAll("[data-pin]")) one.textContent = word("page.pin", {name: one.dataset.pin});
    for (const name in syncs) label(name);
  }
  function show(name) {
    open = name;
    for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== name;
    for (const one of $("sheets").children) one.ariaCurrent = one.hash === `#${name}` ? "page" : null;
    $("reset").textContent = start("page.reset");
    document.title = `${word(described[open].title)} \u00b7 ${word("page.title")}`;
    if (!syncs[name]) bind(name);
    update();
  }

  // Files: read and save settings; save every cell and total with all digits, for spreadsheets.
  async function read(box, sheet) {
    const file = box.files[0];
    if (!file) return;
    try {
      const values = sheets[sheet.name].read(new Uint8Array(await file.arrayBuffer()), sheet.data);
      const beyond = Object.keys(values).find(key => !store.fits(store.inputs[key], values[key]));
      if (beyond) throw new Error(`${beyond} ${rule(store.inputs[beyond])}`); // valid for a release, but not on this page
      store.take({...store.ofSheet(sheet.name, store.published), ...values}, store.state);
      changed();
      said("status", word("page.imported", {name: file.name}));
    } catch (error) {
      said("problem", word("page.refused", {name: file.name, problem: error.message}));
    }
    box.value = "";
  }
  function exported(kind, sheet) {
    try {
      const state = store.ofSheet(sheet.name, store.state);
      const [name, type, content] = kind === "csv" ? [`${sheet.name}.csv`, "text/csv", csv(state)]
        : [sheet.file, "application/json", sheets[sheet.name].write(state, sheet.data)];
      const address = URL.createObjectURL(new Blob([content], {type}));
      element("a", {href: address, download: name}).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
      said("problem", "");
      said("status", word("page.saved", {name}));
    } catch (error) {
      said("problem", error.message);
    }
  }
  function csv(values) {
    const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const lines = [["system", "query", "level", "quantity", "value"]];
    for (const key in {...values, ...results}) {
      const value = results[key] ?? values[key] ?? null;
      if (value !== null) lines.push([...key.split("/"), String(value)]);
    }
    return lines.map(line => line.map(quoted).join(",") + "\n").join("");
  }

  function turn(name) {
    show(name);
    scrollTo(0, 0);
    said("status", word(described[open].title));
  }
  async function copy() {
    history.replaceState(null, "", store.address(open));
    try {
      await navigator.clipboard.writeText(location.href);
      said("status", word("page.copied"));
    } catch {
      said("status", word("page.address"));
    }
  }
  function arrive(fragment) {
    const {name, values} = store.parsed(fragment);
    for (const key in store.pins) delete store.pins[key];
    for (const key of Object.keys(values)) if (store.pin(key, values[key])) delete values[key];
    const left = store.take(values).length;
    show(Object.hasOwn(described, name) ? name : open);
    if (left) said("problem", word("page.left", {number: left}));
  }

  $("undo").onclick = undo;
  const more = $("more"); // a menu where the page is narrow
  more.onclick = () => more.hidePopover();
  more.onfocusout = ({relatedTarget: next}) => { if (next && !more.contains(next)) more.hidePopover(); };
  $("reset").onclick = () => { store.take(store.ofSheet(open, store.published), store.state); changed(); };
  $("link").onclick = copy;
  for (const one of document.querySelectorAll("[data-pin]")) one.onclick = () => {
    const {pin} = one.dataset;
    store.pin(`${open}/pin/${pin}`, store.address(open, {}));
    changed();
    said("status", word("page.pinned", {name: pin}));
  };
  addEventListener("afterprint", () => document.documentElement.classList.remove("deciding"));
  for (const one of $("language").children) one.onclick = () => { speak(one.lang); show(open); };
  for (const one of $("sheets").children) one.onclick = event => { event.preventDefault(); turn(one.hash.slice(1)); };
  document.addEventListener("keydown", event => {
    const {key, ctrlKey, metaKey, shiftKey, target} = event;
    if (key !== "z" || !(ctrlKey || metaKey) || shiftKey || /^(text|file|textarea)$/.test(target.type)) return;
    event.preventDefault();
    undo();
  });
  document.addEventListener("focusin", ({target}) => { // scroll a focused element that the totals cover
    const bar = $("bar").getBoundingClientRect(), box = target.getBoundingClientRect();
    const covered = box.bottom > bar.top && box.top < bar.bottom && !target.closest("#bar");
    if (covered) target.scrollIntoView({block: "center"});
  });
  addEventListener("hashchange", () => { if (location.hash !== store.address(open)) arrive(location.hash); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; update(); } });
  speak(speech.language);
  store.take(book.start, store.state);
  document.documentElement.classList.add("ready"); // drawings need the final size
  if (location.hash.length > 1) arrive(location.hash);
  else show(open);
  store.forget();
  $("undo").disabled = true;
  function take(values, from) {
    const left = store.take(values, from);
    update();
    return left;
  }
  return {turn, take, get open() { return open; }};
})();
