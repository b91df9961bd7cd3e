"""Object stores: local files, memory, cloud stores, and guards of the commits in them."""
