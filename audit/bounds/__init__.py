"""Lower bounds from counts: pure functions, one file per theorem, each of which states when it holds.

`audit.methods` chooses the bound for each promise.
"""
