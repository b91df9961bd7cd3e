"""Contents of data files, page by page: layouts, encodings and sizes, with the reason for each choice."""
