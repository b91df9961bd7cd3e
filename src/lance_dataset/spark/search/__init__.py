"""Searches of a dataset for each row of a DataFrame."""
