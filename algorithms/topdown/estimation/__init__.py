"""From noisy measurements to whole tables: the problem of a family, its solvers, and controlled rounding."""
