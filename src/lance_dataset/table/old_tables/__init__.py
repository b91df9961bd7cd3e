"""Support for tables of old releases: missing counts, other names, repeated ids, dictionaries."""
