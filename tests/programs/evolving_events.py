"""Events whose schema grows: nested fields, missing columns in appends, reordered columns, metadata, overwrite."""

import sys

import lance
import pyarrow as pa

uri = sys.argv[1] + "/events.lance"
first = pa.table(
    {
        "at": pa.array([1, 2, 3], pa.timestamp("ms")),
        "who": pa.array([{"id": 1, "name": "ann"}, {"id": 2, "name": None}, None]),
        "payload": pa.array([b"a", None, b""], pa.binary()),
    }
).replace_schema_metadata({"source": "app"})
events = lance.write_dataset(first, uri)
print(events.schema.metadata, events.schema.field("who").type)

swapped = pa.table(
    {"payload": pa.array([b"z"], pa.binary()), "at": pa.array([4], pa.timestamp("ms")), "who": first["who"][:1]}
)
events = lance.write_dataset(swapped, uri, mode="append")
without = pa.table({"at": pa.array([5], pa.timestamp("ms"))})
events = lance.write_dataset(without, uri, mode="append")
print(events.to_table().to_pydict())

for label, rows in {
    "other type": pa.table({"at": ["noon"]}),
    "unknown column": pa.table({"at": pa.array([6], pa.timestamp("ms")), "more": [1]}),
    "no column": pa.table({"zzz": [1]}),
}.items():
    try:
        lance.write_dataset(rows, uri, mode="append")
        print(label, "accepted")
    except (OSError, ValueError):
        print(label, "refused", lance.dataset(uri).count_rows())

events.add_columns({"user_id": "who.id", "hour": "CAST(date_part('hour', at) AS INT)"})
print(events.to_table(["who.name", "user_id"], "user_id IS NOT NULL").to_pydict())
events.alter_columns({"path": "who.name", "name": "nick"})
print(events.schema.field("who").type, events.to_table(["who.nick"]).column_names)
events.update_schema_metadata({"source": "web", "owner": "ops"})
events.update_field_metadata({"user_id": {"unit": "id"}})
print(sorted(events.schema_metadata.items()), events.schema.field("user_id").metadata)
print(events.update_config({"team": "blue", "tier": "2"}) is not None, sorted(events.config().items()))
events.delete_config_keys(["tier"])
print(sorted(events.config().items()), events.update_metadata({"k": "v"}), events.metadata)

again = lance.write_dataset(pa.table({"n": [1, 2]}), uri, mode="overwrite", data_storage_version="2.1")
print(again.schema, again.data_storage_version, again.version, again.count_rows())
print(lance.dataset(uri, version=3).count_rows(), lance.dataset(uri, version=3).schema.names)
print(lance.json_to_schema(lance.schema_to_json(again.schema)) == again.schema)
print([field.name() for field in again.lance_schema.fields()], again.max_field_id)
