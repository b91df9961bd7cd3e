"""Streams: a source of the rows that versions add, and a sink in which each batch counts once."""
