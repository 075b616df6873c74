"""From counts to lower bounds: pure functions, one file a theorem, each of which states when it holds.

Which bound serves which promise is a matter of `audit.methods`.
"""
