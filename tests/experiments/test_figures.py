"""Figures can be read at the width of a page, on light and dark screens: nothing is small, covered, cut or faint."""

import re
from html import unescape
from itertools import combinations

import matplotlib.image
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from audit.results.plots import BLACK, DARK, GRAY, PAGE, house_style, new_figure, save_figure
from experiments.__main__ import FIGURES
from experiments.drawing import PHONE, bar, entitle, head, line_key
from experiments.experiment import NAMES, find, load_numbers
from tests.helpers import contrast

SMALLEST = 8.0  # points, at the width of a page
MOST_PANELS, MOST_LINES = 3, {PAGE: 2, PHONE: 4}  # of a title


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
    wide = figure.get_figwidth()
    found = [] if wide in MOST_LINES else [f"{wide:.1f} inches wide"]
    found += [f"{len(figure.axes)} panels"] if len(figure.axes) > MOST_PANELS else []
    title = figure.get_suptitle()
    found += [] if title and len(title.splitlines()) <= MOST_LINES.get(wide, 2) else [f"title: {title}"]
    found += [f"small: {text.get_text()}" for text in drawn if text.get_fontsize() < SMALLEST]
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in dict.fromkeys(drawn)]
    found += [f"overlap: {a} | {b}" for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
    page = figure.bbox
    found += [f"cut: {words}" for words, box in boxes if not (page.x0 <= box.x0 <= box.x1 <= page.x1)]
    found += [f"cut: {words}" for words, box in boxes if not (page.y0 <= box.y0 <= box.y1 <= page.y1)]
    panels = [ax.get_window_extent().padded(-1) for ax in figure.axes]
    legends = [legend.get_window_extent() for legend in figure.findobj(Legend)]
    found += ["a legend over a panel" for box in legends for panel in panels if box.overlaps(panel)]
    for patch in (patch for ax in figure.axes for patch in ax.patches if isinstance(patch, Rectangle)):
        length, end = patch.get_width(), max(patch.axes.get_xlim())
        found += [f"a bar of {length:.3g} is cut at {end:.3g}"] if patch.get_x() + length > end else []
    return found


@pytest.mark.slow  # a minute for all
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wide", MOST_LINES)
def test_a_figure_can_be_read(name, wide, monkeypatch):
    with house_style():
        assert faults(find(name).figure(load_numbers(name, FIGURES), wide), monkeypatch) == []


def smallest(svg):
    """Return the height in pixels of the smallest text of a figure that is shown 350 pixels wide."""
    wide = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    texts, exponents = (map(float, re.findall(rf" scale\(([\d.]+){end}", svg)) for end in (" -", '\\)"/>'))
    return 100 * min(texts) * min(exponents, default=1.0) * 350 / wide


def test_labels_can_be_read_on_a_phone():
    assert [path.name for path in FIGURES.glob("*.phone.svg") if smallest(path.read_text("utf-8")) < 9] == []
    assert smallest((FIGURES / "neighbor_relation.svg").read_text("utf-8")) < 6  # drawn for pages


def wordy(page):
    """Return the findings that are long, or do not begin with a short sentence, that of their figures."""
    rows = re.findall(r'<a id="(.*)"></a>\n\n### .*\n\n(.*)\n\n<picture>.* alt="(.*)"></picture>\n\n\|', page)
    short = [row for row in rows if len(row[1].split()) <= 75 and len(row[2]) <= 125]
    return set(NAMES) - {name for name, text, says in short if text.startswith(f"{says}. ")}


def test_findings_are_short_and_begin_with_what_their_figures_say():
    page = unescape((FIGURES / "README.md").read_text("utf-8"))
    assert len(page.split()) <= 9_000
    assert wordy(page) == set()
    assert wordy(page.replace("GDPC loses epsilon", "It loses epsilon", 2)) == {"neighbor_relation"}  # not the figure's


def test_a_figure_that_cannot_be_read_is_told(monkeypatch):
    with house_style():
        figure, (ax, *_) = new_figure(PAGE + 1, 8, 4, 1)
        bar(ax, 0, 2)
        ax.set_xlim(0, 1)
        ax.legend(handles=[line_key("line")])
        ax.text(0.5, 0.2, "small", fontsize=7)
        ax.text(0.5, 0.2, "above")
        ax.text(1.3, 0.2, "outside", in_layout=False)
        assert [fault.partition(":")[0] for fault in faults(figure, monkeypatch)] == [
            *("8.3 inches wide", "4 panels", "title", "small", "overlap", "cut"),
            *("a legend over a panel", "a bar of 2 is cut at 1"),
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
        entitle(figure, "A bar that is longer than its axis has a mark, and one that is not longer than it has none")
        assert faults(figure, monkeypatch) == []


def colors(svg):
    """Return the colors that a figure is drawn with, and those of its rules for dark screens."""
    rules, _, drawing = svg.partition("</style>")
    dark = re.findall(r"{(?:fill|stroke):(#[0-9a-f]{6})!important}", rules)
    return set(re.findall(r'(?:fill|stroke)(?:: |=")(#[0-9a-f]{6})', drawing)), set(dark)


def test_every_color_of_a_saved_figure_has_a_dark_one():
    figures = sorted(FIGURES.glob("*.svg"))
    assert len(figures) == 2 * len(NAMES)
    light, there = ({color.lower() for color in each} for each in (DARK, DARK.values()))
    for path in figures:
        drawn, dark = colors(path.read_text("utf-8"))
        assert ("#ffffff" in drawn <= light, dark) == (True, there), path.name


def test_a_color_without_a_dark_one_and_a_small_exponent_are_told(tmp_path):
    with house_style():
        figure, (ax,) = new_figure(PHONE, 3)
        ax.axvline(0.5, color="#dddddd")
        ax.set(xlabel="$10^{-6}$", xticks=[], yticks=[])
        save_figure(figure, tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert colors(svg)[0] - {color.lower() for color in DARK} == {"#dddddd"}
    assert 6 < smallest(svg) < 9


def test_no_color_is_faint_on_a_dark_screen():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    ground = to_rgb(DARK["#FFFFFF"])
    rows = [(contrast(to_rgb(dark), ground), contrast(to_rgb(color), (1, 1, 1)), color) for color, dark in DARK.items()]
    assert not [color for on_dark, on_white, color in rows if on_dark < min(3, on_white)]
    assert contrast(to_rgb(DARK[BLACK]), ground) > 7  # of words
    assert contrast(to_rgb(DARK[GRAY]), ground) > 4.5
    assert len(set(DARK.values())) == len(DARK)


@pytest.mark.slow
def test_an_embedded_figure_follows_the_scheme_of_its_page(tmp_path, browser):
    figure = (FIGURES / "neighbor_relation.svg").as_uri()
    inks = {"light": set(), "dark": set()}
    for system in ("light", "dark"):
        page = browser.new_page(color_scheme=system)
        for theme in ("light", "dark"):  # as the switch of the site sets it, whatever the system has
            (tmp_path / "a.html").write_text(f"<html style='color-scheme: {theme}'><img src='{figure}'></html>")
            page.goto((tmp_path / "a.html").as_uri())
            page.locator("img").screenshot(path=tmp_path / "a.png")
            ground = matplotlib.image.imread(tmp_path / "a.png")[2, 2, :3]
            inks[theme].add("#" + "".join(f"{round(255 * part):02X}" for part in ground))
    assert inks == {"light": {"#FFFFFF"}, "dark": {DARK["#FFFFFF"]}}
