"""A command, and what it leaves where nothing disturbs it: what disturbed runs are held against."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from audit.cli.exits import USAGE
from audit.io.temporary import STAGED
from tests.fuzz.holding import FOREIGN, tree
from tests.processes.commands import prepare
from tests.processes.running import KILLED, Changes, Ended, halves, run, run_here, visible

FIGURE = "plaudit: the figure audits.png could not be drawn: "
ABOUT_ALL = {"out/audits.png": b"IEND\xaeB`\x82", "out/README.md": b".\n"}
NOBODY = 65534


class Making:
    """A command, and what it leaves where nothing disturbs it."""

    def __init__(self, command: str, desk: Path, place: Path):
        self.command, self.desk, self.place, self.made = command, desk, place, 0
        self.program = self.command.split()[0]
        folder = self.prepared()
        run_here(self.command, folder)
        folder = self.prepared()
        self.before = visible(tree(folder))
        changes, begun = Changes(folder), time.perf_counter()
        self.undisturbed = run(self.command, folder, changes.watched(), watched=True)
        self.seconds = time.perf_counter() - begun
        self.steps, self.whole = changes.seen, visible(tree(folder))
        self.new = sorted(self.whole.keys() - self.before.keys())
        assert self.undisturbed.code != USAGE, self.undisturbed  # a command that is refused holds nothing
        self.largest = max((len(self.whole[path] or b"") for path in self.new), default=1)

    def prepared(self) -> Path:
        """Return a fresh folder of good files; the one before is removed."""
        shutil.rmtree(self.place / str(self.made), ignore_errors=True)
        self.made += 1
        place = self.place / str(self.made)
        place.mkdir()
        return prepare(self.desk, place, self.command)

    def held(self, ended: Ended, folder: Path, *, lost: bool = False, unread: bool = False) -> bool:
        """Hold what a disturbed run says and leaves against what may be; tell whether it came to its end.

        What was there may be `lost`, or `unread` because the disk fails at some step: what is about all results of a
        folder is about the others, then.
        """
        found = visible(tree(folder))
        halved = halves(found, self.before, self.whole)
        if lost or unread:
            halved = [path for path in halved if not (found[path] or b"").endswith(ABOUT_ALL.get(path, b"\0"))]
        if unread:  # a disk that fails to remove what was not to stay
            halved = [path for path in halved if not KILLED.search(path)]
        assert halved == [], (halved, ended)
        assert lost or self.before.keys() <= found.keys()
        *told, last = ended.err.splitlines() or [""]
        if ended.code == self.undisturbed.code:
            figure = last.startswith(FIGURE)
            assert figure or ended.err == self.undisturbed.err
            missing = {path for path in self.whole.keys() - found.keys() if not (figure and path.endswith(".png"))}
            assert lost or not missing
            return True
        assert ended.code == 2, ended
        assert last.startswith(f"{self.program}: error: "), ended
        assert not FOREIGN.search(last.removeprefix(f"{self.program}: error: ")), ended
        usual = self.undisturbed.err.splitlines()  # columns that are not released
        assert all(line.startswith(FIGURE) or line in usual for line in told), ended
        if " release " in self.command and "holds a whole release" not in last:
            assert "out" not in found
        return False

    def again(self, folder: Path) -> None:
        """Run the command where another run of it was cut short: what it leaves is whole, and is what it would be."""
        left = {path for path in visible(tree(folder)) if KILLED.search(path)}
        once = any(word in self.command for word in (" release ", " --save ", " --xlsx "))
        whole = once and (folder / self.new[0]).exists()
        before = tree(folder / "out") if whole else {}
        again = run(self.command, folder)
        if whole:  # it appeared in one step, and it stays
            assert again.code == 2
            assert "out must be a new or an empty folder" in again.err or "name a new file" in again.err
            assert tree(folder / "out") == before
        else:
            assert again.code == self.undisturbed.code, again
            named = again.err.count("left by a run that was killed: ")
            assert named >= len({os.path.dirname(path) for path in left if STAGED not in path or "/" not in path})
        found = visible(tree(folder))
        assert found.keys() - left == self.whole.keys()
        assert halves({path: found[path] for path in self.whole}, self.whole) == []
        assert run("plaudit doctor --clean .", folder).code == 0
        assert visible(tree(folder)) == {path: content for path, content in found.items() if path not in left}

    def same(self, folder: Path) -> bool:
        """Tell whether a folder holds what it does where nothing disturbs the command."""
        found = visible(tree(folder))
        return found.keys() == self.whole.keys() and not halves(found, self.whole)
