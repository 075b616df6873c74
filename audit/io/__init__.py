"""Input and output: atomic writes, JSON of bounded size, and safe text for terminals and spreadsheets."""
