"""A job follows a table: rows that were inserted, updated and deleted since the version it saw last."""

import sys

import lance
import pyarrow as pa

uri = sys.argv[1] + "/accounts.lance"
accounts = lance.write_dataset(
    pa.table({"id": range(10), "balance": [100] * 10}), uri, enable_stable_row_ids=True, max_rows_per_file=4
)
print(accounts.has_stable_row_ids)
mirror = {row["id"]: row["balance"] for row in accounts.to_table().to_pylist()}
seen = accounts.version
CHANGES = ("Append", "Delete", "Rewrite", "Update")


def follow(label: str) -> None:
    """Bring the mirror up to date with what changed."""
    global seen
    now = lance.dataset(uri)
    delta = now.delta(begin_version=seen, end_version=now.version)
    inserted = delta.get_inserted_rows().read_all()
    updated = delta.get_updated_rows().read_all()
    for table in (inserted, updated):
        mirror.update({row["id"]: row["balance"] for row in table.to_pylist()})
    current = set(now.to_table(["id"])["id"].to_pylist())
    for number in set(mirror) - current:
        del mirror[number]
    kinds = [kind for each in delta.list_transactions() if (kind := type(each.operation).__name__) in CHANGES]
    print(label, inserted.num_rows, sorted(updated["id"].to_pylist()), kinds)
    print(sorted(inserted.column_names), mirror == {row["id"]: row["balance"] for row in now.to_table().to_pylist()})
    seen = now.version


accounts.update({"balance": "balance - 30"}, where="id IN (2, 9)")
follow("transfer")
lance.write_dataset(pa.table({"id": [10, 11], "balance": [5, 6]}), uri, mode="append")
follow("new")
accounts = lance.dataset(uri)
source = pa.table({"id": [0, 11, 12], "balance": [1, 2, 3]})
accounts.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
accounts.delete("id = 5")
follow("several")
accounts.optimize.compact_files()
follow("compacted")

versions = (
    accounts.to_table(["id", "_row_created_at_version", "_row_last_updated_at_version"]).sort_by("id").to_pylist()
)
print([tuple(row.values()) for row in versions])
ids = accounts.to_table(["id"], with_row_id=True, filter="id IN (0, 9)").sort_by("id")["_rowid"].to_pylist()
accounts.update({"balance": "0"}, where="id = 9")
print(
    ids
    == lance.dataset(uri).to_table(["id"], with_row_id=True, filter="id IN (0, 9)").sort_by("id")["_rowid"].to_pylist()
)
print(sorted(accounts.delta(compared_against=1).get_updated_rows().read_all()["id"].to_pylist()))
print(
    sorted(accounts.delta(begin_version=1, end_version=accounts.version).get_deleted_row_ids().read_all().to_pydict())
)
history = [type(each.operation).__name__ for each in accounts.get_transactions(20) if each is not None]
print([kind for kind in history if kind in CHANGES])
