"""Known bugs of whole systems: each does one thing wrong; bugs of small mechanisms are in `algorithms.bugs`."""
