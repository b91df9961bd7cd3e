"""Writing legacy (0.1) files."""
