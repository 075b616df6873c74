"""The site: built without a warning, readable by all, complete, and asking nothing of other machines."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from audit import __all__ as public
from experiments.experiment import NAMES
from tests.benchmarks.reports import browser_path
from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("sphinx", reason="the extra docs is not installed")

WIDTHS = (360, 768, 1280)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built anew."""
    folder = tmp_path_factory.mktemp("site")
    asked = ["--quiet", "--fail-on-warning", "--keep-going", "--builder", "html", "docs", str(folder)]
    found = subprocess.run(
        [sys.executable, "-m", "sphinx", *asked], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert not re.search(
        r"\.(md|rst|py):.*(WARNING|ERROR)", found.stderr
    )  # what kernels say of themselves is no warning of a page
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> list[Path]:
    return [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if browser_path() is None:
        pytest.skip("Debian's package chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=browser_path())
        yield found
        found.close()


def test_every_finding_every_command_and_every_public_name_has_a_place(site: Path) -> None:
    assert {path.stem for path in (site / "generated" / "findings").glob("*.html")} == {"index", *NAMES}
    reference = (site / "generated" / "api" / "audit.html").read_text("utf-8")
    assert [name for name in public if f'id="audit.{name}"' not in reference] == ["replay"]  # a module, too
    assert 'id="audit.replay.replay"' in (site / "generated" / "api" / "audit.replay.html").read_text("utf-8")
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


def test_axe_finds_nothing_and_no_page_asks_for_anything(site: Path, pages: list[Path], browser) -> None:
    """On every page at three widths; a page that is wider than its window would scroll sideways."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    asked, wrong, wide = [], [], []
    for width in WIDTHS:
        shown = browser.new_page(viewport={"width": width, "height": 900})
        shown.on("request", lambda request: asked.append(request.url))
        for page in pages:
            shown.goto(page.as_uri())
            found = axe.Axe().run(shown)
            wrong += [
                f"{page.relative_to(site)} at {width}: {one['id']} {one['nodes'][0]['target']}"
                for one in found.response["violations"]
            ]
            if shown.evaluate("document.documentElement.scrollWidth") > width:
                wide.append(f"{page.relative_to(site)} at {width}")
        shown.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert wrong == []
    assert wide == []


def test_search_works_without_a_server(site: Path, browser) -> None:
    shown = browser.new_page()
    shown.goto((site / "search.html").as_uri() + "?q=raking")
    shown.wait_for_selector("#search-results li a")
    assert shown.locator("#search-results li").count() > 0
    shown.close()
