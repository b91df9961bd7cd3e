"""Reading the keys of dictionaries in the fst format."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from lance_dataset.index.text.fst_layout import (
    COMMON_INPUTS,
    EMPTY_FINAL,
    HEAD_BYTES,
    INDEXED_FROM,
    NEXT,
    ONE,
    SMALLEST_FILE,
    TAIL_BYTES,
    VERSION,
)
from lance_dataset.limits import BASE_MEMORY, check_memory

__all__ = ["all_transitions", "dictionary_frame", "read_fst", "single_transition"]

_MAX_NUMBER = (1 << 64) - 1
#: Bytes of memory of a path to keys, besides its text. The posting lists limit the number of keys.
_ENTRY_BYTES = 150
_FIRST_ONE, _FIRST_NEXT = ONE << 6, NEXT << 6


def read_fst(data: bytes, most: int, where: str) -> Iterator[tuple[bytes, int]]:
    """Yield the keys of a dictionary in ascending order, and their numbers.

    Parameters
    ----------
    data
        Bytes of the dictionary.
    most
        Maximum number of keys.
    where
        Name of the file, for error messages.

    Raises
    ------
    ValueError
        The bytes are not such a dictionary.
    MemoryLimitError
        All keys together, or the paths to them, need too much memory.
    """
    count, root = dictionary_frame(data, most)
    nodes = data[: len(data) - TAIL_BYTES]
    found = held = listed = 0
    budget = 64 * len(nodes) + 64 * most  # paths that lead to no key could go on forever
    stack: list[tuple[int, bytes, int]] = [(root, b"", 0)]
    held += _ENTRY_BYTES  # bytes of the paths on the stack; `listed` are those of the keys found
    while stack:
        address, key, number = stack.pop()
        held -= len(key) + _ENTRY_BYTES
        # A node with one transition does not need the stack.
        tail = bytearray()
        while address != EMPTY_FINAL and nodes[address] >= _FIRST_ONE:
            state = nodes[address]
            if state > _FIRST_NEXT and address > HEAD_BYTES:  # the most frequent case
                tail.append(COMMON_INPUTS[state - _FIRST_NEXT - 1])
                address -= 1
                continue
            step, output, address = single_transition(nodes, address)
            tail.append(step)
            number += output
        key += bytes(tail)
        final, output, transitions = all_transitions(nodes, address)
        budget -= 1 + len(tail) + len(transitions)
        if budget < 0 or found > count:
            raise ValueError(f"has more words than its count of {count}")
        if final:
            found += 1
            if number + output > _MAX_NUMBER:
                raise ValueError("a number has more than 64 bits")
            listed += len(key)
            yield key, number + output
        held += len(transitions) * (len(key) + 1 + _ENTRY_BYTES)
        if held + listed > BASE_MEMORY:
            check_memory(held + listed, len(data), f"{where}: a dictionary of words")
        for step, output, target in reversed(transitions):
            stack.append((target, key + bytes((step,)), number + output))
    if found != count:
        raise ValueError(f"has {found} words, but a count of {count}")


def dictionary_frame(data: bytes, most: int) -> tuple[int, int]:
    """Return the number of keys and the address of the root."""
    if len(data) < SMALLEST_FILE:
        raise ValueError(f"a dictionary of {len(data)} bytes, less than {SMALLEST_FILE}")
    (version,) = struct.unpack_from("<Q", data)
    if version != VERSION:
        raise ValueError(f"a dictionary of version {version}, but this release reads version {VERSION}")
    count, root = struct.unpack_from("<QQ", data, len(data) - TAIL_BYTES)
    if count > most:
        raise ValueError(f"has a count of {count} words, but at most {most} are possible")
    if root != EMPTY_FINAL and (root + TAIL_BYTES + 1 != len(data) or root < HEAD_BYTES):
        raise ValueError(f"its root is at {root}, but its nodes end at {len(data) - TAIL_BYTES}")
    return count, root


def single_transition(nodes: bytes, address: int) -> tuple[int, int, int]:
    """Return the input, output and target of a node with one transition."""
    state = nodes[address]
    common = state & 0x3F
    at = address if common else address - 1
    step = COMMON_INPUTS[common - 1] if common else nodes[at]
    if state >> 6 == NEXT:
        return step, 0, _checked(at - 1, at)
    sizes = nodes[at - 1]
    deltas = at - 1 - (sizes >> 4)
    begin = deltas - (sizes & 15)
    if begin < HEAD_BYTES:
        raise ValueError(f"a node at {address} begins before the first one")
    delta = int.from_bytes(nodes[deltas : at - 1], "little")
    return step, int.from_bytes(nodes[begin:deltas], "little"), _checked(begin - delta if delta else EMPTY_FINAL, begin)


def all_transitions(nodes: bytes, address: int) -> tuple[bool, int, list[tuple[int, int, int]]]:
    """Return whether a node of any number of transitions is final, its final output, and its transitions.

    Each transition is (input, output, target).
    """
    if address == EMPTY_FINAL:
        return True, 0, []
    state = nodes[address]
    count, at = state & 0x3F, address
    if count == 0:
        at -= 1
        count = 256 if nodes[at] == 1 else nodes[at]
    sizes = nodes[at - 1]
    wide, width = sizes >> 4, sizes & 15
    inputs = at - 1 - (256 if count >= INDEXED_FROM else 0) - count
    deltas = inputs - count * wide
    outputs = deltas - count * width
    final = bool(state >> 6 & 1)
    begin = outputs - width if final else outputs
    if begin < HEAD_BYTES:
        raise ValueError(f"a node at {address} begins before the first one")
    transitions = []
    for number in range(count - 1, -1, -1):  # transitions are stored in reverse order
        place = deltas + number * wide
        delta = int.from_bytes(nodes[place : place + wide], "little")
        target = _checked(begin - delta if delta else EMPTY_FINAL, begin)
        place = outputs + number * width
        transitions.append((nodes[inputs + number], int.from_bytes(nodes[place : place + width], "little"), target))
    return final, int.from_bytes(nodes[begin:outputs], "little"), transitions


def _checked(target: int, begin: int) -> int:
    if target != EMPTY_FINAL and not HEAD_BYTES <= target < begin:
        raise ValueError(f"a node that begins at {begin} leads to {target}, which is not before it")
    return target
