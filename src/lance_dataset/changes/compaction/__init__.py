"""Compaction of fragments in three steps, which may run in different processes.

Planning groups neighbouring fragments into tasks. Executing a task writes its new fragments, which nothing refers to
yet. Committing replaces the old fragments of one or more tasks by the new ones.
"""
