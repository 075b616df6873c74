"""Figures can be read at the width of a page: letters are large enough, and nothing covers or cuts anything else."""

from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from audit.results.plots import PAGE, house_style, new_figure
from experiments.__main__ import FIGURES
from experiments.drawing import bar, head, line_key
from experiments.experiment import NAMES, find, load_numbers

SMALLEST = 7.0  # points, at the width of a page


def faults(figure, monkeypatch):
    """Return what a reader would stumble over."""
    drawn = []
    plain = Text.draw

    def noted(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn.append(text)
        plain(text, renderer)

    with monkeypatch.context() as patch:
        patch.setattr(Text, "draw", noted)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    found = [] if figure.get_figwidth() <= PAGE else [f"{figure.get_figwidth():.1f} inches wide"]
    found += [f"small: {text.get_text()}" for text in drawn if text.get_fontsize() < SMALLEST]
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in dict.fromkeys(drawn)]
    found += [f"overlap: {a} | {b}" for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
    page = figure.bbox
    found += [f"cut: {words}" for words, box in boxes if not (page.x0 <= box.x0 <= box.x1 <= page.x1)]
    found += [f"cut: {words}" for words, box in boxes if not (page.y0 <= box.y0 <= box.y1 <= page.y1)]
    panels = [ax.get_window_extent().padded(-1) for ax in figure.axes]
    legends = [legend.get_window_extent() for legend in figure.findobj(Legend)]
    found += ["a legend over a panel" for box in legends for panel in panels if box.overlaps(panel)]
    for ax in figure.axes:
        end = max(ax.get_xlim())
        cut = [
            patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_x() + patch.get_width() > end
        ]
        found += [f"a bar of {patch.get_width():.3g} is cut at {end:.3g}" for patch in cut]
    return found


@pytest.mark.slow  # half a minute for all
@pytest.mark.parametrize("name", NAMES)
def test_a_figure_can_be_read(name, monkeypatch):
    with house_style():
        for _, figure in find(name).figures(load_numbers(name, FIGURES)):
            assert faults(figure, monkeypatch) == []


def test_a_figure_that_cannot_be_read_is_told(monkeypatch):
    with house_style():
        figure, (ax,) = new_figure(PAGE + 1, 3)
        bar(ax, 0, 2)
        ax.set_xlim(0, 1)
        ax.legend(handles=[line_key("line")])
        ax.text(0.5, 0.2, "small", fontsize=6)
        ax.text(0.5, 0.2, "above")
        ax.text(1.3, 0.2, "outside", in_layout=False)
        assert [fault.partition(":")[0] for fault in faults(figure, monkeypatch)] == [
            *("8.3 inches wide", "small", "overlap", "cut", "a legend over a panel", "a bar of 2 is cut at 1")
        ]


def test_a_bar_longer_than_its_axis_has_a_break_mark(monkeypatch):
    with house_style():
        figure, (ax,) = new_figure(PAGE, 3)
        bar(ax, 0, 0.5, end=1)
        assert [to_hex(line.get_markerfacecolor()) for line in ax.lines] == []
        bar(ax, 1, 2, end=1)
        assert [to_hex(line.get_markerfacecolor()) for line in ax.lines] == ["#ffffff"]
        ax.set_xlim(0, 1)
        head(ax, "bars", [line_key("line")])
        assert faults(figure, monkeypatch) == []
