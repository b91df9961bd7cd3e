"""Training of vector indices."""
