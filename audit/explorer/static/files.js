// Files of settings, read as Python reads them: the same values, and the same sentence for what is wrong.
const files = (() => {
  class Real { constructor(value) { this.value = value; } } // a number with a point; whole ones are BigInt, objects Map
  const fail = sentence => { throw new Error(sentence); };
  const DEEPEST = 100, DEEP = `it is nested too deeply, on more than ${DEEPEST} levels`;

  function decoded(bytes) {
    const given = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes, letters = [];
    for (let at = 0; at < given.length;) {
      const first = given[at], more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2
        : first >= 0xf0 && first < 0xf5 ? 3 : -1;
      let code = more > 0 ? first & (0x3f >> more) : first, end = at + 1, problem = more < 0 ? "invalid start byte" : "";
      for (; !problem && end <= at + more; end++) {
        const low = end > at + 1 ? 0x80 : {0xe0: 0xa0, 0xf0: 0x90}[first] ?? 0x80;
        const high = end > at + 1 ? 0xbf : {0xed: 0x9f, 0xf4: 0x8f}[first] ?? 0xbf;
        if (end >= given.length) problem = "unexpected end of data";
        else if (given[end] < low || given[end] > high) problem = "invalid continuation byte";
        else code = code << 6 | given[end] & 0x3f;
        if (problem) end--;
      }
      if (problem) {
        const last = Math.max(end, at + 1) - 1;
        fail(`'utf-8' codec can't decode byte${last > at ? "s" : ` 0x${first.toString(16)}`} in position `
          + `${at}${last > at ? `-${last}` : ""}: ${problem}`);
      }
      letters.push(String.fromCodePoint(code));
      at += more + 1;
    }
    return letters;
  }

  function parsed(bytes) {
    const text = decoded(bytes), ESCAPES = {b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", "/": "/"};
    let at = 0;
    function wrong(problem, place = at) {
      const lines = text.slice(0, place).join("").split("\n");
      fail(`${problem}: line ${lines.length} column ${Array.from(lines.at(-1)).length + 1} (char ${place})`);
    }
    const blank = () => { while (text[at] !== undefined && " \t\n\r".includes(text[at])) at++; };
    const next = word => text.slice(at, at + word.length).join("") === word && (at += word.length);
    function string() {
      const start = at - 1;
      for (let found = "";; at++) {
        const letter = text[at];
        if (letter === undefined) wrong("Unterminated string starting at", start);
        if (letter === '"') return at++, found;
        if (letter < " ") wrong("Invalid control character at");
        if (letter !== "\\") found += letter;
        else if (text[++at] === undefined) wrong("Unterminated string starting at", start);
        else if (text[at] === "u") {
          const code = text.slice(at + 1, at + 5).join("");
          if (!/^[\da-f]{4}$/i.test(code) || at + 5 >= text.length) wrong("Invalid \\uXXXX escape");
          found += String.fromCharCode(parseInt(code, 16));
          at += 4;
        } else found += ESCAPES[text[at]] ?? wrong("Invalid \\escape", at - 1);
      }
    }
    function number() {
      let end = at;
      while (text[end] !== undefined && "+-.0123456789eE".includes(text[end])) end++;
      const [found, point, power] = /^-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/.exec(text.slice(at, end).join("")) ?? wrong("Expecting value");
      at += found.length;
      if (point || power) return new Real(Number(found));
      const digits = found.replace("-", "").length;
      if (digits > 4300) fail("Exceeds the limit (4300 digits) for integer string conversion: value has "
        + `${digits} digits; use sys.set_int_max_str_digits() to increase the limit`);
      return BigInt(found);
    }
    function value(level) {
      if (level > 900) fail(DEEP);
      if (next('"')) return string();
      const open = text[at];
      if (open !== "{" && open !== "[") {
        for (const [word, made] of [["null", null], ["true", true], ["false", false], ["NaN", NaN], ["Infinity", Infinity], ["-Infinity", -Infinity]])
          if (next(word)) return typeof made === "number" ? new Real(made) : made;
        return number();
      }
      const close = open === "{" ? "}" : "]", pairs = [];
      at++;
      blank();
      for (let first = true; first ? !next(close) : true; first = false) {
        let name = null;
        if (close === "}") {
          if (!next('"')) wrong("Expecting property name enclosed in double quotes");
          name = string();
          blank();
          if (!next(":")) wrong("Expecting ':' delimiter");
          blank();
        }
        pairs.push([name, value(level + 1)]);
        blank();
        if (next(close)) break;
        if (!next(",")) wrong("Expecting ',' delimiter");
        blank();
      }
      if (close === "]") return pairs.map(([, one]) => one);
      const names = pairs.map(([name]) => name), twice = names.find((name, place) => names.indexOf(name) !== place);
      if (twice !== undefined) fail(`${shown(twice)} stands twice`);
      return new Map(pairs);
    }
    if (text[0] === "\ufeff") wrong("Unexpected UTF-8 BOM (decode using utf-8-sig)");
    blank();
    const found = value(0);
    blank();
    if (at < text.length) wrong("Extra data");
    check(found, 0);
    return found;
  }
  function check(value, level) {
    if (typeof value === "string") {
      const half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.exec(value);
      if (half) fail(`half of a surrogate pair is no text, got '\\u${half[0].charCodeAt(0).toString(16)}'`);
    } else if (value instanceof Map || Array.isArray(value)) {
      if (level === DEEPEST) fail(DEEP);
      for (const part of value instanceof Map ? [...value].flat() : value) check(part, level + 1);
    }
  }

  // Values as Python writes them, in one short line.
  function real(number) {
    if (!Number.isFinite(number)) return Number.isNaN(number) ? "nan" : number < 0 ? "-inf" : "inf";
    const [digits, power] = number.toExponential().split("e"), size = Number(power);
    if (number === 0) return Object.is(number, -0) ? "-0.0" : "0.0";
    if (size >= -4 && size < 16) return size < 0 ? number.toFixed(digits.replace(/[-.]/g, "").length - 1 - size)
      : String(number) + (Number.isInteger(number) ? ".0" : "");
    return `${digits}e${size < 0 ? "-" : "+"}${String(Math.abs(size)).padStart(2, "0")}`;
  }
  function quoted(text) {
    const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
    const hex = letter => {
      const code = letter.codePointAt(0), size = code < 256 ? 2 : code < 65536 ? 4 : 8;
      return `\\${{2: "x", 4: "u", 8: "U"}[size]}${code.toString(16).padStart(size, "0")}`;
    };
    return mark + Array.from(text, letter => letter === mark || letter === "\\" ? `\\${letter}`
      : {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[letter] ?? (/[\p{C}\p{Z}]/u.test(letter) && letter !== " " ? hex(letter) : letter)).join("") + mark;
  }
  function cut(text, most) { // its middle left out
    const letters = Array.from(text), left = (most - 3) >> 1;
    return `${letters.slice(0, left).join("")}...${letters.slice(3 + left - most).join("")}`;
  }
  function shown(value, level = 6) {
    const all = (parts, most) => parts.slice(0, most).concat(parts.length > most ? ["..."] : []).join(", ");
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (typeof value === "bigint") return String(value).length > 40 ? cut(String(value), 40) : String(value);
    if (value instanceof Real) return real(value.value);
    if (typeof value === "string") {
      const letters = Array.from(value), whole = quoted(letters.slice(0, 30).join(""));
      return (Array.from(whole).length <= 30 ? whole : cut(quoted(letters.slice(0, 13).concat(letters.slice(-14)).join("")), 30)).replace(/\s+/g, " ");
    }
    const [open, close] = Array.isArray(value) ? "[]" : "{}";
    if (level <= 0 && (value.length ?? value.size)) return `${open}...${close}`;
    if (Array.isArray(value)) return `[${all(value.slice(0, 7).map(part => shown(part, level - 1)), 6)}]`;
    const pairs = [...value].sort(([one], [other]) => one < other ? -1 : 1).slice(0, 5);
    return `{${all(pairs.map(([name, part]) => `${shown(name, level - 1)}: ${shown(part, level - 1)}`), 4)}}`;
  }

  return {Real, fail, parsed, real, shown};
})();
