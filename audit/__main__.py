"""The command ``python -m audit``, which is ``plaudit`` where the script is not on the path."""

from __future__ import annotations

from plaudit import main

if __name__ == "__main__":
    main()
