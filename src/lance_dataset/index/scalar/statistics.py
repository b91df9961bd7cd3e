"""Statistics of the files of scalar indices, with the names that the reference gives them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from lance_dataset._proto import scalar_index_pb2
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.scalar import bitmap, btree, minhash, ngram
from lance_dataset.table.messages import parse_message

__all__ = [
    "bitmap_statistics",
    "bloom_filter_statistics",
    "btree_statistics",
    "fm_statistics",
    "minhash_statistics",
    "ngram_statistics",
    "rtree_statistics",
    "zone_map_statistics",
]

_ZONES, _ROWS_PER_ZONE, _DEFAULT_ZONE_ROWS = "zonemap.lance", "rows_per_zone", 8192
_FILTERS, _ITEMS, _PROBABILITY, _DEFAULT_PROBABILITY = (
    "bloomfilter.lance",
    "bloomfilter_item",
    "bloomfilter_probability",
    "0.00057",
)
_FM_PART = re.compile(r"part_\d+_fm\.lance")
_TREE = "page_data.lance"
_NOTHING = "N/A"


def btree_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the smallest and the largest value as text, and the number of pages with values."""
    lookup = btree.open_lookup(folder)
    bounds = lookup.read()
    lows, highs = bounds.column(0), bounds.column(1)
    pages = np.flatnonzero(highs.is_valid().to_numpy(zero_copy_only=False))
    if not len(pages):
        return {"min": _NOTHING, "max": _NOTHING, "num_pages": lookup.num_rows}
    low, high = lows.slice(int(pages[0]), 1), highs.slice(int(pages[-1]), 1)
    return {"min": _shown(low), "max": _shown(high), "num_pages": lookup.num_rows}


def _shown(value: pa.Array) -> str:
    """Return the text of the only value of an array."""
    kind = value.type
    if pa.types.is_decimal(kind):
        digits = "None" if value.null_count else f"Some({int(value[0].as_py().scaleb(kind.scale))})"
        return f"{digits},{kind.precision},{kind.scale}"
    if value.null_count:
        return "NULL"
    if pa.types.is_date(kind):
        return str(value.cast(pa.date32())[0])
    if pa.types.is_temporal(kind):
        return str(value.view(pa.int32() if kind.bit_width == 32 else pa.int64())[0])
    if pa.types.is_floating(kind):
        return np.format_float_positional(value.to_numpy(zero_copy_only=False)[0], trim="-").replace("nan", "NaN")
    found = value[0].as_py()
    if isinstance(found, bytes):
        return found.hex().upper()
    return str(found).lower() if isinstance(found, bool) else str(found)


def bitmap_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the number of distinct values, of label lists that of distinct items."""
    return {"num_bitmaps": folder.open(bitmap.LOOKUP).num_rows}


def ngram_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the number of distinct tokens."""
    return {"num_ngrams": folder.open(ngram.POSTINGS).num_rows}


def zone_map_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the number of zones and their rows."""
    table = folder.open(_ZONES)
    return {"num_zones": table.num_rows, "rows_per_zone": _number(table, _ROWS_PER_ZONE, _DEFAULT_ZONE_ROWS)}


def bloom_filter_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the number of filters, and the parameters of each."""
    table = folder.open(_FILTERS)
    text = table.metadata.get(_PROBABILITY, _DEFAULT_PROBABILITY)
    try:
        probability = float(text)
    except ValueError:
        raise table.corrupt(f"{_PROBABILITY} is {text[:40]!r}, not a number") from None
    return {
        "type": "BloomFilter",
        "num_blocks": table.num_rows,
        "number_of_items": _number(table, _ITEMS, _DEFAULT_ZONE_ROWS),
        "probability": probability,
    }


def minhash_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the numbers of documents and pages, and the parameters of the signatures."""
    bands = folder.open(minhash.BANDS)
    text = bands.metadata.get("minhash_lsh_details", "")
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise bands.corrupt("minhash_lsh_details is not hexadecimal") from None
    details = parse_message(scalar_index_pb2.MinHashLshIndexDetails, data, bands.where)
    return {
        "type": "MinHashLsh",
        "num_docs": folder.open(minhash.SIGNATURES).num_rows,
        "num_pages": -(-bands.num_rows // minhash.page_rows(bands)),
        "num_hashes": details.num_hashes,
        "num_bands": details.num_bands,
        "shingle_size": details.shingle_size,
        "signature_version": details.signature_version,
    }


def fm_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the numbers of partitions, of bytes of text with separators, and of texts."""
    parts = [folder.open(name) for name in folder.names() if _FM_PART.fullmatch(name)]
    return {
        "type": "Fm",
        "num_partitions": len(parts),
        "total_bwt_len": sum(_number(part, "bwt_len", 0) for part in parts),
        "total_docs": sum(len(part.metadata.get("row_ids", "")) // 16 for part in parts),
    }


def rtree_statistics(folder: IndexFolder) -> dict[str, Any]:
    """Return the numbers of pages and items, the box around all items, and the first row of each page."""
    table = folder.open(_TREE)
    page_size, items = _number(table, "page_size", 4096), _number(table, "num_items", 0)
    if page_size < 2 or items > table.num_rows:
        raise table.corrupt(f"{items} items in pages of {page_size} contradict its {table.num_rows} rows")
    try:
        box = parse_json(table.metadata.get("bbox", "null"))
    except (ValueError, RecursionError) as error:
        raise table.corrupt(f"bbox in its metadata is not JSON: {error}") from error
    return {
        "page_size": page_size,
        "num_pages": _number(table, "num_pages", 0),
        "num_items": items,
        "bbox": box,
        "page_offsets": _page_offsets(items, page_size),
    }


def _page_offsets(items: int, page_size: int) -> list[int]:
    """Return the first row of each page: those of the items, then level by level one row for each page below."""
    found: list[int] = []
    start, rows = 0, items
    while rows:
        pages = range(start, start + rows, page_size)
        found.extend(pages)
        start, rows = start + rows, len(pages) if len(pages) > 1 else 0
    return found


def _number(table: IndexTable, key: str, default: int) -> int:
    """Return a number of the metadata."""
    text = table.metadata.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise table.corrupt(f"{key} is {text[:40]!r}, not a number")
    return int(text)
