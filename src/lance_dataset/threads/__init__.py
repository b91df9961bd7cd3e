"""Threads: the pools of the process, and everything that runs work on them."""
