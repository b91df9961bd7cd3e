"""Damage to bytes and messages, shared by the fuzzers of files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

__all__ = ["INTERESTING", "LOGICAL_TYPES", "damage_bytes", "flip", "mutate", "number"]

INTERESTING = (0, 1, 2, 7, 8, 63, 64, 127, 128, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**56, 2**63, 2**64 - 1)

LOGICAL_TYPES = (
    "int8",
    "int64",
    "bool",
    "string",
    "large_binary",
    "null",
    "struct",
    "list",
    "large_list.struct",
    "map",
    "json",
    "blob",
    "fixed_size_list:int32:2",
    "fixed_size_list:int8:0",
    "fixed_size_list:struct:2",
    "fixed_size_list:int64:2147483647",
    "fixed_size_binary:0",
    "fixed_size_binary:2147483647",
    "dict:string:int8:false",
    "dict:int8:string:false",
    "decimal:128:99:2",
    "timestamp:us:Nowhere/Zone",
)


def damage_bytes(content: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some changed, missing or added."""
    kinds: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip, flip, truncate, insert, remove)
    return chance.choice(kinds)(content, chance)


def number(old: int, bits: int, chance: random.Random) -> int:
    """Return another unsigned number of `bits` bits."""
    near = (old + 1, old - 1, old * 2, old + 16, max(old - 16, 0))
    return (chance.choice(near) if chance.random() < 0.5 else chance.choice(INTERESTING)) % 2**bits


def _place(content: bytes, chance: random.Random) -> int:
    """Return a position; half of them in the last KiB, where the metadata is."""
    low = max(len(content) - 1024, 0) if chance.random() < 0.5 else 0
    return chance.randrange(low, len(content))


def flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[_place(content, chance)] = chance.choice((0, 0xFF, 0x80, chance.randrange(256)))
    return bytes(changed)


def truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def insert(content: bytes, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + chance.randbytes(chance.choice((1, 8, 64))) + content[at:]


def remove(content: bytes, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + content[at + chance.choice((1, 8, 64)) :]


def _leaves(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    for descriptor, value in message.ListFields():
        if descriptor.type != FieldDescriptor.TYPE_MESSAGE:
            yield message, descriptor
        elif descriptor.message_type.GetOptions().map_entry:
            continue
        elif isinstance(value, Message):
            yield from _leaves(value)
        else:
            for item in value:
                yield from _leaves(item)


def mutate(message: Message, chance: random.Random, words: Sequence[str] = LOGICAL_TYPES) -> None:
    """Change or clear one of the fields of a message, at any depth; text fields get one of `words`."""
    leaves = list(_leaves(message))
    if not leaves:
        return
    owner, descriptor = chance.choice(leaves)
    if chance.random() < 0.1:
        owner.ClearField(descriptor.name)
        return
    value = getattr(owner, descriptor.name)
    many = not isinstance(value, (int, str, bytes, float, bool))
    old = value[0] if many else value
    if isinstance(old, str):
        new: object = chance.choice((*words, old[:-1], ""))
    elif isinstance(old, bytes):
        new = flip(old, chance) if old else b"\xff"
    elif isinstance(old, bool):
        new = not old
    else:
        new = chance.choice((*INTERESTING, old + 1, old - 1, -1))
    try:
        if many:
            value[chance.randrange(len(value))] = new
        else:
            setattr(owner, descriptor.name, new)
    except (ValueError, TypeError):  # out of the range of the field
        owner.ClearField(descriptor.name)
