"""Commands that release: what the tests of the small systems share."""

import json
from pathlib import Path

from tests.helpers import beside_reading, contents, plaudit, refused_by


def specification(schema):
    """What the file of a schema holds."""
    return {"attributes": {name: list(levels) for name, levels in schema.attributes.items()}}


def released(system, **options):
    """The exit code of a release: an option is repeated, has no value, or is not given, for a list, True and None."""
    words = []
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value] * (value is not None):
            words += [f"--{name.replace('_', '-')}", *([one] * (one is not True))]
    return plaudit("release", system, *words)


def record(folder="out"):
    """What a release says of itself."""
    return json.loads(Path(folder, "release.json").read_text())


def all_but_reading(folder="out"):
    """What a release holds, but for how the columns of its data were made."""
    about = {name: value for name, value in record(folder).items() if name != "reading"}
    return contents(Path(folder)) | {"release.json": about}


def names(folder="out"):
    """The files of a release."""
    return sorted(path.name for path in Path(folder).iterdir())


def refused_in_one_line(capsys, words, system, **options):
    """A release is refused in one line, in these words, and nothing is written; columns may have been read before."""
    *findings, line = refused_by(lambda: (released(system, **options), *capsys.readouterr()))
    assert words in line
    assert beside_reading("\n".join(findings)) == []
