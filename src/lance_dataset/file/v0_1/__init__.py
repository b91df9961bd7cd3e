"""File version 0.1 (legacy)."""
