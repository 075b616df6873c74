"""The bounds: their error rates, their tightness, and the runs that they need."""
