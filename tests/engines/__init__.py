"""Engines that exist, started on this machine: what they give is what one process gives."""
