"""Key-value tables that say which manifest is which version, for stores that cannot create an object only if absent."""
