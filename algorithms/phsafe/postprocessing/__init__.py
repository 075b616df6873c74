"""Post-processing of the noisy tables of a release to published tables with intervals; no persons are read here."""
