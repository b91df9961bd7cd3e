"""Approximate deduplication of texts: MinHash signatures, compared where a band of two of them is equal.

Sources: A. Broder, "On the resemblance and containment of documents", 1997; P. Indyk and R. Motwani, "Approximate
nearest neighbors", 1998.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, SchemaError, nearest_name_hint
from lance_dataset.index.scalar.minhash_parameters import MinHashParameters
from lance_dataset.index.scalar.minhash_signing import TextSigner, distances, keys_of_bands
from lance_dataset.spark.jobs.workers import settle

__all__ = ["drop_near_duplicates", "near_duplicates"]

_KEYS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.StringType, T.DateType)
_SIGNATURE, _BANDS, _BAND, _NUMBER, _FIRST = "__signature", "__bands", "__band", "__number", "__first"


def near_duplicates(
    df: Any,
    text: str,
    key: str,
    *,
    threshold: float = 0.8,
    num_hashes: int = 128,
    num_bands: int = 16,
    shingle_size: int = 3,
) -> Any:
    """Find the rows whose text is nearly that of a row with a smaller key.

    Texts are compared by their MinHash signatures, those of `MINHASHLSH` indices: the part of equal values estimates
    the Jaccard similarity of their runs of words. Two texts are compared if one of the bands of their signatures is
    equal; with the defaults, those of similarity 0.8 are with a probability of 95 %, those of 0.4 with 1 %.

    Parameters
    ----------
    df
        Spark DataFrame.
    text
        Column of texts. Null and texts without words are nobody's duplicates.
    key
        Column of integers, texts or dates that names the rows; it must not repeat.
    threshold
        Least similarity of duplicates, above 0 and up to 1.
    num_hashes, num_bands, shingle_size
        Number of values and bands of a signature, and number of words in a run.

    Returns
    -------
    pyspark.sql.DataFrame
        The key of each duplicate, ``duplicate_of`` with the key of the row that it is like most, and the estimated
        ``similarity`` (double). It is lazy like any DataFrame.

    Raises
    ------
    FieldNotFoundError, InvalidInputError, SchemaError
        A column does not exist or has another type, or a parameter is out of range.
    """
    parameters = MinHashParameters.of({"num_hashes": num_hashes, "num_bands": num_bands, "shingle_size": shingle_size})
    if not 0 < threshold <= 1:
        raise InvalidInputError(f"threshold must be above 0 and not above 1, not {threshold!r}")
    field = _checked(df.schema, text, key)
    kind = field.dataType.simpleString()
    signed = df.select(F.col(key).alias("key"), F.col(text).alias("text")).mapInArrow(
        _signing(parameters), f"key {kind}, {_SIGNATURE} binary, {_BANDS} array<bigint>"
    )
    # Equal signatures first: what many rows share would make large groups, and compare each pair in them.
    same = Window.partitionBy(_SIGNATURE)
    first = signed.withColumn(_FIRST, F.min("key").over(same))
    equal = first.where(F.col("key") != F.col(_FIRST)).selectExpr("key", f"{_FIRST} duplicate_of", "1.0D similarity")
    banded = first.where(F.col("key") == F.col(_FIRST)).select(
        "key", _SIGNATURE, F.posexplode(_BANDS).alias(_NUMBER, _BAND)
    )
    shared = banded.withColumn("__count", F.count("*").over(Window.partitionBy(_NUMBER, _BAND))).where("__count > 1")
    alike = shared.groupBy(_NUMBER, _BAND).applyInArrow(
        _comparing(num_hashes, float(threshold)), f"key {kind}, duplicate_of {kind}, similarity double"
    )
    best = Window.partitionBy("key").orderBy(F.col("similarity").desc(), F.col("duplicate_of"))
    ranked = equal.unionByName(alike).withColumn("__rank", F.row_number().over(best))
    return ranked.where("__rank = 1").select(F.col("key").alias(key), "duplicate_of", "similarity")


def drop_near_duplicates(df: Any, text: str, key: str, **parameters: Any) -> Any:
    """Return a DataFrame without the rows that `near_duplicates` finds, which takes the same parameters."""
    return df.join(near_duplicates(df, text, key, **parameters).select(key), key, "left_anti").select(*df.columns)


def _checked(schema: Any, text: str, key: str) -> Any:
    """Return the field of the key after checking both columns."""
    for name in (text, key):
        if name not in schema.fieldNames():
            raise FieldNotFoundError(f"There is no column {name!r}{nearest_name_hint(name, schema.fieldNames())}")
    if not isinstance(schema[text].dataType, T.StringType):
        raise SchemaError(f"The column {text!r} must be a text, but it is {schema[text].dataType.simpleString()}")
    if not isinstance(schema[key].dataType, _KEYS):
        raise SchemaError(
            f"The column {key!r} must be an integer, a text or a date, but it is {schema[key].dataType.simpleString()}"
        )
    return schema[key]


def _signing(parameters: MinHashParameters) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def sign(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        signer = TextSigner(parameters)
        for batch in batches:
            numbers, signatures = signer.sign(batch.column("text").cast(pa.string()))
            bands = keys_of_bands(signatures, parameters.num_bands).view(np.int64)
            size = 2 * parameters.num_hashes
            fixed = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(size), len(signatures), [None, pa.py_buffer(np.ascontiguousarray(signatures))]
            )
            offsets = pa.array(np.arange(len(bands) + 1, dtype=np.int32) * parameters.num_bands)
            columns = {
                "key": batch.column("key").take(pa.array(numbers)),
                _SIGNATURE: fixed.cast(pa.binary()),
                _BANDS: pa.ListArray.from_arrays(offsets, pa.array(bands.reshape(-1))),
            }
            yield pa.record_batch(columns)

    return sign


def _comparing(hashes: int, threshold: float) -> Callable[[pa.Table], pa.Table]:
    def compare(group: pa.Table) -> pa.Table:
        """Compare each row with those of smaller keys that were kept, as they are like none before them."""
        group = group.sort_by("key").combine_chunks()
        matrix = np.frombuffer(b"".join(group[_SIGNATURE].to_pylist()), np.uint16).reshape(-1, hashes)
        kept = np.empty_like(matrix)
        kept_rows: list[int] = []
        rows, originals, similarities = [], [], []
        for row, signature in enumerate(matrix):
            found = 1.0 - distances(kept[: len(kept_rows)], signature).astype(np.float64)
            best = int(found.argmax()) if len(found) else -1
            if best >= 0 and found[best] >= threshold - 1e-6:
                rows.append(row)
                originals.append(kept_rows[best])
                similarities.append(float(found[best]))
            else:
                kept[len(kept_rows)] = signature
                kept_rows.append(row)
        keys = group["key"]
        return pa.table(
            {
                "key": keys.take(pa.array(rows, pa.int64())),
                "duplicate_of": keys.take(pa.array(originals, pa.int64())),
                "similarity": pa.array(similarities, pa.float64()),
            }
        )

    return compare
