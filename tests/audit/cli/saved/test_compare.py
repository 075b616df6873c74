"""`plaudit compare`: what it prints first, and its exit codes."""

import json
import math

import pytest

from audit.claims import PureDP
from tests.helpers import audited


@pytest.fixture
def folders(tmp_path):
    def write(which, **results):
        for name, result in results.items():
            result.to_json(tmp_path / which / f"{name}.json")
        return tmp_path / which

    return write


def test_regressions_are_printed_first_and_fail(plaudit, folders):
    old = folders("old", a=audited(), b=audited(), c=audited())
    new = folders("new", a=audited(unit="record"), b=audited(claim=PureDP(2), verdict="not refuted"))
    code, printed, _ = plaudit("compare", old, new)
    assert code == 1
    assert printed.splitlines()[:3] == [
        "REGRESSION: a: the promise is for another unit, and may be weaker: one person -> one record",
        "REGRESSION: b: the promise got weaker: epsilon 1 (add_remove) -> epsilon 2 (add_remove)",
        "REGRESSION: c: the audit is gone",
    ]
    assert "b: these are other runs: only the bounds stand side by side" in printed


def test_less_power_has_an_exit_code_of_its_own(plaudit, folders):
    old = folders("old", a=audited(), b=audited())
    new = folders("new", a=audited(detectable=1.5), b=audited(detectable=9.0, verdict="no power"))
    code, printed, _ = plaudit("compare", old, new)
    assert code == 3
    assert printed.startswith("LESS POWER: a: the minimum detectable loss grew, relative to the promise: 1.250")
    assert "LESS POWER: b: no power" in printed
    assert plaudit("compare", old, folders("worse", a=audited(detectable=1.5))).code == 1  # a regression weighs more


def test_files_are_compared_whatever_their_names_and_with_the_audit_of_their_name_in_a_folder(plaudit, folders):
    old, new = folders("old", a=audited()), folders("new", b=audited(detectable=1.5))
    assert plaudit("compare", old / "a.json", new / "b.json").code == 3
    for files in ((old / "a.json", old / "a.json"), (old, old / "a.json"), (old / "a.json", old)):
        code, printed, _ = plaudit("compare", *files)
        assert (code, printed.splitlines()[0]) == (0, "The same as before: 1 audit.")


def test_json(plaudit, folders):
    old = folders("old", a=audited(detectable=math.inf, verdict="no power"), b=audited())
    new = folders("new", a=audited(), c=audited(confidential=True))
    code, printed, _ = plaudit("compare", old, new, "--json")
    values = json.loads(printed)
    assert (code, "CONFIDENTIAL" in plaudit("compare", old, new)[1]) == (1, True)
    assert (values["regressed"], values["weakened"], values["confidential"]) == (True, False, True)
    assert (values["compared"], values["repeated"]) == (1, 1)
    assert (values["audits"]["b"]["regressions"], values["audits"]["b"]["new"]) == (["the audit is gone"], None)
    assert values["audits"]["a"]["old"]["detectable"] == "inf"
    assert values["audits"]["a"]["notes"] == ["the verdict became not refuted, was no power"]
