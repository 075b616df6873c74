"""Folders of results, and reports of test sessions: two audits never share a file, and every command reads them all."""

import os
from pathlib import Path

import pytest

from audit.results.files import read_json, write_json
from tests.audit.cli.desk import BUGGY, OWN, QUICK, VIOLATION, WITHIN, Command, refused, save_persons
from tests.audit.results.test_folder import entry
from tests.helpers import audited, estimated, replayed


def test_a_violation_of_one_pair_is_not_lost_to_another(plaudit: Command) -> None:
    """The second audit of a mechanism, into the same folder, on a pair that shows nothing."""
    Path("helper.py").write_text(BUGGY)
    arguments = ("audit", "helper:buggy", *OWN, *QUICK, "--out", "res")
    assert plaudit(*arguments, "--cell", "2").code == VIOLATION
    second = plaudit(*arguments, "--cell", "0")
    assert second.code == WITHIN
    assert second.out.endswith("Saved in res/: one JSON file an audit.\n")
    assert sorted(os.listdir("res")) == ["helper-buggy-cell-0.json", "helper-buggy-cell-2.json"]
    assert plaudit("check", "res").code == VIOLATION
    assert plaudit("report", "res").out == "Wrote res/report.html: 2 audits, 1 violated; 0 estimates.\n"


@pytest.mark.parametrize(
    "command",
    [
        *("report kept --out linked/a.html", "explore counts --html linked/a.html", "replay gdpc --out linked"),
        "release bottom-up --data persons.csv --areas state --spec spec.json --epsilon 1 --seed 1 --out linked/out",
    ],
)
def test_where_a_linked_folder_leads_is_said(plaudit: Command, workspace: Path, command: str) -> None:
    save_persons()
    audited().to_json("kept/a.json")
    Path("real").mkdir()
    Path("linked").symlink_to("real")
    outcome = plaudit(*command.split())
    assert os.listdir("real")
    assert f"plaudit: {workspace / 'linked'}" in outcome.err
    assert f" leads through a link: what is written there is in {workspace / 'real'}" in outcome.err


@pytest.fixture
def mixed(workspace: Path) -> Path:
    """An audit and an estimate of a folder, and one of which a replay shows a violation."""
    for folder in ("sound", "broken"):
        (workspace / folder).mkdir()
        audited(bound="unknown").to_json(workspace / folder / "audit.json")
        write_json(workspace / folder / "estimate.json", estimated().to_dict())
    violation = {"kind": "output", "sentence": "the outputs differ"}
    write_json(workspace / "broken/replay.json", replayed(violations=(violation,)).to_dict())
    return workspace


@pytest.mark.parametrize("form", ["table", "json", "line", "markdown", "csv"])
def test_check_leaves_estimates_out_and_counts_replays(plaudit: Command, mixed: Path, form: str) -> None:
    sound = plaudit("check", "sound", "--format", form)
    assert (sound.code, sound.err) == (WITHIN, "plaudit: 1 estimate in sound left out\n")
    broken = plaudit("check", "broken", "--format", form)
    assert broken.code == VIOLATION
    assert broken.err.startswith("plaudit: 1 estimate in broken left out\n")
    assert broken.out.startswith(sound.out if form != "json" else sound.out.removesuffix("\n}\n"))
    assert "the outputs differ" in (broken.out if form in ("table", "json", "line") else broken.err)
    assert plaudit("check", "broken/replay.json", "--format", form).code == VIOLATION


def test_commands_that_need_counts_leave_estimates_and_replays_out(plaudit: Command, mixed: Path) -> None:
    left = "plaudit: 1 estimate and 1 replay in broken left out\n"
    compared = plaudit("compare", "sound", "broken")
    assert (compared.code, compared.err) == (WITHIN, "plaudit: 1 estimate in sound left out\n" + left)
    assert plaudit("verify", "broken").err.startswith(left)
    for command in (("verify", "broken/replay.json"), ("compare", *["broken/replay.json"] * 2)):
        assert refused(plaudit(*command), "broken/replay.json must hold saved audits, got replays only")


def test_a_report_shows_replays_and_estimates_apart(plaudit: Command, mixed: Path) -> None:
    message = "Wrote broken/report.html: 1 audit, 0 violated; 1 replay, 1 violated; 1 estimate.\n"
    assert plaudit("report", "broken") == (VIOLATION, message, "")
    page = Path("broken/report.html").read_text("utf-8")
    assert page.index("each audit found<") < page.index("each replay found<") < page.index("Estimates, never bounds<")


def test_a_name_in_a_session_leads_to_no_other_file(plaudit: Command, workspace: Path) -> None:
    audits = [entry("../secret", audit=audited().to_dict())]
    (workspace / "secret call 1.json").write_text("no result")
    write_json(workspace / "all/audits.json", {"kind": "session", "seed": 0, "audits": audits})
    assert plaudit("compare", "all", "all").code == WITHIN


def modes(folder: str) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize(("options", "mode"), [((), 0o600), (("--public-data",), 0o644)])
def test_what_is_confidential_is_for_its_owner_alone(plaudit: Command, options: tuple[str, ...], mode: int) -> None:
    former = os.umask(0o022)
    try:
        plaudit("audit", "mine:noisy", *OWN, *QUICK, *options, "--out", "res", "--store", "kept")
        Path("errors.csv").write_text("".join(f"{number % 7 - 3}\n" for number in range(500)))
        printed = plaudit("estimate", "--residuals", "errors.csv", "--seed", "1", *options, "--out", "res").out
        plaudit("report", "res")
        plaudit("report", "res", "--public", "--out", "public.html")
    finally:
        os.umask(former)
    names = ["errors.csv-lag_tail.json", "errors.csv-lag_tail.png", "mine-noisy.json", "report.html"]
    assert modes("res") == dict.fromkeys(names, mode)
    assert {kind for path, kind in modes("kept").items() if path.endswith(".block")} == {0o600}
    assert printed.startswith("CONFIDENTIAL: ") == (mode == 0o600)
    assert Path("public.html").stat().st_mode & 0o777 == 0o644


def test_no_result_says_where_on_a_disk_its_files_were(plaudit: Command, workspace: Path) -> None:
    elsewhere = workspace.parent / "somebody"
    elsewhere.mkdir()
    (elsewhere / "counts.csv").write_text("120\n75\n43\n")
    placed = f"from mine import promising as placed\nplaced.model = {str(elsewhere / 'model.bin')!r}\n"
    (workspace / "helper.py").write_text(placed)
    for data in (workspace / "counts.csv", "../somebody/counts.csv"):
        plaudit("audit", "helper:placed", "--data", str(data), *QUICK, "--attack", "entries", "--out", "res")
    plaudit("report", "res")
    for path in Path("res").iterdir():
        assert b"somebody" not in path.read_bytes()
        assert str(workspace).encode() not in path.read_bytes()
    found = read_json(Path("res/helper-placed.json"))["provenance"]
    assert found["command"].startswith("plaudit audit helper:placed --data counts.csv --size")
    assert found["parameters"]["mechanism"]["model"] == "model.bin"
    assert plaudit("verify", "--rerun", "res/helper-placed.json").code == WITHIN  # where counts.csv is the same
