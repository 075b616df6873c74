"""What attacks find, by whole audits."""
