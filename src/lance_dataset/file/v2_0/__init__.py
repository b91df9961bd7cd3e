"""File version 2.0."""
