"""Changes of the indices of a table."""
