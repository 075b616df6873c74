"""What enters and leaves: files whole or not at all, JSON of bounded size, text for terminals and spreadsheets."""
