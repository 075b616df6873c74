"""Mechanisms of other libraries, one file each. Libraries are imported on call, and use their own randomness."""
