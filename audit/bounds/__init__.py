"""Lower bounds from counts: pure functions, one file per theorem, each of which states when it holds.

Counts are integers or arrays of them, shape (m,); `confidence` is one-sided, in (0, 1). Losses are in nats, of the pair
unless stated otherwise: divide by the distance of a group pair. `audit.methods` chooses the bound for each promise.
"""
