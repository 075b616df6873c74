"""Parts that all systems share: intake of files and frames, engines, the release folder, ledgers; no mechanisms."""
