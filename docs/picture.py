"""Take the README's picture of a report in Chromium: ``python docs/picture.py`` audits a mechanism of examples/."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

EXAMPLES = Path(__file__).parent.parent / "examples"
PICTURE = Path(__file__).parent / "_static" / "report.png"
WIDTH, MARGIN = 860, 20


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["mymodule:noisy_counts", "--data", "counts.csv", "--public-data", "--seed", "1", "--out", folder]
        for claim, name in (("pure:0.5", "too_little_noise"), ("pure:1", "noisy_counts")):
            words = ["audit", *options, "--claim", claim, "--confidence", "0.999999"]
            subprocess.run([sys.executable, "-m", "audit", *words], cwd=EXAMPLES, check=False, capture_output=True)
            Path(folder, "mymodule-noisy_counts.json").rename(Path(folder, f"{name}.json"))
        page = Path(folder) / "report.html"
        words = ["report", folder, "--out", str(page), "--title", "Two promises for noisy counts"]
        subprocess.run([sys.executable, "-m", "audit", *words], check=False, capture_output=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
            shown = browser.new_page(viewport={"width": WIDTH, "height": WIDTH}, device_scale_factor=1.5)
            shown.goto(page.as_uri())
            advice = shown.locator("#verdict ul").bounding_box()
            height = advice["y"] + advice["height"] + MARGIN
            shown.screenshot(path=PICTURE, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
            browser.close()


if __name__ == "__main__":
    main()
