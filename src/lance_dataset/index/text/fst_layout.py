"""Layout of dictionaries that are finite state transducers from byte strings to numbers (fst format, version 3).

A file has a header of two numbers (version, type), nodes, and a tail: number of keys, address of the root, and a masked
CRC-32C. The address of a node is that of its last byte, its state; the node is laid out backwards from there. The
targets of a node precede it. The number of a key is the sum of the outputs along its path and the final output of its
last node.
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
#: Address of the node that is final and has neither output nor transitions; it is not stored.
EMPTY_FINAL = 0

#: Upper bits of a state: one transition without output to the preceding node; one transition; any number of them.
NEXT, ONE, FINAL = 0b11, 0b10, 0b01
#: Nodes with more transitions have a table from inputs to transitions.
INDEXED_FROM = 33
#: Inputs that nodes with one transition encode in their state, as numbers from 1.
COMMON_INPUTS = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"
