"""Input and output: files written whole or not at all, JSON of bounded size, text for terminals and spreadsheets."""
