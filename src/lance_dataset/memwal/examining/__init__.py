"""Check of the files of shards: what readers and writers would stumble over, and what is lost."""
