"""Rules for the schemas of 2.1 and 2.2 files."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.options import check_not_descriptor, encoding_options, is_blob, is_blob_v2, is_packed
from lance_dataset.file.structural.nesting import Branch, Nest, branches
from lance_dataset.types.schema import Field, Schema

__all__ = ["check_schema"]


def check_schema(schema: Schema, version: str) -> None:
    """Raise an error if files of a version cannot hold a schema.

    Raises
    ------
    UnsupportedError
        The version cannot hold a column. The message names the column and what to do instead.
    InvalidInputError
        The encoding options of a field do not exist.
    """
    for top in schema.fields:
        if not (top.children or top.metadata) and pa.types.is_primitive(top.storage_type):
            continue  # every version holds it, and tables may have thousands of such columns
        for branch in branches(top):
            _Check(branch, version).run()


#: Children of a blob column of version 2. The last two may be missing.
_BLOB_SHAPE = [
    ("data", "large_binary", True),
    ("uri", "string", True),
    ("position", "uint64", True),
    ("size", "uint64", True),
]


class _Check:
    """Check of one leaf and the fields above it."""

    def __init__(self, branch: Branch, version: str) -> None:
        self._leaf = branch.leaf
        self._above = branch.above
        self._where = ""
        self._version = version
        self._in_list = any(nest.kind == "list" for nest in branch.above)
        self._in_fixed_list = any(nest.kind == "fixed_size_list" for nest in branch.above)

    def _refuse(self, what: str, instead: str) -> UnsupportedError:
        return UnsupportedError(f"{self._where}: file version {self._version} has no {what}; {instead}")

    def run(self) -> None:
        names: list[str] = []
        for nest in self._above:
            names.append(nest.field.name)
            self._where = f"column {'.'.join(names)!r}"
            self._check_nest(nest)
        self._where = f"column {'.'.join([*names, self._leaf.name])!r}"
        if encoding_options(self._leaf).structure == "sparse":
            raise self._refuse("sparse structural encoding", "use miniblock or fullzip, or leave the choice open")
        check_not_descriptor(self._leaf, ".".join([*names, self._leaf.name]))
        if is_blob_v2(self._leaf) or is_blob(self._leaf):
            self._check_blob()
        elif is_packed(self._leaf):
            self._check_packed()
        elif self._leaf.logical_type == "struct":
            if self._in_list or self._in_fixed_list:
                raise self._refuse("structs without a child inside lists", "give the struct a child")
        else:
            self._check_leaf(self._leaf.storage_type)

    def _check_nest(self, nest: Nest) -> None:
        if nest.field.logical_type == "map" and self._version == "2.1":
            raise self._refuse("maps", "use file version 2.2 or later")
        if nest.kind != "fixed_size_list":
            return
        if self._version == "2.1":
            raise self._refuse("fixed-size lists of structs", "use file version 2.2 or later")
        if self._in_list:
            raise self._refuse("fixed-size lists of structs together with lists or maps", "use lists only")
        if nest.dimension == 0:
            raise self._refuse("fixed-size lists of no items", "use a list")

    def _check_blob(self) -> None:
        if is_blob_v2(self._leaf):
            self._check_blob_v2()
            return
        if self._leaf.storage_type != pa.large_binary():
            raise self._refuse(f"blobs of type {self._leaf.storage_type}", "cast the column to large_binary")
        if self._in_list or self._in_fixed_list:
            raise self._refuse("blobs inside lists", "remove the lance-encoding:blob metadata")

    def _check_blob_v2(self) -> None:
        if self._version == "2.1":
            raise InvalidInputError(f"{self._where}: Blob v2 requires file version >= 2.2 (got 2.1)")
        if self._in_fixed_list or any(nest.field.logical_type == "map" for nest in self._above):
            raise self._refuse("blobs inside maps and fixed-size lists", "use lists")
        shape = [(child.name, child.logical_type, child.nullable) for child in self._leaf.children]
        if self._leaf.logical_type != "struct" or shape not in (_BLOB_SHAPE[:2], _BLOB_SHAPE):
            raise InvalidInputError(
                f"{self._where}: a blob is a struct of data (large_binary), uri (string) and perhaps position and size "
                f"(uint64), all nullable, not {self._leaf.storage_type}; make the field with blob_field"
            )

    def _check_leaf(self, kind: pa.DataType) -> None:
        if pa.types.is_fixed_size_list(kind):
            self._check_fixed_list(kind)
        elif pa.types.is_fixed_size_binary(kind) and kind.byte_width == 0 and self._version == "2.1":
            raise self._refuse("binary values of width 0", "use file version 2.2 or later")

    def _check_fixed_list(self, kind: pa.FixedSizeListType) -> None:
        item = kind.value_type
        if kind.list_size == 0:
            raise self._refuse("fixed-size lists of no items", "use a list")
        if pa.types.is_fixed_size_list(item):
            self._check_fixed_list(item)
        elif is_binary_like(item) or pa.types.is_null(item) or pa.types.is_nested(item):
            raise self._refuse(f"fixed-size lists of {item}", "use a list")
        elif pa.types.is_fixed_size_binary(item) and item.byte_width == 0:
            raise self._refuse("fixed-size lists of values of width 0", "use a wider item")

    # -- packed structs ------------------------------------------------------------------------------------------

    def _check_packed(self) -> None:
        if not self._leaf.children:
            raise self._refuse("packed structs without a child", "give the struct a child")
        for child in self._leaf.children:
            self._check_packed_child(child)

    def _check_packed_child(self, child: Field) -> None:
        kind = child.storage_type
        named = f"packed structs with a child of type {kind}"
        if pa.types.is_boolean(kind):
            raise self._refuse(named, "cast the child to int8")
        if pa.types.is_nested(kind) and not pa.types.is_fixed_size_list(kind):
            raise self._refuse(named, "remove the lance-encoding:packed metadata")
        if pa.types.is_dictionary(kind) or pa.types.is_null(kind):
            raise self._refuse(named, "cast the child to the type of its values")
        if self._version == "2.1" and (is_binary_like(kind) or pa.types.is_fixed_size_list(kind)):
            raise self._refuse(named, "use file version 2.2 or later")
        if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 0:
            raise self._refuse(named, "use a wider child")
        if pa.types.is_fixed_size_list(kind):
            self._check_fixed_list(kind)
