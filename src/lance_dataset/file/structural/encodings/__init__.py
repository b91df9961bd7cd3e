"""The encodings of values: a module for each, with all that is known of it, and the registry of all of them."""
