"""The way to the terminal: what others wrote arrives without control characters, what we wrote with its colors."""

import io
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest
from rich.table import Table
from rich.text import Text

from audit.io.terminal import console, guarded

ATTACK = "\x1b[31mred\x1b]8;;http://x\x07\x9b2J\u202e[bold]:smile:[/bold]"
SAFE = " [31mred ]8;;http://x  2J [bold]:smile:[/bold]"


@contextmanager
def on_screen(monkeypatch, width=200):
    """Show what a test prints on a terminal: within the test, since pytest sets the streams when it begins."""
    for name, value in {"TERM": "xterm-256color", "COLUMNS": str(width), "NO_COLOR": None, "FORCE_COLOR": None}.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    found = io.StringIO()
    found.isatty = lambda: True  # a terminal, as far as a program can tell
    with redirect_stdout(found), redirect_stderr(found):
        yield found


@pytest.mark.reliability(row=9)
def test_what_is_printed_is_text_on_both_streams_and_only_while_it_lasts(monkeypatch):
    with on_screen(monkeypatch) as screen:
        with guarded():
            print(ATTACK)
            print(ATTACK, file=sys.stderr)
            sys.stdout.writelines([ATTACK, "\n"])
            assert sys.stdout.isatty()
        assert screen.getvalue() == f"{SAFE}\n" * 3
        assert sys.stdout is sys.stderr is screen
        with pytest.raises(KeyboardInterrupt), guarded():
            raise KeyboardInterrupt
        print(ATTACK)
    assert screen.getvalue().endswith(f"{ATTACK}\n")  # negative control


@pytest.mark.reliability(row=9)
@pytest.mark.parametrize("words", [ATTACK, Text(ATTACK)])
def test_a_console_shows_its_own_colors_and_no_other_command(monkeypatch, words):
    table = Table(title=words, width=80)
    table.add_column(words)
    table.add_row(words, style="bold red")
    with on_screen(monkeypatch) as screen, guarded():
        console().print(table)
        console(stderr=True).print(words, style="bold")
    written = screen.getvalue()
    assert "\x1b[1;31m" in written  # ours
    assert "\x1b[1m" in written
    for command in ("\x1b[31m", "\x1b]8", "\x07", "\x9b", "\u202e"):
        assert command not in written
    assert written.count("[31mred ]8;;http://x 2J [bold]:smile:[/bold]") == 4


def test_a_status_comes_and_goes(monkeypatch):
    with on_screen(monkeypatch) as screen, guarded(), console(stderr=True).status(Text("counting")):
        print("kept")
    assert "kept\n" in screen.getvalue().replace("\r", "")
    assert "\x1b[?25h" in screen.getvalue()  # the cursor is shown again: our own commands arrive


def test_off_a_terminal_lines_are_wide_and_plain():
    with redirect_stdout(io.StringIO()) as found:
        console().print("x" * 140, style="bold")
    assert found.getvalue() == "x" * 140 + "\n"


def test_what_an_encoding_lacks_is_escaped():
    written = io.BytesIO()
    screen = io.TextIOWrapper(written, encoding="ascii")
    with redirect_stdout(screen), guarded():
        print("Té\ud800", flush=True)
    assert written.getvalue() == b"T\\xe9 \n"
