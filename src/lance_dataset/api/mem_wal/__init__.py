"""Public handles of the log-structured write path: writers, scanners and planners."""
