"""Row lineage: stable row ids, and the versions that created and last changed each row."""
