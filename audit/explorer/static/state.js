// The state of the page: one plain object of inputs, how they are checked, undone, and written into the address.
const sheets = {}; // each sheet's script sets its own: {compute(state, data), read(bytes, data), write(state, data)}

const book = JSON.parse(document.getElementById("book").textContent);

const store = (() => {
  const inputs = {}, defaults = {}, clearedBy = {}, presets = {};
  for (const sheet of book.sheets) {
    for (const input of sheet.inputs) {
      inputs[input.key] = input;
      defaults[input.key] = input.value;
      for (const key of input.clears ?? []) (clearedBy[key] ??= []).push(input.key);
    }
    presets[`${sheet.name}/all/all/preset`] = sheet.presets;
  }
  let state = {...defaults};
  const past = [];

  // The published state that a state started from.
  function base(of) {
    const chosen = Object.entries(presets).filter(([key]) => Object.hasOwn(inputs, key));
    return Object.assign({...defaults}, ...chosen.map(([key, known]) => known[of[key]]));
  }
  let published = base(state);

  function fits(input, value) {
    if (value === null) return input.optional === true;
    if (input.kind === "flag") return typeof value === "boolean";
    if (input.kind === "choice") return input.choices.includes(value);
    if (input.kind === "codes") {
      const codes = typeof value === "string" ? value.split(" ") : [];
      return codes.length > 0 && codes.every((code, place) => input.choices.includes(code) && codes.indexOf(code) === place);
    }
    return typeof value === "number" && value >= (input.least ?? -Infinity) && value <= (input.most ?? Infinity)
      && (input.kind !== "integer" || Number.isInteger(value));
  }

  function change(next) {
    if (Object.keys(next).every(key => Object.is(next[key], state[key]))) return false;
    past.push(state);
    turnTo(next);
    return true;
  }
  function turnTo(next) {
    state = next;
    published = base(state);
  }

  // Set one input. What says the same in another way becomes empty; what had been computed of it is kept.
  function set(key, value, results) {
    const next = {...state, [key]: value};
    for (const other of inputs[key].clears ?? []) {
      for (const twin of clearedBy[other]) {
        if (twin !== key && state[other] !== null && fits(inputs[twin], results[twin])) next[twin] = results[twin];
      }
      next[other] = null;
    }
    return change(next);
  }

  // Take over several values at once; what does not fit is left out, and returned. Without a state to change, what is
  // not given is as published, in the preset that is.
  function take(values, from) {
    const fitting = Object.entries(values).filter(([key, value]) => Object.hasOwn(inputs, key) && fits(inputs[key], value));
    const taken = Object.fromEntries(fitting);
    change({...from ?? base({...defaults, ...taken}), ...taken});
    return Object.keys(values).filter(key => !Object.hasOwn(taken, key));
  }

  const ofSheet = (name, values) => Object.fromEntries(Object.entries(values).filter(([key]) => key.startsWith(name + "/")));

  // The address: the sheet, and each input that is not as published, or says which preset that is.
  function address(name) {
    const changed = Object.keys(state).filter(key => !Object.is(state[key], (Object.hasOwn(presets, key) ? defaults : published)[key]));
    const parts = changed.map(key => `&${encodeURI(key)}=${encodeURIComponent(JSON.stringify(state[key]))}`);
    return `#${name}${parts.join("")}`;
  }
  function parsed(fragment) {
    const [name, ...parts] = fragment.replace(/^#/, "").split("&"), values = Object.create(null);
    let broken = 0;
    for (const part of parts) {
      try {
        const cut = part.indexOf("=");
        values[decodeURIComponent(part.slice(0, cut))] = JSON.parse(decodeURIComponent(part.slice(cut + 1)));
      } catch {
        broken++;
      }
    }
    return {name, values, broken};
  }

  return {
    inputs, fits, set, take, ofSheet, address, parsed,
    get state() { return state; },
    get published() { return published; },
    get undoable() { return past.length > 0; },
    undo() { if (past.length) turnTo(past.pop()); },
    forget() { past.length = 0; },
  };
})();

// Words and numbers in the reader's language.
const speech = (() => {
  const languages = Object.keys(book.words);
  const own = (navigator.languages ?? [navigator.language]).map(tag => tag.split("-")[0]).find(tag => languages.includes(tag));
  let language = own ?? languages[0], locale = navigator.language;
  const made = {};
  const format = (value, options) => (made[locale + JSON.stringify(options)] ??= new Intl.NumberFormat(locale, options)).format(value);
  const plain = new Intl.NumberFormat("en", {useGrouping: false, maximumSignificantDigits: 17});
  let marks = {};
  function findMarks() {
    const parts = new Intl.NumberFormat(locale).formatToParts(1234567.5);
    marks = Object.fromEntries(["decimal", "group"].map(kind => [kind, parts.find(part => part.type === kind)?.value ?? ""]));
  }
  findMarks();

  const word = (key, values = {}) =>
    (book.words[language][key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

  function number(value, shown) {
    const size = Math.abs(value), fixed = digits => ({minimumFractionDigits: digits, maximumFractionDigits: digits});
    const significant = digits => ({minimumSignificantDigits: digits, maximumSignificantDigits: digits});
    if (value === null || value === undefined) return "";
    if (shown === "text") return word(value);
    if (shown === "whole" && size < 1e15) return format(value, fixed(0));
    if (shown === "share") return format(value, {style: "percent", ...size < 0.01 ? significant(2) : fixed(2)});
    if (size !== 0 && (size < 1e-6 || size >= 1e9)) return format(value, {notation: "scientific", maximumSignificantDigits: 4});
    if (shown === "budget" && size < 1000) return format(value, {maximumFractionDigits: 6});
    return format(value, size >= 1000 ? fixed(0) : shown === "epsilon" ? fixed(3) : significant(4));
  }

  // A number as a box holds it: without groups, and exact unless it was computed.
  function boxed(value, computed) {
    if (value === null || value === undefined) return "";
    const kept = computed ? Number(value.toPrecision(6)) : value, size = Math.abs(kept);
    const text = size !== 0 && (size < 1e-6 || size >= 1e15) ? String(kept) : plain.format(kept);
    return (Number(text) === kept ? text : String(kept)).replace(".", marks.decimal);
  }
  function read(text) {
    const {decimal, group} = marks;
    let bare = text.replace(/[\s\u00a0\u202f'\u2019]/g, "");
    const grouped = group.trim() && bare.includes(group);
    if (grouped && new RegExp(`^[+-]?[1-9]\\d{0,2}(\\${group}\\d{3})+(\\${decimal}\\d*)?$`).test(bare))
      bare = bare.replaceAll(group, "");
    bare = bare.replace(decimal, ".").replace("\u2212", "-");
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(bare) ? Number(bare) : NaN;
  }

  return {
    word, number, boxed, read,
    get language() { return language; },
    speak(chosen) {
      language = chosen;
      locale = navigator.language.split("-")[0] === chosen ? navigator.language : chosen;
      findMarks();
    },
  };
})();
