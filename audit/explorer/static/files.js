// Files of settings: parse JSON like Python, and format values like its error messages.
const files = (() => {
  const fail = sentence => { throw new Error(sentence); };
  const DEEPEST = 100, TOO_DEEP = `it is nested too deeply, on more than ${DEEPEST} levels`;
  const NAMED = {null: null, true: true, false: false, NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity};
  const TEXT = String.raw`"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"`;
  const NUMBER = String.raw`(-?(?:0|[1-9]\d*))((?:\.\d+)?(?:[eE][+-]?\d+)?)`;
  const NAME = Object.keys(NAMED).join("|");
  const TOKEN = new RegExp(`([ \\t\\n\\r]*)(?:([[\\]{},:])|(${TEXT})|(${NAME})|${NUMBER})?`, "y");

  // Returns numbers with a point as Number, integers as BigInt, and objects as Map.
  function parsed(bytes) {
    let text, start, mark, token, half = null, deep = false; // start of a token; its mark, or else its value
    try {
      text = new TextDecoder("utf-8", {fatal: true}).decode(bytes);
    } catch {
      fail("bytes that are not UTF-8");
    }
    const wrong = () => fail(`something else in line ${text.slice(0, start).split("\n").length}`);
    function next() {
      const [all, blank, sign, string, name, whole, rest] = TOKEN.exec(text);
      start = TOKEN.lastIndex - all.length + blank.length;
      mark = sign ?? (all === blank ? "none" : "");
      if (string) {
        token = JSON.parse(string);
        half ??= /\p{Surrogate}/u.exec(token);
      } else if (name) token = NAMED[name];
      else if (rest) token = Number(whole + rest);
      else if (whole) {
        const digits = whole.replace("-", "").length;
        if (digits > 4300) fail("Exceeds the limit (4300 digits) for integer string conversion: value has "
          + `${digits} digits; use sys.set_int_max_str_digits() to increase the limit`);
        token = BigInt(whole);
      }
    }
    const known = sign => mark === sign || wrong();
    function value(level) {
      if (mark === "") return token;
      const list = mark === "[", close = list ? "]" : "}", found = [];
      if (!list) known("{");
      if (level > 900) fail(TOO_DEEP);
      deep ||= level >= DEEPEST;
      for (next(); mark !== close; next()) {
        if (found.length) {
          known(",");
          next();
        }
        const name = token;
        if (!list) {
          if (mark || typeof name !== "string") wrong();
          next();
          known(":");
          next();
        }
        found.push(list ? value(level + 1) : [name, value(level + 1)]);
      }
      if (list) return found;
      const twice = found.find(([name], place) => found.findIndex(([other]) => other === name) < place);
      if (twice) fail(`${shown(twice[0])} stands twice`);
      return new Map(found);
    }
    TOKEN.lastIndex = 0;
    next();
    const whole = value(0);
    next();
    if (start < text.length) wrong();
    if (half) fail(`half of a surrogate pair is no text, got '\\u${half[0].charCodeAt(0).toString(16)}'`);
    if (deep) fail(TOO_DEEP);
    return whole;
  }

  // Format any value in one short line, with numbers like Python.
  function real(number) {
    if (!Number.isFinite(number)) return String(number).toLowerCase().slice(0, number < 0 ? 4 : 3);
    if (number === 0) return Object.is(number, -0) ? "-0.0" : "0.0";
    const [digits, power] = number.toExponential().split("e"), size = Number(power);
    if (size >= -4 && size < 16) return String(number) + (Number.isInteger(number) ? ".0" : "");
    return `${digits}e${size < 0 ? "-" : "+"}${String(Math.abs(size)).padStart(2, "0")}`;
  }
  function shown(value) {
    const cut = (text, most) => text.length > most ? `${text.slice(0, most)}...` : text;
    if (typeof value === "string") return `'${cut(value.replace(/[^ -~]/gu, "?"), 30)}'`;
    if (typeof value === "number") return real(value);
    if (value instanceof Map) return "an object";
    if (Array.isArray(value)) return "a list";
    return cut({null: "None", true: "True", false: "False"}[value] ?? String(value), 40);
  }

  return {fail, parsed, shown};
})();
