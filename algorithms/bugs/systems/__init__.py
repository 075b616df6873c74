"""Known bugs of whole systems, with one error each; bugs of small mechanisms are in `algorithms.bugs`."""
