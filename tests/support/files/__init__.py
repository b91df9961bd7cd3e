"""Data files, built or taken apart by hand to be damaged."""
