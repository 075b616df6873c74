"""Formulas of the sheet `audit` for the workbook; `audit.explorer.layout` says how a formula names cells."""
