"""Pages of file version 2.1 and later: layouts, levels, encodings, reading and writing columns of them."""
