"""Views of saved results: lines, tables, figures, HTML pages and machine formats. Nothing is measured here."""
