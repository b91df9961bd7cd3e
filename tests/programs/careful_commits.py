"""Writers that meet: a lock of our own around commits, conflicts, detached versions, messages, memory stores."""

import contextlib
import sys
import threading
from collections.abc import Iterator

import lance
import pyarrow as pa

uri = sys.argv[1] + "/counter.lance"
taken: list[int] = []
guard = threading.Lock()


@contextlib.contextmanager
def locked(version: int) -> Iterator[None]:
    with guard:
        taken.append(version)
        yield


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "seen": pa.array([0] * len(numbers), pa.int64())})


dataset = lance.write_dataset(rows(*range(6)), uri, commit_lock=locked, max_rows_per_file=3)
for number in (10, 11):
    lance.write_dataset(rows(number), uri, mode="append", commit_lock=locked)
print("locked", taken, lance.dataset(uri).count_rows())

one, two = lance.dataset(uri, commit_lock=locked), lance.dataset(uri, commit_lock=locked)
one.update({"seen": "1"}, where="n = 0")
two.update({"seen": "2"}, where="n = 4")
print("apart", one.version, two.version, lance.dataset(uri).to_table(["n"], "seen > 0")["n"].to_pylist())
stale = lance.dataset(uri, version=3)
stale.delete("n = 1", conflict_retries=5)
print("retried", stale.version, lance.dataset(uri).count_rows())

old = lance.dataset(uri, version=3)
fragments = [each.metadata for each in old.get_fragments()]
try:
    lance.LanceDataset.commit(uri, lance.LanceOperation.Delete(fragments[1:2], [0], "n < 3"), read_version=3)
    print("accepted")
except Exception as error:
    print("conflict", "onflict" in str(error) or "concurrent" in str(error), isinstance(error, OSError))

extra = lance.fragment.write_fragments(rows(99), uri)
detached = lance.LanceDataset.commit(uri, lance.LanceOperation.Append(extra), read_version=two.version, detached=True)
print("detached", detached.version >= 1 << 63, detached.count_rows("n = 99"), lance.dataset(uri).count_rows("n = 99"))
done = lance.LanceDataset.commit(
    uri, lance.LanceOperation.Append(extra), read_version=lance.dataset(uri).version, commit_message="add 99"
)
transaction = done.read_transaction(done.version)
print("message", transaction.transaction_properties, type(transaction.operation).__name__)
operation = lance.LanceOperation.Restore(1)
print("restored", lance.LanceDataset.commit(done, operation, read_version=done.version).count_rows())


def fails(version: int):
    raise RuntimeError("the lock is broken")


try:
    lance.write_dataset(rows(7), uri, mode="append", commit_lock=fails)
    print("accepted")
except Exception as error:
    print("lock raised", "broken" in str(error), lance.dataset(uri).count_rows("n = 7"))
memory = lance.write_dataset(rows(1, 2), "memory://t.lance")
memory.delete("n = 1")
print("memory", memory.count_rows(), memory.version, [each["version"] for each in memory.versions()])
for mode in ("create", "overwrite", "append", "strange"):
    try:
        print(mode, lance.write_dataset(rows(5), uri, mode=mode).count_rows())
    except (OSError, ValueError):
        print(mode, "refused")
lance.LanceDataset.drop(uri)
try:
    lance.dataset(uri)
except (ValueError, OSError):
    print("dropped")
