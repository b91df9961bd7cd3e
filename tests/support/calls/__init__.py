"""Calls as text that are run on the reference and on this package, and the tables that they are run on."""
