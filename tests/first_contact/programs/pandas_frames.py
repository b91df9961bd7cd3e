"""pandas in and out."""

import sys

import lance
import pandas as pd

path = sys.argv[1] + "/t.lance"
frame = pd.DataFrame(
    {
        "city": ["Rome", "Oslo", None],
        "people": [2.8, 0.7, 1.0],
        "when": pd.to_datetime(["2020-01-01", None, "2021-05-06"]),
    }
)
dataset = lance.write_dataset(frame, path)
print(dataset.schema)
back = dataset.to_table().to_pandas()
print(back)
print(back.equals(frame.astype(back.dtypes.to_dict())))
lance.write_dataset(
    pd.DataFrame({"city": ["Bonn"], "people": [0.3], "when": [pd.Timestamp("2022-02-02")]}), path, mode="append"
)
print(lance.dataset(path).to_table(filter="people < 1").to_pandas().sort_values("city").to_string(index=False))
