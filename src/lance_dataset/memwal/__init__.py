"""The log-structured write path (MemWAL): shards with a log, a memtable and small flushed tables each."""
