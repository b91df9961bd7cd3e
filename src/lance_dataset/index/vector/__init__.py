"""Vector indices: partitions around centroids, with plain or quantized vectors, and optionally graphs."""
