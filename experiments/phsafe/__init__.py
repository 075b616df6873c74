"""PHSafe: its budgets, what neighbors spend of them, audits, and intervals."""
