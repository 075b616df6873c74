"""The command ``python -m audit``, which is ``plaudit`` where the script is not on the path."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("plaudit", run_name="__main__")
