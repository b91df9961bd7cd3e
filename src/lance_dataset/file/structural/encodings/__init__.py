"""Encodings of values, each in a module with everything about it, and the registry of all encodings."""
