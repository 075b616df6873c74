// Files of settings: JSON as Python reads it, and values as its sentences show them.
const files = (() => {
  class Real { constructor(value) { this.value = value; } } // a number with a point; whole ones are BigInt, objects Map
  const fail = sentence => { throw new Error(sentence); };
  const DEEPEST = 100, TOO_DEEP = `it is nested too deeply, on more than ${DEEPEST} levels`;
  const NAMED = {null: null, true: true, false: false, NaN: new Real(NaN), Infinity: new Real(Infinity), "-Infinity": new Real(-Infinity)};
  const BLANK = "[ \\t\\n\\r]*", TEXT = String.raw`("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")`;
  const TOKEN = new RegExp(`${BLANK}(?:([[\\]{},:])|${TEXT}|(${Object.keys(NAMED).join("|")})|(-?(?:0|[1-9]\\d*))(\\.\\d+)?([eE][+-]?\\d+)?)`, "y");

  function parsed(bytes) {
    let text, start = 0, mark, token; // where the token begins, what mark it is, or else its value
    try {
      text = new TextDecoder("utf-8", {fatal: true}).decode(bytes);
    } catch {
      fail("bytes that are not UTF-8");
    }
    const blanks = () => /[ \t\n\r]*/.exec(text.slice(start))[0];
    const wrong = () => fail(`something else in line ${(text.slice(0, start) + blanks()).split("\n").length}`);
    function next() {
      start = TOKEN.lastIndex;
      const found = TOKEN.exec(text);
      if (!found) return mark = "none";
      const [, sign, string, name, whole, point, power] = found;
      mark = sign ?? "";
      if (string) token = JSON.parse(string);
      else if (name) token = NAMED[name];
      else if (point || power) token = new Real(Number(whole + (point ?? "") + (power ?? "")));
      else if (whole) {
        const digits = whole.replace("-", "").length;
        if (digits > 4300) fail("Exceeds the limit (4300 digits) for integer string conversion: value has "
          + `${digits} digits; use sys.set_int_max_str_digits() to increase the limit`);
        token = BigInt(whole);
      }
    }
    const known = sign => mark === sign || wrong();
    function value(level) {
      if (level > 900) fail(TOO_DEEP);
      if (mark === "") return token;
      const list = mark === "[", close = list ? "]" : "}", pairs = [];
      if (!list) known("{");
      for (next(); mark !== close || pairs.length; next()) {
        let name = null;
        if (!list) {
          name = token;
          if (mark || typeof name !== "string") wrong();
          next();
          known(":");
          next();
        }
        pairs.push([name, value(level + 1)]);
        next();
        if (mark === close) break;
        known(",");
      }
      if (list) return pairs.map(([, one]) => one);
      const names = pairs.map(([name]) => name), twice = names.find((name, place) => names.indexOf(name) !== place);
      if (twice !== undefined) fail(`${shown(twice)} stands twice`);
      return new Map(pairs);
    }
    TOKEN.lastIndex = 0;
    next();
    const found = value(0);
    next();
    if (start + blanks().length < text.length) wrong();
    check(found, 0);
    return found;
  }
  function check(value, level) {
    if (typeof value === "string") {
      const half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.exec(value);
      if (half) fail(`half of a surrogate pair is no text, got '\\u${half[0].charCodeAt(0).toString(16)}'`);
    } else if (value instanceof Map || Array.isArray(value)) {
      if (level === DEEPEST) fail(TOO_DEEP);
      for (const part of value instanceof Map ? [...value].flat() : value) check(part, level + 1);
    }
  }

  // A number as Python writes it, and any value in one short line.
  function real(number) {
    if (!Number.isFinite(number)) return Number.isNaN(number) ? "nan" : number < 0 ? "-inf" : "inf";
    if (number === 0) return Object.is(number, -0) ? "-0.0" : "0.0";
    const [digits, power] = number.toExponential().split("e"), size = Number(power);
    if (size >= -4 && size < 16) return String(number) + (Number.isInteger(number) ? ".0" : "");
    return `${digits}e${size < 0 ? "-" : "+"}${String(Math.abs(size)).padStart(2, "0")}`;
  }
  function shown(value) {
    const cut = (text, most) => text.length > most ? `${text.slice(0, most)}...` : text;
    if (typeof value === "string") return `'${cut(value.replace(/[^ -~]/gu, "?"), 30)}'`;
    if (value instanceof Real) return real(value.value);
    if (value instanceof Map) return "an object";
    if (Array.isArray(value)) return "a list";
    return cut({null: "None", true: "True", false: "False"}[value] ?? String(value), 40);
  }

  return {Real, fail, parsed, real, shown};
})();
