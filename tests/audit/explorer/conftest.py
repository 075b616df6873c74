"""The page of the explorer in a browser."""

import pytest

from algorithms.systems import sheets
from audit.explorer.page import build_page
from tests.audit.browsing import watched


@pytest.fixture
def open_page(browser, tmp_path):
    """Open the page at a sheet; `seen` collects requests, windows, errors and dialogs."""
    path = tmp_path / "explorer.html"
    path.write_text(build_page(sheets()[0], {}, sheets()), "utf-8")
    usual = {"locale": "en-US", "viewport": {"width": 1280, "height": 900}}
    with watched(browser) as opened:

        def ready(fragment="", **options):
            page, events = opened(path, fragment, **usual | options)
            if options.get("java_script_enabled", True):
                page.wait_for_function("() => document.documentElement.classList.contains('ready')")
            return page, events

        yield ready
