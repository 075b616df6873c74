"""LibreOffice, which computes every formula of a workbook anew: what was saved does not count."""

from __future__ import annotations

import shutil
import subprocess

import openpyxl
import pytest

SOFFICE = shutil.which("soffice")
ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>
"""
needs_office = pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")


def recomputed(folder):
    """Every workbook in a folder with the values of its cells, one after the other."""
    (folder / "profile/user").mkdir(parents=True)
    (folder / "profile/user/registrymodifications.xcu").write_text(ALWAYS)
    files = sorted(folder.glob("*.xlsx"))
    command = [SOFFICE, f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", "xlsx"]
    command += ["--outdir", str(folder / "computed"), *map(str, files)]
    subprocess.run(command, check=True, capture_output=True, timeout=3600)
    for file in files:
        yield openpyxl.load_workbook(folder / "computed" / file.name, data_only=True)
