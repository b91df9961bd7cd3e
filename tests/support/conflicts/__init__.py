"""Pairs of operations that are committed against each other, and the expected verdicts."""
