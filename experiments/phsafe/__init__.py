"""PHSafe: budgets, exact losses of neighbors, audits, and published intervals."""
