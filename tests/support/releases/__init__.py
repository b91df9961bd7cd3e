"""Datasets of old releases of the reference, and these releases as readers and writers."""
