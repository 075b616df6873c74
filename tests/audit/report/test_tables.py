"""The table says what the results say, as they say it, on any width of terminal."""

import io
from collections import Counter

import pytest
from rich.console import Console

from algorithms.noise import DiscreteGaussian, add_noise
from audit.claims import ApproxDP, PureDP
from audit.neighbors import NeighborPair
from audit.replay import replay
from audit.report.tables import audit_table, comparison_table, replay_table
from audit.review.compare import compare_results
from tests.helpers import audited

HEADERS = ["algorithm", "promised", "lower bound (95%)", "minimum detectable loss", "verdict"]
NEIGHBORS = "neighbors differ by one"


def named(*results):
    return [(result.mechanism, result) for result in results]


def rows(fitted):
    """The words of every row, as they were given to the renderer, and the styles of the verdicts."""
    cells = list(zip(*(column.cells for column in fitted.table.columns), strict=True))
    return [[cell.plain for cell in row] for row in cells], [str(row[-1].style) for row in cells]


def rendered(table, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table)
    return console.file.getvalue()


def letters(*texts):
    return Counter("".join("".join(texts).split()))


@pytest.mark.parametrize(
    ("changes", "row", "style"),
    [
        ({}, ["count", "epsilon 1", "0.8750", "1.250", "not refuted"], "green"),
        (
            {"measured": PureDP(1.23456), "verdict": "violated", "claim": PureDP(1 / 3)},
            ["count", "epsilon 0.3333", "1.234", "1.250", "violated"],
            "bold red",
        ),
        (
            {"claim": ApproxDP(1, 1e-6), "measured": ApproxDP(0.5, 1e-6), "detectable": 3.0, "verdict": "no power"},
            ["count", "epsilon 1\ndelta 1e-06", "0.5000", "3.000", "no power"],
            "yellow",
        ),
    ],
)
def test_every_cell(changes, row, style):
    table = audit_table(named(audited(**changes)))
    assert [column.header for column in table.table.columns] == HEADERS
    assert rows(table) == ([row], [style])


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_nothing_is_cut_off(width):
    far = {"unit": "household", "distance": 40, "adjacency": "declared", "verdict": "violated"}
    results = [
        audited(mechanism="TopDownBottomUpRaked", measured=PureDP(123.4567), **far),
        audited(support={"order": "x only", "probability": 0.25}, verdict="violated", claim=PureDP(0.01234)),
        audited(detectable=12.5, verdict="no power", relation="replace_one"),
    ]
    table = audit_table(named(*results))
    text = rendered(table, width)
    assert max(map(len, text.splitlines())) <= width
    words, _ = rows(table)
    headings = [*HEADERS[:2], NEIGHBORS, *HEADERS[2:]]  # which differ here
    headings = headings if "─" in text else [f"{one}:" for one in headings[1:]] * len(words)  # after a name
    assert letters(text) - letters("─" * 10 * width) == letters(*headings, *(cell for row in words for cell in row))
    assert [word for row in words for cell in row for word in cell.split() if word not in text] == []  # none is broken


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize("name", ["gdpc", "tests/test_privacy.py::test_counts call 2"])
def test_no_name_is_broken(name, width):
    table = audit_table([("rdpc", audited()), (name, audited())])
    text = rendered(table, width)
    assert name in text
    assert max(map(len, text.splitlines())) <= width
    changes = compare_results([(name, audited())], [(name, audited(measured=PureDP(0.75)))])
    text = rendered(comparison_table(changes), width)
    assert name in text
    assert "0.8750" in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 120])
def test_a_replay_fits_and_says_what_its_text_says(width):
    def release(data, size, rng):
        law, name = DiscreteGaussian(12.5), "household composition of all areas of the state"
        return add_noise(data, law, size, rng, query=name, sensitivity=1.0)

    result = replay(release, NeighborPair.add_people([120, 75], 0), rng=1)
    text = rendered(replay_table(result), width)
    assert max(map(len, text.splitlines())) <= width
    assert "household composition of all areas of the state" in text
    assert letters(result.queries[0].law, f"{result.queries[0].l1_change:.5g}") <= letters(text)


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/]", "[link=file:///etc/passwd]x[/link]", ":warning:", "\\[b]"])
def test_markup_is_not_interpreted(name):
    result = audited(mechanism=name, event=name)
    words, _ = rows(audit_table(named(result)))
    assert words[0][0] == name
    for width in (40, 200):
        console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
        console.print(audit_table([(name, result)]))
        text = console.file.getvalue()
        assert text.count(name) == 1
        line = next(line for line in text.splitlines() if "not refuted" in line)
        assert line.count("\x1b[") == 2  # on and off again: of the verdict
        assert "\x1b[32mnot refuted" in line


def test_several_confidences_are_said_elsewhere():
    several = audit_table(named(audited(), audited(confidence=0.9)))
    assert several.table.columns[2].header == "lower bound"


def test_a_confidential_audit_says_so():
    table = audit_table([("secret", audited(confidential=True)), ("open", audited())])
    assert [row[-1] for row in rows(table)[0]] == ["not refuted\nCONFIDENTIAL", "not refuted"]
    assert rendered(table, 80).count(" CONFIDENTIAL") == 1  # in one piece
