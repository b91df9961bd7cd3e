"""Description of sparse pages of 2.3 files, which have positions and counts instead of levels."""

from __future__ import annotations

from dataclasses import replace

from lance_dataset.file.explain.facts import Facts, plain_size
from lance_dataset.file.explain.reasons import DictionarySize, why_chunks, why_constant
from lance_dataset.file.explain.report import StoredBuffer
from lance_dataset.file.explain.structural import describe_values, named_buffers
from lance_dataset.file.structural.encodings.base import StoredValues
from lance_dataset.file.structural.layout import ConstantLayout, MiniBlockLayout
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.page import Page
from lance_dataset.file.v2_3.layout import (
    DictionaryLayout,
    SparseFixedSizeList,
    SparseLayer,
    SparseLayout,
    SparseList,
)
from lance_dataset.file.v2_3.planes import plane_buffers

__all__ = ["describe_sparse"]


def describe_sparse(page: Page, layout: SparseLayout, branch: Branch) -> Facts:
    """Return the facts about a sparse page; raises as `describe_page`."""
    used = plane_buffers(layout.values)
    plane = replace(page, buffers=page.buffers[:used])
    facts = _plane(plane, layout, branch, _slots(layout, page.length))
    structure = tuple(StoredBuffer(f"structure {n}", size) for n, (_, size) in enumerate(page.buffers[used:]))
    return replace(
        facts,
        layout=f"sparse {facts.layout}",
        buffers=facts.buffers + structure,
        levels=", ".join(_layer_text(layer) for layer in layout.layers),
        level_bytes=sum(buffer.size for buffer in structure),
    )


def _slots(layout: SparseLayout, rows: int) -> int:
    """Return the number of values of the leaf, including nulls."""
    slots = rows
    for layer in layout.layers:
        if isinstance(layer, SparseList):
            slots = layer.num_child_slots
        elif isinstance(layer, SparseFixedSizeList):
            slots *= layer.dimension
    return slots


def _plane(page: Page, layout: SparseLayout, branch: Branch, slots: int) -> Facts:
    values, value_type = layout.values, branch.leaf.storage_type
    if isinstance(values, DictionaryLayout):
        return _dictionary(page, values, branch, slots)
    if isinstance(values, MiniBlockLayout):
        values = replace(values, num_items=slots)
    facts = describe_values(page, values, value_type, slots)
    if not isinstance(values, ConstantLayout) or values.inline_value is not None:
        return facts
    return replace(
        facts, why=why_constant(value_type, slots, None, 0, None), plain_bytes=plain_size(value_type, slots, 0)
    )


def _dictionary(page: Page, layout: DictionaryLayout, branch: Branch, slots: int) -> Facts:
    first = int(layout.indices.has_payload)
    items = replace(page, buffers=page.buffers[first:])
    entries = describe_values(items, layout.items, branch.leaf.storage_type, layout.items.num_items)
    index_bytes = page.size_of(0) if first else 0
    entry_bytes = sum(buffer.size for buffer in entries.buffers)
    size, plain = layout.items.num_items, plain_size(branch.leaf.storage_type, slots)
    stored = StoredValues(slots, index_bytes, plain)
    return Facts(
        layout="dictionary",
        encoding=f"dictionary({layout.indices.text}; {size:,} {entries.encoding})",
        values=slots,
        buffers=named_buffers(page, [*(["indices"] * first), *(buffer.name for buffer in entries.buffers)]),
        why=why_chunks(layout.indices, stored, DictionarySize(size, entry_bytes)),
        dictionary_entries=size,
        value_bytes=index_bytes + entry_bytes,
        plain_bytes=plain,
    )


def _layer_text(layer: SparseLayer) -> str:
    nulls = f"{layer.validity.positions.length:,} {'valid' if layer.validity.lists_valid else 'null'}"
    if isinstance(layer, SparseList):
        return f"{layer.positions.length:,} lists with items, {nulls}"
    return nulls
