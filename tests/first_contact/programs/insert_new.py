"""Insert only the rows whose keys are new; replace a slice of the table."""

import sys

import lance
import pyarrow as pa

path = sys.argv[1] + "/events.lance"
dataset = lance.write_dataset(pa.table({"id": [1, 2, 3], "day": [1, 1, 2], "v": [1.0, 2.0, 3.0]}), path)
again = pa.table({"id": [3, 4, 4 + 1], "day": [9, 2, 2], "v": [0.0, 4.0, 5.0]})
dataset.merge_insert("id").when_not_matched_insert_all().execute(again)
print(sorted(map(tuple, (row.values() for row in dataset.to_table().to_pylist()))))
day2 = pa.table({"id": [4, 6], "day": [2, 2], "v": [44.0, 66.0]})
(
    dataset.merge_insert("id")
    .when_matched_update_all()
    .when_not_matched_insert_all()
    .when_not_matched_by_source_delete("day = 2")
    .execute(day2)
)
print(sorted(map(tuple, (row.values() for row in dataset.to_table().to_pylist()))))
