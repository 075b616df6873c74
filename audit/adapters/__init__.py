"""Mechanisms of other libraries, one file each; imported at a call, with randomness of its own."""
