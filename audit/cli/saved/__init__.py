"""Commands that read finished results: check, compare, verify and report; nothing is measured here."""
