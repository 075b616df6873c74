"""Reference implementations of the algorithms that statistical offices use, and known bugs; audits are in `audit`."""
