"""Good commands with other words and damaged files: an answer that the counts confirm, or a refusal in one line."""

import itertools
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from tests.helpers import SEED, in_full
from tests.hostile import oracle
from tests.hostile.damage import LETTERS, NUMBERS, PLACES, damaged
from tests.hostile.oracle import NO_POWER, VIOLATION, WITHIN
from tests.hostile.running import FOREIGN, Ended, Running, Tree, tree
from tests.workspace import AREAS, HOUSEHOLDS, HOUSEHOLDS_SET, OUTPUTS, RELEASED, RUNS

PARTS = {"AREAS": AREAS, "HOUSEHOLDS": HOUSEHOLDS, "HOUSEHOLDS_SET": HOUSEHOLDS_SET, "OUTPUTS": OUTPUTS}
PARTS |= {"RELEASED": RELEASED, "RUNS": RUNS}
COMMANDS = Path(__file__).with_name("commands.txt").read_text("utf-8").format(**PARTS).splitlines()
FILES = re.compile(r"[\w/-]+\.(?:json|csv|npy|parquet)")
WRITTEN = ("--out", "--save", "--store")  # options that name what a command may write
AUDITING = ("audit", "search", "replay", "check", "verify", "report", "compare")  # which may find a violation
USAGE, LONGEST = 2, 1000  # letters of a refusal: more is no answer to anybody
MESSAGES = re.compile(
    r"plaudit: |not released: |warning: |weights add up to |.* read (?:as|from) |(?:persons|units|geo): |"
    r"\S+: \w+, .*promised"
)  # a line of ours: a note, a finding, a record beside a table
BUDGETS = st.floats(0.02, 9).map("{:.3g}".format)
SETTINGS = {  # values that are allowed: with them a command runs, and ends with every exit code
    "--claim": st.tuples(st.sampled_from(["pure:{}", "approx:{},1e-6", "approx:{},0.2", "zcdp:{}", "gaussian:{}"]),
        BUDGETS).map(lambda two: two[0].format(two[1])),
    "--confidence": st.sampled_from(["0.5", "0.8", "0.95", "0.999", "0.999999"]),
    "--epsilon": BUDGETS,
    "--size": st.integers(200, 700).map(str),
    "--distance": st.sampled_from("123"),
    "--seed": st.integers(0, 10**6).map(str),
}  # fmt: skip
HOSTILE = st.sampled_from([*NUMBERS, *LETTERS, *PLACES])


@st.composite
def cases(draw, workspace: Path) -> tuple[list[str], dict[str, bytes]]:
    """A command with other settings, of which a word or two are changed, or a file that it reads is damaged."""
    words = shlex.split(draw(st.sampled_from(COMMANDS)))
    for at, option in enumerate(words[:-1], 1):
        if option in SETTINGS:
            words[at] = draw(SETTINGS[option])
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        at = draw(st.integers(0, len(words) - 1))
        change = draw(st.sampled_from(["other", "other", "mistyped", "missing", "twice", "more"]))
        if change == "missing" and len(words) > 1:
            del words[at]
        elif change == "twice":
            words.insert(at, words[at])
        elif change == "mistyped":
            words[at] += draw(st.sampled_from(LETTERS))
        else:
            words[at : at + (change == "other")] = [draw(HOSTILE)]
    named = [path for path in FILES.findall(" ".join(words)) if (workspace / path).is_file()]
    files = {}
    if named and draw(st.booleans()):
        path = draw(st.sampled_from(named))
        files[path] = draw(damaged((workspace / path).read_bytes(), Path(path).suffix))
    return words, files


class Case:
    """A command that ran in a folder of its own, with what it said and left."""

    def __init__(self, words: list[str], files: dict[str, bytes], workspace: Path, place: Path, command=None) -> None:
        folder = place / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(workspace, folder, symlinks=True)
        for path, content in files.items():
            (folder / path).write_bytes(content)
        self.words, self.before = words, tree(folder)
        self.allowed = {place for path in self._values() for place in _places(path, folder)}
        self.ended: Ended = Running(words, folder, **({"command": command} if command else {})).ended()
        self.after: Tree = tree(folder)

    def _values(self) -> Iterator[str]:
        """Yield what the command may write."""
        for option, value in itertools.pairwise((*self.words, "")):
            name, _, joined = option.partition("=")
            if name in WRITTEN:
                yield joined or value

    def faults(self) -> list[str]:
        """Return what is wrong, each with its kind before the colon."""
        return [*self._words(), *self._code(), *self._files()]

    def _words(self) -> Iterator[str]:
        out, err = self.ended.out, self.ended.err
        if "Traceback (most recent call last)" in out + err:
            yield f"traceback: {err[-300:]}"
        if wrong := {
            letter for letter in (out + err).replace("\r\n", "\n") if letter != "\n" and not letter.isprintable()
        }:
            yield f"control characters: {sorted(wrong)}"
        *notes, last = err.splitlines() or [""]
        if self.ended.code != USAGE:
            notes += [last] if last else []
        elif not out and not last.startswith("plaudit: error: "):
            yield f"no refusal: {last[:200]!r}"
        elif len(last) > LONGEST or FOREIGN.search(last.removeprefix("plaudit: error: ")):
            yield f"no rule named: {last[:300]!r}"
        if strange := next((line for line in notes if not MESSAGES.match(line)), None):
            yield f"strange line: {strange[:200]!r}"

    def _code(self) -> Iterator[str]:
        code = self.ended.code
        if code not in (WITHIN, VIOLATION, USAGE, NO_POWER):
            yield f"wrong code: {code}"
        elif code != USAGE and self.words[0] in ("audit", "search", "replay") and (results := self._results()):
            codes = oracle.codes(list(map(_verdicts, results)))
            if code not in codes:
                yield f"wrong code: {code}, and by counts it is {sorted(codes)}"
        elif code == VIOLATION and self.words[0] not in AUDITING:
            yield "wrong code: 1 of a command that audits nothing"

    def _results(self) -> list[oracle.Json]:
        """Return the audits or replays that a command saved, or printed as JSON."""
        new = [text for path, text in self.after.items() if path.endswith(".json") and text != self.before.get(path)]
        with suppress(ValueError, AttributeError):  # no table of results
            return list(json.loads(self.ended.out).values())
        return [one for text in new if text and (one := json.loads(text)).get("kind") in ("audit", "replay")]

    def _files(self) -> Iterator[str]:
        def requested(path: str) -> bool:
            return any(place == "." or f"{path}/".startswith(f"{place}/") for place in self.allowed)

        for path, content in self.before.items():
            if path not in self.after or (self.after[path] != content and not requested(path)):
                yield f"changed input: {path}"
        for path in self.after.keys() - self.before.keys():
            name = Path(path).name
            if name.startswith(".") or name.endswith(".part"):
                yield f"partial output: {path}"
            elif self.ended.code == USAGE and not any("--store" in word for word in self.words):
                yield f"partial output: {path} after a refusal"
            elif (
                not requested(path)
                and name != "report.html"
                and not any(f"{one}/".startswith(f"{path}/") for one in self.allowed)
            ):
                yield f"partial output: {path}, which nobody asked for"


def _verdicts(result: oracle.Json) -> set[str]:
    if result["kind"] == "replay":
        return {"violated" if result["violations"] else "not refuted" if result["evaluated"] else "no power"}
    return oracle.verdicts({"others": [], **result}) or {result["verdict"]}


def _places(path: str, folder: Path) -> Iterator[str]:
    """Yield where a path leads, and the last link itself, which a file replaces."""
    here = os.path.realpath(folder)
    above, name = os.path.split(path)
    with suppress(ValueError):  # a path that cannot be
        yield os.path.relpath(os.path.realpath(folder / path), here)
        yield os.path.relpath(os.path.join(os.path.realpath(folder / above), name), here)


@pytest.mark.reliability(row=8)
@pytest.mark.parametrize("number", in_full(4, 2000))  # 4 copies of this process, 1 s
def test_hostile_words_and_files_are_refused_or_answered(number, good_files, tmp_path, record_property):
    codes, wrong = [], {}

    @seed(SEED)
    @settings(max_examples=number, phases=[Phase.generate])
    @given(case=cases(good_files))
    def tried(case):
        done = Case(*case, good_files, tmp_path)
        codes.append(done.ended.code)
        if faults := done.faults():
            wrong[shlex.join(case[0]), str(case[1])[:300]] = faults

    tried()
    record_property("tried", len(codes))
    assert wrong == {}
    assert sum(code != USAGE for code in codes) >= len(codes) / 5


# `release topdown` is among them: its loops are compiled before the first test, by tests/conftest.py.


# The checks can fail: commands that are wrong in one way each


def refuse(words="out must be a new folder, got 'old'"):
    print(f"plaudit: error: {words}", file=sys.stderr)
    sys.exit(2)


@pytest.mark.parametrize(
    ("done", "wrong"),
    [
        ("raise KeyError('x')", ["traceback", "strange line", "wrong code"]),
        ("Path('out').mkdir(); refuse()", ["partial output"]),
        ("Path('counts.csv').write_text('1')", ["changed input"]),
        ("Path('counts.csv').unlink(); refuse()", ["changed input"]),
        ("Path('.release-x').mkdir()", ["partial output"]),
        ("sys.exit(1)", ["wrong code"]),
        ("os.kill(os.getpid(), 9)", ["wrong code"]),
        ("print('\x1b[31mred')", ["control characters"]),
        ("sys.exit(2)", ["no refusal"]),
        ("refuse(\"'NoneType' object is not iterable\")", ["no rule named"]),
        ("refuse('x' * 3000)", ["no rule named"]),
        ("print('RuntimeWarning: overflow encountered in exp', file=sys.stderr)", ["strange line"]),
        ("refuse()", []),
    ],
)
def test_a_broken_command_is_found_out(done, wrong, good_files, tmp_path):  # the first makes all good files
    case = Case(["list"], {}, good_files, tmp_path, lambda _: exec(done, globals()))
    assert [fault.partition(":")[0] for fault in case.faults()] == wrong


@pytest.mark.parametrize(
    ("words", "code", "planted"),
    [
        ("audit mine:buggy --claim pure:1 --size 400", VIOLATION, WITHIN),
        ("audit gdpc --epsilon 0.02 --size 400", NO_POWER, WITHIN),
        ("audit gdpc --size 400", WITHIN, NO_POWER),
        ("replay gdpc-half-noise --cell 0", VIOLATION, WITHIN),
    ],
)
def test_a_planted_exit_code_is_found_out_by_what_is_saved(words, code, planted, good_files, tmp_path, monkeypatch):
    """Negative control: the command itself, whose last line turns one verdict into another."""
    words, place = f"{words} --data counts.csv --seed 1 --json".split(), "replay" if "replay" in words else "run_audits"
    sound = Case(words, {}, good_files, tmp_path)
    assert (sound.ended.code, sound.faults()) == (code, []), sound.ended
    monkeypatch.setattr(f"audit.cli.{place}.exit_code", lambda _: planted)
    assert [fault.partition(":")[0] for fault in Case(words, {}, good_files, tmp_path).faults()] == ["wrong code"]
