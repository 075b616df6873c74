"""How fast the explorer is: its size, its requests, the time to its first use, and until a change shows everywhere.

First use is from the start of the navigation until the open sheet's numbers stand in the page, it is laid out, and its
inputs answer, by the page's own clock: neither the start of the browser nor that of its driver is part of it. The other
sheets are in the page, and are filled when they are opened, which is timed by itself.

Run ``python -m tests.benchmarks.explorer``. Every input of every sheet is changed, and the time taken until all tables,
charts and totals stand in the page and it is laid out; then back.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from algorithms.systems import sheets
from audit.explorer.page import build_page
from audit.explorer.sheet import Explored
from tests.benchmarks.reports import browser_path

SIZE, SECONDS, REACTION = 400_000, 0.5, 0.05
READY = "document.documentElement.scrollHeight && performance.now()"
TURNED = """name => {
    const begun = performance.now();
    explorer.turn(name);
    return document.documentElement.scrollHeight && (performance.now() - begun) / 1000;
}"""
CHANGED = """([sheet, key, value]) => {
    if (explorer.open !== sheet) explorer.turn(sheet);
    const before = store.state, begun = performance.now();
    explorer.take({[key]: value}, store.state);
    const height = document.documentElement.scrollHeight;
    const taken = performance.now() - begun;
    explorer.take(before, store.state);
    return taken;
}"""


def other(one):
    """Return another value of an input."""
    if one.kind == "flag":
        return not one.value
    if one.kind == "choice":
        return one.choices[(one.choices.index(one.value) + 1) % len(one.choices)]
    if one.kind == "codes":
        return one.choices[0]
    value = one.value if one.value is not None else max(one.least, 1e-3)
    changed = value * 2 if value and value * 2 <= one.most else value + 1 if value + 1 <= one.most else one.least
    return int(changed) if one.kind == "integer" else changed


def main() -> None:
    """Measure and print."""
    known = sheets()
    page = build_page(Explored(known[0]), known)
    table = Table("what", "this machine", "limit", title="The explorer")
    table.add_row("size", f"{len(page.encode()):,} bytes", f"{SIZE:,} bytes")
    if browser_path() is None:
        table.add_row("opened in headless Chromium", "chromium is not installed", f"{SECONDS} s")
        Console().print(table)
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "explorer.html"
        path.write_text(page, "utf-8")
        browser = playwright.chromium.launch(executable_path=browser_path())
        first, busy, requests = [], [], []
        for _ in range(9):
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            tab.on("request", lambda request: requests.append(request.url))
            metrics = tab.context.new_cdp_session(tab)
            metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
            tab.add_init_script(
                "document.addEventListener('DOMContentLoaded', () => { window.usable = " + READY + "; })"
            )
            tab.goto(path.as_uri(), wait_until="load")
            first.append(tab.evaluate("window.usable") / 1000)
            found = {one["name"]: one["value"] for one in metrics.send("Performance.getMetrics")["metrics"]}
            busy.append(found["TaskDuration"])
        table.add_row("requests beside the file", f"{len([u for u in requests if u != path.as_uri()])}", "0")
        table.add_row("time to first use, median of 9", f"{np.median(first):.3f} s", f"{SECONDS} s")
        table.add_row("of it its main thread at work", f"{np.median(busy):.3f} s", "")  # whatever else the machine does
        for sheet in known[1:]:
            table.add_row(f"{sheet.name} opened for the first time", f"{tab.evaluate(TURNED, sheet.name):.3f} s", "")
        for sheet in known:
            taken = [tab.evaluate(CHANGED, [sheet.name, one.key, other(one)]) / 1000 for one in sheet.inputs]
            told = f"{np.median(taken):.4f} s, at most {max(taken):.4f} s of {len(taken)}"
            table.add_row(f"a change shows everywhere, {sheet.name}: median", told, f"{REACTION} s")
        browser.close()
    Console().print(table)


if __name__ == "__main__":
    main()
