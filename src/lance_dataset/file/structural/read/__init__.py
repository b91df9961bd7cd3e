"""Pages to Arrow arrays."""
