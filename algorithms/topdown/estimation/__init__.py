"""The problem of one family of areas, its constraints and solvers; nothing here knows of a release."""
