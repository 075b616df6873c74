"""Work as it is sent to a cluster: unpacked once by each thread, and refused where it cannot be (clusters: engines)."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

from audit.io.clusters import UNSENT, _done, packed
from tests.helpers import refuses


def test_work_is_unpacked_once_in_each_thread_and_is_its_own_there():
    made = []

    def work(task):
        made.append(task)
        return len(made)

    sent = packed(work)
    assert [_done(sent, task) for task in "abc"] == [1, 2, 3]  # what came over, which is not this list
    assert made == []
    other = []
    thread = threading.Thread(target=lambda: other.append(_done(sent, "d")))
    thread.start()
    thread.join()
    assert other == [1]
    assert _done(packed(work), "e") == 1


def test_what_cannot_be_sent_or_unpacked_is_refused(monkeypatch):
    lock = threading.Lock()
    refuses(ValueError, UNSENT, packed, lambda task: lock)
    module = ModuleType("onlyhere")
    exec("def work(task):\n    return task", vars(module))
    monkeypatch.setitem(sys.modules, "onlyhere", module)
    sent = packed(module.work)
    assert _done(sent, 3) == 3
    monkeypatch.delitem(sys.modules, "onlyhere")
    words = "workers must be able to import what the mechanism does, got No module named 'onlyhere'"
    refuses(ValueError, words, _done, ("another name", sent[1]), 3)
