"""Changes of tables: updating, deleting and merging rows, adding, altering and dropping columns, compaction.

A change is computed against one version of a table: its files are written, and nothing refers to them yet. Then it is
committed. If that fails, its files are removed.
"""
