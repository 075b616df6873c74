"""What every command prints with --json is what `audit/schema.json` describes, field by field."""

import json
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from audit.cli.app import _commands as commands
from audit.results import AuditResult, LossEstimate, ReplayRecord
from audit.results.plain import Basis
from tests.audit.cli.desk import Command, strict

SCHEMA = json.loads(files("audit").joinpath("schema.json").read_text("utf-8"))
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def test_every_field_is_described_in_a_sentence():
    CHECK.check_schema(SCHEMA)
    printing = {
        name for name, one in commands().commands.items() if any("--json" in option.opts for option in one.params)
    }
    assert SCHEMA["properties"].keys() == printing
    parts = [SCHEMA, *SCHEMA["$defs"].values()]
    described = [field for part in parts for field in part.get("properties", {}).values()]
    assert [field for field in described if not field.get("description", "").endswith(".")] == []
    assert [part for part in parts if "properties" in part and part["additionalProperties"] is not False] == []
    assert SCHEMA["$defs"]["basis"]["properties"].keys() == Basis.__annotations__.keys()
    for name, record in (("audit", AuditResult), ("estimate", LossEstimate), ("replay", ReplayRecord)):
        own = SCHEMA["$defs"][name]["properties"].keys() - {"kind", "schema", "sha256", "verdict"}
        assert own == {one.name for one in fields(record)} - {"verdict"}


@pytest.mark.parametrize("words", Path(__file__).with_name("printing.txt").read_text("utf-8").splitlines())
def test_what_is_printed_is_what_is_described(plaudit: Command, words: str) -> None:  # two audits: 1 s
    printed = strict(plaudit(*words.split(), "--json").out)
    CHECK.validate({words.split()[0]: printed})
    if "--out" in words:
        plaudit(*["replay", "gdpc", "--out", "out"])
        CHECK.validate({"check": strict(plaudit("check", "out", "--json").out)})
        CHECK.validate({"compare": strict(plaudit("compare", "out", "out", "--json").out)})
        (first, *_) = printed.values()
        wrong = ({**first, "extra": 1}, {**first, "detectable": "large"}, {**first, "basis": {"extra": 1}})
        assert [CHECK.is_valid({"audit": {"a": one}}) for one in (first, *wrong)] == [True, False, False, False]
