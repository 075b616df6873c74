"""A saved result with any of its values changed, and signed again: read and shown in every view, or refused by name."""

from __future__ import annotations

from random import Random

import pytest

from audit.report.formats import FORMS, to_json
from audit.report.page import build_report
from audit.results.folder import read_results
from audit.review.compare import compare_results
from audit.review.verify import verify_result
from tests.fuzz.holding import FOREIGN
from tests.fuzz.spoiling import changed_json
from tests.helpers import in_full


def views(found, public):
    """What commands do with results, one by one."""
    for name, audit in found.audits:
        yield lambda audit=audit: verify_result(audit)
        yield lambda named=(name, audit): compare_results([named], [named], confidence=0.99)
    yield lambda: [str(one) for some in found for _, one in some]
    yield lambda: [form(found.audits) for form in FORMS.values() if found.audits]
    yield lambda: to_json([*found.audits, *found.replays])
    yield lambda: build_report(*found, title="", public=public, published=())


def refusals(folder, public):
    """What is said where a file, or a view of it, is refused; any other error is none that anybody foresaw."""
    try:
        found = read_results(folder)
    except ValueError as error:
        yield str(error)
        return
    for view in views(found, public):
        try:
            view()
        except ValueError as error:
            yield str(error)


@pytest.mark.parametrize("cases", in_full(25, 6000))
def test_a_changed_result_is_shown_or_refused_by_name(cases, desk, tmp_path):
    files, said = sorted(desk.glob("*/*.json")), {}
    for number in range(cases):
        rng = Random(number)
        (tmp_path / "result.json").write_bytes(changed_json(rng, rng.choice(files).read_bytes()))
        said[number] = list(refusals(tmp_path, public=number % 2 == 0))
    assert {number: words for number, words in said.items() if any(map(FOREIGN.search, words))} == {}
    assert 0.2 < sum(map(bool, said.values())) / cases < 1
