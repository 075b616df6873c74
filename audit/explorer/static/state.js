// The state of the page: a plain object of inputs, with checks, undo, and conversion to and from the address.
const sheets = {}; // set by the script of each sheet: {compute(state, data), read(bytes, data), write(state, data)}

const book = JSON.parse(document.getElementById("book").textContent);

const store = (() => {
  const inputs = {}, defaults = {}, presets = {};
  for (const sheet of book.sheets) {
    for (const input of sheet.inputs) {
      inputs[input.key] = input;
      defaults[input.key] = input.value ?? null;
    }
    presets[`${sheet.name}/all/all/preset`] = sheet.presets;
  }
  let state = {...defaults};
  const past = [], pins = {}; // pins: sheet and name -> address of pinned settings

  // The published state from which a state started.
  const base = of => Object.assign({...defaults}, ...Object.entries(presets).map(([key, known]) => known[of[key]]));
  let published = base(state);

  function fits(input, value) {
    if (value === null) return input.optional === true;
    if (input.kind === "flag") return typeof value === "boolean";
    if (input.kind === "choice") return input.choices.includes(value);
    if (input.kind === "codes") {
      const codes = typeof value === "string" ? value.split(" ") : [""];
      return codes.every((code, place) => input.choices.includes(code) && codes.indexOf(code) === place);
    }
    if (input.kind === "numbers") {
      const numbers = typeof value === "string" ? value.split(" ") : [];
      return numbers.length > 0 && numbers.length <= 1000
        && numbers.every(one => /^[1-9]\d{0,8}$/.test(one));
    }
    const known = input.kind === "integer" ? Number.isInteger : Number.isFinite;
    return known(value) && !(value < input.least || value > input.most);
  }

  function turnTo(next) {
    state = next;
    published = base(state);
  }
  function change(next) {
    if (Object.keys(next).every(key => Object.is(next[key], state[key]))) return;
    past.push(state);
    turnTo(next);
  }

  // Set one input. Inputs that express the same become empty; inputs computed from those keep their values.
  function set(key, value, results) {
    const next = {...state, [key]: value}, others = inputs[key].clears ?? [];
    for (const twin of Object.values(inputs)) {
      const kept = twin.key !== key && others.some(other => state[other] !== null && twin.clears?.includes(other));
      if (kept && fits(twin, results[twin.key])) next[twin.key] = results[twin.key];
    }
    for (const other of others) next[other] = null;
    change(next);
  }

  // Set several values at once; return the keys of invalid values, which are not set. Without the state `from`, missing
  // values are those of the preset, else the published ones.
  function take(values, from) {
    const taken = fitting(values);
    change({...from ?? base({...defaults, ...taken}), ...taken});
    return Object.keys(values).filter(key => !Object.hasOwn(taken, key));
  }

  const some = (values, fit) => Object.fromEntries(Object.entries(values).filter(([key, value]) => fit(key, value)));
  const fitting = values => some(values, (key, value) => Object.hasOwn(inputs, key) && fits(inputs[key], value));
  const ofSheet = (name, values) => some(values, key => key.startsWith(name + "/"));

  // The address: the sheet, and each input that differs from the published one, or names the preset.
  function address(name, pinned = ofSheet(name, pins)) {
    const changed = some(state, (key, value) => !Object.is(value, (key in presets ? defaults : published)[key]));
    const part = ([key, value]) => `&${encodeURI(key)}=${encodeURIComponent(JSON.stringify(value))}`;
    return `#${name}${Object.entries({...changed, ...pinned}).map(part).join("")}`;
  }
  function parsed(fragment) { // name of the sheet, and values by key; invalid ones are undefined
    const [[name] = [], ...given] = new URLSearchParams(fragment.slice(1));
    const value = text => {
      try {
        return JSON.parse(text);
      } catch {
        return undefined;
      }
    };
    return {name, values: Object.fromEntries(given.map(([key, text]) => [key, value(text)]))};
  }

  function stateAt(fragment) {
    const taken = fitting(parsed(fragment).values);
    return {...base({...defaults, ...taken}), ...taken};
  }
  function pin(key, fragment) {
    if (/^\w+\/pin\/[AB]$/.test(key) && typeof fragment === "string") return Boolean(pins[key] = fragment);
  }

  return {
    pins, pin, stateAt, inputs, defaults, fits, set, take, ofSheet, address, parsed,
    get state() { return state; },
    get published() { return published; },
    get undoable() { return past.length > 0; },
    undo() { turnTo(past.pop() ?? state); },
    forget() { past.length = 0; },
  };
})();

// Texts and numbers in the language of the reader.
const speech = (() => {
  const languages = Object.keys(book.words), made = {};
  const own = navigator.languages.map(tag => tag.split("-")[0]).find(tag => languages.includes(tag));
  const formatter = options => made[locale + JSON.stringify(options)] ??= new Intl.NumberFormat(locale, options);
  let language, locale, marks;
  function speak(chosen, country = navigator.language.split("-")[0] === chosen ? navigator.language : chosen) {
    [language, locale] = [chosen, country];
    marks = Object.fromEntries(formatter().formatToParts(1234567.5).map(part => [part.type, part.value]));
  }
  speak(own ?? languages[0], navigator.language);

  const word = (key, values = {}) =>
    (book.words[language][key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

  function number(value, shown) {
    const size = Math.abs(value), format = options => formatter(options).format(value);
    const fixed = digits => ({minimumFractionDigits: digits, maximumFractionDigits: digits});
    const significant = digits => ({minimumSignificantDigits: digits, maximumSignificantDigits: digits});
    if (value === null || value === undefined) return "";
    if (shown === "text") return word(value);
    if (shown === "guess" && value > 0.999 && value < 1) return word("page.guess.nearly");
    if (shown === "guess") return word("page.guess", {number: formatter(fixed(1)).format(Math.ceil(1000 * value - 1e-9) / 10)});
    if (shown === "whole" && size < 1e15) return format(fixed(0));
    if (shown === "share") return format({style: "percent", ...size < 0.01 ? significant(2) : fixed(2)});
    if (size !== 0 && (size < 1e-6 || size >= 1e9))
      return format({notation: "scientific", maximumSignificantDigits: 4});
    if (shown === "budget" && size < 1000) return format({maximumFractionDigits: 6});
    return format(size >= 1000 ? fixed(0) : shown === "epsilon" ? fixed(3) : significant(4));
  }

  // Format a number for an input: without separators, and exact unless it is computed or published.
  function boxed(value, digits = 17) {
    if (value === null || value === undefined) return "";
    return String(digits < 17 ? Number(value.toPrecision(digits)) : value).replace(".", marks.decimal);
  }
  function read(text) {
    const {decimal, group = ""} = marks;
    let bare = text.replace(/[\s\u00a0\u202f'\u2019]/g, "");
    const grouped = group.trim() && bare.includes(group);
    if (grouped && new RegExp(`^[+-]?[1-9]\\d{0,2}(\\${group}\\d{3})+(\\${decimal}\\d*)?$`).test(bare))
      bare = bare.replaceAll(group, "");
    bare = bare.replace(decimal, ".").replace("\u2212", "-");
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(bare) ? Number(bare) : NaN;
  }

  const signed = (value, style) =>
    formatter({style, signDisplay: "always", maximumSignificantDigits: Math.abs(value) < 100 ? 2 : 3}).format(value);

  return {
    word, number, boxed, read, speak, signed,
    get language() { return language; },
  };
})();
