"""Arrow arrays to pages."""
