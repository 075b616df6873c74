"""The twenty rows: what each asks, and what others publish of it."""

from __future__ import annotations

from dataclasses import dataclass

SQLITE = "https://www.sqlite.org/testing.html"
RBEST = "https://github.com/Novartis/RBesT/blob/main/inst/sbc/sbc_report.R"
GOOGLE = "https://github.com/google/differential-privacy"
TUMULT = "https://gitlab.com/tumult-labs/core"
RECORDER = "https://arxiv.org/abs/2602.17454"


@dataclass(frozen=True)
class Row:
    """A question, what counts as one try, and what the most trusted systems publish of it."""

    number: int
    name: str  # of few words, for figures
    title: str
    tries: str
    others: str = "none found that is published"


ROWS = (
    Row(
        1,
        "coverage",
        "Coverage of every bound and of whole audits, at confidence .5, .8, .95, .99 and .999",
        "audits of a law that loses exactly what is promised; a failure is more misses than valid bounds have once in "
        "10,000 rows",
        f"[RBesT]({RBEST}) keeps a simulated calibration of its posteriors in its repository",
    ),
    Row(
        2,
        "known bugs, sound ones",
        "Known bugs found, sound mechanisms accused",
        "audits at confidence 1 - 1e-6; a failure is a bug that is missed or a sound mechanism that is accused",
        f"[dp-recorder]({RECORDER}): 13 violations found in 12 libraries",
    ),
    Row(
        3,
        "leaks by place",
        "Leaks by the place to look",
        "audits of mechanisms with one leak each, and of the same without it",
    ),
    Row(
        4,
        "power",
        "Power, as announced and as reached",
        "audits at the loss that is announced to be seen in so many of them",
    ),
    Row(
        5,
        "draws of samplers",
        "Samplers: the true law accepted, a scale 10% or 2% off rejected",
        "draws, seeded and secure",
        f"scales off by 6% are rejected by [Google's library]({GOOGLE}), by 30% by [Tumult Core]({TUMULT})",
    ),
    Row(
        6,
        "kill -9",
        "kill -9 at random instants, then the same command again",
        "kills of audits with a store, releases and experiments",
        f"[SQLite]({SQLITE}) simulates crashes of the process and of the machine",
    ),
    Row(
        7, "signals", "Signals: what is said of a stopped release is true", "signals at instants over the whole command"
    ),
    Row(
        8,
        "disks",
        "Full, read-only and vanishing disks",
        "commands",
        f"[SQLite]({SQLITE}) makes every input and output fail in turn",
    ),
    Row(
        9,
        "changed results",
        "Saved results cut, changed and forged",
        "files",
        f"[SQLite]({SQLITE}) is tested on malformed databases",
    ),
    Row(
        10,
        "hostile commands",
        "Hostile command lines and files",
        "commands; a failure is a traceback, a wrong exit code or a partial output",
        f"[SQLite]({SQLITE}) is fuzzed without a pause",
    ),
    Row(11, "injections", "Injections: HTML, SVG, terminal, SQL, path, spreadsheet, LaTeX", "payloads"),
    Row(12, "canaries", "Disclosure: canaries of confidential input in any public output", "canaries looked for"),
    Row(
        13,
        "equal counts",
        "Equal counts whatever the jobs, backends, chunks, threads, locale, time zone and hash seed",
        "audits compared with one in the plainest settings",
    ),
    Row(
        14,
        "mutations",
        "Mutations of the statistical core that the tests notice",
        "changes of one operator or number in claims, bounds, methods, exact losses and neighbors",
    ),
    Row(15, "branches", "Branches that the default tests take", "branches", f"[SQLite]({SQLITE}): 100% of branches"),
    Row(16, "refusals", "Refusals that the default tests reach", "raise statements"),
    Row(17, "memory and time", "Limits of memory and time", "commands and calls with more than anybody means"),
    Row(18, "clocks, pipes, users", "Clocks, pipes, foreign users and umask", "commands and calls"),
    Row(19, "versions", "Lowest and newest versions of what plaudit needs", "tests"),
    Row(20, "golden rows", "Published and golden tables, row by row", "rows that have to be equal"),
)
