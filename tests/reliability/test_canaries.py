"""Disclosure: strings and counts that only confidential input holds are in nothing that is public.

Canaries are words of ten letters, looked for whatever stands between their letters, such as escapes and quotes, and
numbers of twelve digits, as they are and with commas. A thousand of either are in a text of a million letters by chance
with a probability of 1e-3 at most; the seeds are fixed.
"""

import csv
import re
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random

import matplotlib
import numpy as np
import pytest

from algorithms.bottom_up import BottomUp
from algorithms.hierarchy import Hierarchy
from algorithms.schema import Schema
from audit.report.formats import FORMS
from audit.report.page import build_report
from audit.results.files import write_json
from tests.audit.report.hostile import planted, planted_estimate
from tests.helpers import contents, in_full, plaudit, replayed, system_module
from tests.workspace import AREAS, HOUSEHOLDS, RELEASED, RUNS

pytestmark = pytest.mark.reliability(row=9)
release = system_module("bottom_up").release

LETTERS = "abcdefghijklmnopqrstuvwxyz"
RELEASES = {
    "bottom-up": f"release bottom-up {RELEASED} --geo geo.csv --seed 1",
    "bottom-up weighted": f"release bottom-up {RELEASED} --weight weight --largest-weight 3 --geo geo.csv --seed 1",
    "ons independent": f"release ons {RELEASED} --method independent --table state:age*sex --geo geo.csv --seed 1",
    "ons top-down": f"release ons {RELEASED} --method top-down --level total:total=1/2 --level county:detailed=1/2 "
    "--geo geo.csv --seed 1",
    "nist": "release nist --data persons.csv --spec spec.json --epsilon 2 --groups groups.json --rows 50 --out out "
    "--seed 1",
    "topdown": f"release topdown --preset micro --data adults.csv {AREAS} --geo geo.csv --out out --seed 1",
    "phsafe": f"release phsafe {HOUSEHOLDS} --config config.json --out out --seed 1",
}
AUDITS = {
    "ons": f"audit ons --data persons.csv {AREAS} --spec spec.json --set geo=geo.csv --stage measurements {RUNS} "
    "--out out",
    "rows": f"audit mine:rows --data persons.csv --add-row 0 --claim pure:1 {RUNS} --out out",
}


def but_slow(names, slow):
    """The names, of which one is of a slow test: it compiles, or simulates for seconds."""
    return [pytest.param(name, marks=pytest.mark.slow) if name == slow else name for name in names]


class Canaries:
    """Strings and numbers that are nowhere else, each another one."""

    def __init__(self, seed):
        self.rng, self.made = Random(seed), set()

    def word(self):
        self.made.add(word := "".join(self.rng.choices(LETTERS, k=10)))
        return word

    def number(self):
        number = self.rng.randrange(10**11 + 1, 10**12, 10)  # of a fraction a last 0 is not written
        self.made.add(str(number))
        return number

    def found(self, *texts):
        """Those that are in some text."""
        whole = "\n".join(texts).lower()
        letters = re.sub("[^a-z\n]", "", whole)
        return {
            one for one in self.made if one in letters or one in whole or (one.isdigit() and f"{int(one):,}" in whole)
        }


def read_by(command):
    """What the tables hold that a command reads."""
    return [Path(word.split("=")[-1]).read_text() for word in command.split() if word.endswith(".csv")]


def texts_in(folder):
    """All that files hold, and what they are called."""
    return [words for name, content in contents(folder).items() for words in (name, content.decode("latin-1"))]


def drawn(result):
    """The figure of an audit, with its text as text."""
    figure, axes = result.plot().figure, StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(axes, format="svg")
    return axes.getvalue()


# Results: every text and every count of an audit


def secret_audit(canaries, **changes):
    """An audit whose every text and count is a canary of its own."""
    word, number = canaries.word, canaries.number
    support = {"order": word(), "probability": float(f"0.{number()}")}
    guessed = {side: {"runs": 3 * 10**12, "guessed_x": number(), "guessed_y": number()} for side in "xy"}
    parameters = {"size": word(), word(): {word(): [word(), number()]}, "data": word()}
    texts = {name: word() for name in ("mechanism", "event", "searched", "pair", "attack")}
    return replace(
        planted("", counts=guessed, support=support, seed_entropy=number(), tried=(word(),), notes=(word(), word())),
        **texts,
        provenance={"parameters": parameters, "command": f"plaudit audit {word()}", word(): word(), "python": "3"},
        basis={word(): number()},
        **changes,
    )


def published(results):
    """Whatever may be shown of results to everybody: redacted, or on a public page."""
    redacted = [(f"audit {k}", result.redact()) for k, (_, result) in enumerate(results)]
    yield from (form(redacted) for form in FORMS.values())
    yield from (words for _, result in redacted for words in (str(result), repr(result)))
    yield drawn(redacted[0][1])
    yield build_report(results, title="t", public=True, published={"GDPC"})


@pytest.mark.parametrize("results", in_full(6, 60))
@pytest.mark.parametrize("confidential", [False, True])
def test_nothing_that_a_result_holds_is_in_what_is_published_of_it(results, confidential, tmp_path, record_property):
    canaries = Canaries(1)
    made = [(canaries.word(), secret_audit(canaries, confidential=confidential)) for _ in range(results)]
    record_property("tried", len(canaries.made))
    assert canaries.found(*published(made)) == set()
    for name, result in made:
        write_json(tmp_path / f"{name}.json", result.to_dict())
    assert canaries.found(*texts_in(tmp_path)) == canaries.made  # negative control: saved in full, each is found
    words = {result.mechanism for _, result in made} | {result.event for _, result in made}
    assert words <= canaries.found(*(form(made) for form in FORMS.values()))
    assert words <= canaries.found(build_report(made, title="t"))
    assert made[0][1].mechanism in canaries.found(drawn(made[0][1]))


@pytest.mark.parametrize("results", in_full(6, 60))
def test_nothing_that_estimates_and_replays_hold_is_on_a_public_page(results, record_property):
    canaries = Canaries(2)
    word, number = canaries.word, canaries.number
    estimates = [(word(), replace(planted_estimate(word()), areas=number(), size=number())) for _ in range(results)]
    replays = [
        (word(), replayed(
            mechanism=word(), pair=word(), seed=number(), size=number(), notes=(word(),), claim=None,
            queries=({"query": word(), "draws": number()},), violations=({"kind": word(), "sentence": word()},),
            provenance={"command": word(), word(): number()},
        ))
        for _ in range(results)
    ]  # fmt: skip
    record_property("tried", len(canaries.made))
    assert canaries.found(build_report([], estimates, replays, title="t", public=True)) == set()
    full = canaries.found(build_report([], estimates, replays, title="t"))
    assert {name for name, _ in (*estimates, *replays)} <= full  # negative control
    assert {record.pair for _, record in replays} <= full


# Releases: whatever stands beside the attributes


def with_canaries(path, canaries):
    """Give each row of a file a name and a number of its own, in columns that nobody asks for."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    lines = [[*row, canaries.word(), canaries.number()] for row in rows]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*names, canaries.word(), canaries.word()], *lines])


def without_names(err):
    """What is on stderr, but for one line that names columns of the files, which are not released."""
    columns = {name for path in Path().glob("*.csv") for name in path.read_text().partition("\n")[0].split(",")}
    rest = [line.removeprefix("not released: ").split(", ") for line in err.splitlines() if line.startswith("not rel")]
    assert len(rest) <= 1
    assert all(set(names) <= columns for names in rest)
    return re.sub("^not released: .*$", "", err, flags=re.MULTILINE)


@pytest.fixture
def desk(good_files, tmp_path, monkeypatch):
    """The folder that the command works in: a copy of all files."""
    monkeypatch.chdir(shutil.copytree(good_files, tmp_path / "desk", symlinks=True))


@pytest.fixture
def canaries(desk):
    """Canaries in the files of persons and of households."""
    canaries = Canaries(3)
    for name in ("persons.csv", "adults.csv", "households-persons.csv", "households-units.csv"):
        with_canaries(Path(name), canaries)
    return canaries


@pytest.mark.parametrize("system", but_slow(RELEASES, "topdown"))
def test_a_release_holds_nothing_of_columns_that_it_was_not_asked_for(system, canaries, capsys, record_property):
    canaries.made &= canaries.found(*read_by(RELEASES[system]))
    record_property("tried", len(canaries.made))
    assert len(canaries.made) > 100  # negative control: the search finds them in the files that are read
    code = plaudit(*RELEASES[system].split())
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert len(list(Path("out").iterdir())) > 2
    assert canaries.found(*texts_in("out"), printed.out, without_names(printed.err)) == set()


def test_counts_are_in_no_table_of_a_release(tmp_path, record_property):
    """Noise has a scale of 1e6: that one of 1,280 counts stays as it is has a probability of 7e-4."""
    canaries = Canaries(4)
    schema, tree = Schema({"kind": tuple(map(str, range(20)))}), Hierarchy.regular(8, 2)
    counts = np.array([[canaries.number() for _ in range(20)] for _ in range(tree.n_leaves)])
    record_property("tried", len(canaries.made))
    made = release(BottomUp(1e-6, tree, schema), counts, out=tmp_path / "out", rng=np.random.default_rng(1))
    assert canaries.found(*texts_in(tmp_path / "out"), str(made.ledger)) == set()
    (tmp_path / "exact.csv").write_text("\n".join(",".join(map(str, row)) for row in counts.tolist()))
    assert canaries.found(*texts_in(tmp_path)) == canaries.made  # negative control


def test_areas_that_are_read_from_the_data_are_published_and_said_to_be(desk, capsys, record_property):
    """The control of releases: a canary in a column that is asked for is found in its tables."""
    canaries = Canaries(5)
    text = Path("persons.csv").read_text()
    Path("persons.csv").write_text(text.replace("\nA,", f"\n{canaries.word()},"))
    assert plaudit(*f"release bottom-up {RELEASED} --seed 1".split()) == 0
    assert canaries.found(*texts_in("out")) == canaries.made
    assert "read from the data, and taken as public" in Path("out/release.json").read_text()


# Refusals, logs and reports of the command


DAMAGE = {
    "a level": ("persons.csv", lambda row, word: {**row, "sex": word}),
    "an area": ("persons.csv", lambda row, word: {**row, "county": word}),
    "no level": ("persons.csv", lambda row, word: {**row, "sex": ""}),
    "no area": ("persons.csv", lambda row, word: {**row, "state": ""}),
    "a count": ("persons.csv", lambda row, word: {**row, "n": word}),
    "a level of others": ("adults.csv", lambda row, word: {**row, "age": word}),
    "a field too many": ("persons.csv", lambda row, word: {**row, None: ["1", "2"]}),
    "a household": ("households-units.csv", lambda row, word: {**row, "TEN": word}),
    "a person": ("households-persons.csv", lambda row, word: {**row, "QAGE": word}),
}
READERS = {
    "persons.csv": f"{RELEASES['ons independent']} --count n",
    "adults.csv": RELEASES["topdown"],
    "households-units.csv": RELEASES["phsafe"],
    "households-persons.csv": RELEASES["phsafe"],
}


@pytest.mark.parametrize(("name", "change"), DAMAGE.values(), ids=DAMAGE)
def test_a_refusal_tells_the_value_that_broke_a_rule_and_nothing_else_of_the_data(
    name, change, canaries, capsys, record_property
):
    with Path(name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = Canaries(7).word()
    rows[3] = change(rows[3], wrong)
    with Path(name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        writer.writerows([value for key, part in row.items() for value in (part if key is None else [part])]
                         for row in rows)  # fmt: skip
    canaries.made &= canaries.found(*read_by(READERS[name]))
    record_property("tried", len(canaries.made))
    code = plaudit(*READERS[name].split())
    printed = capsys.readouterr()
    assert code == 2, (printed.out, printed.err)
    assert canaries.found(printed.out, without_names(printed.err)) == set()
    assert not Path("out").exists()


@pytest.mark.parametrize("audited", but_slow(AUDITS, "ons"))
def test_a_public_report_of_an_audit_of_persons_holds_nothing_of_them(audited, canaries, capsys, record_property):
    canaries.made &= canaries.found(*read_by(AUDITS[audited]))
    record_property("tried", len(canaries.made))
    with Path("persons.csv").open(newline="") as file:
        row = ",".join(list(csv.reader(file))[1])
    assert plaudit(*(row if word == "0" else word for word in AUDITS[audited].split())) in (0, 3)
    capsys.readouterr()
    assert plaudit("report", "out", "--public", "--out", "page.html") in (0, 3)
    printed = capsys.readouterr()
    assert canaries.found(Path("page.html").read_text(), printed.out, printed.err) == set()
