"""The measurements: run, choose events, count them on fresh runs, bound the loss; how bounds arise is for `methods`."""
