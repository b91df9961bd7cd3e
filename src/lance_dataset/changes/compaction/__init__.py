"""Compaction: fragments are written anew together, in three steps that may be taken in different processes.

Planning chooses neighbouring fragments, a task each; executing a task writes its new fragments, which nothing refers to
yet; committing puts the new fragments of some tasks in the place of the old ones.
"""
