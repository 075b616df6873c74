"""NistDp3: its rows, its losses and its cut."""
