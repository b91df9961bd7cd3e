"""Small tables, the content of their manifests and indices, and comparisons of Arrow tables."""
