"""The estimation problem of one family of areas, its constraints and solvers; none of it depends on a release."""
