"""File version 2.0: one array encoding tree per page, structs and lists as columns of their own."""

from lance_dataset.file.v2_0 import columns, decode, encode

__all__ = ["columns", "decode", "encode"]
