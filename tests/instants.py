"""Instants of a program, at one of which somebody asks it to end."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys

from audit.cli.supervision import ENDINGS, heed_endings


class Instants:
    """Lines of a program in the order in which they are first reached; at one of them a request to end arrives.

    They are lines below some folders, and of the library's folders and blocks, each told by file and number: what else
    is cleaned up meanwhile may reach some of them too.
    """

    def __init__(self, *folders, at=None):
        self.folders, self.at, self.reached = folders, at, {}

    def __enter__(self):
        self.former = [signal.signal(number, signal.SIG_DFL) for number in ENDINGS]  # one is ignored below nohup
        heed_endings()
        self.tracer = sys.gettrace()  # that measures which lines the tests reach, say
        sys.settrace(self.called)
        return self

    def __exit__(self, *_):
        sys.settrace(self.tracer)
        for number, handler in zip(ENDINGS, self.former, strict=True):
            signal.signal(number, handler)

    def called(self, frame, event, _):
        name = frame.f_code.co_filename
        return self.line if name.startswith(self.folders) or name in (shutil.__file__, contextlib.__file__) else None

    def line(self, frame, event, _):
        place = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and place not in self.reached:
            self.reached[place] = len(self.reached)
            if place == self.at:
                signal.raise_signal(ENDINGS[place[1] % len(ENDINGS)])  # in this thread, and so before the line
        return self.line
