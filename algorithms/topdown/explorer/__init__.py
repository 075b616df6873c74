"""TopDown's sheet of the explorer, in Python and in JavaScript; what the page is lives in `audit.explorer`."""
