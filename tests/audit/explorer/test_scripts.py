"""The scripts of the sheets `counts` and `audit`, run by node: they give the numbers of Python at random settings."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from algorithms.counts import explorer as counts
from audit.explorer import audits
from tests.audit.explorer.settings import differing, random_state

NODE = shutil.which("node")
RUN = """
const fs = require("fs"), {scripts, name, states, data} = JSON.parse(fs.readFileSync(0, "utf8")), sheets = {};
eval(`"use strict";${scripts.join("\\n")}`);
console.log(JSON.stringify(states.map(state => sheets[name].compute(state, data))));
"""

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def computed(sheet, states):
    """What the script of a sheet gives."""
    laws = resources.files("audit.explorer") / "static" / "laws.js"
    own = resources.files(sheet.script[0]) / sheet.script[1]
    asked = {"scripts": [Path(str(one)).read_text("utf-8") for one in (laws, own)], "name": sheet.name}
    asked |= {"states": states, "data": dict(sheet.data)}
    told = subprocess.run([NODE, "-e", RUN], input=json.dumps(asked), capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def compare(sheet, states):
    found = computed(sheet, states)
    wrong = {
        key: state for one, state in zip(found, states, strict=True) for key in differing(one, sheet.compute(state))
    }
    assert wrong == {}


@pytest.mark.slow
def test_numbers_of_counts():
    sheet, rng = counts.sheet(), np.random.default_rng(1)
    compare(sheet, [random_state(sheet, rng) for _ in range(1000)])


@pytest.mark.slow
@pytest.mark.parametrize("family", ["pure", "approx", "gaussian", "zcdp"])
def test_numbers_of_audits(family):
    """Groups of a thousand leave little to see, and a choice nothing to compute: three of four states have neither."""
    sheet, rng = audits.sheet(), np.random.default_rng(2)
    states = [random_state(sheet, rng) | {"audit/claim/all/family": family} for _ in range(400)]
    for place, state in enumerate(states):
        if place % 4:
            state["audit/plan/all/distance"] = place % 4
            state["audit/plan/all/selection"] = 0 if family in ("gaussian", "zcdp") or place % 3 == 0 else 0.3
    compare(sheet, states)


def test_numbers_at_the_published_states():
    for sheet in (counts.sheet(), audits.sheet()):
        compare(sheet, [sheet.published])
