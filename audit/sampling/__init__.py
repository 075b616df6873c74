"""Running a mechanism many times: streams, blocks, checkpoints, progress. What runs are for is decided elsewhere."""
