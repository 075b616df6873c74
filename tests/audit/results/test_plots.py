"""Figures hold the saved numbers, leave the user's settings alone, and are written whole or not at all."""

import math
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib import cbook
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from audit.claims import ZCDP, GaussianDP, PureDP
from audit.results import plots
from audit.results.plots import house_style, new_figure, plot_audits, plot_estimate, plot_plan, save_figure
from tests.audit.report.hostile import by_kind
from tests.helpers import audited, estimated

WITNESS = {"order": "x only", "probability": 0.25}
THREE = [
    audited(),
    audited(mechanism="GDPC", measured=PureDP(2.5), verdict="violated", claim=PureDP(0.5), detectable=math.inf),
    audited(mechanism="RDPC", measured=PureDP(0.0), verdict="no power", detectable=2.75),
]


def shown(*results, ax=None):
    return plot_audits([result.summary() for result in results], ax, scale=results[0].claim.scale)


def bars(ax):
    return [(bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in ax.patches]


def promises(ax):
    black = [line for line in ax.lines if to_hex(line.get_color()).upper() == plots.BLACK]
    return [line.get_xdata()[0] for line in black if len(line.get_xdata())]


def markers(ax):
    """Where the minimum detectable losses stand: position, and row."""
    found = [line for line in ax.lines if line.get_marker() == "v" and len(line.get_xdata())]
    return [(float(line.get_xdata()[0]), round(float(line.get_ydata()[0]) - 0.33)) for line in found]


def drawn(ax):
    """Lay out and draw for real: a warning is an error here."""
    ax.figure.draw_without_rendering()
    return ax


def test_bars_and_lines_are_the_numbers():
    ax = drawn(shown(*THREE))
    assert bars(ax) == [(0, 0.875), (1, 2.5), (2, 0)]
    assert promises(ax) == [1.0, 0.5, 1.0]
    assert [to_hex(bar.get_facecolor()).upper() for bar in ax.patches] == [plots.BLUE, plots.RED, plots.GRAY]
    assert markers(ax) == [(1.25, 0)]  # 2.75 is beyond the scale, which ends at 1.12 * 2.5, infinity all the more
    words = ["0.8750: not refuted", "2.500: violated", "0: no power", "detectable: 2.8 x the promise"]
    assert [text.get_text() for text in ax.texts] == words
    assert [line.get_ydata()[0] for line in ax.lines if line.get_marker() == ">"] == [2.38]  # an arrow beside them
    assert [label.get_text() for label in ax.get_yticklabels()] == ["count", "GDPC", "RDPC"]
    assert ax.get_xlim() == (0, pytest.approx(2.8))
    bottom, top = ax.get_ylim()
    assert bottom > 2 > 0 > top  # the first on top, all inside
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["promised", "minimum detectable loss"]
    assert "epsilon in nats" in ax.get_xlabel()
    ax = shown(audited(confidence=0.999), audited(), audited(confidence=0.95))
    assert "lower bounds at 95%, 99.9%" in ax.get_xlabel()  # all of several confidences are said


@pytest.mark.parametrize(
    ("changes", "end", "width", "labels"),
    [
        ({"measured": PureDP(math.inf), "verdict": "violated"}, 1.12, 1.12, "inf: violated"),  # from edge to edge
        ({"claim": PureDP(math.inf)}, 0.98, 0.875, "0.8750: not refuted"),
        ({"claim": PureDP(0.0), "measured": PureDP(0.0), "verdict": "no power"}, 1.12, 0.0, "0: no power"),
        ({"support": WITNESS, "verdict": "violated"}, 1.12, 0.875, "0.8750: violated (unbounded)"),
    ],
)
def test_infinite_and_empty_scales_are_drawn(changes, end, width, labels):
    ax = drawn(shown(audited(**changes)))
    assert ax.get_xlim() == (0, pytest.approx(end))
    assert bars(ax)[0][1] == pytest.approx(width)
    assert ax.texts[0].get_text() == labels


def test_promises_of_several_kinds_are_drawn_in_units_of_each():
    mixed = [
        audited(claim=PureDP(2), measured=PureDP(1), detectable=3.0),
        audited(claim=ZCDP(0.5), measured=ZCDP(0.75), detectable=0.6, verdict="violated"),
        audited(claim=GaussianDP(4), measured=GaussianDP(math.inf), detectable=5, verdict="violated", support=WITNESS),
    ]
    ax = drawn(shown(*mixed))
    assert bars(ax) == [(0, 0.5), (1, 1.5), (2, pytest.approx(1.12 * 1.5))]
    assert promises(ax) == [1, 1, 1]
    assert markers(ax) == [(1.5, 0), (1.2, 1), (1.25, 2)]
    # None where no minimum detectable loss is announced: a bound of 1 is far below 2 there.
    assert markers(drawn(shown(audited(claim=PureDP(2), measured=PureDP(1), detectable=2.1)))) == []
    labels = [text.get_text() for text in ax.texts]
    assert labels == ["epsilon 1.000: not refuted", "rho 0.7500: violated", "mu inf: violated (unbounded)"]
    assert "in units of each promise (bars" in ax.get_xlabel()
    assert "nats" not in ax.get_xlabel()


def test_promises_that_are_no_unit_are_drawn_beside_others():
    for budget, verdict in ((0.0, "violated"), (math.inf, "not refuted")):
        empty = audited(claim=ZCDP(budget), measured=ZCDP(0.5), verdict=verdict)
        assert bars(drawn(shown(empty, audited(claim=PureDP(2), measured=PureDP(1))))) == [(0, 0.5), (1, 0.5)]


HOSTILE = ["cost of $\\x$", "$a_1$", "$", "a\x1b[31m\x00b", "half \ud83d a pair", "\u202eturned\ufffe", "\\frac{", "\n"]


@pytest.mark.reliability(row=9)
@pytest.mark.parametrize(
    ("ending", "usetex"), [(".svg", True), (".png", False), pytest.param(".pdf", False, marks=pytest.mark.slow)]
)
def test_a_name_is_drawn_as_it_is_whatever_it_holds(tmp_path, ending, usetex, record_property):
    record_property("tried", len(by_kind(HOSTILE)))
    with matplotlib.rc_context({"text.usetex": usetex}), house_style():
        figure, axes = new_figure(9, 9, rows=3)
        plot_audits([audited().summary(name) for name in HOSTILE], axes[0])
        for name in HOSTILE:
            plot_estimate(estimated(), axes[1], label=f"x{name}")
            axes[1].set_title(plots.label_of(name))
        plot_plan([(f"x{name}", [1.5, 2.0], [100, 10]) for name in HOSTILE], axes[2])
        axes[1].legend()
    save_figure(figure, tmp_path / f"a{ending}")
    shown = [text.get_text() for ax in axes[1:] for text in ax.get_legend().get_texts()]
    shown += [label.get_text() for label in axes[0].get_yticklabels()]
    assert len(shown) == 3 * len(HOSTILE)
    assert all(cbook.is_math_text(words) is False and words.isprintable() for words in shown)
    if ending == ".svg":
        ElementTree.parse(tmp_path / "a.svg")


def test_the_axis_given_is_the_axis_drawn_on():
    _, axes = new_figure(6, 4, rows=2, columns=2)
    assert shown(*THREE, ax=axes[1]) is axes[1]
    assert audited().plot(axes[2]) is axes[2]
    assert plot_estimate(estimated(), axes[3]) is axes[3]
    assert [len(ax.patches) for ax in axes] == [0, 3, 1, 0]
    with pytest.raises(ValueError, match="audits must be one or more, got none"):
        plot_audits([])
    with pytest.raises(ValueError, match="curves must hold at least one, got none"):
        plot_plan([])
    with pytest.raises(ValueError, match="a violation must be more than 1, got 1"):
        plot_plan([("a", [1.0, 2.0], [100, 10])])


def test_a_curve_and_its_interval_are_the_numbers():
    estimate = estimated(loss=np.array([0.5, -3, 1]), low=np.array([0.0, -4, 0.5]), high=np.array([1.0, -2, 1.5]))
    ax = drawn(plot_estimate(estimate, color=plots.ORANGE, label="lower level"))
    (line,) = ax.lines
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([0, 1, 2], [0.5, -3, 1])
    assert (to_hex(line.get_color()).upper(), line.get_label(), line.get_marker()) == (plots.ORANGE, "lower level", "o")
    (band,) = (part for part in ax.collections if isinstance(part, PolyCollection))
    corners = {tuple(corner) for path in band.get_paths() for corner in path.vertices}
    assert corners >= {(0, 0), (1, -4), (2, 0.5), (0, 1), (1, -2), (2, 1.5)}
    assert "people" in ax.get_xlabel()
    assert "nats" in ax.get_ylabel()


def test_the_user_s_settings_are_left_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    with house_style():
        assert all(matplotlib.rcParams[name] == value for name, value in plots.STYLE.items())
        save_figure(shown(*THREE).figure, tmp_path / "a.svg")
    plot_estimate(estimated())
    with pytest.raises(ZeroDivisionError), house_style():
        raise ZeroDivisionError
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.size": 13.0, "svg.hashsalt": "mine"}):
        save_figure(Figure(), tmp_path / "c.svg")
        assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["svg.hashsalt"]) == (13, "mine")


@pytest.mark.slow  # a process that loads it all
def test_figures_are_made_without_pyplot():
    code = """
import sys
from tests.helpers import audited, estimated
figures = audited().plot().figure, estimated().plot().figure
print([name for name in sys.modules if name in ("matplotlib.pyplot", "tkinter", "pylab")])
"""
    root = Path(__file__).resolve().parents[3]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert (found.stdout.strip(), found.stderr) == ("[]", "")


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_the_same_numbers_give_the_same_bytes(tmp_path, monkeypatch, ending):
    def saved(name, results, moment):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)  # the clock that matplotlib looks at, if it looks
        save_figure(shown(*results).figure, tmp_path / f"{name}{ending}")
        return (tmp_path / f"{name}{ending}").read_bytes()

    first = saved("first", THREE[:1], "1000000000")
    with matplotlib.rc_context({"svg.hashsalt": None, "svg.fonttype": "none"}):
        assert saved("second", THREE[:1], "1700000000") == first
    assert saved("other", [audited(measured=PureDP(0.25))], "1000000000") != first  # negative control
    assert b"2001-09-09" not in first
    assert first.startswith({".png": b"\x89PNG", ".pdf": b"%PDF"}.get(ending, b"<?xml"))


def test_folders_are_made_and_a_figure_replaces_our_figures_alone(tmp_path):
    for name, start in (("figure.SVG", b"<?xml"), ("figure.png", b"\x89PNG"), ("figure.pdf", b"%PDF")):
        path = tmp_path / "a" / "b" / name
        for _ in range(2):
            save_figure(Figure(), path)
            assert path.read_bytes().startswith(start)
        Figure().savefig(path)
        with pytest.raises(FileExistsError, match="is there, and is not a figure of plaudit"):
            save_figure(Figure(), path)


@pytest.mark.parametrize("name", ["figure", "figure.docx", ".svg"])
def test_a_format_that_cannot_be_written_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"Format '.*' is not supported"):
        save_figure(Figure(), tmp_path / name)
    assert os.listdir(tmp_path) == []
