"""Running a mechanism many times: streams, blocks, checkpoints, progress. Other packages decide the use of runs."""
