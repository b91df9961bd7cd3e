"""Contents of data files, page by page: layouts, encodings, sizes, and the reasons for them."""
