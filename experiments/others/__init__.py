"""Other software: auditors compared on the same outputs, and audits of libraries."""
