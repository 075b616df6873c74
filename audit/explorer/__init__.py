"""The explorer: one page of sheets to choose budgets, thresholds and margins. It knows no sheet by name."""
