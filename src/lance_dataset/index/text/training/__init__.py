"""Training of full-text indices: documents are analyzed, inverted, and written as partitions."""
