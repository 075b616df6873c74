"""The explorer in Firefox, over WebDriver BiDi, which it speaks itself: the numbers of Python, and no error."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from audit.explorer.page import build_page
from audit.explorer.sheet import Explored
from tests.audit.explorer.conftest import known_sheets
from tests.audit.explorer.settings import TAKEN, differing, random_state

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
SECONDS = 120  # until Firefox has started, or answers
SETTINGS = 10  # of each sheet

pytestmark = [pytest.mark.slow, pytest.mark.skipif(FIREFOX is None, reason="Firefox is not installed")]


class Firefox:
    """A page in Firefox: `evaluate` calls a function in it, and `errors` are what its scripts threw."""

    def __init__(self, socket):
        self.socket, self.sent, self.errors = socket, 0, []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self.context = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method, **params):
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv(timeout=SECONDS))
            if answer.get("method") == "log.entryAdded":
                self.errors.append(answer["params"]["text"])
            elif answer.get("id") == self.sent:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, address):
        self.ask("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def evaluate(self, function, argument=None):
        call = f"JSON.stringify(({function})({json.dumps(argument)}))"
        target = {"context": self.context}
        found = self.ask("script.evaluate", expression=call, target=target, awaitPromise=True)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    folder = tmp_path_factory.mktemp("firefox")
    path = folder / "explorer.html"
    path.write_text(build_page(Explored(known_sheets()[0]), known_sheets()), "utf-8")
    command = [
        FIREFOX,
        "--headless",
        "--no-remote",
        "--profile",
        str(folder / "profile"),
        "--remote-debugging-port",
        "0",
    ]
    (folder / "profile").mkdir()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = next(
                found[1] for line in process.stderr if (found := re.search(r"listening on (ws://\S+)", line))
            )
            with client.connect(f"{address}/session", max_size=None, open_timeout=SECONDS) as socket:
                page = Firefox(socket)
                page.open(path.as_uri())
                yield page
        finally:
            process.terminate()


def test_numbers_and_cells_are_those_of_python(firefox):
    for place, sheet in enumerate(known_sheets()):
        rng = np.random.default_rng(40 + place)
        states = [sheet.published, *(random_state(sheet, rng) for _ in range(SETTINGS))]
        for state, (left, cells, results) in zip(states, firefox.evaluate(TAKEN, [sheet.name, states]), strict=True):
            assert left == []
            assert differing(results, sheet.compute(state)) == []
            for key, value in cells:
                if key in results:
                    result = results[key]
                    assert value == "" if result is None else type(result)(value) == result
    assert firefox.errors == []


def test_a_margin_that_is_typed_changes_its_budget(firefox):
    typed = """key => {
        explorer.turn("phsafe");
        explorer.take(store.published);
        const [margin, rho] = ["margin", "rho"].map(name => document.querySelector(`[data-input="${key}/${name}"]`));
        margin.value = "10";
        margin.dispatchEvent(new Event("change"));
        return [rho.value, document.getElementById("problem").textContent];
    }"""
    assert firefox.evaluate(typed, "phsafe/PH3/state_A-G") == ["2.6519", ""]
    assert firefox.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert firefox.errors == []
