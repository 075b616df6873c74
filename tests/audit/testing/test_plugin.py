"""The pytest plugin in projects of others: seeds that no order moves, one report, one closing line, no weight."""

import os
import shlex
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import audit.testing.assertions  # noqa: F401 - loaded once, not by every project within this process
from audit.claims import PureDP
from audit.results import AuditResult
from audit.results.files import read_json, write_json
from audit.testing.plugin import _closing_line
from tests.helpers import audited

pytest_plugins = "pytester"

HEAVY = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "duckdb", "joblib", "rich", "typer", "algorithms")
STRICT = ("--strict-markers", "-W", "error", "-pno:cacheprovider", "-pno:benchmark", "-pno:hypothesispytest")
RELEASE = """
import numpy as np
import pytest

from audit import NeighborPair, PureDP
from audit.testing import assert_loss_detected, assert_loss_within

PAIR = NeighborPair.add_people([120, 75, 43], cell=0)
pytestmark = pytest.mark.audit(attack="entries")  # without classifiers, which take a second to load


class Noisy:
    def __init__(self, epsilon):
        self.claim = PureDP(1.0)
        self.scale = 1 / epsilon

    def __call__(self, counts, size, rng):
        return counts + rng.laplace(scale=self.scale, size=(size, counts.size))
"""
# A stand-in: what an audit leaves behind, without the seconds that it takes to load one.
LIGHT = """
import random
import unittest

import pytest

from audit.testing.session import running, seed_of


def audit(verdict="not refuted"):
    test = running()
    call = next(test.calls)
    seed = seed_of(test.seed, test.name, call)
    found = {"confidence": 0.999, "verdict": verdict, "confidential": False, "seed_entropy": seed}
    times = {"seconds": random.random(), "provenance": {"command": test.command()}}
    test.keep(call=call, expected="not refuted", audit=found | times)
"""
SHARING = (
    LIGHT
    + """

@pytest.fixture(scope="module", params=["a", "b"])
def shared(request):
    audit()


@pytest.fixture(scope="session")
def everywhere():
    audit()


@pytest.fixture
def own():
    audit()


@pytest.mark.parametrize("case", range(4))
def test_one(case, everywhere):
    audit()
    audit()


def test_two(own, shared, everywhere):
    audit()


def test_three(shared, everywhere):
    pass

"""
)


def without_times(path):
    """What a report says, but for when and how long; all of it has passed its checksum."""
    report = read_json(path)
    for entry in report["audits"]:
        entry["audit"]["seconds"] = 0.0
        entry["audit"]["provenance"] = {}
    return report


def run(pytester, *args):
    return pytester.runpytest_inprocess(*STRICT, *args)


def closing_line(result):
    lines = [line for line in result.outlines if line.startswith("plaudit: ")]
    assert len(lines) <= 1
    return "".join(lines)


def test_a_session_without_audits_loads_nothing_heavy(pytester):
    """Neither the plugin nor pytest with it, from start to finish, in a process of its own."""
    pytester.makeconftest(
        f"import sys\ndef pytest_unconfigure():\n    print('loaded', [m for m in {HEAVY} if m in sys.modules])\n"
        "    print('ours', sorted(m for m in sys.modules if m.split('.')[0] == 'audit'))\n"
    )
    pytester.makepyfile("import pytest\n@pytest.mark.audit\ndef test_one(tmp_path):\n    pass\n")
    result = pytester.runpytest_subprocess(*STRICT, "--audit-seed", "3")
    ours = ["audit", "audit.io", "audit.io.settings", "audit.io.text"]
    ours += ["audit.testing", "audit.testing.plugin", "audit.testing.session"]
    result.stdout.fnmatch_lines(["loaded []*", f"ours {ours}"])
    assert result.ret == 0
    assert "plaudit: " not in result.stdout.str()  # nothing was audited, and nothing is said


# What it says


def test_promises_and_known_bugs_are_counted_apart():
    outcomes = [("not refuted", verdict, 0.999) for verdict in ("not refuted", "violated", "no power")]
    outcomes += [("violated", verdict, 0.99) for verdict in ("violated", "not refuted", "no power")]
    audits = [
        {"expected": expected, "audit": {"verdict": verdict, "confidence": confidence}}
        for expected, verdict, confidence in outcomes
    ]
    assert _closing_line(audits) == (
        "plaudit: 6 audits (3 of promises, 3 of known bugs), 1 violated, 1 without power, 2 not detected; if every "
        "promise holds, one is called violated by chance with probability at most 0.003; if there is no bug, one is "
        "reported by chance with probability at most 0.03"
    )


FAILING = """

@pytest.mark.parametrize("case", ["it's; echo $HOME"])
def test_violated(case):
    assert_loss_within(Noisy(2.0), PAIR, size=4000)


def test_caught():
    with pytest.raises(AssertionError, match="violated"):
        assert_loss_within(Noisy(2.0), PAIR, size=4000)
"""


def test_a_failure_is_that_of_its_test_reported_and_reproduced_by_its_command(pytester):
    def errors(result):
        return [line for line in result.outlines if line.startswith("E ")]

    pytester.makepyfile(test_release=RELEASE + FAILING)
    options = ("--audit-seed", "8", "--audit-runs", "2000", "--audit-report", "audits.json")
    result = run(pytester, *options)
    result.assert_outcomes(passed=1, failed=1)
    assert "audit/testing" not in result.stdout.str()  # the line of the test failed, not one of ours
    report = read_json(pytester.path / "audits.json")
    assert [report[key] for key in ("kind", "seed", "runs", "exit_status")] == ["session", 8, 2000, 1]
    assert AuditResult.from_dict(report["audits"][1]["audit"]).verdict == "violated"
    (command,) = [line.split(maxsplit=2)[2] for line in result.outlines if line.split()[:2] == ["E", "reproduce"]]
    assert command == (
        "python -m pytest 'test_release.py::test_violated[it'\"'\"'s; echo $HOME]' "
        f"{shlex.join(STRICT)} --audit-seed 8 --audit-runs 2000 --rootdir ."
    )
    alone = pytester.runpytest_inprocess(*shlex.split(command)[3:])
    alone.assert_outcomes(failed=1)
    assert errors(alone) == errors(result)


def test_a_command_finds_its_test_from_where_the_session_began(pytester):
    """Below the root, with settings from above, in a doctest, and under names that a shell would split."""
    folder = pytester.mkdir("tests of \u00fc")
    (folder / "light.py").write_text(LIGHT, "utf-8")
    marked = "import light, pytest\n@pytest.mark.rare\ndef test_one():\n    light.audit()\n"
    (folder / "test_re lease.py").write_text(marked, "utf-8")
    (folder / "documented.py").write_text('"""\n>>> import light\n>>> light.audit()\n"""\n', "utf-8")
    (pytester.path / "settings.ini").write_text(
        "[pytest]\nmarkers = rare: seldom\naddopts = -m 'not rare' --import-mode importlib\n"
        "pythonpath = 'tests of \u00fc'\n",
        "utf-8",
    )
    os.chdir(folder)
    options = ["-c", "../settings.ini", "--doctest-modules", "-m", "rare or not rare", "--audit-report", "one.json"]
    run(pytester, *options).assert_outcomes(passed=2)
    commands = [entry["audit"]["provenance"]["command"] for entry in read_json(folder / "one.json")["audits"]]
    assert len(commands) == 2
    for command in commands:
        pytester.runpytest_inprocess(*shlex.split(command)[3:]).assert_outcomes(passed=1)


@pytest.mark.parametrize("option", [("-o", "python_functions=check_*"), ("--slowones",), ("--only", "tests")], ids=str)
def test_what_decides_whether_a_test_is_found_is_in_its_command(pytester, option):
    """Options of pytest, of the project, and of the project with a value that is also the name of a folder."""
    (folder := pytester.mkdir("tests")).joinpath("test_light.py").write_text(
        f"{LIGHT}\ndef check_one():\n    audit()\n\ndef test_one():\n    audit()\n", "utf-8"
    )
    pytester.makeini("[pytest]\naddopts = -m 'not rare'\nmarkers = rare: seldom\n")
    pytester.makeconftest(
        "import pytest\ndef pytest_addoption(parser):\n"
        "    parser.addoption('--slowones', action='store_true')\n    parser.addoption('--only')\n"
        "def pytest_runtest_setup(item):\n    option = item.config.option\n"
        "    if not (item.name == 'check_one' or option.slowones or option.only == 'tests'):\n"
        "        pytest.skip('not asked for')\n"
    )
    others = ["-qk", "one or two", "--maxfail=3", "-x", "-rN", "--durations", "2", "-m", "rare or not rare"]
    run(pytester, *others, *option, str(folder.name), "--audit-report", "one.json").assert_outcomes(passed=1)
    (entry,) = read_json(pytester.path / "one.json")["audits"]
    command = entry["audit"]["provenance"]["command"]
    name = "check_one" if option[0] == "-o" else "test_one"
    given = shlex.join([*STRICT, *others, *option])
    assert command == f"python -m pytest tests/test_light.py::{name} {given} --rootdir ."
    pytester.runpytest_inprocess(*shlex.split(command)[3:]).assert_outcomes(passed=1)


# Seeds


@pytest.mark.slow
def test_a_generator_belongs_to_its_test(pytester):
    """The same alone, in any order and from any folder; another one for another test, parameter and seed."""
    (folder := pytester.mkdir("tests")).joinpath("test_draws.py").write_text(
        "import pathlib, pytest\nHERE = pathlib.Path(__file__).parent\n"
        "@pytest.mark.parametrize('case', ['a', 'b'])\n"
        "def test_one(case, audit_rng):\n    (HERE / case).write_text(str(audit_rng.integers(2**62)))\n"
        "def test_two(audit_rng):\n    (HERE / 'c').write_text(str(audit_rng.integers(2**62)))\n",
        "utf-8",
    )
    pytester.makeini("[pytest]\n")

    def draws(*args):
        for name in "abc":
            (folder / name).unlink(missing_ok=True)
        assert run(pytester, *args).ret == 0
        return {name: (folder / name).read_text() for name in "abc" if (folder / name).exists()}

    whole = draws()
    assert len(set(whole.values())) == 3
    assert draws("-k", "two") == {"c": whole["c"]}
    assert draws("tests/test_draws.py::test_two", "tests/test_draws.py::test_one[b]") == {k: whole[k] for k in "bc"}
    assert not set(draws("--audit-seed", "1").values()) & set(whole.values())
    os.chdir(folder)
    assert draws() == whole
    # printf '0\\0tests/test_draws.py::test_two\\0audit_rng' | sha256sum
    assert whole["c"] == str(np.random.default_rng(0x45D9B0EEEF9AB389).integers(2**62))


@pytest.mark.parametrize("dist", ["load", pytest.param("each", marks=pytest.mark.slow)])  # two processes start
def test_neither_order_nor_processes_change_a_report(pytester, dist):
    """What tests share is audited once, whoever comes first; under xdist by each process, and counted once."""
    pytester.makepyfile(test_light=SHARING, test_more=SHARING)
    one = run(pytester, "-pxdist", "--audit-report", "one.json")
    pytester.makeconftest("def pytest_collection_modifyitems(items):\n    items.reverse()\n")
    other = run(pytester, "-pxdist", "--audit-report", "other.json")
    spread = run(pytester, "-pxdist", "--audit-report", "spread.json", "-n", "2", "--dist", dist)
    report = without_times(pytester.path / "one.json")
    assert report == without_times(pytester.path / "other.json") == without_times(pytester.path / "spread.json")
    per_file = 4 * 2 + 2 * 2 + 2
    assert len(report["audits"]) == 2 * per_file + 1
    assert report["false_alarm"] == pytest.approx(29e-3)
    assert {closing_line(result) for result in (one, other, spread)} == {
        "plaudit: 29 audits (29 of promises); if every promise holds, one is called violated by chance with "
        "probability at most 0.029"
    }


@pytest.mark.slow
def test_tests_that_another_plugin_runs_in_its_own_way_are_left_alone(pytester, monkeypatch):
    monkeypatch.setattr("audit.testing.session._entered", [])
    pytester.makeconftest(
        "from _pytest.runner import runtestprotocol\ndef pytest_runtestloop(session):\n"
        "    for item in session.items:\n        runtestprotocol(item, nextitem=None)\n    return True\n"
    )
    pytester.makepyfile(
        "import pytest\n@pytest.fixture(scope='session')\ndef one():\n    return 1\n"
        "@pytest.mark.audit(size=3)\ndef test_one(one, audit_rng):\n    assert audit_rng.integers(one) == 0\n"
    )
    run(pytester).assert_outcomes(passed=1)


def test_an_attempt_begins_with_the_same_seeds(pytester):
    """A retry is another audit, and no way to turn a failure into a pass."""
    pytester.makeconftest(
        "from _pytest.runner import runtestprotocol\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    for _ in range(2):\n"
        "        for report in runtestprotocol(item, nextitem=nextitem, log=False):\n"
        "            item.ihook.pytest_runtest_logreport(report=report)\n"
        "        item._initrequest()\n"
        "    return True\n"
    )
    pytester.makepyfile(LIGHT + "\ndef test_one():\n    audit(), audit()\n")
    result = run(pytester, "--audit-report", "audits.json")
    assert closing_line(result).startswith("plaudit: 4 audits ")
    entries = read_json(pytester.path / "audits.json")["audits"]
    assert [(entry["attempt"], entry["call"]) for entry in entries] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    seeds = [entry["audit"]["seed_entropy"] for entry in entries]
    assert seeds[:2] == seeds[2:]
    assert seeds[0] != seeds[1]


PARTS = """

def test_parts(subtests):
    for part in range(3):
        with subtests.test(part=part):
            audit("violated" if part else "not refuted")
            assert part == 0


class Old(unittest.TestCase):
    def setUp(self):
        audit()

    def test_old(self):
        audit()
"""


def test_parts_of_a_test_count(pytester):
    pytester.makepyfile(LIGHT + PARTS)
    assert closing_line(run(pytester)).startswith("plaudit: 5 audits (5 of promises), 2 violated; ")


# Options


MARKED = """

pytestmark = pytest.mark.audit(attack="entries", size=2000, confidence=0.99)


@pytest.fixture(scope="module")
def shared():
    assert running().options == {}


@pytest.mark.audit(size=3000)
class TestAll:
    @pytest.mark.audit(selection=0.5)
    def test_one(self, shared):
        assert running().options == {"attack": "entries", "size": 3000, "confidence": 0.99, "selection": 0.5}
"""


def test_a_marker_gives_defaults(pytester):
    pytester.makepyfile(LIGHT + MARKED)
    run(pytester).assert_outcomes(passed=1)


def test_a_marker_that_means_nothing_is_one_line(pytester):
    pytester.makepyfile(
        f"{RELEASE}\n@pytest.mark.audit(sise=3)\ndef test_one():\n    assert_loss_within(Noisy(1.0), PAIR)\n"
        "@pytest.mark.audit(20_000)\ndef test_two():\n    pass\n"
    )
    result = run(pytester, "-rN")
    result.assert_outcomes(errors=2)
    assert any("takes the options attack, event," in line and "got 'sise'" in line for line in result.outlines)
    assert "pytest.mark.audit takes options by name, got 1 without a name" in result.outlines


@pytest.mark.parametrize(
    ("option", "value", "least"),
    [("--audit-seed", "-1", 0), ("--audit-runs", "19", 20), ("--audit-runs", "9" * 5000, 20)],
)
def test_a_number_out_of_range_is_refused_before_any_test(pytester, option, value, least):
    result = run(pytester, f"{option}={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = f"error: argument {option}: must be a whole number of {least} or more, got {value[:40]!r}"
    assert any(line.endswith(message) for line in result.errlines)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", "must be a file that can be written, got '': is there, and is not a file of plaudit of the kind session"),
        ("test_it.py", "must be a file that can be written, got 'test_it.py': is there, and is not a file of plaudit"),
        ("no\x1bway/x", r"must be a file that can be written, got 'no\x1bway/x': there is no such folder"),
        ("nul\0", r"must be a file that can be written, got 'nul\x00': "),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_any_test(pytester, path, rule):
    pytester.makepyfile(test_it="raise RuntimeError('collected')")
    result = run(pytester, "--audit-report", path)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = filter(None, result.errlines)
    assert line.startswith(f"ERROR: --audit-report {rule}")
    assert "collected" not in result.stdout.str()
    assert all(entry.suffix == ".py" for entry in pytester.path.iterdir())


@pytest.mark.slow
def test_collecting_and_finding_nothing_leave_no_trace(pytester):
    pytester.makepyfile(test_light=SHARING, test_plain="def test_one():\n    pass\n")
    report = pytester.path / "audits.json"
    write_json(report, {"kind": "session", "of": "yesterday"})
    result = run(pytester, "--collect-only", "--audit-report", "audits.json")
    assert result.ret == 0
    assert closing_line(result) == ""
    assert read_json(report) == {"kind": "session", "of": "yesterday"}
    assert run(pytester, "test_plain.py", "--audit-report", "audits.json").ret == 0
    assert read_json(report)["audits"] == []


def test_a_session_that_is_ended_from_within_leaves_no_report(pytester):
    """Its exit code may be any, as here; the report is what says that it came to its end."""
    report = pytester.path / "audits.json"
    write_json(report, {"kind": "session"})  # of yesterday
    pytester.makepyfile("import os\ndef test_one():\n    os._exit(0)\n")
    assert pytester.runpytest_subprocess(*STRICT, "--audit-report", "audits.json").ret == 0
    assert not report.exists()


def test_a_report_that_cannot_be_replaced_is_refused(pytester, monkeypatch):
    write_json(pytester.path / "audits.json", {"kind": "session"})  # of yesterday

    def refused(path, missing_ok=False):
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "unlink", refused)
    result = run(pytester, "--audit-report", "audits.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    monkeypatch.undo()
    assert "--audit-report must be a file that can be replaced: [Errno 1] Operation" in result.stderr.str()


@pytest.mark.slow
def test_a_report_that_fails_in_the_end_fails_the_session(pytester):
    """The tests passed; who reads the report must not take the one of yesterday for theirs."""
    folder = pytester.mkdir("out")
    pytester.makepyfile(
        "from pathlib import Path\n"
        f"def test_one():\n    (folder := Path({str(folder)!r})).rmdir()\n    folder.write_text('no folder')\n"
    )
    result = run(pytester, "--audit-report", "out/audits.json")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    assert closing_line(result).startswith("plaudit: --audit-report could not be written: ")
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(("family", "spread"), [("xunit2", ()), ("xunit1", ("-pxdist", "-n", "1"))])
def test_reports_of_junit_have_what_audits_found(pytester, family, spread):
    found = [audited().to_dict(), audited(verdict="violated", measured=PureDP(1.25), seed_entropy=43).to_dict()]
    pytester.makepyfile(
        f"from audit.testing.session import running\n\ndef test_one():\n    for call, audit in enumerate({found}, 1):\n"
        "        running().keep(call=call, expected='not refuted', audit=audit)\n    assert not 'violated'\n"
        "\ndef test_two():\n    pass\n"
    )
    outcome = run(pytester, "--junitxml", "junit.xml", "-o", f"junit_family={family}", *spread)
    outcome.assert_outcomes(failed=1, passed=1)
    suite = ElementTree.parse(pytester.path / "junit.xml").find("testsuite")
    known = {"skipped", "error", "failure", "system-out", "system-err"}  # what the schema of xunit2 lets a test hold
    assert all(part.tag in known for case in suite.iter("testcase") for part in case)
    test = "test_reports_of_junit_have_what_audits_found.py::test_one call"
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert len(properties) == len(list(suite.iter("property"))) == 16
    wanted = {"1: verdict": "not refuted", "1: detectable": "1.250", "2: measured": "1.250", "2: confidence": "95%"}
    wanted |= {"1: neighbors": "person added or removed", "1: promised": "epsilon 1", "2: seed": "43"}
    wanted |= {"2: runs": "2000, 601 of them to choose the event"}
    assert {name: properties[f"{test} {name}"] for name in wanted} == wanted


PROJECT = "[tool.pytest.ini_options]\n[tool.plaudit]\nsize = 3000\nconfidence = 0.99\nseed = 5\nreport = 'kept.json'\n"
OF_PROJECT = """

@pytest.fixture(scope="module")
def shared():
    return running()


def test_as_set(shared):
    for test in (shared, running()):
        assert (test.options, test.seed, test.runs) == ({"size": 3000, "confidence": 0.99}, 5, None)


def test_as_asked():
    assert (running().options["size"], running().seed, running().runs) == (3000, 0, 3500)
    audit()
"""


def test_a_project_sets_runs_confidence_seed_and_report(pytester):
    pytester.makepyfile(LIGHT + OF_PROJECT)
    pytester.makepyprojecttoml(PROJECT)
    run(pytester, "-k", "as_set").assert_outcomes(passed=1)
    assert read_json(pytester.path / "kept.json")["seed"] == 5
    (pytester.path / "kept.json").unlink()
    options = ("--audit-seed", "0", "--audit-runs", "3500", "--audit-report", "other.json")
    run(pytester, *options, "-k", "as_asked").assert_outcomes(passed=1)
    other = read_json(pytester.path / "other.json")
    assert (other["seed"], other["runs"], len(other["audits"])) == (0, 3500, 1)
    assert not (pytester.path / "kept.json").exists()


def test_a_bad_setting_of_a_project_is_refused_before_any_test(pytester):
    pytester.makepyfile("def test_one():\n    pass\n")
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n[tool.plaudit]\nruns = 5\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "takes size, confidence, seed, report, got 'runs'" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


def test_names_are_kept_whole_in_a_file_and_harmless_on_a_terminal(pytester):
    pytester.makepyfile(
        RELEASE.replace("cell=0", "cell=0, label='\\x1b[31m\\udc80\\nlabel'")
        + "\nNoisy.__name__ = 'No\\x1b]0;owned\\x07isy\\n\\u202eB'\n"
        + "\ndef test_one():\n    assert_loss_detected(Noisy(1.0), PAIR.as_confidential(), size=2000)\n"
    )
    result = run(pytester, "--audit-report", "audits.json")
    result.assert_outcomes(failed=1)
    assert any(line.startswith("E       AssertionError: CONFIDENTIAL: no violation") for line in result.outlines)
    message = [line for line in result.outlines if line.startswith("E ")]
    assert all(unicodedata.category(letter)[0] != "C" for line in message for letter in line)
    report = read_json(pytester.path / "audits.json")
    assert report["confidential"]
    assert (pytester.path / "audits.json").stat().st_mode & 0o777 == 0o600
    assert report["audits"][0]["audit"]["pair"] == "\x1b[31m?\nlabel"
