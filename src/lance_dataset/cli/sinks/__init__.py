"""Files and folders that rows are written to."""
