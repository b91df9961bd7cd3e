"""Pages of file version 2.1 and later: layouts, levels, encodings, and readers and writers of columns."""
