"""Audits of outputs that are not plain arrays: sound ones are not accused, leaks are found."""
