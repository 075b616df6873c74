"""Formulas of the explorer's workbook, which give the numbers of the sheets; the workbook lives in `audit.explorer`.

A formula names cells by their keys in brackets: ``[KEY]`` a result or a step, ``[in KEY]`` an input, ``[KEY:KEY]`` all
from one to the other. What is no result of the sheet is a step, which stands on a worksheet of steps.
"""
