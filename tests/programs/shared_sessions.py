"""A server keeps one session for its tables, watches its caches and reads, and serves several threads."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa

folder = sys.argv[1]
session = lance.Session(index_cache_size_bytes=16 << 20, metadata_cache_size_bytes=16 << 20)
for name in ("a", "b"):
    rows = pa.table({"k": range(400), "v": [f"{name}{i % 50}" for i in range(400)]})
    written = lance.write_dataset(rows, f"{folder}/{name}.lance", max_rows_per_file=100)
    written.create_scalar_index("k", "BTREE")
tables = {name: lance.dataset(f"{folder}/{name}.lance", session=session) for name in ("a", "b")}
print(tables["a"].session() is not None, session.size_bytes() >= 0)


def serve(number: int) -> tuple[int, str]:
    table = tables["ab"[number % 2]]
    row = table.to_table(["v"], filter=f"k = {number * 13 % 400}").to_pylist()[0]
    return table.count_rows(f"k < {number}"), row["v"]


with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(serve, range(0, 40, 3))))
print(session.size_bytes() > 0)

sent = pickle.loads(pickle.dumps(tables["a"]))
print(sent.uri == tables["a"].uri, sent.version, sent.count_rows())
fragment = pickle.loads(pickle.dumps(tables["b"].get_fragments()[2]))
print(fragment.fragment_id, fragment.count_rows(), fragment.take([1], ["k"]).to_pydict())

reader = lance.dataset(f"{folder}/a.lance", session=session)
lance.write_dataset(pa.table({"k": [1000], "v": ["late"]}), f"{folder}/a.lance", mode="append")
print(reader.version, reader.count_rows(), reader.latest_version)
reader.checkout_latest()
print(reader.version, reader.count_rows(), tables["a"].count_rows())

options = {"timeout": "30s", "user_agent": "server/1"}
custom = lance.dataset(
    f"{folder}/b.lance", storage_options=options, default_scan_options={"with_row_id": True, "batch_size": 150}
)
print(custom.head(1).column_names, [batch.num_rows for batch in custom.to_batches(["k"])][:2])
stats = custom.io_stats_incremental()
custom.to_table()
after = custom.io_stats_incremental()
print(stats.read_bytes >= 0, after.read_bytes > 0, after.read_iops > 0)
open_fragment = custom.get_fragments()[0].open_session(columns=["k"])
print([open_fragment.take([number])["k"].to_pylist() for number in (5, 0, 99)])
counted = []
scanner = custom.scanner(["k"], filter="k % 100 = 0", scan_stats_callback=counted.append)
print(scanner.to_table()["k"].to_pylist(), len(counted), counted[0].bytes_read > 0)
