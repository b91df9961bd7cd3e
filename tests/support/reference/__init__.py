"""The same calls made by this package and by the reference, and comparisons of their outcomes."""
