from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search.graphs import GraphBuilder, GraphPartitions


def walk(c: Chaos) -> object:
    """Walk a graph of random edges, of which a number may be wrong."""
    storage, dimension, rows = c.random.randrange(3), 8 * c.random.randint(1, 5), c.random.choice([0, 1, 40, 200])
    parts = c.random.choice([2, 4])
    found = GraphPartitions(
        *(storage, 1, dimension, 0, c.random.choice([0, 2])),
        bits=8,
        parts=parts,
        codebook=c.buffer(dimension << 10) if storage == 1 else None,
        centroids=c.buffer(4 * dimension),
        step=0.1,
    )
    upper, degree = c.random.randint(0, rows), c.random.randint(0, 6)
    nodes = np.concatenate([np.arange(rows), np.arange(upper)]).astype(np.uint32)
    ends = (np.arange(len(nodes) + 1) * degree).astype(np.uint32)
    neighbors = [c.rng.integers(0, max(most, 1), most * degree) for most in (rows, upper)]
    numbers = [np.array([0, rows, rows + upper]), nodes, ends, np.concatenate(neighbors).astype(np.uint32)]
    changed = c.random.choice(numbers)
    if c.random.random() < 0.3 and len(changed):
        changed[c.random.randrange(len(changed))] = c.random.choice([0, 1, rows, 2**31, 2**32 - 1])
    found.link(0, rows, c.number(max(upper - 1, 0)), *numbers)
    width = (4 * dimension, parts, dimension)[storage]
    addresses = np.arange(rows, dtype=np.uint64)
    found.fill(0, rows, c.out(rows * width), c.out(8 * rows), addresses)
    k = c.number(30)
    return found.search(
        *(c.out(8 * dimension), np.zeros(1, np.int64), c.out(4), k, np.zeros(1, np.int64), np.zeros(1, np.int64)),
        *(np.full(1, c.number(250)), None if c.flag() else c.out(30), c.number(240), 1, None, None),
        *(c.out(4 * 32), c.out(8 * 32), c.out(8 * 32), c.number(40)),
    )


def build(c: Chaos) -> object:
    """Build a graph; calls may come in a wrong order."""
    n, dimension, element = c.random.choice([0, 1, 2, 50, 150]), c.random.randint(1, 40), c.random.choice([0, 1, 2, 5])
    scale = c.random.choice([0.0, 0.5]) if element == 5 else 0.0
    metric = c.random.choice([0, 2]) if element != 5 else 0 if scale else 3
    heights = np.sort(np.minimum(c.rng.geometric(0.7, n) - 1, 3)).astype(np.uint8)[::-1].copy()
    order = np.arange(n, dtype=np.uint32)
    if n and c.random.random() < 0.1:
        order[c.random.randrange(n)] = c.random.choice([0, n, 2**32 - 1])
    values = c.out(n * dimension * {0: 4, 1: 8, 2: 2, 5: 1}[element])
    made = GraphBuilder(
        *(values, n, dimension, element, metric, heights, order, c.random.randint(1, 9), c.random.randint(1, 30)), scale
    )
    if c.flag():
        first, stop = made.batch()
        made.find(first, stop if c.flag() else c.number(10))
        made.link(c.number(1), c.number(2))
        made.advance()
    made.run(c.number(200))
    levels, nodes, edges = made.finish()
    outputs = (c.out(8 * levels + 8), c.out(4 * nodes), c.out(4 * nodes + 4), c.out(4 * edges), c.out(4 * edges))
    return made.write(*outputs)


TARGETS: dict[str, Callable[[Chaos], object]] = {"graphs.walk": walk, "graphs.build": build}
