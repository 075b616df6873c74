"""The estimation problem of one family of areas, its constraints and solvers, independent of releases."""
