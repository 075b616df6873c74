"""Running a mechanism many times: streams, blocks, checkpoints, progress. Other packages decide what runs are for."""
