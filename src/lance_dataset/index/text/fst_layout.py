"""Layout of dictionaries that are finite state transducers from byte strings to numbers (fst format, version 3).

A file is a head of two numbers (version, type), nodes, and a tail: number of keys, address of the root, and a masked
CRC-32C. A node is addressed by its last byte, its state, and is laid out backwards from there; what it leads to lies
before it. The number of a key is the sum of the outputs on its way, and the final output of the node where it ends.
"""

from __future__ import annotations

__all__ = [
    "COMMON_INPUTS",
    "EMPTY_FINAL",
    "HEAD_BYTES",
    "INDEXED_FROM",
    "NEXT",
    "ONE",
    "SMALLEST_FILE",
    "TAIL_BYTES",
    "VERSION",
]

VERSION = 3
HEAD_BYTES = 16
TAIL_BYTES = 20
SMALLEST_FILE = HEAD_BYTES + TAIL_BYTES
#: Address of the node that is final, has no output and leads nowhere; it is not stored.
EMPTY_FINAL = 0

#: Upper bits of a state: one transition without output to the node just before; one transition; any number of them.
NEXT, ONE, FINAL = 0b11, 0b10, 0b01
#: Nodes with more transitions have a table from inputs to transitions.
INDEXED_FROM = 33
#: Inputs that are kept in the state of nodes with one transition, as numbers from 1.
COMMON_INPUTS = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"
