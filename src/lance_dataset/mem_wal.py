"""MemWAL: writers of shards, scanners and planners over shards and the table, and sharding of rows."""

from lance_dataset.api.mem_wal.plans import ExecutionPlan, LsmPointLookupPlanner
from lance_dataset.api.mem_wal.scanner import LsmScanner
from lance_dataset.api.mem_wal.shards import ShardSnapshot, evaluate_sharding_spec
from lance_dataset.api.mem_wal.text_search import LsmTextSearchPlanner
from lance_dataset.api.mem_wal.vector_search import LsmVectorSearchPlanner
from lance_dataset.api.mem_wal.writer import ShardWriter
from lance_dataset.memwal.details import ShardingField, ShardingSpec
from lance_dataset.memwal.status import ShardStatus
from lance_dataset.table.operations import CompactedSsTable

__all__ = [
    "CompactedSsTable",
    "ExecutionPlan",
    "LsmPointLookupPlanner",
    "LsmScanner",
    "LsmTextSearchPlanner",
    "LsmVectorSearchPlanner",
    "ShardSnapshot",
    "ShardStatus",
    "ShardWriter",
    "ShardingField",
    "ShardingSpec",
    "evaluate_sharding_spec",
]
