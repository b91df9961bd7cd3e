"""Nightly loads of customers: upsert, insert what is missing, replace a day, and delete those that left."""

import sys

import lance
import pyarrow as pa

uri = sys.argv[1] + "/customers.lance"


def customers(ids: list[int], city: str, day: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"customer {i}" for i in ids],
            "city": [city] * len(ids),
            "day": pa.array([day] * len(ids), pa.int32()),
        }
    )


def show(label: str, dataset: lance.LanceDataset) -> None:
    rows = dataset.to_table(["id", "city", "day"]).sort_by("id").to_pylist()
    print(label, [(row["id"], row["city"], row["day"]) for row in rows])


dataset = lance.write_dataset(customers([1, 2, 3, 4, 5], "Oslo", 1), uri, max_rows_per_file=3)
merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
print(dict(merge.execute(customers([4, 5, 6], "Rome", 2)))["num_updated_rows"])
show("upsert", dataset)

stats = dataset.merge_insert("id").when_not_matched_insert_all().execute(customers([1, 7, 8], "Lima", 3))
print(stats["num_inserted_rows"], stats["num_updated_rows"], stats["num_deleted_rows"])
show("insert", dataset)

stats = (
    dataset.merge_insert("id")
    .when_matched_update_all("source.day > target.day AND target.city != 'Rome'")
    .execute(customers([1, 4, 7], "Kyiv", 4))
)
print(stats["num_updated_rows"])
show("conditional", dataset)

stats = (
    dataset.merge_insert("id")
    .when_matched_update_all()
    .when_not_matched_insert_all()
    .when_not_matched_by_source_delete("day = 1")
    .execute(customers([1, 9], "Bonn", 5))
)
print(stats["num_inserted_rows"], stats["num_updated_rows"], stats["num_deleted_rows"])
show("replace", dataset)

only_city = pa.table({"id": pa.array([4, 5], pa.int64()), "city": ["Cork", "Cork"]})
dataset.merge_insert("id").when_matched_update_all().execute(only_city)
show("one column", dataset)
print(dataset.merge_insert("id").when_matched_delete().execute(only_city.select(["id"]))["num_deleted_rows"])
show("gone", dataset)

twice = customers([1, 1], "Turku", 6)
for build in (
    lambda: dataset.merge_insert("id").when_matched_update_all().execute(twice),
    lambda: dataset.merge_insert("nope").when_matched_update_all().execute(twice),
    lambda: dataset.merge_insert("id").when_matched_fail().when_not_matched_insert_all().execute(twice),
):
    try:
        build()
        print("accepted")
    except Exception as error:
        print("refused", isinstance(error, (ValueError, OSError, RuntimeError)))
show("unchanged", lance.dataset(uri))
