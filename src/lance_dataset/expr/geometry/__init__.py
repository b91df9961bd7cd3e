"""Geometries in Arrow arrays: coordinates, boxes, and conversion to and from the geometries of shapely."""
