"""The site: built without a warning, readable by all, complete, and asking nothing of other machines."""

import re
import subprocess
import sys
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from audit import __all__ as public
from experiments.experiment import NAMES
from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow
pytest.importorskip("sphinx", reason="the extra docs is not installed")

WIDTHS = (360, 800, 1280)
CUT = "[...document.querySelectorAll('pre, table')].some(e => e.scrollWidth > e.parentElement.clientWidth + 1)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built anew."""
    folder = tmp_path_factory.mktemp("site")
    words = ["sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html", "docs", str(folder)]
    found = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    # What kernels say of themselves is no warning of a page.
    assert not re.search(r"\.(md|rst|py):.*(WARNING|ERROR)", found.stderr)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> list[Path]:
    return [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]


def test_every_finding_every_command_and_every_public_name_has_a_place(site: Path) -> None:
    assert {path.stem for path in (site / "generated" / "findings").glob("*.html")} == {"index", *NAMES}
    pages = {path.stem for path in (site / "generated" / "api").glob("*.html")}
    assert {f"audit.{name}" for name in public} | {"audit.replay.replay"} <= pages  # replay is a module, too
    commands = {path.stem for path in (site / "generated" / "commands").glob("*.html")}
    assert {"audit", "report", "release_phsafe", "explore_topdown"} <= commands


def test_links_lead_somewhere(site: Path, pages: list[Path]) -> None:
    texts = {page: page.read_text("utf-8") for page in pages}
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    wrong = []
    for page, text in texts.items():
        for target in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            url = urlsplit(unescape(target))
            if url.scheme or url.netloc:
                continue
            there = (page.parent / unquote(url.path)).resolve() if url.path else page
            if not there.exists() or (url.fragment and there in places and unquote(url.fragment) not in places[there]):
                wrong.append(f"{page.relative_to(site)}: {target}")
    assert wrong == []


def look(urls: list[str], browser: Any, axe: Any) -> tuple[list[str], list[str], list[str]]:
    """Return what pages ask of others, what axe finds, and where they are wider than the window, at each width."""
    requests, violations, wide = [], [], []
    page = browser.new_page()
    page.set_default_timeout(0)  # a machine may have more to do
    page.on("request", lambda request: requests.append(request.url))
    for url, width in product(urls, WIDTHS):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(url)
        where, options = f"{url} at {width}", {"resultTypes": ["violations"]}
        wrong = axe.run(page, options=options).response["violations"]
        violations += [f"{where}: {one['id']} {one['nodes'][0]['target']}" for one in wrong]
        cut = width != 800 and page.evaluate(CUT)  # between a phone and a screen some tables scroll
        if cut or page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(where)
    return requests, violations, wide


@pytest.fixture
def axe() -> Any:
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()


def test_what_is_wrong_with_a_page_is_seen(tmp_path: Path, browser: Any, axe: Any) -> None:
    """Or all others would pass unseen, too."""
    page = tmp_path / "wrong.html"
    page.write_text(
        "<html lang='en'><title>t</title><main><h1 style='color: #bbb'>pale</h1>"
        "<div style='width: 1000px'>wide</div><img src='http://127.0.0.1:9/x.png' alt='x'></main>"
        "<footer style='overflow: auto; width: 9em' tabindex=0><pre>what code prints, cut</pre></footer>"
    )
    requests, violations, wide = look([page.as_uri()], browser, axe)
    assert [one for one in requests if one.startswith("http")] == ["http://127.0.0.1:9/x.png"] * len(WIDTHS)
    assert sum("color-contrast" in one for one in violations) == len(WIDTHS)
    assert len(wide) == 3


def test_axe_finds_nothing_and_no_page_asks_for_anything(pages: list[Path], browser: Any, axe: Any) -> None:
    """On every page at three widths; a page that is wider than its window would scroll sideways."""
    requests, violations, wide = look([page.as_uri() for page in pages], browser, axe)
    assert len(requests) > len(pages) * len(WIDTHS)
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert (sorted(violations), sorted(wide)) == ([], [])
