"""Metadata of schema, fields and table; configuration."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/t.lance"
schema = pa.schema([pa.field("i", pa.int64(), metadata={"unit": "m"})], metadata={"source": "sensor"})
dataset = lance.write_dataset(pa.table({"i": [1]}, schema=schema), path)
print(dataset.schema.metadata, dataset.schema.field("i").metadata)
dataset.update_config({"lance.auto_cleanup.interval": "100", "owner": "me"})
print(sorted(dataset.config().items()))
dataset.delete_config_keys(["owner"])
print(sorted(dataset.config().items()))
dataset.replace_schema_metadata({"source": "probe"})
print(dataset.schema.metadata)
