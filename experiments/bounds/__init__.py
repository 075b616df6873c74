"""The bounds themselves: how often they are wrong, how close they come, how many runs they take."""
