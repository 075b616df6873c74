"""The explorer: a page of sheets to choose budgets, thresholds and margins. The systems register the sheets."""
