"""What tables of old releases need: missing counts, other names, repeated ids, dictionaries."""
