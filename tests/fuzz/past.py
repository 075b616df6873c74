"""Command lines and files that went wrong once; each holds since."""

from __future__ import annotations

import shlex

from tests.fuzz.cases import Case


def case(name: str, words: str, **files: bytes) -> Case:
    """Return a case of a command line and of files, whose names have an underscore for the dot."""
    return Case(name, tuple(shlex.split(words)), {path.replace("_", "."): content for path, content in files.items()})


PAST: tuple[Case, ...] = (
    case("a refused replay leaves no folder", "replay gdpc --data counts.csv --out out", counts_csv=b"-1\n"),
    case("a refused estimate leaves no folders", "estimate --residuals counts.csv --method y.npy --out a/b"),
    case("a value is not echoed at any length", f"estimate gdpc --method {'9' * 5000}"),
    case("nor is a command", "x" * 5000),
    case("a confidence of nothing is no fault of the mechanism", "audit gdpc --data counts.csv --confidence 1e-320"),
    case(
        "half a letter in a specification is named",
        "release nist --data persons.csv --spec spec.json --epsilon 2 --groups groups.json --out out",
        spec_json=b'{"attributes": {"sex": ["f", "m", "\\ud800"], "age": ["0-17", "18+"]}}',
    ),
    case("a change of more people than there are is refused", "estimate gaussian-counts --method slope --change 1e308"),
    case(
        "a promise beyond all bounds warns of nothing",
        "audit mine:noisy --data counts.csv --claim zcdp:1e300 --size 300 --seed 1 --jobs 1 --early",
    ),
    case("without a word there is help", ""),
    case("a thousand new folders are refused for a report", f"report old --out {'a/' * 1000}page.html"),
    case("and for audits", f"audit gdpc --data counts.csv --size 300 --out {'a/' * 1000}"),
    case(
        "and for a release",
        "release nist --data persons.csv --spec spec.json --epsilon 2 --groups groups.json --rows 50 --out "
        + "a/" * 1000,
    ),
    case("hardly any runs that choose are refused", "plan approx:1,1e-6 --runs 2000 --selection 1e-320"),
    case("and hardly any that count", "plan pure:1 --runs 2000 --selection 0.9999999999999999"),
    case(
        "a link to itself is a file that is not there",
        "release phsafe --persons counts.csv --units loop --geo counts.csv --seed 1 --out out",
    ),
    case("a report takes the place of a link that leads nowhere", "report old --out dangling"),
)
