"""All systems in one table: promise, exact loss, lower bound and estimates."""
