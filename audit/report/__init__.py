"""Views of saved results: line, table, figure, HTML page and machine formats; nothing here measures."""
