"""A browser that opens pages of the explorer, and sees whatever they do that they should not."""

from __future__ import annotations

import pytest

from algorithms.systems import sheets
from audit.explorer.page import build_page

PLACED = "() => document.documentElement.classList.contains('ready')"


@pytest.fixture(scope="session")
def all_sheets():
    return {sheet.name: sheet for sheet in known_sheets()}


def known_sheets():
    """The sheets that the page has."""
    return sheets()


@pytest.fixture
def open_page(browser, tmp_path):
    """Open the page at a sheet; `seen` collects requests, windows, errors and dialogs."""
    contexts, path = [], tmp_path / "explorer.html"
    path.write_text(build_page(known_sheets()[0], {}, known_sheets()), "utf-8")

    def opened(fragment="", **options):
        context = browser.new_context(**{"locale": "en-US", "viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        page, seen = context.new_page(), []
        page.on("dialog", lambda dialog: (seen.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda message: seen.append(f"console {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error {error}"))
        page.on("popup", lambda popup: seen.append(f"window {popup.url}"))

        def answer(route):
            if route.request.url.partition("#")[0] == path.as_uri():
                route.continue_()
            else:
                seen.append(f"request {route.request.url}")
                route.abort()

        page.route("**/*", answer)
        page.goto(path.as_uri() + fragment, wait_until="load")
        if options.get("java_script_enabled", True):
            page.wait_for_function(PLACED)
        return page, seen

    yield opened
    for context in contexts:
        context.close()
