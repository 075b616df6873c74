"""TopDown's sheet of the explorer, in Python and in JavaScript; the page itself is in `audit.explorer`."""
