"""Encodings as short text, from the outside in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_dataset.file.v2_0 import nodes
from lance_dataset.file.v2_1 import compressive as ce

__all__ = ["encoding_text", "node_text"]


def encoding_text(encoding: ce.Encoding) -> str:
    """An encoding of 2.1 to 2.3 as text, such as ``fsst(variable 32)``."""
    return _TEXTS[type(encoding)](encoding)


def _variable(encoding: ce.Variable) -> str:
    offsets = encoding.offsets
    return f"variable {offsets.bits}" if isinstance(offsets, ce.Flat) else f"variable({encoding_text(offsets)})"


def _general(encoding: ce.General) -> str:
    level = "" if encoding.level is None else f" {encoding.level}"
    return f"{encoding.scheme}{level}({encoding_text(encoding.values)})"


def _fixed_size_list(encoding: ce.FixedSizeList) -> str:
    nulls = " with nulls" if encoding.has_validity else ""
    return f"fixed-size list {encoding.dimension}{nulls}({encoding_text(encoding.values)})"


def _dictionary(encoding: ce.Dictionary) -> str:
    indices, items = encoding_text(encoding.indices), encoding_text(encoding.items)
    return f"dictionary({indices}; {encoding.size:,} {items})"


_TEXTS: dict[type, Callable[[Any], str]] = {
    ce.Flat: lambda e: f"flat {e.bits}",
    ce.Variable: _variable,
    ce.Constant: lambda e: "null" if e.value is None else "constant",
    ce.OutOfLineBitpacking: lambda e: f"bit packing {e.width} of {e.bits}",
    ce.InlineBitpacking: lambda e: f"bit packing {e.bits}",
    ce.Fsst: lambda e: f"fsst({encoding_text(e.values)})",
    ce.Dictionary: _dictionary,
    ce.Rle: lambda e: f"rle({encoding_text(e.values)}, {encoding_text(e.lengths)})",
    ce.ByteStreamSplit: lambda e: f"byte-stream split {e.bits}",
    ce.General: _general,
    ce.FixedSizeList: _fixed_size_list,
    ce.PackedStruct: lambda e: f"packed struct({', '.join(f'flat {bits}' for bits in e.bits)})",
    ce.VariablePackedStruct: lambda e: f"packed struct({', '.join(encoding_text(f.value) for f in e.fields)})",
    ce.Range: lambda e: f"range {e.bits}",
    ce.Delta: lambda e: f"delta({encoding_text(e.deltas)})",
}


def node_text(node: nodes.Node) -> str:
    """An encoding tree of 2.0 as text, such as ``nullable(flat 64)``."""
    if isinstance(node, nodes.Flat):
        return f"{node.scheme}(flat {node.bits})" if node.scheme else f"flat {node.bits}"
    if isinstance(node, nodes.Nullable):
        if node.values is None:
            return "null"
        return node_text(node.values) if node.validity is None else f"nullable({node_text(node.values)})"
    if isinstance(node, nodes.FixedSizeList):
        return f"fixed-size list {node.dimension}({node_text(node.items)})"
    if isinstance(node, nodes.Binary):
        return f"{_scheme(node.data)}(binary)" if _scheme(node.data) else "binary"
    if isinstance(node, nodes.Dictionary):
        return f"dictionary({node_text(node.indices)}; {node.size:,} {node_text(node.items)})"
    if isinstance(node, nodes.Fsst):
        return f"fsst({node_text(node.codes)})"
    if isinstance(node, nodes.FixedSizeBinary):
        return f"fixed-size binary {node.width}"
    if isinstance(node, (nodes.Bitpacked, nodes.BitpackedBlocks)):
        return f"bit packing {node.width} of {node.bits}"
    if isinstance(node, nodes.PackedStruct):
        return f"packed struct({', '.join(f'flat {bits}' if bits else 'unknown' for bits in node.bits)})"
    return "list" if isinstance(node, nodes.List) else "struct"


def _scheme(node: nodes.Fixed | None) -> str:
    if isinstance(node, (nodes.Bitpacked, nodes.BitpackedBlocks)):
        return node_text(node)
    return "" if node is None else node.scheme
