"""Scalar indices: they map values to rows."""
