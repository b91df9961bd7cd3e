"""Parts of a legacy (0.1) file, taken apart and reassembled with other numbers."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from lance_dataset._proto import file_pb2, table_pb2
from lance_dataset.types.schema import Field

__all__ = ["CELL", "LegacyParts", "offsets_width", "take_apart_legacy"]

_FOOTER = struct.Struct("<qhh4s")
CELL = struct.Struct("<qq")


@dataclass
class LegacyParts:
    """A legacy file in parts; change them, then `assemble`.

    Attributes
    ----------
    body
        Everything before the metadata; positions in the file are positions in it.
    metadata
        The message to which the footer points.
    minor
        Minor version of the footer.
    base
        Field id with which the page table starts.
    """

    body: bytearray
    metadata: file_pb2.Metadata
    minor: int
    base: int

    @property
    def num_batches(self) -> int:
        """Number of batches of the file."""
        return max(len(self.metadata.batch_offsets) - 1, 0)

    def cell_at(self, field_id: int, batch: int) -> int:
        """Return the position of a page's cell in the page table."""
        return self.metadata.page_table_position + ((field_id - self.base) * self.num_batches + batch) * CELL.size

    def cell(self, field_id: int, batch: int) -> tuple[int, int]:
        """Return position and length of a page."""
        position, length = CELL.unpack_from(self.body, self.cell_at(field_id, batch))
        return position, length

    def statistics_cell_at(self, field_id: int) -> int:
        """Return the position of a field's cell in the page table of the statistics."""
        return self.metadata.statistics.page_table_position + field_id * CELL.size

    def manifest(self) -> table_pb2.Manifest | None:
        """Return the embedded manifest."""
        at = self.metadata.manifest_position
        if at == 0:
            return None
        (size,) = struct.unpack_from("<I", self.body, at)
        return table_pb2.Manifest.FromString(bytes(self.body[at + 4 : at + 4 + size]))

    def set_manifest(self, manifest: table_pb2.Manifest) -> None:
        """Embed another manifest."""
        self.metadata.manifest_position = len(self.body)
        self.body += _framed(manifest.SerializeToString())

    def assemble(self) -> bytes:
        """Return the bytes of the file."""
        metadata = _framed(self.metadata.SerializeToString())
        return bytes(self.body) + metadata + _FOOTER.pack(len(self.body), 0, self.minor, b"LANC")


def take_apart_legacy(content: bytes, base: int) -> LegacyParts:
    """Return the parts of a valid file whose page table starts with field `base`."""
    position, _, minor, _ = _FOOTER.unpack(content[-_FOOTER.size :])
    (size,) = struct.unpack_from("<I", content, position)
    metadata = file_pb2.Metadata.FromString(content[position + 4 : position + 4 + size])
    return LegacyParts(bytearray(content[:position]), metadata, minor, base)


def offsets_width(field: Field) -> int:
    """Return the number of bytes of an offset in the page of a field; 0 for pages without offsets."""
    if field.logical_type.removesuffix(".struct") in ("list", "large_list"):
        return 8 if field.logical_type.startswith("large") else 4
    return 8 if field.logical_type in ("string", "binary", "large_string", "large_binary", "json") else 0


def _framed(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message
