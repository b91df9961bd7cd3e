"""Schema of a dataset: a tree of fields with ids, and its conversion from and to Arrow and protobuf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache

import pyarrow as pa

from lance_dataset._proto import file_pb2
from lance_dataset.errors import CorruptFileError, FieldNotFoundError, SchemaError, UnsupportedError, nearest_name_hint
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lance_dataset.types.blobs import register_type as register_blob_type
from lance_dataset.types.logical import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    JSON_EXTENSION,
    NESTED_TYPES,
    arrow_from_logical,
    fixed_list_length,
    is_json,
    logical_from_arrow,
    registered,
    user_schema,
)

__all__ = [
    "CLUSTERING_KEY_POSITION",
    "EXTENSION_METADATA",
    "EXTENSION_NAME",
    "KEY_TRUTHS",
    "PRIMARY_KEY",
    "PRIMARY_KEY_POSITION",
    "Field",
    "Schema",
    "numbered",
    "stated_encoding",
    "unnumbered",
]

register_blob_type()

_FIELD_ID = "lance:field_id"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"
#: Metadata values that make a field a primary key, in lower case.
KEY_TRUTHS = (b"true", b"1", b"yes")
PRIMARY_KEY_POSITION = "lance-schema:unenforced-primary-key:position"
CLUSTERING_KEY_POSITION = "lance-schema:unenforced-clustering-key:position"

_MAX_DEPTH = 128
_UNASSIGNED = -1


@dataclass(frozen=True)
class Field:
    """Field of the schema tree.

    Attributes
    ----------
    name
        Name of the field (not a path).
    id
        Field id, unique in the schema; -1 while unassigned.
    logical_type
        Lance logical type, see `lance_dataset.types.logical`.
    nullable
        True if values may be null.
    metadata
        Arrow field metadata, keys as text, values as bytes.
    children
        Child fields: the fields of a struct, the item of a list, the entries of a map; else empty.
    primary_key, primary_key_position
        Membership in the unenforced primary key, and its 1-based position; 0 for "by field id".
    clustering_key_position
        1-based position in the unenforced clustering key, 0 if the field is not part of it.
    dictionary
        (offset, length) of dictionary values kept in a manifest by 0.1 datasets, else None.
    dictionary_values
        Those values, if they are known.
    blob
        For another form of a blob column of version 2 (locations or values): the field as the schema has it.
    """

    name: str
    id: int
    logical_type: str
    nullable: bool = True
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    children: tuple[Field, ...] = ()
    primary_key: bool = False
    primary_key_position: int = 0
    clustering_key_position: int = 0
    dictionary: tuple[int, int] | None = None
    dictionary_values: pa.Array | None = field(default=None, compare=False, repr=False)
    blob: Field | None = field(default=None, compare=False, repr=False)

    def walk(self) -> Iterator[Field]:
        """Iterate over the field and all fields below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def child(self, name: str) -> Field | None:
        """Return the direct child of a name, None if there is none."""
        return next((child for child in self.children if child.name == name), None)

    @cached_property
    def storage_type(self) -> pa.DataType:
        """Arrow type of the stored values; extension types appear as their storage."""
        if self.logical_type == "struct":
            return pa.struct([child.to_arrow() for child in self.children])
        if self.logical_type in NESTED_TYPES:
            return self._list_type()
        if self.logical_type.startswith("fixed_size_list:struct:"):
            return pa.list_(self._item().to_arrow(), fixed_list_length(self.logical_type))
        if self.children:
            raise CorruptFileError(f"field {self.name!r} of type {self.logical_type} cannot have child fields")
        return arrow_from_logical(self.logical_type)

    def as_nullable(self) -> Field:
        """Return the field and its children as nullable, with the Arrow type of this field; itself if they are."""
        if all(node.nullable for node in self.walk()):
            return self
        made = replace(self, nullable=True, children=tuple(child.as_nullable() for child in self.children))
        vars(made)["storage_type"] = self.storage_type  # presets the cached property
        return made

    def _item(self) -> Field:
        if len(self.children) != 1:
            raise CorruptFileError(
                f"field {self.name!r} of type {self.logical_type} has {len(self.children)} child fields instead of 1"
            )
        return self.children[0]

    def _list_type(self) -> pa.DataType:
        item = self._item()
        if self.logical_type == "map":
            if len(item.children) != 2:
                raise CorruptFileError(f"map field {self.name!r} needs an entries struct with a key and a value")
            return pa.map_(item.children[0].to_arrow(), item.children[1].to_arrow())
        if self.logical_type.startswith("large_list"):
            return pa.large_list(item.to_arrow())
        return pa.list_(item.to_arrow())

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field with its storage type, metadata included."""
        if self.logical_type == "null" and not self.nullable:
            raise CorruptFileError(f"field {self.name!r} is of type null but not nullable")
        metadata = dict(self.metadata)
        if self.logical_type == "json":
            metadata = {EXTENSION_NAME: JSON_EXTENSION.encode(), EXTENSION_METADATA: b"", **metadata}
        return pa.field(self.name, self.storage_type, self.nullable, metadata=metadata or None)


@dataclass(frozen=True)
class Schema:
    """Top-level fields and schema metadata.

    Attributes
    ----------
    fields
        Top-level fields in order.
    metadata
        Arrow schema metadata, keys as text, values as bytes.
    """

    fields: tuple[Field, ...]
    metadata: Mapping[str, bytes] = field(default_factory=dict)

    # -- Arrow ---------------------------------------------------------------------------------------------------

    @classmethod
    def from_arrow(cls, schema: pa.Schema, *, max_field_id: int = -1) -> Schema:
        """Build a schema from Arrow, numbering the fields depth first from ``max_field_id + 1``.

        A field that carries an id in its metadata (`lance:field_id`) keeps it.

        Raises
        ------
        SchemaError
            Duplicate or dotted top-level names, or duplicate field ids.
        UnsupportedError
            A type that Lance cannot hold, or a nesting too deep to be read back.
        """
        fields = tuple(_field_from_arrow(arrow, arrow.name) for arrow in schema)
        _check_names(fields)
        given = [node.id for top in fields for node in top.walk() if node.id != _UNASSIGNED]
        if len(given) != len(set(given)):
            raise SchemaError(f"two fields carry the same {_FIELD_ID!r}: {sorted(given)}")
        counter = iter(range(max([max_field_id, *given]) + 1, 2**31))
        for top in fields:
            for node in top.walk():
                if node.id == _UNASSIGNED:
                    vars(node)["id"] = next(counter)  # nobody else has the new field yet
        return cls(fields, _decode_metadata(schema.metadata))

    @cached_property
    def storage_arrow(self) -> pa.Schema:
        """Arrow schema with storage types: extension types appear as storage plus metadata."""
        return pa.schema([top.to_arrow() for top in self.fields], metadata=dict(self.metadata) or None)

    @cached_property
    def arrow(self) -> pa.Schema:
        """Arrow schema as users of a dataset see it: JSON as text, registered extension types resolved."""
        return self._resolved(user_schema)

    @cached_property
    def file_arrow(self) -> pa.Schema:
        """Arrow schema as readers of single files see it: JSON as stored, registered extension types resolved."""
        return self._resolved(registered)

    def _resolved(self, resolve: Callable[[pa.Schema], pa.Schema]) -> pa.Schema:
        if not self.has_extensions:
            return self.storage_arrow
        try:
            return resolve(self.storage_arrow)
        except Exception as error:  # extension types of other libraries may raise anything
            raise CorruptFileError(f"the schema describes an Arrow extension type wrongly: {error}") from error

    @cached_property
    def companions(self) -> dict[str, pa.Schema]:
        """Schemas that higher floors derive from this one, and keep as long as it."""
        return {}

    @cached_property
    def has_extensions(self) -> bool:
        """True if a field has an Arrow extension name."""
        return any(EXTENSION_NAME in node.metadata or node.logical_type == "json" for node in self.walk())

    def anew(self) -> Schema:
        """Return the same schema for a later reader, as other extension types may be registered by then."""
        made = replace(self)
        vars(made)["storage_arrow"] = self.storage_arrow  # presets the cached property
        return made

    # -- protobuf ------------------------------------------------------------------------------------------------

    @classmethod
    def from_proto(
        cls, fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes], *, where: str = "schema"
    ) -> Schema:
        """Rebuild the tree from the flat field list of a file or manifest.

        Parameters
        ----------
        fields
            Messages with parents before their children.
        metadata
            Schema metadata.
        where
            Name of the file, for error messages.

        Raises
        ------
        CorruptFileError
            A parent is unknown or part of a cycle, the nesting is too deep, or a type does not exist.
        """
        messages = list(fields)
        depth: dict[int, int] = {}
        children: dict[int, list[file_pb2.Field]] = {}
        for message in messages:
            if message.id < 0:  # children of a blob descriptor: no fields of the schema
                continue
            parent = message.parent_id
            if parent != -1 and parent not in depth:
                raise CorruptFileError(
                    f"{where}: field {message.name!r} (id {message.id}) names parent {parent}, "
                    "which does not precede it"
                )
            level = 0 if parent == -1 else depth[parent] + 1
            if level > _MAX_DEPTH:
                raise CorruptFileError(f"{where}: field {message.name!r} is nested more than {_MAX_DEPTH} levels deep")
            if message.id in depth:
                raise CorruptFileError(f"{where}: field id {message.id} occurs twice in the schema")
            depth[message.id] = level
            children.setdefault(parent, []).append(message)
        tops = tuple(_field_from_proto(message, children) for message in children.get(-1, []))
        schema = cls(tops, dict(metadata))
        try:
            _ = schema.storage_arrow  # find invalid types here, where the name of the file is known
        except CorruptFileError as error:
            raise CorruptFileError(f"{where}: {error}") from error
        return schema

    def to_proto(self) -> Sequence[file_pb2.Field]:
        """Return the flat, depth-first field list. The messages are kept, and must not be changed."""
        return self._messages

    @cached_property
    def _messages(self) -> tuple[file_pb2.Field, ...]:
        messages: list[file_pb2.Field] = []
        for top in self.fields:
            _append_proto(top, -1, messages)
        return tuple(messages)

    # -- lookup --------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> list[str]:
        """Names of the top-level fields."""
        return [top.name for top in self.fields]

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {top.name: top for top in self.fields}

    @cached_property
    def by_id(self) -> dict[int, Field]:
        """All fields by their id; the first of those that share one."""
        return {node.id: node for node in reversed([*self.walk()])}

    def walk(self) -> Iterator[Field]:
        """Iterate over all fields, depth first."""
        for top in self.fields:
            yield from top.walk()

    def paths_by_id(self) -> Iterator[tuple[int, str]]:
        """Yield the id of each field, parents before children, and the names from the column down to it with dots."""

        def below(fields: Sequence[Field], above: str) -> Iterator[tuple[int, str]]:
            for node in fields:
                yield node.id, above + node.name
                yield from below(node.children, f"{above}{node.name}.")

        return below(self.fields, "")

    @property
    def max_field_id(self) -> int:
        """Largest field id, -1 for an empty schema."""
        return max((node.id for node in self.walk()), default=-1)

    def top_level(self, name: str) -> Field:
        """Return the top-level field of a name.

        Raises
        ------
        FieldNotFoundError
            The field does not exist; the message suggests the nearest name.
        """
        found = self._by_name.get(name)
        if found is None:
            raise FieldNotFoundError(f"no column named {name!r} in the schema{nearest_name_hint(name, self.names)}")
        return found

    def project(self, columns: Sequence[str]) -> Schema:
        """Return the schema restricted to columns, in the order given.

        Parameters
        ----------
        columns
            Names; a dotted path (`a.b`) selects a child of a struct. Paths below one struct are merged into it.

        Raises
        ------
        FieldNotFoundError
            A field does not exist.
        """
        selected: dict[str, Field] = {}
        for column in columns:
            path = self.resolve(column)
            pruned = _prune(path)
            top = path[0].name
            selected[top] = _merge(selected[top], pruned) if top in selected else pruned
        return Schema(tuple(selected.values()), self.metadata)

    def resolve(self, column: str) -> tuple[Field, ...]:
        """Return the fields from the top level down to a (dotted) name; items of lists need not be named.

        Raises
        ------
        FieldNotFoundError
            A field does not exist.
        """
        if column in self._by_name or "." not in column:
            return (self.top_level(column),)
        return self.descend(column.split("."), through_items=True)

    def descend(self, names: Sequence[str], *, through_items: bool = False) -> tuple[Field, ...]:
        """Return the fields from the top level down, given the name of each.

        Parameters
        ----------
        names
            At least one name.
        through_items
            True for also finding fields of list items and map entries directly below the list or map.

        Raises
        ------
        FieldNotFoundError
            A field does not exist; the message suggests the nearest name.
        """
        path = [self.top_level(names[0])]
        for level, name in enumerate(names[1:], 1):
            child = path[-1].child(name)
            if child is None and through_items and path[-1].logical_type in NESTED_TYPES - {"struct"}:
                path.append(path[-1].children[0])
                child = path[-1].child(name)
            if child is None:
                asked = ".".join(names)
                known = [".".join((*names[:level], node.name)) for node in path[-1].children]
                hint = nearest_name_hint(asked, known)
                raise FieldNotFoundError(f"no field {name!r} in column {path[-1].name!r} (asked for {asked!r}){hint}")
            path.append(child)
        return tuple(path)


def _prune(path: Sequence[Field]) -> Field:
    """Return the top field of `path`, reduced to the branch along `path`."""
    node = path[-1]
    for parent in reversed(path[:-1]):
        node = replace(parent, children=(node,))
    return node


def _merge(left: Field, right: Field) -> Field:
    """Return the union of two reductions of one field, children in order of first appearance."""
    if not left.children or not right.children:
        return left if not left.children else right
    merged = {child.id: child for child in left.children}
    for child in right.children:
        merged[child.id] = _merge(merged[child.id], child) if child.id in merged else child
    return replace(left, children=tuple(merged.values()))


def _field_from_arrow(arrow: pa.Field, path: str, level: int = 0) -> Field:
    if level > _MAX_DEPTH:
        top = path.partition(".")[0]
        raise UnsupportedError(f"column {top!r} is nested more than {_MAX_DEPTH} levels deep")
    metadata = _decode_metadata(arrow.metadata)
    arrow_type = arrow.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        metadata[EXTENSION_NAME] = arrow_type.extension_name.encode()
        metadata[EXTENSION_METADATA] = _extension_metadata(arrow_type)
        arrow_type = arrow_type.storage_type
    if is_json(metadata, arrow_type):
        logical_type, arrow_type = "json", pa.large_binary()
        metadata |= {EXTENSION_NAME: JSON_EXTENSION.encode(), EXTENSION_METADATA: b""}
    else:
        logical_type = logical_from_arrow(arrow_type, path)
    field_id = int(metadata.pop(_FIELD_ID, b"-1"))
    # position 0 means that field ids define the order of the key, as without positions
    position = _key_position(metadata, PRIMARY_KEY_POSITION, path, least=0)
    return Field(
        name=arrow.name,
        id=field_id,
        logical_type=logical_type,
        nullable=arrow.nullable,
        metadata=metadata,
        children=tuple(
            _field_from_arrow(child, f"{path}.{child.name}", level + 1) for child in _arrow_children(arrow_type)
        ),
        primary_key=PRIMARY_KEY_POSITION in metadata or metadata.get(PRIMARY_KEY, b"").lower() in KEY_TRUTHS,
        primary_key_position=position,
        clustering_key_position=_key_position(metadata, CLUSTERING_KEY_POSITION, path),
    )


def _extension_metadata(extension: pa.BaseExtensionType) -> bytes:
    if isinstance(extension, pa.ExtensionType):
        return extension.__arrow_ext_serialize__()
    # types built into pyarrow do not serialise themselves: write a schema, and read it back under an unregistered name,
    # which keeps storage and metadata apart
    name = extension.extension_name.encode()
    stored = pa.schema([pa.field("x", extension)]).serialize().to_pybytes()
    unknown = stored.replace(name + b"\0", b"\x01" * len(name) + b"\0")
    return (pa.ipc.read_schema(pa.py_buffer(unknown)).field(0).metadata or {}).get(EXTENSION_METADATA.encode(), b"")


def _key_position(metadata: Mapping[str, bytes], key: str, path: str, *, least: int = 1) -> int:
    text = metadata.get(key)
    if text is None:
        return 0
    if not text.isdigit() or int(text) < least:
        raise SchemaError(f"column {path!r}: metadata {key!r} must be a number from {least}, not {text!r}")
    return int(text)


def _arrow_children(arrow_type: pa.DataType) -> list[pa.Field]:
    kinds = pa.types
    if kinds.is_struct(arrow_type):
        return [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    if kinds.is_map(arrow_type):
        entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
        return [pa.field("entries", entries, nullable=False)]
    if kinds.is_list(arrow_type) or kinds.is_large_list(arrow_type):
        return [arrow_type.value_field]
    if kinds.is_fixed_size_list(arrow_type) and kinds.is_struct(arrow_type.value_type):
        return [arrow_type.value_field]
    return []


def numbered(node: Field, counter: Iterator[int]) -> Field:
    """Return the field with ids of a counter for itself and all fields below it that have none."""
    own = next(counter) if node.id == _UNASSIGNED else node.id
    return replace(node, id=own, children=tuple(numbered(child, counter) for child in node.children))


def unnumbered(node: Field) -> Field:
    """Return the field without ids, its own and those of the fields below it."""
    return replace(node, id=_UNASSIGNED, children=tuple(unnumbered(child) for child in node.children))


def _check_names(fields: Sequence[Field]) -> None:
    seen: set[str] = set()
    for top in fields:
        if "." in top.name:
            raise SchemaError(
                f"column name {top.name!r} contains a dot, which is reserved for nested fields; rename it"
            )
        if top.name in seen:
            raise SchemaError(f"column name {top.name!r} occurs twice; names must be unique")
        seen.add(top.name)


def _decode_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, bytes]:
    if not metadata:
        return {}
    return {key.decode(errors="surrogateescape"): value for key, value in metadata.items()}


def _field_from_proto(message: file_pb2.Field, children: Mapping[int, Sequence[file_pb2.Field]]) -> Field:
    metadata = dict(message.metadata)
    if message.extension_name:
        metadata[EXTENSION_NAME] = message.extension_name.encode()
    return Field(
        name=message.name,
        id=message.id,
        logical_type=message.logical_type,
        nullable=message.nullable,
        metadata=metadata,
        children=tuple(_field_from_proto(child, children) for child in children.get(message.id, [])),
        primary_key=message.unenforced_primary_key,
        primary_key_position=message.unenforced_primary_key_position,
        clustering_key_position=message.unenforced_clustering_key_position,
        dictionary=(message.dictionary.offset, message.dictionary.length) if message.HasField("dictionary") else None,
    )


def _append_proto(node: Field, parent_id: int, messages: list[file_pb2.Field]) -> None:
    message = file_pb2.Field(
        name=node.name,
        id=max(node.id, _UNASSIGNED),
        parent_id=parent_id if node.id >= 0 else _UNASSIGNED,  # parts of a descriptor have neither, as in the reference
        logical_type=node.logical_type,
        nullable=node.nullable,
        encoding=stated_encoding(node.logical_type),
    )
    if node.metadata:
        message.extension_name = node.metadata.get(EXTENSION_NAME, b"").decode()
        for key, value in node.metadata.items():
            message.metadata[key] = value
    if node.primary_key or node.clustering_key_position or node.primary_key_position:
        message.unenforced_primary_key = node.primary_key
        message.unenforced_primary_key_position = node.primary_key_position
        message.unenforced_clustering_key_position = node.clustering_key_position
    if node.dictionary is not None:
        message.dictionary.offset, message.dictionary.length = node.dictionary
    elif node.logical_type.startswith("dict:"):
        message.dictionary.SetInParent()  # without values; releases up to 0.20 do not open the table if it is missing
    messages.append(message)
    for child in node.children:
        _append_proto(child, node.id, messages)


@lru_cache(maxsize=256)
def stated_encoding(logical_type: str) -> file_pb2.Field.Encoding:
    """Return the 0.1 encoding of a type, which every stored field still states; readers of 2.x ignore it."""
    if logical_type in ("null", "struct"):
        return file_pb2.Field.NONE
    if logical_type in ("string", "large_string", "binary", "large_binary", "json"):
        return file_pb2.Field.VAR_BINARY
    return file_pb2.Field.DICTIONARY if logical_type.startswith("dict:") else file_pb2.Field.PLAIN
