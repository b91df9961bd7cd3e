"""File version 2.3, which is unstable in the reference."""
