"""Writing dictionaries in the fst format from ordered keys; equal suffixes are stored once."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from lance_dataset.index.text.crc32c import crc32c
from lance_dataset.index.text.fst_layout import (
    COMMON_INPUTS,
    EMPTY_FINAL,
    FINAL,
    INDEXED_FROM,
    NEXT,
    ONE,
    VERSION,
)

__all__ = ["write_fst"]

#: Maximum number of nodes remembered for reuse; the memory is cleared when it is full.
_MOST_KNOWN = 1 << 18
#: Maximum number of transitions that fits into the state itself.
_MOST_COUNTED = 63


def _states(kind: int) -> list[bytes]:
    """Return, for each input, the state of a node with one transition; inputs that are not common precede the state."""
    common = {step: bytes([kind << 6 | number]) for number, step in enumerate(COMMON_INPUTS, start=1)}
    return [common.get(step, bytes([step, kind << 6])) for step in range(256)]


_NEXT_STATES, _ONE_STATES = _states(NEXT), _states(ONE)


@dataclass(slots=True)
class _Open:
    """A node whose last transition may still change."""

    final: bool = False
    final_output: int = 0
    done: list[tuple[int, int, int]] = field(default_factory=list)
    last: int = -1
    last_output: int = 0

    def push(self, output: int) -> None:
        """Add an output to all outputs of the node."""
        if self.final:
            self.final_output += output
        self.done = [(step, before + output, target) for step, before, target in self.done]
        self.last_output += output

    def close(self, target: int) -> None:
        """Set the target of the last transition."""
        if self.last >= 0:
            self.done.append((self.last, self.last_output, target))
            self.last, self.last_output = -1, 0


def write_fst(entries: Iterable[tuple[bytes, int]]) -> bytes:
    """Encode a dictionary.

    Parameters
    ----------
    entries
        Distinct keys in ascending order, with numbers from 0 to 2**64 - 1.

    Returns
    -------
    bytes
        Identical to the output of the reference unless there are very many different nodes.
    """
    nodes = _Nodes()
    way = _Way(nodes)
    count = 0
    for key, number in entries:
        way.lead(key, number)
        count += 1
    root = way.end()
    nodes.data += struct.pack("<QQ", count, root)
    checksum = crc32c(bytes(nodes.data))
    masked = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return bytes(nodes.data) + struct.pack("<I", masked)


class _Way:
    """Nodes on the path of the last key, which may still change, except the suffix that it does not share yet.

    Parameters
    ----------
    nodes
        Gets the nodes when they are final.
    """

    def __init__(self, nodes: _Nodes) -> None:
        self._nodes = nodes
        self._key = b""
        self._open = [_Open()]

    def lead(self, key: bytes, number: int) -> None:
        """Continue with the next key."""
        way, common = self._open, _shared(self._key, key)
        self._reach(common)
        for level in range(common):
            node = way[level]
            if node.last_output > number:
                way[level + 1].push(node.last_output - number)
                node.last_output = number
            number -= node.last_output
        self._close_below(common)
        node = way[common]
        if common == len(key):
            node.final, node.final_output = True, number
        else:
            node.last, node.last_output = key[common], number
        self._key = key

    def end(self) -> int:
        """Return the address of the root, after the last key."""
        self._close_below(0)
        root = self._open[0]
        return self._nodes.add(root.final, root.final_output, root.done)

    def _reach(self, level: int) -> None:
        """Create nodes for the last key up to a level."""
        key = self._key
        for place in range(len(self._open), level + 1):
            self._open.append(_Open(last=key[place]) if place < len(key) else _Open(final=True))

    def _close_below(self, level: int) -> None:
        """Store the nodes below a level, the deepest first."""
        way = self._open
        if way[-1].last >= 0:
            way[-1].close(self._nodes.chain(self._key[len(way) :]))
        while len(way) > level + 1:
            node = way.pop()
            way[-1].close(self._nodes.add(node.final, node.final_output, node.done))


def _shared(left: bytes, right: bytes) -> int:
    """Return the length of the common prefix of two keys."""
    limit = min(len(left), len(right))
    if left[:limit] == right[:limit]:
        return limit
    place = 0
    while left[place] == right[place]:
        place += 1
    return place


class _Nodes:
    """Nodes stored so far."""

    def __init__(self) -> None:
        self.data = bytearray(struct.pack("<QQ", VERSION, 0))
        self._last = EMPTY_FINAL
        self._plain: dict[int, int] = {}
        self._known: dict[tuple[bool, int, tuple[tuple[int, int, int], ...]], int] = {}

    def chain(self, tail: bytes) -> int:
        """Add a chain of nodes with one transition each and no output, to the end of a key; return its address."""
        address = EMPTY_FINAL
        for step in reversed(tail):
            known = self._plain.get(address << 8 | step)
            address = self._add_plain(step, address) if known is None else known
        return address

    def add(self, final: bool, final_output: int, transitions: list[tuple[int, int, int]]) -> int:
        """Return the address of a node; store it unless an equal node exists."""
        if not final and len(transitions) == 1 and not transitions[0][1]:
            return self._add_plain(transitions[0][0], transitions[0][2])
        if final and not transitions and not final_output:
            return EMPTY_FINAL
        key = (final, final_output, tuple(transitions))
        address = self._known.get(key)
        if address is None:
            if final or len(transitions) != 1:
                self._store_any(final, final_output, transitions)
            else:
                self._store_one(*transitions[0])
            address = self._last = len(self.data) - 1
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = address
        return address

    def _add_plain(self, step: int, target: int) -> int:
        """Return the address of a node with one transition and no output; store it unless an equal one exists."""
        key = target << 8 | step
        address = self._plain.get(key)
        if address is None:
            if target == self._last and target != EMPTY_FINAL:
                self.data += _NEXT_STATES[step]
            else:
                self._store_one(step, 0, target)
            address = self._last = len(self.data) - 1
            if len(self._plain) >= _MOST_KNOWN:
                self._plain.clear()
            self._plain[key] = address
        return address

    def _store_one(self, step: int, output: int, target: int) -> None:
        data = self.data
        delta = len(data) - target if target else 0
        wide, width = _bytes_of(delta) or 1, _bytes_of(output)
        data += output.to_bytes(width, "little")
        data += delta.to_bytes(wide, "little")
        data.append(wide << 4 | width)
        data += _ONE_STATES[step]

    def _store_any(self, final: bool, final_output: int, transitions: list[tuple[int, int, int]]) -> None:
        data = self.data
        count, end = len(transitions), len(data)
        transitions = transitions[::-1]
        outputs = [output for _, output, _ in transitions]
        deltas = [end - target if target else 0 for _, _, target in transitions]
        width = _bytes_of(max(final_output, *outputs, 0))
        wide = (_bytes_of(max(deltas)) or 1) if count else 0
        if width:
            numbers = [final_output, *outputs] if final else outputs
            data += b"".join([number.to_bytes(width, "little") for number in numbers])
        data += b"".join([delta.to_bytes(wide, "little") for delta in deltas])
        steps = bytes([step for step, _, _ in transitions])
        data += steps
        if count >= INDEXED_FROM:
            index = bytearray(b"\xff" * 256)
            for number, step in enumerate(reversed(steps)):
                index[step] = number
            data += index
        data.append(wide << 4 | width)
        if count > _MOST_COUNTED or not count:
            data.append(1 if count == 256 else count)
        data.append((FINAL if final else 0) << 6 | (count if count <= _MOST_COUNTED else 0))


def _bytes_of(number: int) -> int:
    return (number.bit_length() + 7) >> 3
