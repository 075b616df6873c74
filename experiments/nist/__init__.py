"""NistDp3: the quality of its synthetic rows, and the losses of its stages."""
