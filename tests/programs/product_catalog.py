"""A shop loads its catalogue in three deliveries, corrects prices and reads old states of it."""

import datetime as dt
import sys
from decimal import Decimal

import lance
import pyarrow as pa

uri = sys.argv[1] + "/products.lance"
schema = pa.schema(
    [
        pa.field("sku", pa.string(), nullable=False),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("added", pa.date32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("size", pa.struct([("w", pa.int16()), ("h", pa.int16())])),
    ]
)


def delivery(start: int, count: int) -> pa.Table:
    rows = [
        {
            "sku": f"SKU-{i:04}",
            "price": None if i % 9 == 0 else Decimal(i * 7 % 100) + Decimal("0.95"),
            "added": dt.date(2024, 1, 1) + dt.timedelta(days=i),
            "tags": [name for name, every in (("sale", 3), ("new", 4), ("heavy", 5)) if i % every == 0],
            "size": None if i % 11 == 10 else {"w": i, "h": i * 2},
        }
        for i in range(start, start + count)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


products = lance.write_dataset(delivery(0, 40), uri, max_rows_per_file=16)
print("created", products.version, products.count_rows(), len(products.get_fragments()))
products = lance.write_dataset(delivery(40, 25), uri, mode="append")
products.insert(delivery(65, 10))
print("appended", products.version, products.count_rows(), products.latest_version)

print(products.to_table(columns=["sku", "price"], filter="price > 80 AND added < date '2024-02-10'").to_pylist())
print(products.to_table({"sku": "sku", "area": "size.w * size.h"}, filter="size.w IN (3, 4, 10)").to_pydict())
print(products.count_rows("array_has(tags, 'heavy')"), products.count_rows("price IS NULL"))
print(products.take([0, 74, 33], columns=["sku", "tags"]).to_pylist())

result = products.update({"price": "price + 1"}, where="sku < 'SKU-0005'")
print("updated", dict(result), products.to_table(["price"], limit=0).schema.field("price").type)
print(sorted(row["price"] for row in products.to_table(["sku", "price"], "sku < 'SKU-0005' AND price > 0").to_pylist()))
products.delete("array_has(tags, 'sale') AND array_has(tags, 'new')")
print("deleted", products.count_rows(), [each.num_deletions for each in products.get_fragments()])

for number in range(1, products.version + 1):
    old = lance.dataset(uri, version=number)
    print(number, old.count_rows(), old.to_table(["price"], "sku = 'SKU-0001'")["price"].to_pylist())
products = lance.dataset(uri, version=2)
products.restore()
print("restored", products.version, lance.dataset(uri).count_rows())
print([each["version"] for each in lance.dataset(uri).versions()])
