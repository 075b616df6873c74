"""Faults that matter, planted one by one in a copy of the sources: a default test notices each of them."""

import tomllib
from pathlib import Path

import pytest

from tests.reliability.checkout import ROOT, copied, run_tests, with_text

FAULTS = tomllib.loads(Path(__file__).with_name("planted.toml").read_text("utf-8"))["fault"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources, in which all tests that are named pass."""
    folder = copied(tmp_path_factory.mktemp("planted") / "checkout")
    code, printed = run_tests(folder, *sorted({fault["test"] for fault in FAULTS}))
    assert code == pytest.ExitCode.OK, printed
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault['file']}: {fault['kind']}")
def test_a_default_test_notices_a_planted_fault(fault, checkout):
    path = checkout / fault["file"]
    with with_text(path, path.read_text("utf-8").replace(fault["old"], fault["new"])):
        code, printed = run_tests(checkout, fault["test"])
    assert code == pytest.ExitCode.TESTS_FAILED, printed  # and no other: a source that cannot be loaded is no fault


def test_every_fault_has_one_place_and_a_test():
    """A source that changes takes its faults along, or loses them."""
    for fault in FAULTS:
        assert fault.keys() == {"file", "kind", "old", "new", "test"}
        assert (ROOT / fault["file"]).read_text("utf-8").count(fault["old"]) == 1, fault
        assert fault["new"] != fault["old"]
        file, *_, name = fault["test"].partition("[")[0].split("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), fault
