"""Committing: the loop of commit attempts, and the publication of a new version."""
