"""Formulas of the explorer's workbook, which give the numbers of the systems' sheets.

The workbook lives in `audit.explorer`, whose `layout` says how a formula names cells.
"""
