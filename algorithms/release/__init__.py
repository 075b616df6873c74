"""One engine for the releases of all systems: intake of files and frames, noise, tables, and a folder with a ledger."""
