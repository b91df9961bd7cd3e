"""Committing: the loop over attempts, and how a new version is published."""
