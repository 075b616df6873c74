"""The command as a whole: list, help and version, and one line for what it does not know."""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from audit.cli.app import EXAMPLES, FUNCTIONS
from audit.cli.app import _commands as commands
from audit.cli.exits import words_of
from audit.cli.inputs.options import TargetOptions, known_names
from audit.installed import plugin
from audit.results.files import write_json
from tests.audit.cli.desk import INTERRUPTED, USAGE, WITHIN, Command, refused, strict
from tests.helpers import audited


def test_list_tells_the_systems_apart(plaudit: Command) -> None:
    outcome, listed = plaudit("list", " "), strict(plaudit("list", "--json").out)
    assert (outcome.code, outcome.err) == (WITHIN, "")
    text, groups = " ".join(outcome.out.split()), [row["group"] for row in listed.values()]
    for name, row in listed.items():
        assert f" {name}: {row['about']} promise {row['promise']}" in text
    headings = [line for line in outcome.out.splitlines() if line[:1].strip()]
    assert [heading.lower() for heading in headings] == [*(group.lower() for group in dict.fromkeys(groups)), "pairs"]
    members = {
        "reference implementations": {"gdpc", "rdpc-all", "adpc", "topdown", "phsafe", "ons-independent", "bottom-up"},
        "benchmarks": {"SVT5", "Laplace"},
        "known bugs": {"gdpc-twice", "gdpc-half-noise", "bug-observed-domain", "bug-nist-domain"},
    }
    for group, names in members.items():
        assert names <= {name for name, row in listed.items() if row["group"].lower() == group}, group
    assert "promise epsilon 1 (add/remove); pairs any counts of people rdpc-all: " in text
    assert "; pairs joined; stages measurements, thresholded, counted" in text
    assert "promise rho 1.257 (add/remove); pairs VAL, DER, API; presets us, pr " in text
    assert "  VAL: both databases are valid" in outcome.out.splitlines()
    assert len(re.findall(r"^  shown: ", outcome.out, re.MULTILINE)) == 1
    assert listed["rdpc-all"]["about"] == listed["rdpc"]["about"].removesuffix(".") + " (output='all')."
    topdown = {"pairs": ["replaced", "added"], "presets": ["e2e-1940", "pl94-2020", "h1", "micro"]}
    topdown |= {"stages": ["measurements", "estimate", "rounded", "microdata"], "relation": "replace_one"}
    assert listed["topdown"] == listed["topdown"] | topdown


def test_a_list_of_all_has_names_only_and_a_word_chooses(plaudit: Command) -> None:
    outcome, listed = plaudit("list"), strict(plaudit("list", "--json").out)
    assert set(listed) <= set(outcome.out.replace(",", " ").split())
    assert "promise epsilon" not in outcome.out
    for word in ("RDPC", "known bug"):  # in names, descriptions and groups
        told = plaudit("list", word).out
        assert all(
            (f"\n  {name}: " in told) == (word.lower() in f"{name} {row}".lower()) for name, row in listed.items()
        )
    words = [set(re.findall(r"\w+", f"{name} {row['about']}".lower())) for name, row in listed.items()]
    assert set(strict(plaudit("list", "ons", "--json").out)) == {
        name
        for name, own in zip(listed, words, strict=True)
        if "ons" in own  # and no implementations
    }
    assert refused(plaudit("list", "gdcp"), "no name or description has the word 'gdcp': did you mean gdpc?")
    assert refused(plaudit("list", "plementation"), "has the word 'plementation': see `plaudit list`")


def test_help_has_sections_of_at_most_ten_options(plaudit: Command) -> None:
    for name in FUNCTIONS:
        text = plaudit(name, "--help").out.partition("Examples:")[0]
        sections = re.split(r"\n\n(?=[A-Z][^\n]*:\n)", text)[1:]
        options = [parameter for parameter in commands().commands[name].params if parameter.param_type_name == "option"]
        assert sum(section.count("\n  --") for section in sections) == len(options) + 1  # of help
        assert max(section.count("\n  --") for section in sections) <= 10
    assert plaudit("audit", "--help").out.index("--claim") < plaudit("audit", "--help").out.index("--attack")


def test_list_says_which_extra_a_system_needs(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("algorithms.extras.find_spec", lambda _: None)
    needed = "topdown needs the extra census: pip install 'plaudit[census]'"
    assert strict(plaudit("list", "--json").out)["topdown"]["promise"] == needed
    assert refused(plaudit("audit", "topdown"), needed)


def test_the_version_is_that_of_the_package(plaudit: Command) -> None:
    outcome = plaudit("--version")
    assert (outcome.code, outcome.out, outcome.err) == (WITHIN, f"plaudit {metadata.version('plaudit')}\n", "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_of_a_kind_are_one_parameter(name: str) -> None:
    function = FUNCTIONS[name]
    assert len(inspect.signature(getattr(function, "__wrapped__", function)).parameters) <= 12
    options = {option.name for option in commands().commands[name].params}
    if name in ("audit", "search", "replay", "estimate"):
        assert options >= {field.name for field in fields(TargetOptions)}
        assert len(options) <= 36  # with arguments


def test_no_command_is_the_help_and_not_a_pass(plaudit: Command) -> None:
    outcome = plaudit()
    assert (outcome.code, outcome.err) == (USAGE, "")
    assert outcome.out == plaudit("--help").out
    assert "Exit codes" in outcome.out
    outcome = plaudit("audit", "--help")
    assert outcome.code == WITHIN
    assert "or other databases than these (--cells" in " ".join(outcome.out.split())


def test_a_list_fits_a_narrow_terminal(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", "60"), ("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    told = plaudit("list", "bug").out + plaudit("list").out
    assert max(map(len, told.splitlines())) <= 60
    assert "\n  bug-topdown-silent-totals: " in told


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_of_the_help_are_taken_as_they_are(plaudit: Command, name: str) -> None:
    examples = [example for example in EXAMPLES if example.split()[:2] == ["plaudit", name]]
    shown = plaudit(name, "--help").out
    assert examples
    for example in examples:
        assert f"\n    {example}\n" in shown
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
        told = plaudit()
        assert (told.code, told.err) == (WITHIN, "")
        assert expected in told.out
    assert known_names("gdpc-not") == ["gdpc-notebook"]
    assert plaudit("--version").out.startswith("plaudit ")  # a command is one, whatever the environment says
    monkeypatch.setenv("_PLAUDIT_COMPLETE", "nonsense")
    assert plaudit().code == USAGE


def test_systems_that_are_not_installed(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.cache_clear()
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [])
    assert refused(plaudit("list"), "the reference implementations must be installed: run `pip install .`")


def test_a_terminal_without_accents_costs_no_verdict(plaudit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(screen, encoding="ascii"))
    audited(pair="1 person added to Tanger-T\N{LATIN SMALL LETTER E WITH ACUTE}touan").to_json("count.json")
    assert plaudit("check", "count.json") == (WITHIN, "", "")
    assert b"Tanger-T\\xe9touan" in screen.getvalue()
    assert b"not refuted" in screen.getvalue()


RELEASE = "--data d.csv --epsilon 1 --groups g.json --out out"
COLORED = "\x1b[31mRED\x9b2J\u202e"


def speaks(data: object, size: int, rng: object) -> None:
    raise ValueError(f"no {COLORED}\n{COLORED}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", COLORED), "[31mRED 2J : no such file or folder of saved audits"),
        (("audit", COLORED), "no system is called"),
        (("audit", "gdpc", "--data", f"{COLORED}.csv"), "[31mRED 2J .csv: no such file"),
        (
            ("audit", "theirs:speaks", "--data", "counts.csv", "--claim", "pure:1"),
            "theirs:speaks: no [31mRED 2J [31mRED",
        ),
        (("plan", f"pure:{COLORED}"), "\\x1b[31mRED"),
        (("verify", "named.json"), "attack must be str, got ['\\x1b[31mRED"),
        (("release", "nist", *RELEASE.split(), f"--spec={COLORED}"), "must be a .json file, got [31mRED 2J"),
    ],
)
def test_no_control_character_reaches_a_terminal(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
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
        (RuntimeError("std::bad_cast"), "plaudit: error: RuntimeError: std::bad_cast"),
        (PanicError("no thread"), "plaudit: error: PanicError: no thread"),
        (SilentError(), "plaudit: error: SilentError: (its message cannot be printed)"),
        (MemoryError(), "plaudit: error: memory ran out, and fewer jobs or runs need less: no size is known"),
        (GeneratorExit(), "plaudit: error: GeneratorExit:"),
        (SystemExit(1), "plaudit: error: SystemExit: 1"),
        (SystemExit(0), "plaudit: error: SystemExit: 0"),
        (EOFError(), "plaudit: error: EOFError:"),
    ],
)
def test_no_error_of_any_kind_is_a_verdict(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, words: str
) -> None:
    def raising(*_: object) -> None:
        raise error

    monkeypatch.setattr("audit.installed.plugin", raising)
    outcome = plaudit("list")
    assert refused(outcome, words)
    assert outcome.err == f"{words}\n"
    told = plaudit("--debug", "list")
    assert told.code == USAGE
    assert told.err.startswith("Traceback (most recent call last)")
    assert told.err.endswith(f"\n{words}\n")


def test_an_interrupt_is_one_even_behind_another_error_and_while_one_says_what_it_is(
    plaudit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
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
