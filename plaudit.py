"""The public names of `audit`, the command `plaudit`, and its pytest plugin, imported from the folder of this file.

The user's project may also have packages named `audit` or `algorithms`. The command still runs ours, and the plugin
turns itself off.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

HOME = str(Path(__file__).resolve().parent)
PACKAGES = ("audit", "algorithms")


def main() -> None:
    """Run the command with our packages, even if others of the same name are earlier on the path."""
    try:
        if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):  # `python -m` adds the current folder
            del sys.path[0]
        if sys.path[:1] != [HOME]:
            sys.path.insert(0, HOME)
        for name in PACKAGES:
            import_module(name)
        # Libraries are imported in the supervised process: out of memory, one may end its process with exit code 1.
        import_module("audit.cli.supervision").supervised(lambda: import_module("audit.cli").main(), "plaudit")
    except SystemExit:
        raise
    except BaseException as error:  # before supervision; Python would exit with 1, which means a violation
        words = f"{type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.strerror:  # without the errno
            words = error.strerror.lower()
        print("plaudit: error:", plain(words), file=sys.stderr)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 2)


def foreign_package(folders: list[str]) -> str:
    """Return the path of another package with the name of one of ours in these folders, or an empty string."""
    for name in PACKAGES:
        spec = PathFinder.find_spec(name, folders)
        if spec is not None and spec.origin and Path(spec.origin).resolve() != Path(HOME, name, "__init__.py"):
            return spec.origin
    return ""


def plain(words: str) -> str:
    """Return text in one line without control characters; `audit.io.text.printable` may not be importable here."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in words).split())


class PytestPlugin:
    """Loads the plugin once the project's folders are known, unless they have packages with the names of ours."""

    foreign_package = staticmethod(foreign_package)

    def pytest_load_initial_conftests(self, early_config: Any) -> None:
        """Register the plugin, or remember the package that prevents it."""
        root, here = early_config.rootpath, early_config.invocation_params.dir
        self.origin = foreign_package([str(here)]) or foreign_package([str(root)]) or foreign_package(sys.path)
        if not self.origin:
            early_config.pluginmanager.register(import_module("audit.testing.plugin"), "plaudit-plugin")

    def pytest_report_header(self) -> list[str]:
        """Return a line that says why the plugin is off."""
        return (
            [f"plaudit: off, because {plain(self.origin)} has the name of one of its packages"] if self.origin else []
        )


pytest_plugin = PytestPlugin()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return metadata.version("plaudit")
    # The import system looks up special names. That lookup must not import a package of the same name.
    audit = None if name.startswith("__") else import_module("audit")
    if audit is not None and Path(HOME, "audit", "__init__.py") != Path(audit.__file__ or "").resolve():
        found = f"Python finds another package of that name, {audit.__file__}"
        raise ImportError(f"plaudit.{name} is in the package audit of plaudit, and {found}: PYTHONPATH={HOME} helps")
    if name not in getattr(audit, "__all__", ()):
        raise AttributeError(f"module 'plaudit' has no attribute {name!r}")
    return getattr(audit, name)


def __dir__() -> list[str]:
    return sorted(["__version__", *import_module("audit").__all__])


if __name__ == "__main__":
    main()
