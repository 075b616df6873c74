"""What the five papers print and claim, item by item, with where it is here and how close: the page docs/papers.md."""
