"""Maintenance of a table by the policy in its config."""
