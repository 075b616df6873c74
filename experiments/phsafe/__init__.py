"""PHSafe: its budgets, what neighbors spend of them, and audits."""
