"""Kernels of searches: tokens, hashes, row sets, suffix arrays."""
