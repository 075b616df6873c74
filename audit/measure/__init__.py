"""The measurements: run, choose events, count them on fresh runs, bound the loss. `audit.methods` has the bounds."""
