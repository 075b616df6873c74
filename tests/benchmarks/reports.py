"""A report of a thousand results: its size, how long to make and to open it: `make bench`. Nothing here is asserted."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from audit.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from audit.estimates.residuals import residual_loss
from audit.report.page import build_report
from audit.results import AuditResult, LossEstimate, verdict_of
from audit.results.formatting import CONFIDENTIAL
from audit.results.provenance import provenance
from tests.helpers import audited

__all__ = ["SIZE", "browser_path", "many_results", "opened"]

SIZE, SECONDS = 10 * 2**20, 3.0  # what a report of a thousand results may take
BOUNDS = {"pure": "guessing game", "approx": "guessing game", "zcdp": "variational Renyi divergence"}
REGION = "Gaussian trade-off of a Clopper-Pearson rectangle"


def browser_path() -> str | None:
    """Return where Debian's Chromium is, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def many_results(number: int) -> tuple[list[tuple[str, AuditResult]], list[tuple[str, LossEstimate]]]:
    """Return as many results as asked for, all different, one in fifty an estimate, with words as long as usual."""
    rng = np.random.default_rng(5)
    estimate = residual_loss(np.round(rng.laplace(scale=10, size=5000)), rng=1)
    audits = [(f"audit-{k:04}", _audit(k, rng)) for k in range(number - number // 50)]
    return audits, [(f"residuals-{k:02}", estimate) for k in range(number // 50)]


def _audit(k: int, rng: np.random.Generator) -> AuditResult:
    families: tuple[Claim, ...] = (PureDP(1.0), ApproxDP(2.0, 1e-6), ZCDP(0.5), GaussianDP(0.8))
    claim = families[k % 4]
    measured = claim.at(claim.budget * float(rng.uniform(0.3, 1.1)))
    detectable = claim.budget * float(rng.uniform(1.02, 2.2))
    bins = {f"bin {b}": int(n) for b, n in enumerate(rng.multinomial(69_000, np.full(12, 1 / 12)))}
    guesses = {"guessed_x": int(rng.integers(40_000)), "guessed_y": int(rng.integers(29_000))}
    return audited(
        mechanism="RDPC",
        claim=claim,
        measured=measured,
        verdict=verdict_of(claim, measured, detectable),
        event="y if joint shift of un-raked counts of areas 0, 1, 13, 88 >= 0.5, x if joint shift of un-raked counts "
        "of areas 0, 1, 13, 88 <= -0.5",
        searched="thresholds and single values, to 9 decimals, of 4 statistics (log-likelihood ratio of y over x, "
        "output[0], distance of output[0] from 49561.5, ...)",
        counts={side: {"runs": 69_000} | (bins if claim.kind == "zcdp" else guesses) for side in "xy"},
        pair="1 person added to Tanger-Tetouan-Al Hoceima / Al Hoceima / Al Hoceima",
        bound=BOUNDS.get(claim.kind, REGION),
        size=200_000,
        selection=62_000,
        ceiling=8.45,
        detectable=detectable,
        seed_entropy=int(rng.integers(2**62)),
        provenance=provenance(size=200_000, selection=0.3, stop="fixed", mechanism={"epsilon": 1.0})
        | ({"command": f"plaudit audit rdpc --epsilon 1 --seed {k}"} if k % 2 else {}),
        seconds=float(rng.uniform(1, 60)),
        confidential=k % 3 == 0,
    )


def opened(page: Path) -> tuple[float, float]:
    """Return the seconds until all of a page has its place, in a Chromium that just started, and of them at work."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path())
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        metrics = tab.context.new_cdp_session(tab)
        metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
        begun = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="load")
        assert tab.evaluate("document.documentElement.scrollHeight") > 0  # asks for the layout of the whole page
        taken = time.perf_counter() - begun
        found = {one["name"]: one["value"] for one in metrics.send("Performance.getMetrics")["metrics"]}
        browser.close()
    return taken, found["TaskDuration"]


def main() -> None:
    """Measure and print."""
    table = Table("what", "this machine", "limit", title="A report of 1,000 results")
    audits, estimates = many_results(1000)
    build_report(audits[:10], title="warm-up")
    begun = time.process_time()
    page = build_report(audits, estimates, title="A thousand results")
    built = time.process_time() - begun
    assert CONFIDENTIAL in page
    table.add_row("made, processor time", f"{built:.1f} s", "")
    table.add_row("size", f"{len(page.encode()) / 2**20:.1f} MiB", f"{SIZE / 2**20:.0f} MiB")
    try:
        import playwright as _  # noqa: F401
    except ModuleNotFoundError:
        missing = "playwright"
    else:
        missing = "" if browser_path() else "chromium"
    if missing:
        table.add_row("opened in headless Chromium", f"{missing} is not installed", f"{SECONDS} s")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            path.write_text(page, "utf-8")
            taken, busy = np.median([opened(path) for _ in range(5)], axis=0)
        table.add_row("opened in headless Chromium", f"{taken:.2f} s", f"{SECONDS} s")
        table.add_row("of it its main thread at work", f"{busy:.2f} s", "")  # whatever else the machine does
    Console().print(table)


if __name__ == "__main__":
    main()
