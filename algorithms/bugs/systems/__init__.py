"""Known bugs of whole systems, each a system that does one thing wrong; bugs of small mechanisms are a folder up."""
