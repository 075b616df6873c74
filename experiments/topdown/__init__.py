"""TopDown: errors, losses, published tables and known bugs."""
