"""Small tables, what their manifests and indices hold, and comparisons of Arrow tables."""
