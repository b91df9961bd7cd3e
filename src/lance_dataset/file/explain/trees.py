"""Description of pages of 2.0 files, taken from their encoding tree and buffer sizes."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from lance_dataset._proto import encodings_pb2
from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.container import PageMetadata
from lance_dataset.file.explain.facts import Facts, plain_size
from lance_dataset.file.explain.report import StoredBuffer
from lance_dataset.file.sizes import size_text
from lance_dataset.file.v2_0.nodes import (
    PAGE_ENCODING,
    Binary,
    Bitpacked,
    BitpackedBlocks,
    BufferRef,
    Dictionary,
    Fixed,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    Fsst,
    List,
    Node,
    Nullable,
    PackedStruct,
    SimpleStruct,
    parse_page_encoding,
    unwrapped,
)
from lance_dataset.types.schema import Field

__all__ = ["describe_tree"]


def describe_tree(page: PageMetadata, field: Field, where: str) -> Facts:
    """Return the facts about a page of a 2.0 file without reading anything.

    Raises
    ------
    CorruptFileError
        The page contradicts its encoding.
    """
    if page.type_name != PAGE_ENCODING:
        raise CorruptFileError(f"{where}: encoding {page.type_name!r} does not belong in a 2.0 file")
    try:
        node = parse_page_encoding(page.encoding)
    except UnsupportedError as error:
        return _unread(page, str(error))
    except CorruptFileError as error:
        raise CorruptFileError(f"{where}: {error}") from error
    names = dict(_named(node, ""))
    buffers = tuple(
        StoredBuffer(names.get(BufferRef(number), f"buffer {number}"), size)
        for number, (_, size) in enumerate(page.buffers)
    )
    validity = sum(buffer.size for buffer in buffers if buffer.name.endswith("validity"))
    stored = sum(buffer.size for buffer in buffers)
    entries = unwrapped(node)
    plain = _plain(node, field, page)
    return Facts(
        layout="array",
        encoding=_node_text(node),
        values=0 if isinstance(node, SimpleStruct) else page.length,
        buffers=buffers,
        why=_why(node, page.length, stored, plain),
        is_plain=_is_plain(node),
        levels="validity bitmap" if validity else "",
        dictionary_entries=entries.size if isinstance(entries, Dictionary) else None,
        value_bytes=stored - validity,
        level_bytes=validity,
        plain_bytes=plain,
    )


def _unread(page: PageMetadata, error: str) -> Facts:
    """Return the facts about a page whose encoding is known only by name."""
    try:
        message = encodings_pb2.ArrayEncoding.FromString(page.encoding)
    except DecodeError:  # pragma: no cover - the message was parsed before
        message = encodings_pb2.ArrayEncoding()
    buffers = tuple(StoredBuffer(f"buffer {number}", size) for number, (_, size) in enumerate(page.buffers))
    return Facts("array", message.WhichOneof("array_encoding") or "unknown", page.length, buffers, error)


def _named(node: Node | None, prefix: str) -> Iterator[tuple[BufferRef, str]]:
    if isinstance(node, Fixed):
        yield node.buffer, f"{prefix}values"
    elif isinstance(node, Nullable):
        if node.validity is not None:
            yield node.validity.buffer, f"{prefix}validity"
        yield from _named(node.values, prefix)
    elif isinstance(node, FixedSizeList):
        yield from _named(node.items, f"{prefix}items' ")
    elif isinstance(node, Binary):
        if node.ends is not None:
            yield node.ends.buffer, f"{prefix}ends"
        if node.data is not None:
            yield node.data.buffer, f"{prefix}bytes"
    elif isinstance(node, FixedSizeBinary):
        yield node.data.buffer, f"{prefix}bytes"
    elif isinstance(node, Fsst):
        yield from _named(node.codes, f"{prefix}codes' ")
    elif isinstance(node, PackedStruct):
        yield node.buffer, f"{prefix}rows"
    elif isinstance(node, Dictionary):
        yield from _named(node.indices, f"{prefix}indices' ")
        yield from _named(node.items, f"{prefix}entries' ")
    elif isinstance(node, List) and node.ends is not None:
        yield node.ends.buffer, f"{prefix}ends"


def _plain(node: Node, field: Field, page: PageMetadata) -> int | None:
    inner = unwrapped(node)
    if isinstance(inner, SimpleStruct):
        return 0
    if isinstance(inner, List):
        return page.length * (8 if field.logical_type.startswith("large") else 4)
    data = None
    if inner is None:
        data = 0
    elif isinstance(inner, Binary):
        data = _size(inner.data, page)
    elif isinstance(inner, FixedSizeBinary):
        data = page.length * inner.width
    return plain_size(field.storage_type, page.length, data)


def _size(data: Fixed | None, page: PageMetadata) -> int | None:
    """Return the bytes of values that are stored without compression, None if the page does not tell."""
    if data is None:
        return 0
    if not isinstance(data, Flat) or data.scheme or data.buffer.owner != "page":
        return None
    return page.buffers[data.buffer.index][1] if data.buffer.index < len(page.buffers) else None


def _is_plain(node: Node) -> bool:
    inner = unwrapped(node)
    if isinstance(inner, Flat):
        return not inner.scheme
    if isinstance(inner, (Binary, FixedSizeBinary)):
        return inner.data is None or _is_plain(inner.data)
    return isinstance(inner, (List, PackedStruct)) or (isinstance(inner, FixedSizeList) and _is_plain(inner.items))


def _why(node: Node, length: int, stored: int, plain: int | None) -> str:
    inner = unwrapped(node)
    if isinstance(inner, SimpleStruct):
        return "the header of a struct, which has no data of its own"
    if inner is None:
        return f"all {length:,} values are null: nothing is stored"
    if isinstance(inner, List):
        return f"where {length:,} lists end; their {inner.num_items:,} items are the next column"
    if isinstance(inner, Dictionary):
        each = f"{length / inner.size:,.1f} values each" if inner.size else "none used"
        instead = "" if plain is None else f" instead of {size_text(plain)} plain"
        return f"{inner.size:,} entries for {length:,} values ({each}): {size_text(stored)}{instead}"
    if isinstance(inner, PackedStruct):
        return f"{length:,} rows side by side, as the field metadata asked: {size_text(stored)}"
    if not _is_plain(node):
        return f"compressed as its field metadata asked: {size_text(stored)}"
    return f"{length:,} values as they are, 2.0 has nothing smaller for them: {size_text(stored)}"


# -- as text ------------------------------------------------------------------------------------------------------


def _node_text(node: Node) -> str:
    """Return an encoding tree of 2.0 as text, such as ``nullable(flat 64)``."""
    if isinstance(node, Flat):
        return f"{node.scheme}(flat {node.bits})" if node.scheme else f"flat {node.bits}"
    if isinstance(node, Nullable):
        if node.values is None:
            return "null"
        return _node_text(node.values) if node.validity is None else f"nullable({_node_text(node.values)})"
    if isinstance(node, FixedSizeList):
        return f"fixed-size list {node.dimension}({_node_text(node.items)})"
    if isinstance(node, Binary):
        return f"{_scheme(node.data)}(binary)" if _scheme(node.data) else "binary"
    if isinstance(node, Dictionary):
        return f"dictionary({_node_text(node.indices)}; {node.size:,} {_node_text(node.items)})"
    if isinstance(node, Fsst):
        return f"fsst({_node_text(node.codes)})"
    if isinstance(node, FixedSizeBinary):
        return f"fixed-size binary {node.width}"
    if isinstance(node, (Bitpacked, BitpackedBlocks)):
        return f"bit packing {node.width} of {node.bits}"
    if isinstance(node, PackedStruct):
        return f"packed struct({', '.join(f'flat {bits}' if bits else 'unknown' for bits in node.bits)})"
    return "list" if isinstance(node, List) else "struct"


def _scheme(node: Fixed | None) -> str:
    if isinstance(node, (Bitpacked, BitpackedBlocks)):
        return _node_text(node)
    return "" if node is None else node.scheme
