"""From the noisy tables of a release to the published ones, with intervals; no persons are read here."""
