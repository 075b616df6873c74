// The page: builds each sheet from its description, and keeps every cell as the settings say.
const explorer = (() => {
  const {word, known, number} = speech, described = Object.fromEntries(book.sheets.map(sheet => [sheet.name, sheet]));
  const results = {}, before = {};
  let open = book.opened, syncs = [], spoken = 0, written = 0, remembered = {};
  const $ = id => document.getElementById(id);
  const help = label => known(label + ".help") ? word(label + ".help") : "";
  const said = (kind, text) => { $(kind).textContent = ""; $(kind).textContent = text; };
  const button = (label, onclick, attributes = {}) => element("button", {type: "button", onclick, ...attributes}, word(label));

  function compute() {
    for (const key in results) delete results[key];
    for (const key in before) delete before[key];
    const sheet = described[open], script = sheets[open], pinned = {};
    for (const chart of sheet.charts) for (const key of chart.inputs) pinned[key] = store.state[key];
    Object.assign(results, script.compute(store.ofSheet(open, store.state), sheet.data));
    const from = {...store.ofSheet(open, store.published), ...pinned}, name = JSON.stringify(from);
    if (name !== remembered.name) remembered = {name, results: script.compute(from, sheet.data)};
    Object.assign(before, remembered.results);
  }

  function update() {
    compute();
    for (const sync of syncs) sync();
    document.documentElement.style.setProperty("--bar", `${$("bar").offsetHeight}px`);
    $("undo").disabled = !store.undoable;
    clearTimeout(written);
    written = setTimeout(() => history.replaceState(null, "", store.address(open)), 200);
  }
  function changed() {
    update();
    said("problem", "");
    clearTimeout(spoken);
    spoken = setTimeout(() => said("status", described[open].totals.filter(total => total.main && results[total.key] !== null)
      .slice(0, 2).map(total => `${word(total.label)}: ${number(results[total.key], total.shown)}`).join("; ")), 600);
  }

  function undo() { // on the sheet where it was done
    const last = store.state;
    store.undo();
    const key = Object.keys(last).find(key => !Object.is(last[key], store.state[key]));
    if (key !== undefined && !key.startsWith(open + "/")) turn(key.split("/")[0]);
    changed();
  }

  // What an input must be, in words.
  function rule(input) {
    if (input.kind === "codes") return word("page.rule.codes");
    const [low, high] = [input.least, input.most].map(limit => speech.boxed(limit ?? null));
    return word(`page.rule.${input.kind}`, {low, high});
  }

  // A control of an input; `name` is what it is called where no label stands beside it.
  function control(key, {name = "", shown = "", id = ""} = {}) {
    const input = store.inputs[key], common = {"data-input": key, "aria-label": name || undefined, id: id || undefined};
    if (input.kind === "flag") {
      const box = element("input", {type: "checkbox", ...common, onchange: () => { store.set(key, box.checked, results); changed(); }});
      syncs.push(() => { box.checked = store.state[key]; mark(box); });
      return element("span", {class: "entry"}, box);
    }
    if (input.kind === "choice") {
      const part = name => known(`${open}.${name}`) ? word(`${open}.${name}`) : name;
      const label = choice => known(`${input.label}.${choice}`) ? word(`${input.label}.${choice}`) : choice.split("/").map(part).join(": ");
      const box = element("select", {...common, onchange: () => { store.set(key, box.value, results); changed(); }},
        ...input.choices.map(choice => element("option", {value: choice}, label(choice))));
      const was = element("small", {class: "was"});
      syncs.push(() => {
        box.value = store.state[key];
        was.textContent = mark(box) ? word("page.was", {value: label(store.published[key])}) : "";
      });
      return element("span", {class: "entry"}, box, was);
    }
    const problem = element("small", {class: "wrong", id: `wrong ${key}`.replace(/[^\w]/g, "-")}), was = element("small", {class: "was"});
    const box = element("input", {type: "text", inputmode: input.kind === "codes" ? "text" : "decimal", autocomplete: "off",
      spellcheck: "false", class: input.kind, ...common, onchange: commit});
    // A number that is not set is the computed one; so is one that another input overrules.
    const driven = () => store.state[key] === null
      || (input.clears ?? []).some(other => store.state[other] !== null && results[other] !== null && results[other] !== undefined);
    // What gives the published result is shown as it was published, rounded or not.
    const asBefore = () => store.state[key] === store.published[key] && results[key] === before[key];
    const computed = () => driven() && !(store.state[key] !== null && asBefore());
    const current = () => computed() ? results[key] ?? store.state[key] : store.state[key];
    const text = () => input.kind === "codes" ? current() : speech.boxed(current(), computed());
    function commit() {
      const typed = box.value.trim();
      if (typed === text()) return sync(true);
      const value = input.kind === "codes" ? typed.split(/[\s,;]+/).join(" ") : typed === "" && input.optional ? null : speech.read(typed);
      if (!store.fits(input, value)) {
        box.setAttribute("aria-invalid", "true");
        box.setAttribute("aria-describedby", problem.id);
        problem.textContent = rule(input);
        said("problem", `${name || word(input.label)}: ${rule(input)}`);
        return;
      }
      valid();
      store.set(key, value, results);
      changed();
    }
    function valid() {
      if (!box.hasAttribute("aria-invalid")) return;
      box.removeAttribute("aria-invalid");
      box.removeAttribute("aria-describedby");
      problem.textContent = "";
    }
    function sync(anyway) {
      if (box.hasAttribute("aria-invalid") && anyway !== true && box === document.activeElement) return;
      valid();
      if (box.value !== text()) box.value = text();
      box.classList.toggle("computed", computed());
      was.textContent = differs() ? word("page.was", {value: input.kind === "codes" ? "\u2026" : speech.boxed(published(), true)}) : "";
    }
    const published = () => store.published[key] ?? before[key] ?? null;
    function differs() {
      const differing = !Object.is(current() ?? null, published()) && !(computed() && results[key] === before[key]);
      box.classList.toggle("changed", differing);
      return differing;
    }
    syncs.push(sync);
    return element("span", {class: "entry"}, box, input.unit ? element("span", {class: "unit"}, word(input.unit)) : null, was, problem);
  }
  function mark(box) {
    const differs = !Object.is(store.state[box.dataset.input], store.published[box.dataset.input]);
    box.classList.toggle("changed", differs);
    return differs;
  }

  function field(key) {
    const id = "field-" + key.replace(/[^\w]/g, "-"), {label} = store.inputs[key];
    return element("div", {class: "field"}, element("label", {for: id}, word(label)), control(key, {id}),
      help(label) ? element("p", {class: "note"}, help(label)) : null);
  }

  // A cell of a result: the text for the reader, the number for whoever checks it.
  function cell(tag, key, shown, {was = false, ...attributes} = {}) {
    const value = element("span", {"data-cell": key, ...attributes}), old = was ? element("small", {class: "was"}) : null;
    let last, first;
    syncs.push(() => {
      if (Object.is(last, results[key]) && Object.is(first, before[key])) return;
      [last, first] = [results[key], before[key]];
      value.textContent = number(last, shown);
      value.dataset.value = last ?? "";
      if (old) old.textContent = before[key] !== results[key] && (before[key] ?? null) !== null
        ? word("page.was", {value: number(before[key], shown)}) : "";
    });
    return element(tag, {}, value, old);
  }

  function tableOf(table) {
    const columns = table.columns, heads = columns.map(column =>
      element("th", {scope: "col", class: column.entry ? "in" : "out"}, word(column.label)));
    const cells = columns.map(() => []), keys = columns.map(() => []);
    const bodies = table.groups.map(group => {
      const title = word(group.label), inputs = group.inputs.map(key => {
        const id = "field-" + key.replace(/[^\w]/g, "-");
        return element("span", {class: "inline"}, element("label", {for: id}, word(store.inputs[key].label)), control(key, {id}));
      });
      const totals = group.results.map(total => {
        const made = element("span", {class: "inline"}, element("span", {class: "soft"}, word(total.label)), cell("span", total.key, total.shown));
        syncs.push(() => { made.hidden = results[total.key] === null; });
        return made;
      });
      const heading = element("tr", {class: "group"}, element("th", {colspan: columns.length + 1, scope: "rowgroup"},
        element("div", {class: "heading"}, element("div", {}, element("h4", {}, title), element("p", {class: "note"}, help(group.label))),
          element("div", {class: "beside"}, ...inputs, ...totals))));
      const rows = group.rows.map(row => {
        const made = columns.map((column, place) => {
          const key = `${row.place}/${column.quantity}`, name = `${word(column.label)}: ${title}, ${word(row.label)}`;
          const also = columns.some(other => !other.entry && other.quantity === column.quantity);
          let td;
          if (column.entry) {
            td = element("td", {class: "in", "data-label": word(column.label)});
            if (Object.hasOwn(store.inputs, key)) {
              td.append(control(key, {name, shown: column.shown}));
              if (!also && Object.hasOwn(results, key)) td.append(cell("span", key, column.shown, {class: "printed", "aria-hidden": "true"}));
            }
          } else td = cell("td", key, column.shown);
          td.dataset.label = word(column.label);
          cells[place].push(td);
          keys[place].push(key);
          return td;
        });
        const tr = element("tr", {}, element("th", {scope: "row"}, word(row.label)), ...made);
        const own = columns.filter(column => !column.entry).map(column => `${row.place}/${column.quantity}`);
        syncs.push(() => tr.classList.toggle("off", own.length > 0 && own.every(key => (results[key] ?? null) === null)));
        return tr;
      });
      if (group.folded)
        syncs.push(() => { for (const tr of rows) tr.hidden = group.results.every(total => results[total.key] === null); });
      return element("tbody", {}, heading, ...rows);
    });
    syncs.push(() => columns.forEach((_, place) => {
      const some = keys[place].filter(key => Object.hasOwn(results, key));
      const empty = some.length > 0 && some.every(key => results[key] === null);
      for (const one of [heads[place], ...cells[place]]) one.hidden = empty;
      if (terms) terms.children[place].hidden = empty;
    }));
    const beside = table.groups.flatMap(group => [...group.inputs.map(key => store.inputs[key].label),
      ...group.results.filter(total => results[total.key] !== null).map(total => total.label)]);
    const named = [...columns.map(column => column.label), ...new Set(beside.filter(label => !columns.some(column => column.label === label)))];
    const terms = named.some(help) ? element("dl", {class: "terms"}, ...named.map(label =>
      element("div", {}, element("dt", {}, word(label)), element("dd", {}, help(label))))) : null;
    return element("section", {class: "table"}, element("h3", {}, word(table.label)), element("p", {class: "prose"}, help(table.label)),
      terms ? element("details", {open: true}, element("summary", {}, word("page.columns")), terms) : null,
      element("div", {class: "scroll"}, element("table", {class: "sheet"}, element("caption", {class: "visually-hidden"}, word(table.label)),
        element("thead", {}, element("tr", {}, element("th", {scope: "col"}, word("page.level")), ...heads)), ...bodies)));
  }

  function chartOf(chart) {
    const drawn = element(chart.kind === "bars" ? "ol" : "div", {class: chart.kind}), numbers = element("table", {class: "numbers"});
    const details = element("details", {ontoggle: () => fill()}, element("summary", {}, word("page.numbers")), element("div", {class: "scroll"}, numbers));
    const figure = element("figure", {}, element("figcaption", {}, element("h3", {}, word(chart.label)), element("p", {class: "note"}, help(chart.label))),
      ...chart.inputs.map(field), drawn, details);
    const fill = () => numbers.replaceChildren(...charts.tableOf(chart, results));
    const draw = () => {
      if (chart.kind === "bars") drawn.replaceChildren(...charts.bars(chart, results, before));
      else drawn.replaceChildren(charts.curve(chart, results, before, Math.max(280, drawn.clientWidth || 600)));
    };
    syncs.push(() => {
      draw();
      if (details.open || !numbers.rows.length) fill(); // closed, it is filled when it is opened
    });
    return figure;
  }

  function fileBox(sheet) {
    const box = element("input", {type: "file", id: "file", accept: ".json,application/json", class: "visually-hidden", onchange: async () => {
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
    }});
    return element("span", {class: "file"}, box, element("label", {for: "file", class: "button"}, word("page.import", {file: sheet.file})));
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
  // Every cell of the tables and all totals, with all digits, for any spreadsheet.
  function csv(sheet) {
    const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const lines = [["system", "query", "level", "quantity", "value"]];
    const values = {...store.ofSheet(sheet.name, store.state)};
    for (const [key, value] of Object.entries(results)) if (value !== null) values[key] = value;
    for (const [key, value] of Object.entries(values)) if (value !== null) lines.push([...key.split("/"), String(value)]);
    return lines.map(line => line.map(quoted).join(",") + "\n").join("");
  }

  function build() {
    syncs = [];
    document.documentElement.lang = speech.language;
    const sheet = described[open];
    compute();
    for (const node of document.querySelectorAll("[data-word]")) node.textContent = word(node.dataset.word);
    $("sheets").setAttribute("aria-label", word("page.sheets"));
    $("sheets").replaceChildren(...book.sheets.map(({name, title}) => element("a", {href: `#${name}`, "aria-current": name === open ? "page" : undefined,
      onclick: event => { event.preventDefault(); turn(name); }}, word(title + ".short"))));
    $("language").replaceChildren(...speech.languages.map(tag => element("button", {type: "button", lang: tag, "aria-pressed": String(tag === speech.language),
      onclick: () => { speech.speak(tag); build(); $("language").querySelector("[aria-pressed=true]").focus(); }}, book.words[tag]["page.language"])));
    $("undo").onclick = undo;
    $("reset").onclick = () => { store.take(store.ofSheet(open, store.published), store.state); changed(); };
    $("link").onclick = copy;
    $("totals").replaceChildren(...sheet.totals.filter(total => total.main).map(total => {
      const made = element("div", {}, element("dt", {}, word(total.label)), cell("dd", total.key, total.shown, {was: true, "data-cell": undefined, class: "much"}));
      syncs.push(() => { made.hidden = results[total.key] === null; });
      return made;
    }));
    const preset = `${open}/all/all/preset`, presets = Object.keys(sheet.presets).map(name => {
      const made = element("button", {type: "button", onclick: () => {
        const whole = Object.fromEntries(sheet.inputs.map(input => [input.key, input.value]));
        store.take({...whole, ...sheet.presets[name]}, store.state);
        changed();
      }}, word(`${store.inputs[preset].label}.${name}`));
      syncs.push(() => made.setAttribute("aria-pressed", String(store.state[preset] === name)));
      return made;
    });
    const script = sheets[open];
    $("main").replaceChildren(
      element("h2", {}, word(sheet.title)), element("div", {class: "about"}, ...sheet.about.map(label => element("p", {}, word(label)))),
      element("section", {class: "settings"}, element("h3", {}, word("page.settings")),
        presets.length ? element("div", {class: "row", role: "group", "aria-label": word("page.presets")}, element("span", {class: "soft"}, word("page.presets")), ...presets) : null,
        element("div", {class: "fields"}, ...sheet.settings.map(field)),
        element("div", {class: "row"}, script.read ? fileBox(sheet) : null,
          script.write ? element("button", {type: "button", onclick: () => exported(sheet)}, word("page.export", {file: sheet.file})) : null,
          button("page.csv", () => save(`${open}.csv`, "text/csv", csv(sheet))))),
      element("div", {class: "charts"}, ...sheet.charts.map(chartOf)), ...sheet.tables.map(tableOf),
      element("section", {class: "table"}, element("h3", {}, word(speech.known(sheet.title + ".totals") ? sheet.title + ".totals" : "page.totals")), element("dl", {class: "all"}, ...sheet.totals.map(total => {
        const made = element("div", {}, element("dt", {}, word(total.label)), cell("dd", total.key, total.shown, {was: true}),
          element("dd", {class: "note"}, help(total.label)));
        syncs.push(() => { made.hidden = results[total.key] === null; });
        return made;
      }))));
    document.title = `${word(sheet.title)} \u00b7 ${word("page.title")}`;
    update();
  }

  function turn(name) {
    open = name;
    build();
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
    const {name, values, broken} = store.parsed(fragment);
    if (Object.hasOwn(described, name)) open = name;
    const left = store.take(values);
    build();
    if (left.length + broken) said("problem", word("page.left", {number: left.length + broken}));
  }

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
  store.take(book.start, store.state);
  if (location.hash.length > 1) arrive(location.hash);
  else build();
  store.forget();
  $("undo").disabled = true;
  document.documentElement.classList.add("ready");
  return {turn, take: (values, from) => { const left = store.take(values, from); update(); return left; }, get open() { return open; }};
})();
