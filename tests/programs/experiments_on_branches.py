"""A team tries a cleaning rule on a branch, names the states it wants to keep, and publishes the result."""

import sys

import lance
import pyarrow as pa

uri = sys.argv[1] + "/readings.lance"
readings = pa.table({"sensor": [i % 4 for i in range(48)], "value": [float(i * i % 37) for i in range(48)]})
main = lance.write_dataset(readings, uri, max_rows_per_file=20)
main.tags.create("raw", 1)
main.tags.create("release", 1)

clean = main.create_branch("clean", "raw")
clean.delete("value > 30")
clean.update({"value": "value / 2"}, where="sensor = 1")
print("branch", clean.version, clean.count_rows(), "main", lance.dataset(uri).count_rows())
print(sorted(main.branches.list()), main.branches.list()["clean"]["parent_version"])

wild = clean.create_branch("wild/ideas", ("clean", None))
lance.write_dataset(pa.table({"sensor": [9], "value": [0.5]}), wild, mode="append")
for name in ("clean", "wild/ideas"):
    at = lance.dataset(uri).checkout_version((name, None))
    print(name, at.count_rows(), at.to_table(filter="sensor = 9").to_pylist(), at.latest_version)

main.tags.create("cleaned", ("clean", None))
tags = main.tags.list()
print({name: (tags[name]["branch"], tags[name]["version"]) for name in sorted(tags)})
print(lance.dataset(uri, version="cleaned").count_rows(), lance.dataset(uri, version="raw").count_rows())

published = lance.write_dataset(main.checkout_version("cleaned").to_table(), uri, mode="overwrite")
main.tags.update("release", published.version)
print("published", published.version, lance.dataset(uri, version="release").count_rows())
print(main.tags.get_version("release"), [name for name, _ in main.tags.list_ordered("asc")][-1])

main.tags.delete("cleaned")
main.branches.delete("wild/ideas")
print(sorted(main.tags.list()), sorted(main.branches.list()))
for wrong in ("cleaned", "nothing"):
    try:
        lance.dataset(uri, version=wrong)
    except (ValueError, OSError) as error:
        print("no tag", wrong, wrong in str(error))
copy = lance.dataset(uri).shallow_clone(sys.argv[1] + "/copy.lance", "raw")
copy.delete("sensor = 0")
print("copy", copy.count_rows(), lance.dataset(uri, version="raw").count_rows())
