"""Software, platform, time and parameters of a run, which every saved result records besides its seed."""

from __future__ import annotations

import datetime
import functools
import platform
from importlib import metadata
from typing import Any

__all__ = ["provenance", "version_of"]

PACKAGES = ("plaudit", "numpy", "scipy", "scikit-learn", "joblib")


def provenance(**parameters: Any) -> dict[str, Any]:
    """Return software, Python, platform, time (UTC, in seconds) and parameters of a run, as plain values for JSON."""
    return {
        "software": {name: version_of(name) or "not installed" for name in PACKAGES},
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "parameters": parameters,
    }


@functools.cache  # reading the metadata of a package takes as long as a thousand runs
def version_of(package: str) -> str:
    """Return the version of a package; empty if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # for example a source tree on the path
        return ""
