"""Reading the columns of legacy (0.1) files."""
