"""Description of pages of 2.1 to 2.3 files, taken from their layout, chunk headers and buffer sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.explain.chunk_headers import ChunkSizes, read_chunk_sizes
from lance_dataset.file.explain.facts import Facts, plain_size
from lance_dataset.file.explain.reasons import DictionarySize, why_chunks, why_constant, why_zipped
from lance_dataset.file.explain.report import StoredBuffer
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.sizes import size_text
from lance_dataset.file.structural.encodings.base import Encoding, StoredValues
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.layout import (
    BlobLayout,
    ConstantLayout,
    FullZipLayout,
    MiniBlockLayout,
    max_visible_definition,
)
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.blob import DESCRIPTION_BRANCH
from lance_dataset.file.structural.read.levels import decode_levels
from lance_dataset.file.structural.read.page import Page
from lance_dataset.file.v2_1.pre.layout import PreLayout
from lance_dataset.file.v2_1.pre.miniblock import early_dictionary_size
from lance_dataset.file.v2_3.pre.layout import EarlierSparseLayout
from lancecodec import CodecError
from lancecodec import levels as level_codec

__all__ = ["describe_page", "describe_values", "named_buffers"]

#: Limit of decoded levels: far more than a page has, and small enough to decode.
_MOST_LEVELS = 1 << 28


def describe_page(page: Page, branch: Branch) -> Facts:
    """Return the facts about a page; read at most chunk words and chunk headers.

    Raises
    ------
    CorruptFileError
        The page contradicts its layout.
    UnsupportedError
        The page is a sparse page of old releases.
    """
    layout = page.layout
    if isinstance(layout, BlobLayout):
        return _blob(page, layout)
    values = branch.rows_per_value * page.length
    if isinstance(layout, EarlierSparseLayout):
        raise UnsupportedError(f"{page.where}: sparse pages of pylance 10 to 13 can be read, but are not explained")
    if isinstance(layout, PreLayout):
        layout = _as_stable(page, layout, values)
    return describe_values(page, layout, branch.leaf.storage_type, values)


def _as_stable(page: Page, stored: PreLayout, values: int) -> MiniBlockLayout | FullZipLayout | ConstantLayout:
    """Return the 2.1 layout of a page that was written before 2.1 was stable."""
    layout = stored.with_items(values)
    if not isinstance(layout, MiniBlockLayout) or layout.dictionary is None or not stored.early_chunks:
        return layout
    if len(page.buffers) < 3:
        raise CorruptFileError(f"{page.where}: has {len(page.buffers)} buffers, chunks and a dictionary need 3")
    return replace(layout, dictionary_size=early_dictionary_size(layout, page.read(2), page.where))


def describe_values(
    page: Page, layout: MiniBlockLayout | FullZipLayout | ConstantLayout, value_type: pa.DataType, values: int
) -> Facts:
    """Return the facts about a page of 2.2; `values` is used if the layout has no number. Raises as `describe_page`."""
    if isinstance(layout, MiniBlockLayout):
        return _mini_block(page, layout, value_type)
    if isinstance(layout, FullZipLayout):
        return _full_zip(page, layout, value_type)
    return _constant(page, layout, value_type, values)


def named_buffers(page: Page, names: Sequence[str]) -> tuple[StoredBuffer, ...]:
    """Return the buffers of the page with names for their content; buffers without a name are numbered."""
    padded = [*names, *(f"buffer {number}" for number in range(len(names), len(page.buffers)))]
    return tuple(StoredBuffer(name, size) for name, (_, size) in zip(padded, page.buffers, strict=False))


def _level_text(rep: Encoding | None, definition: Encoding | None) -> str:
    streams = [("repetition", rep), ("definition", definition)]
    return ", ".join(f"{name} {encoding.text}" for name, encoding in streams if encoding is not None)


# -- chunks ------------------------------------------------------------------------------------------------------


def _mini_block(page: Page, layout: MiniBlockLayout, value_type: pa.DataType) -> Facts:
    sizes = read_chunk_sizes(page, layout, layout.num_items)
    dictionary = layout.dictionary
    names = ["chunk words", "chunks"]
    names += ["dictionary"] if dictionary is not None else []
    names += ["repetition index"] if layout.indexed else []
    text, value_bytes = layout.values.text, int(sizes.values.sum())
    plain = plain_size(value_type, layout.num_items, _string_bytes(layout, sizes))
    widths, runs = layout.values.bit_widths(sizes.values), layout.values.run_count(sizes.values)
    stored = StoredValues(layout.num_items, value_bytes, plain, widths, runs)
    entries = None
    if dictionary is not None:
        entries = DictionarySize(layout.dictionary_size, page.size_of(2) if len(page.buffers) > 2 else 0)
        text = f"dictionary({text}; {layout.dictionary_size:,} {dictionary.text})"
        value_bytes += entries.size
    return Facts(
        layout="mini-block",
        encoding=text,
        values=layout.num_items,
        buffers=named_buffers(page, names),
        why=why_chunks(layout.values, stored, entries),
        is_plain=dictionary is None and layout.values.is_plain,
        levels=_level_text(layout.rep, layout.definition),
        dictionary_entries=None if dictionary is None else layout.dictionary_size,
        chunks=len(sizes.counts),
        value_bytes=value_bytes,
        level_bytes=sizes.level_bytes,
        plain_bytes=plain,
        bit_widths=widths,
    )


def _string_bytes(layout: MiniBlockLayout, sizes: ChunkSizes) -> int | None:
    """Return the bytes of plain strings, without offsets but with up to 7 bytes of padding per chunk."""
    if layout.dictionary is not None or layout.num_buffers != 1 or not _is_plain_text(layout.values):
        return None
    width = int(sum(layout.values.least_bits)) // 8
    return max(int(sizes.values.sum()) - (layout.num_items + len(sizes.counts)) * width, 0)


def _is_plain_text(encoding: Encoding) -> bool:
    return encoding.is_text and encoding.is_plain


# -- items -------------------------------------------------------------------------------------------------------


def _full_zip(page: Page, layout: FullZipLayout, value_type: pa.DataType) -> Facts:
    if not page.buffers:
        raise CorruptFileError(f"{page.where}: has no buffers, full-zip values need one")
    word = _word_bytes(layout.rep_bits + layout.def_bits)
    level_bytes = word * layout.num_items
    stored = max(page.size_of(0) - level_bytes, 0)
    data = None
    if _is_plain_text(layout.values) and is_binary_like(value_type):
        data = max(stored - layout.num_visible_items * ((layout.length_bits or 32) // 8), 0)
    plain = plain_size(value_type, layout.num_visible_items, data)
    width = None if layout.bits is None else layout.bits // 8
    control = [f"{layout.rep_bits} bits repetition"] if layout.rep_bits else []
    control += [f"{layout.def_bits} bits definition"] if layout.def_bits else []
    return Facts(
        layout="full-zip",
        encoding=layout.values.text,
        values=layout.num_visible_items,
        buffers=named_buffers(page, ["items", "repetition index"]),
        why=why_zipped(layout.values, StoredValues(layout.num_visible_items, stored, plain), width, word > 0),
        is_plain=layout.values.is_plain,
        levels=f"control words of {word} bytes ({', '.join(control)})" if word else "",
        value_bytes=stored,
        level_bytes=level_bytes,
        plain_bytes=plain,
    )


def _word_bytes(bits: int) -> int:
    return 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4


# -- constants ---------------------------------------------------------------------------------------------------


def _constant(page: Page, layout: ConstantLayout, value_type: pa.DataType, values: int) -> Facts:
    buffers = len(page.buffers)
    names = {1: ["value"], 2: ["repetition", "definition"], 3: ["value", "repetition", "definition"]}.get(buffers, [])
    stored = page.size_of(0) if buffers in (1, 3) else None
    value_bytes = len(layout.inline_value) if layout.inline_value is not None else stored
    level_bytes = sum(size for _, size in page.buffers[-2:]) if buffers >= 2 else 0
    items = _visible(page, layout) if level_bytes else values
    # The buffer of a string scalar starts with 12 bytes of lengths and two offsets.
    length = 0 if value_bytes is None else max(value_bytes - (28 if pa.types.is_large_string(value_type) else 20), 0)
    plain = plain_size(value_type, items, items * length)
    has_value = value_bytes is not None
    return Facts(
        layout="constant" if has_value else "all null",
        encoding="constant" if has_value else "",
        values=items,
        buffers=named_buffers(page, names),
        why=why_constant(value_type, items, value_bytes, level_bytes, plain),
        levels=_constant_levels(page, layout) if level_bytes else "",
        value_bytes=value_bytes or 0,
        level_bytes=level_bytes,
        plain_bytes=plain,
    )


def _visible(page: Page, layout: ConstantLayout) -> int:
    """Return the number of items that are neither an empty list nor below a null list."""
    streams = [(len(page.buffers) - 2, layout.rep, layout.num_rep_values)]
    streams.append((len(page.buffers) - 1, layout.definition, layout.num_def_values))
    counts = [0 if page.size_of(b) == 0 else page.size_of(b) // 2 if e is None else count for b, e, count in streams]
    if counts[1] == 0:
        return counts[0]
    if counts[1] > _MOST_LEVELS:
        raise CorruptFileError(f"{page.where}: claims {counts[1]} levels")
    buffer, encoding, _ = streams[1]
    try:
        levels = decode_levels(page.read(buffer), encoding, counts[1], page.where)
        return level_codec.count_visible(levels, 0, counts[1], max_visible_definition(layout.layers))
    except CodecError as error:
        raise CorruptFileError(f"{page.where}: {error}") from error


def _constant_levels(page: Page, layout: ConstantLayout) -> str:
    sizes = [size for _, size in page.buffers[-2:]]
    raw = Flat(16)
    rep, definition = layout.rep or raw, layout.definition or raw
    return _level_text(rep if sizes[0] else None, definition if sizes[1] else None)


# -- blobs -------------------------------------------------------------------------------------------------------


def _blob(page: Page, layout: BlobLayout) -> Facts:
    inner = describe_values(page, layout.inner, DESCRIPTION_BRANCH.leaf.storage_type, page.length)
    size = sum(buffer.size for buffer in inner.buffers)
    why = f"values marked as blobs lie apart from the page, which has their positions and sizes: {size_text(size)}"
    return replace(inner, layout=f"blob in {inner.layout}", why=why, is_plain=False, plain_bytes=None)
