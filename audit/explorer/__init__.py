"""The explorer: one page of sheets on which budgets, thresholds and margins are chosen. It knows no sheet by name."""
