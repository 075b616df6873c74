"""Point estimates of a loss and their curves, with assumptions in words; nothing here can become a verdict."""
