"""`import plaudit`, and a project that has packages called `audit` or `algorithms` of its own."""

import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

import audit
import plaudit

HEAVY = ("numpy", "scipy", "matplotlib", "sklearn", "joblib", "pandas", "numba", "duckdb", "rich", "jinja2")
SCRIPT = Path(sysconfig.get_path("scripts")) / "plaudit"


def python(code, *, folder):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_public_names_are_those_of_audit():
    assert dir(plaudit) == sorted(["__version__", *audit.__all__])
    for name in audit.__all__:
        found = getattr(plaudit, name)
        assert found is getattr(audit, name) or name == "replay"  # also a package, which is callable once it is loaded
    assert plaudit.__version__ == metadata.version("plaudit")
    with pytest.raises(AttributeError, match="module 'plaudit' has no attribute 'certify'"):
        _ = plaudit.certify


def test_another_package_called_audit_is_named_with_what_helps(tmp_path):
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "__init__.py").touch()
    code = "import plaudit\ntry:\n    plaudit.PureDP\nexcept ImportError as error:\n    print(error)"
    printed = python(code, folder=tmp_path)
    where = tmp_path / "audit" / "__init__.py"
    assert printed == (
        "plaudit.PureDP is in the package audit of plaudit, and Python finds another package of that name, "
        f"{where}: PYTHONPATH={plaudit.HOME} helps\n"
    )
    assert python(f"import sys\nsys.path.insert(0, {plaudit.HOME!r})\n{code}", folder=tmp_path) == ""


def test_the_script_is_the_command():
    (script,) = metadata.entry_points(group="console_scripts", name="plaudit")
    assert script.load() is plaudit.main


class PanicError(BaseException):
    """As foreign libraries raise it: no Exception."""


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ImportError("in /\x1b[31mred\x9b"), 2, "ImportError: in / [31mred"),
        (PanicError("no thread"), 2, "PanicError: no thread"),
        (KeyboardInterrupt(), 130, "KeyboardInterrupt:"),
    ],
)
def test_what_goes_wrong_before_the_command_is_no_violation(monkeypatch, capsys, error, code, words):
    def raising(name):
        raise error

    monkeypatch.setattr(plaudit, "import_module", raising)
    monkeypatch.setattr(sys, "path", [plaudit.HOME])
    with pytest.raises(SystemExit) as stop:
        plaudit.main()
    assert stop.value.code == code
    assert capsys.readouterr() == ("", f"plaudit: error: {words}\n")


def test_what_is_heavy_waits_until_it_is_needed(tmp_path):  # nor does the package need it: test_house.py
    run = "import sys, plaudit\nsys.argv[1:] = ['--help']\n"
    run += "try:\n    plaudit.main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
    printed = python(run + f"print('loaded', [name for name in {HEAVY} if name in sys.modules])", folder=tmp_path)
    assert printed.splitlines()[-1] == "loaded []"


@pytest.fixture
def project(tmp_path):
    """A project of somebody else with packages of both names, tests and a mechanism."""
    for name in ("audit", "algorithms"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the project'\n")
    (tmp_path / "test_own.py").write_text(
        "import audit, algorithms\n\n\ndef test_owner():\n    assert audit.OWNER == algorithms.OWNER == 'the project'\n"
    )
    return tmp_path


@pytest.mark.parametrize("path", [["-P"], []])
def test_the_plugin_yields_to_packages_of_the_same_names(project, path):
    """With the folder on the path from the start, and without, as the script pytest has it."""
    others = [f"-pno:{name}" for name in ("cacheprovider", "xdist", "cov", "benchmark", "hypothesispytest")]
    words = [sys.executable, *path, "-m", "pytest", *others, "-W", "error"]
    found = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stdout + found.stderr
    lines = [line for line in found.stdout.splitlines() if line.startswith("plaudit")]
    assert lines == [f"plaudit: off, because {project / 'audit' / '__init__.py'} has the name of one of its packages"]


def test_a_folder_or_a_module_that_shadows_nothing_is_no_reason(tmp_path):
    (tmp_path / "audit").mkdir()  # of papers, say: not a package
    assert plaudit.foreign_package([str(tmp_path)]) == ""
    assert plaudit.foreign_package([plaudit.HOME]) == ""
    (tmp_path / "algorithms.py").touch()
    assert plaudit.foreign_package([str(tmp_path)]) == str(tmp_path / "algorithms.py")


@pytest.mark.parametrize(
    ("command", "path"),
    [([str(SCRIPT)], "{}"), pytest.param([sys.executable, "-m", "audit"], "", marks=pytest.mark.slow)],
)
def test_no_package_of_the_project_is_taken_for_ours_and_nothing_in_the_current_folder(project, command, path):
    """By the command, nor by the two worker processes that it starts, nor by what these start: four processes, 2 s.

    The project's packages have the names of ours and are on the path; what is in the folder has those of libraries."""
    folder = project / "folder"
    folder.mkdir()
    for name in ("joblib", "numpy", "scipy", "sklearn", "rich"):
        (folder / f"{name}.py").write_text("open('taken', 'a').write(__name__)\nraise SystemError\n")
    (folder / "mine.py").write_text(
        "import os, sys\n"
        "def noisy(counts, size, rng):\n"
        "    open(f'process {os.getpid()}', 'w').write(os.environ.get('PYTHONSAFEPATH', ''))\n"
        "    return counts + rng.laplace(size=(size, counts.size))\n"
        "noisy.runs_per_block = 250\n"
    )
    (folder / "counts.csv").write_text("120\n75\n43\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment |= {"PYTHONPATH": path.format(project)}
    arguments = "audit mine:noisy --data counts.csv --claim pure:1 --confidence 0.999 --size 1000 --seed 1 --jobs 2"
    words = [*command, *arguments.split(), "--timeout", "60"]
    found = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stderr) == (0, "")
    assert "mine:noisy" in found.stdout
    assert not (folder / "taken").exists()
    processes = list(folder.glob("process *"))
    assert len(processes) >= 2
    assert {path.read_text() for path in processes} == {""}
