"""The page of reliability: what was tried on plaudit itself, how often, and what failed."""
