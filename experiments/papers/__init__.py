"""The page docs/papers.md: each item of the five papers, where it is reproduced, and how close."""
