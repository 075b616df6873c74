"""Software of others: auditors on the same outputs, and libraries that are audited."""
