"""Cleanup: removal of old versions and unreferenced files."""
