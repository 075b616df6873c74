"""The command as a whole: list, help and version, and one line for what it does not know."""

import io
import os
import re
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from audit.cli.app import EXAMPLES, FUNCTIONS
from audit.cli.app import _commands as commands
from audit.cli.exits import words_of
from audit.cli.inputs.options import known_names
from audit.installed import plugin
from audit.results.files import write_json
from tests.audit.cli.desk import INTERRUPTED, USAGE, WITHIN, Command, refused, strict
from tests.helpers import audited


def test_list_tells_the_systems_apart(plaudit: Command) -> None:
    outcome, listed = plaudit("list", " "), strict(plaudit("list", "--json").out)
    assert (outcome.code, outcome.err) == (WITHIN, "")
    text, groups = " ".join(outcome.out.split()), {name: row["group"].lower() for name, row in listed.items()}
    for name, row in listed.items():
        assert f" {name}: {row['about']} Promise {row['promise']}" in text
    headings = [line.lower() for line in outcome.out.splitlines() if line[:1].strip()]
    assert [one for one in headings if one[0] != "-"] == [*dict.fromkeys(groups.values()), "pairs"]
    assert [groups[name] for name in ("SVT5", "gdpc-twice")] == ["benchmarks", "known bugs"]
    assert "; pairs joined; stages measurements, thresholded, counted" in text
    assert "Promise rho 1.257 (add/remove); pairs VAL, DER, API; presets us, pr " in text
    assert "- VAL: both databases are valid" in outcome.out.splitlines()
    assert len(re.findall(r"^- shown: ", outcome.out, re.MULTILINE)) == 1
    topdown = {"pairs": ["replaced", "added"], "presets": ["e2e-1940", "pl94-2020", "h1", "micro"]}
    assert listed["topdown"] == listed["topdown"] | topdown | {"relation": "replace_one"}


def test_a_list_of_all_has_names_only_and_a_word_chooses(plaudit: Command) -> None:
    outcome, listed = plaudit("list"), strict(plaudit("list", "--json").out)
    assert set(listed) <= set(outcome.out.replace(",", " ").split())
    assert "Promise epsilon" not in outcome.out
    for word in ("RDPC", "known bug"):  # in names, descriptions and groups
        printed = plaudit("list", word).out
        for name, row in listed.items():
            assert (f"\n- {name}: " in printed) == (word.lower() in f"{name} {row}".lower())
    of_words = {name for name, row in listed.items() if re.search(r"\bons\b", f"{name} {row['about']}".lower())}
    assert set(strict(plaudit("list", "ons", "--json").out)) == of_words  # and no implementations
    assert refused(plaudit("list", "gdcp"), "no name or description has the word 'gdcp': did you mean gdpc?")
    assert refused(plaudit("list", "plementation"), "has the word 'plementation': see `plaudit list`")


def test_list_says_which_extra_a_system_needs(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("algorithms.extras.find_spec", lambda _: None)
    needed = "topdown needs the extra census: pip install 'plaudit[census]'"
    assert strict(plaudit("list", "--json").out)["topdown"]["promise"] == needed
    assert refused(plaudit("audit", "topdown"), needed)


def test_no_command_is_the_help_and_not_a_pass(plaudit: Command) -> None:
    outcome = plaudit()
    assert (outcome.code, outcome.err) == (USAGE, "")
    assert outcome.out == plaudit("--help").out
    assert "Exit codes" in outcome.out


@pytest.mark.parametrize("name", ["", *FUNCTIONS, "release", "explore", "release topdown", "explore phsafe"])
def test_a_help_is_short_and_whole_and_its_examples_are_taken_as_they_are(plaudit: Command, monkeypatch, name: str):
    monkeypatch.setenv("COLUMNS", "80")
    brief = plaudit(*name.split(), "--help").out
    whole = plaudit(name, "--help-all").out if "--help-all" in brief else brief
    assert brief.count("\n") <= 60
    assert re.findall(r"[a-z]\.\.\.$|<\w+|^.{81,}$", f"{brief}{whole}", re.MULTILINE) == []  # cut, of Python, or wide
    options = [one for one in commands().commands[name].params if one.opts[0][0] == "-"] if name in FUNCTIONS else []
    assert {one.opts[0] for one in options} <= {*re.findall(r"^  (--[a-z-]+)", whole, re.MULTILINE)}
    examples = [example for example in EXAMPLES if example.split()[:2] == ["plaudit", name]]
    assert bool(examples) == (name in FUNCTIONS)
    for example in examples:
        assert f"\n    {example}\n" in re.sub(r" \\\n +", " ", brief)  # as a shell takes it
        with commands().commands[name].make_context(name, example.split()[2:]) as context:  # parsed, and not run
            assert not context.args


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_what_a_word_may_become(plaudit: Command, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    assert "_PLAUDIT_COMPLETE" in plaudit("--completion", shell).out
    monkeypatch.setenv("_PLAUDIT_COMPLETE", f"complete_{shell}")
    for words, expected in (("plaudit com", "compare"), ("plaudit audit --repl", "--replace-row")):
        for name, value in (("COMP_WORDS", words), ("COMP_CWORD", str(words.count(" ")))):
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", words)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        printed = plaudit()
        assert (printed.code, printed.err) == (WITHIN, "")
        assert expected in printed.out
    assert known_names("gdpc-not") == ["gdpc-notebook"]
    for words in (("--version",), ("--version", "audit")):
        assert plaudit(*words) == (WITHIN, f"plaudit {metadata.version('plaudit')}\n", "")  # whatever it says
    monkeypatch.setenv("_PLAUDIT_COMPLETE", "nonsense")
    assert plaudit().code == USAGE


def test_systems_that_are_not_installed(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.cache_clear()
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
    assert refused(plaudit("list"), "the reference implementations must be installed: run `pip install .`")


COLORED = "\x1b[31mRED\x9b2J\u202e"


def speaks(data: object, size: int, rng: object) -> None:
    raise ValueError(f"no {COLORED}\n{COLORED}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", COLORED), "[31mRED 2J : no such file or folder of saved audits"),
        (("audit", "theirs:speaks", "--data", "counts.csv", "--claim", "pure:1"), "theirs:speaks: no [31mRED 2J"),
        (("plan", f"pure:{COLORED}"), "\\x1b[31mRED"),
        (("verify", "named.json"), "attack must be str, got ['\\x1b[31mRED"),
    ],
)
def test_no_control_character_reaches_a_terminal(plaudit, monkeypatch, arguments, words):
    monkeypatch.setitem(sys.modules, "theirs", ModuleType("theirs"))
    monkeypatch.setattr(sys.modules["theirs"], "speaks", speaks, raising=False)
    write_json(Path("named.json"), audited().to_dict() | {"attack": [COLORED]})
    outcome = plaudit(*arguments)
    assert refused(outcome, words)
    assert outcome.err.removesuffix("\n").isprintable()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, plaudit: Command) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert refused(plaudit("list"), "no space left on device")


class PanicError(BaseException):
    """As foreign libraries raise it: no Exception."""


class SilentError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise PanicError


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("size must be\n1, got \x1b[31m0 \ud800"), "plaudit: error: size must be 1, got [31m0"),
        (PanicError("no thread"), "plaudit: error: PanicError: no thread"),
        (SilentError(), "plaudit: error: SilentError: (its message cannot be printed)"),
        (MemoryError(), "plaudit: error: memory ran out, and fewer jobs or runs need less: no size is known"),
        (SystemExit(0), "plaudit: error: SystemExit: 0"),
    ],
)
def test_no_error_of_any_kind_is_a_verdict(plaudit, monkeypatch, error, words):
    def raising(*_: object) -> None:
        raise error

    monkeypatch.setattr("audit.installed.plugin", raising)
    outcome = plaudit("list")
    assert refused(outcome, words)
    assert outcome.err == f"{words}\n"
    printed = plaudit("--debug", "list")
    assert (printed.code, printed.err.startswith("Traceback (most recent call last)")) == (USAGE, True)
    assert printed.err.endswith(f"\n{words}\n")


def test_an_interrupt_is_one_even_behind_another_error(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            os.close(-1)

    class SlowError(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr("audit.installed.plugin", raising)
    assert plaudit("list") == (INTERRUPTED, "", "plaudit: interrupted\n")
    with pytest.raises(KeyboardInterrupt):
        words_of(SlowError())


def test_an_error_that_cannot_be_written_is_no_verdict(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert plaudit("audti") == (USAGE, "", "")
