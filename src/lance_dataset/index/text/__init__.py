"""Full-text indices: they map words to rows."""
