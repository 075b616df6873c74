"""Scripts of the sheets, run by node: the numbers of Python at random settings, its sentences for damaged files."""

import base64
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from algorithms.counts import explorer as counts
from algorithms.phsafe.budget import read_config
from algorithms.phsafe.explore import sheet as phsafe_sheet
from audit.explorer.page import _text
from tests.audit.explorer.settings import differing

NODE = shutil.which("node")
WORDS = json.loads((resources.files("audit.explorer") / "static" / "words.en.json").read_text("utf-8"))
RUN = """
const fs = require("fs"), {scripts, name, states, data} = JSON.parse(fs.readFileSync(0, "utf8")), sheets = {};
eval(`"use strict";${scripts.join("\\n")}`);
console.log(JSON.stringify(states.map(state => sheets[name].compute(state, data))));
"""

READ = """
const fs = require("fs"), {scripts, name, files: given, data} = JSON.parse(fs.readFileSync(0, "utf8")), sheets = {};
eval(`"use strict";${scripts.join("\\n")}`);
const sentence = file => {
    try {
        sheets[name].read(new Uint8Array(Buffer.from(file, "base64")), data);
        return "read";
    } catch (error) {
        return error.message;
    }
};
console.log(JSON.stringify(given.map(sentence)));
"""
GUESSES = """
const {state, words, values} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const document = {getElementById: () => ({textContent: JSON.stringify({sheets: [], words: {en: words}})})};
Object.defineProperty(globalThis, "navigator", {value: {languages: ["en"], language: "en"}});
console.log(eval(`"use strict";${state};JSON.stringify(values.map(value => speech.number(value, "guess")))`));
"""
PIECES = (
    '{ } [ ] , : " \\ \\ud800 - 0 .5 -1 1e5 1e308 1e-30 1e-300 true null NaN Infinity "1" "PH2" "tau" "tau":1, {} é'
)
BYTES = [*(piece.encode() for piece in PIECES.split()), b"", b"\n", b"\xff", b"\x00", b"9" * 50]

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def output_of(program, sheet, **fields):
    """What a program that has the script of a sheet prints."""
    static, own = resources.files("audit.explorer") / "static", resources.files(sheet.script[0]) / sheet.script[1]
    scripts = [Path(str(one)).read_text("utf-8") for one in (static / "laws.js", static / "files.js", own)]
    fields |= {"scripts": scripts, "name": sheet.name, "data": dict(sheet.data)}
    done = subprocess.run([NODE, "-e", program], input=json.dumps(fields), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_numbers_at_the_published_state():
    sheet = counts.sheet()
    (numbers,) = output_of(RUN, sheet, states=[sheet.published])
    assert differing(numbers, sheet.compute(sheet.published)) == []


def test_a_guess_that_may_be_wrong_is_never_shown_as_certain():
    """In the words of the terminal."""
    static, values = resources.files("audit.explorer") / "static", [0.7310586, 0.999, 0.99901, 1 - 1e-12, 1]
    fields = {"state": (static / "state.js").read_text("utf-8"), "words": WORDS, "values": values}
    done = subprocess.run([NODE, "-e", GUESSES], input=json.dumps(fields), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [_text(value, "guess", WORDS) for value in values]
    assert json.loads(done.stdout)[2:] == ["more than 99.9 of 100", "more than 99.9 of 100", "100.0 of 100"]


def test_the_page_reads_and_refuses_the_settings_that_a_release_does(tmp_path):
    """Each file has pieces of JSON within or instead of what stands in settings, or instead of one value."""
    content, rng = json.dumps(read_config("us").to_dict(), indent=1).encode(), np.random.default_rng(3)
    values, path = [one.span() for one in re.finditer(rb'"[^"]*"|[\d.]+', content)], tmp_path / "config.json"
    files, sentences = [content], []
    for number in range(400):
        file, place = content, rng.integers(len(content))
        start, end = (place, place + rng.choice([0, 1, 10])) if number % 2 else values[rng.integers(len(values))]
        files.append(file[:start] + BYTES[rng.integers(len(BYTES))] + file[end:])
    for file in files:
        path.write_bytes(file)
        try:
            read_config(path)
            sentences.append("read")
        except (TypeError, ValueError) as refusal:
            sentences.append(str(refusal).removeprefix(f"{path}: "))
    shown = output_of(READ, phsafe_sheet(), files=[base64.b64encode(file).decode() for file in files])
    named = [[one.partition(" must")[0].partition(" (")[0] for one in each] for each in (shown, sentences)]
    # What is wrong is the same setting; each reader has its own words.
    assert [one.removeprefix("a ") for one in named[0]] == [one.removeprefix("a ") for one in named[1]]
    kinds = ("out of reach of the noise", "a number", "twice", "unknown", "no PH")
    assert [kind for kind in kinds if not any(kind in one for one in sentences)] == []
    assert sentences.count("read") > 10
