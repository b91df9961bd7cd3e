"""Pages and their parts, built and taken apart without the code of the package."""
