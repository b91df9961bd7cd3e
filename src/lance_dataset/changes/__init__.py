"""Changing tables: rows are updated, merged in and moved, columns come, go and change, fragments are folded together.

A change is computed against one version (its files are written, and nothing refers to them yet), then committed; where
that fails its files are taken back.
"""
