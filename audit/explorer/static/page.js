// The page: keeps every cell and control of the open sheet as the settings say. `sheet.html.j2` says what stands where.
const explorer = (() => {
  const {word, number} = speech, described = Object.fromEntries(book.sheets.map(sheet => [sheet.name, sheet]));
  const results = {}, before = {}, $ = id => document.getElementById(id);
  const syncs = {}; // by sheet, once it has been opened: what brings each of its parts up to date
  let open = book.opened, spoken = 0, written = 0, remembered = {};
  const parts = (name, selector) => [...document.querySelectorAll(`[data-of="${name}"]`)].flatMap(part => [...part.querySelectorAll(selector)]);
  const said = (kind, text) => { $(kind).textContent = ""; $(kind).textContent = text; };
  const empty = key => (results[key] ?? null) === null;
  const differs = key => !Object.is(store.state[key], store.published[key]);

  function compute() {
    for (const key in results) delete results[key];
    for (const key in before) delete before[key];
    const {data, charts} = described[open], script = sheets[open], from = store.ofSheet(open, store.published);
    for (const chart of charts) for (const key of chart.inputs) from[key] = store.state[key];
    Object.assign(results, script.compute(store.ofSheet(open, store.state), data));
    const name = JSON.stringify(from);
    if (name !== remembered.name) remembered = {name, results: script.compute(from, data)};
    Object.assign(before, remembered.results);
  }
  function update() {
    compute();
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
    spoken = setTimeout(() => said("status", parts(open, ".totals > div:not([hidden])").slice(0, 2)
      .map(total => `${total.querySelector("dt").textContent}: ${total.querySelector("[data-shown]").textContent}`).join("; ")), 600);
  }
  function undo() { // on the sheet where it was done
    const last = store.state;
    store.undo();
    const key = Object.keys(last).find(key => !Object.is(last[key], store.state[key]));
    if (key !== undefined && !key.startsWith(open + "/")) turn(key.split("/")[0]);
    changed();
  }

  // What an input must be, in words.
  function rule({kind, least, most}) {
    const [low, high] = [least, most].map(limit => speech.boxed(limit ?? null));
    return word(`page.rule.${kind}`, {low, high});
  }
  // A line beside a control, made when there is something to say.
  function beside(box, kind, text) {
    const line = box.parentNode.querySelector("." + kind);
    if (line) line.textContent = text;
    else if (text) box.parentNode.append(element("small", {class: kind, id: `${kind} ${box.dataset.input}`.replace(/\W/g, "-")}, text));
  }

  function choice(box) { // a box to tick, or a list to choose from
    const key = box.dataset.input, held = box.type === "checkbox" ? "checked" : "value";
    box.onchange = () => { store.set(key, box[held], results); changed(); };
    return () => {
      box[held] = store.state[key];
      box.classList.toggle("changed", differs(key));
      if (box.options) beside(box, "was", differs(key) ? word("page.was", {value: [...box.options].find(one => one.value === store.published[key]).text}) : "");
    };
  }
  function entry(box) {
    const key = box.dataset.input, input = store.inputs[key], codes = input.kind === "codes";
    for (const [name, value] of Object.entries({inputmode: codes ? "text" : "decimal", autocomplete: "off", spellcheck: "false"})) box.setAttribute(name, value);
    // A number that is not set is the computed one; so is one that another input overrules.
    const driven = () => store.state[key] === null || (input.clears ?? []).some(other => store.state[other] !== null && !empty(other));
    // What gives the published result is shown as it was published, rounded or not.
    const asBefore = () => !differs(key) && results[key] === before[key];
    const computed = () => driven() && !(store.state[key] !== null && asBefore());
    const current = () => computed() ? results[key] ?? store.state[key] : store.state[key];
    const text = () => codes ? current() : speech.boxed(current(), computed());
    function invalid(problem) {
      box.toggleAttribute("aria-invalid", problem);
      beside(box, "wrong", problem);
      if (!problem) return box.removeAttribute("aria-describedby");
      box.setAttribute("aria-invalid", "true");
      box.setAttribute("aria-describedby", box.parentNode.querySelector(".wrong").id);
      said("problem", `${box.ariaLabel ?? box.labels[0].textContent}: ${problem}`);
    }
    box.onchange = () => {
      const typed = box.value.trim();
      if (typed === text()) return sync(true);
      const value = codes ? typed.split(/[\s,;]+/).join(" ") : typed === "" && input.optional ? null : speech.read(typed);
      if (!store.fits(input, value)) return invalid(rule(input));
      invalid("");
      store.set(key, value, results);
      changed();
    };
    function sync(anyway) {
      const wrong = box.hasAttribute("aria-invalid");
      if (wrong && anyway !== true && box === document.activeElement) return;
      if (wrong) invalid("");
      if (box.value !== text()) box.value = text();
      const published = store.published[key] ?? before[key] ?? null;
      const other = !Object.is(current() ?? null, published) && !(computed() && results[key] === before[key]);
      box.classList.toggle("computed", computed());
      box.classList.toggle("changed", other);
      beside(box, "was", other ? word("page.was", {value: codes ? "\u2026" : speech.boxed(published, true)}) : "");
    }
    return sync;
  }

  // A result: the text for the reader, the number for whoever checks it.
  function cell(place) {
    const key = place.dataset.cell ?? place.dataset.shown, shown = place.dataset.as, was = place.nextElementSibling;
    let last = {};
    return () => {
      const now = results[key] ?? null, then = before[key] ?? null;
      if (Object.is(last.now, now) && Object.is(last.then, then) && last.language === speech.language) return;
      last = {now, then, language: speech.language};
      place.textContent = number(now, shown);
      place.dataset.value = now ?? "";
      if (was?.className === "was") was.textContent = then !== now && then !== null ? word("page.was", {value: number(then, shown)}) : "";
    };
  }
  function bars(list) {
    return list.map(bar => () => {
      const keys = list.map(({dataset}) => dataset.bar), share = list[0].closest("li").querySelector(".much").dataset.as === "share";
      const most = share ? 1 : Math.max(...keys.flatMap(key => [results[key] ?? 0, before[key] ?? 0])); // the track is the whole of a share
      const {bar: key} = bar.dataset, line = bar.nextElementSibling, at = part => most ? `${100 * part / most}%` : "0";
      bar.setAttribute("width", at(results[key] ?? 0));
      line.classList.toggle("none", (before[key] ?? null) === null || before[key] === results[key]);
      for (const end of ["x1", "x2"]) line.setAttribute(end, at(before[key] ?? 0));
    });
  }
  // Columns without a result are not shown, and with them what they mean; rows without one are pale.
  function table(made) {
    const rows = [...made.tBodies].flatMap(body => [...body.rows]).filter(row => row.className !== "group");
    const heads = [...made.tHead.rows[0].cells], terms = made.closest("section").querySelectorAll(".terms > div");
    const key = td => {
      const {input, cell, shown} = (td.querySelector("[data-input], [data-shown]") ?? td).dataset;
      return input ?? cell ?? shown;
    };
    const columns = heads.map((head, place) => ({cells: rows.map(row => row.cells[place]), head, term: terms[place - 1]}));
    for (const column of columns) column.keys = column.cells.map(key).filter(key => key !== undefined);
    const own = rows.map(row => [...row.cells].filter(td => td.tagName === "TD" && td.className !== "in").map(key));
    return () => {
      for (const {keys, cells, head, term} of columns) {
        const some = keys.filter(key => Object.hasOwn(results, key)), hidden = some.length > 0 && some.every(empty);
        for (const one of [head, term, ...cells]) if (one) one.hidden = hidden;
      }
      rows.forEach((row, place) => row.classList.toggle("off", own[place].length > 0 && own[place].every(empty)));
    };
  }

  function bind(name) {
    const made = syncs[name] = [], sheet = described[name];
    tell(parts(name, "[data-word]"), sheet);
    label(name);
    for (const place of parts(name, "[data-cell], [data-shown]")) made.push(cell(place));
    for (const box of parts(name, "[data-input]")) made.push(box.type === "text" ? entry(box) : choice(box));
    for (const one of parts(name, "[data-when]")) {
      const keys = one.dataset.when.split(" ");
      made.push(() => { one.hidden = keys.every(empty); });
    }
    for (const one of parts(name, "table")) made.push(table(one));
    for (const one of parts(name, "ol")) made.push(...bars([...one.querySelectorAll("[data-bar]")]));
    for (const one of parts(name, "[data-chart]")) {
      const chart = sheet.charts[one.dataset.chart];
      made.push(() => one.replaceChildren(charts.curve(chart, results, before, Math.max(280, one.clientWidth || 600))));
    }
    for (const one of parts(name, "[data-preset]")) {
      const {preset} = one.dataset, whole = Object.fromEntries(sheet.inputs.map(input => [input.key, input.value]));
      one.onclick = () => { store.take({...whole, ...sheet.presets[preset]}, store.state); changed(); };
      made.push(() => one.setAttribute("aria-pressed", String(store.state[`${name}/all/all/preset`] === preset)));
    }
    for (const one of parts(name, "[data-save]")) one.onclick = one.dataset.save === "csv" ? () => save(`${name}.csv`, "text/csv", csv(sheet)) : () => exported(sheet);
    for (const one of parts(name, "[type=file]")) one.onchange = () => read(one, sheet);
  }
  // Cells of a table have the keys of their row and column, and their names: a narrow page shows no heads.
  function label(sheet) {
    for (const made of parts(sheet, ".sheet")) for (const row of made.querySelectorAll("[data-place]")) for (const td of row.querySelectorAll("td")) {
      const head = made.tHead.rows[0].cells[td.cellIndex], key = `${row.dataset.place}/${head.dataset.quantity}`, box = td.querySelector("input, select");
      const shown = box ? td.querySelector(".printed") : td.className === "in" ? null : td;
      td.dataset.label = head.textContent;
      if (shown) Object.assign(shown.dataset, {cell: key, as: head.dataset.as});
      if (!box) continue;
      box.dataset.input = key;
      box.ariaLabel = `${head.textContent}: ${row.parentNode.querySelector("h4").textContent}, ${row.cells[0].textContent}`;
    }
  }
  function tell(places, sheet) {
    for (const one of places) one.textContent = one.dataset.word.split(" ").map(key => word(key, sheet)).join(": ");
  }
  function speak(language) {
    speech.speak(language);
    document.documentElement.lang = language;
    tell(document.querySelectorAll("[data-word]"));
    for (const one of $("language").children) one.setAttribute("aria-pressed", String(one.lang === language));
    for (const sheet in syncs) {
      tell(parts(sheet, "[data-word]"), described[sheet]);
      label(sheet);
    }
  }
  function show(name) {
    open = name;
    for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== name;
    for (const one of $("sheets").children) one.toggleAttribute("aria-current", one.hash === `#${name}`);
    $("sheets").querySelector("[aria-current]").setAttribute("aria-current", "page");
    document.title = `${word(described[open].title)} \u00b7 ${word("page.title")}`;
    if (!syncs[name]) bind(name);
    update();
  }

  // Files: settings read and saved, and every cell and total with all digits, for any spreadsheet.
  async function read(box, sheet) {
    const file = box.files[0];
    if (!file) return;
    try {
      const values = sheets[sheet.name].read(new Uint8Array(await file.arrayBuffer()), sheet.data);
      const beyond = Object.keys(values).find(key => !store.fits(store.inputs[key], values[key]));
      if (beyond) throw new Error(`${beyond} ${rule(store.inputs[beyond])}`); // a release takes it, this page does not
      store.take({...store.ofSheet(sheet.name, store.published), ...values}, store.state);
      changed();
      said("status", word("page.imported", {name: file.name}));
    } catch (error) {
      said("problem", `${file.name}: ${error.message}`);
    }
    box.value = "";
  }
  function save(name, type, content) {
    const address = URL.createObjectURL(new Blob([content], {type}));
    element("a", {href: address, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    said("status", word("page.saved", {name}));
  }
  function exported(sheet) {
    try {
      save(sheet.file, "application/json", sheets[sheet.name].write(store.ofSheet(sheet.name, store.state), sheet.data));
      said("problem", "");
    } catch (error) {
      said("problem", error.message);
    }
  }
  function csv(sheet) {
    const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const values = store.ofSheet(sheet.name, store.state), lines = [["system", "query", "level", "quantity", "value"]];
    for (const [key, value] of Object.entries(results)) if (value !== null) values[key] = value;
    for (const [key, value] of Object.entries(values)) if (value !== null) lines.push([...key.split("/"), String(value)]);
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
    const {name, values, broken} = store.parsed(fragment), left = store.take(values).length + broken;
    show(Object.hasOwn(described, name) ? name : open);
    if (left) said("problem", word("page.left", {number: left}));
  }

  $("undo").onclick = undo;
  $("reset").onclick = () => { store.take(store.ofSheet(open, store.published), store.state); changed(); };
  $("link").onclick = copy;
  for (const one of $("language").children) one.onclick = () => { speak(one.lang); show(open); };
  for (const one of $("sheets").children) one.onclick = event => { event.preventDefault(); turn(one.hash.slice(1)); };
  document.addEventListener("keydown", event => {
    if (event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !/^(text|file)$/.test(event.target.type ?? "")) {
      event.preventDefault();
      undo();
    }
  });
  document.addEventListener("focusin", ({target}) => { // nothing that has the focus lies below the totals
    const bar = $("bar").getBoundingClientRect(), box = target.getBoundingClientRect();
    if (!target.closest("#bar") && box.bottom > bar.top && box.top < bar.bottom) target.scrollIntoView({block: "center"});
  });
  addEventListener("hashchange", () => { if (location.hash !== store.address(open)) arrive(location.hash); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; update(); } });
  if (speech.language !== document.documentElement.lang) speak(speech.language);
  store.take(book.start, store.state);
  document.documentElement.classList.add("ready"); // what is drawn must have its size
  if (location.hash.length > 1) arrive(location.hash);
  else show(open);
  store.forget();
  $("undo").disabled = true;
  return {turn, take: (values, from) => { const left = store.take(values, from); update(); return left; }, get open() { return open; }};
})();
