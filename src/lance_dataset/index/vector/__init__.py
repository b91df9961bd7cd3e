"""Vector indices: partitions around centroids, each with its vectors, as they are or as codes, perhaps with a graph."""
