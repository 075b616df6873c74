"""`plaudit report`: the page that it writes, what it replaces, and what it refuses."""

import pytest

from audit.results.files import write_json
from tests.audit.report.hostile import body
from tests.helpers import audited, estimated


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "release 1"
    place.mkdir()
    audited().to_json(place / "sound.json")
    return place


def test_a_report_of_a_folder_stands_in_it_and_that_of_a_file_beside_it(plaudit, folder):
    assert plaudit("report", folder / "sound.json").out.startswith(f"Wrote {folder / 'report.html'}: 1 audit, ")
    audited().to_json(folder / "more.json")
    assert plaudit("report", folder).out.startswith(f"Wrote {folder / 'report.html'}: 2 audits, ")
    assert "<title>Privacy audit of count</title>" in (folder / "report.html").read_text("utf-8")
    assert sorted(path.name for path in folder.iterdir()) == ["more.json", "report.html", "sound.json"]


def test_estimates_alone_are_within_their_claims(plaudit, tmp_path):
    write_json(tmp_path / "residuals.json", estimated().to_dict())
    code, words, _ = plaudit("report", tmp_path, "--out", tmp_path / "new" / "a\x1b[2J\nb.html")
    assert (code, "0 audits, 0 violated; 1 estimate." in words) == (0, True)
    assert "\x1b" not in words  # names do not reach the terminal as they are
    assert (tmp_path / "new" / "a\x1b[2J\nb.html").exists()


def test_a_public_report_has_no_names_of_folders(plaudit, folder):
    audited(mechanism="RDPC", confidential=True).to_json(folder / "of us.json")
    question = ("--author", "Disclosure control", "--question", "May it be released?")
    plaudit("report", folder, "--public", "--title", "Release <1>", *question)
    page = (folder / "report.html").read_text("utf-8")
    for words in question[1::2]:
        assert f"<dd>{words}</dd>" in page
    assert "<bdi>Release &lt;1&gt;</bdi>" in page
    assert ": RDPC" in page  # one of ours
    assert ": count" not in body(page)
    plaudit("report", folder, "--public")
    again = (folder / "report.html").read_text("utf-8")
    assert not [words for words in ("release 1", question[1]) if words in again]


def test_a_folder_without_systems_names_no_mechanism(plaudit, folder, monkeypatch):
    def missing(name):
        raise ValueError("the reference implementations must be installed")

    monkeypatch.setattr("audit.installed.plugin", missing)
    audited(mechanism="GDPC").to_json(folder / "gdpc.json")
    plaudit("report", folder, "--public")
    assert "GDPC" not in (folder / "report.html").read_text("utf-8")
