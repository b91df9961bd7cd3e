"""Programs that run in this process or in separate processes."""
