"""Removing nodes from graphs: neighbors of a removed node get edges to the nodes around it.

A level keeps the edges between the nodes that stay. A node that lost neighbors considers the nodes near the lost ones.
It takes, nearest first, those that are nearer to it than to its present neighbors. This is the rule by which such
graphs are built, so that edges lead in all directions. It then takes some more of the nearest. Finally, every node that
is no longer reachable gets an edge from the nearest reachable node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.vector.distances import StoredVectors
from lance_dataset.index.vector.graph import Graph, GraphLevel

__all__ = ["without_nodes"]

Places = NDArray[np.int64]
Distances = NDArray[np.float32]
Edges = tuple[Places, Places, Distances]

#: Number of nodes that replace a lost one.
_STAND_INS = 8
#: Neighbors of a lost node that are searched when its neighbors are lost too, and rounds of this search.
_ASKED = 4
_ROUNDS = 4
#: Candidates of a node that are compared with each other.
_CANDIDATES = 24
#: Candidates that become neighbors only because they are near, if there is room.
_MERELY_NEAR = 8
#: Limit on the number of comparisons made together.
_CHUNK_VALUES = 4 << 20
#: Maximum number of nodes tried to connect an unreachable one.
_TRIED = 4096


def without_nodes(graph: Graph, gone: NDArray[np.bool_], vectors: StoredVectors) -> Graph:
    """Return a graph without some nodes; the other nodes are renumbered.

    Parameters
    ----------
    graph
        The graph of a partition.
    gone : bool[rows]
        Rows of the partition that are removed.
    vectors
        Stored vectors of all its rows.
    """
    levels = [
        _mended(level, ~gone[level.nodes], vectors, graph.max_degree(height))
        for height, level in enumerate(graph.levels)
    ]
    filled = [level for level in levels if len(level.nodes)]
    if not filled:
        return Graph((), 0, graph.parameters)
    entry_point = graph.entry_point
    if gone[entry_point] or entry_point not in filled[-1].nodes:
        entry_point = int(filled[-1].nodes[0])
    numbers = np.cumsum(~gone) - 1
    for height, level in enumerate(levels):
        whole = _connected(level, entry_point, vectors, graph.max_degree(height)) if len(level.nodes) else level
        levels[height] = GraphLevel(numbers[whole.nodes], whole.offsets, whole.neighbors, whole.distances)
    return Graph(tuple(levels), int(numbers[entry_point]), graph.parameters)


def _mended(level: GraphLevel, stays: NDArray[np.bool_], vectors: StoredVectors, most: int) -> GraphLevel:
    """Return a level without some of its nodes; node numbers stay."""
    if stays.all():
        return level
    sources, targets = level.sources, level.neighbors
    kept = stays[sources] & stays[targets]
    edges = [(sources[kept], targets[kept], level.distances[kept])]
    lost = stays[sources] & ~stays[targets]
    if lost.any():
        near = _Nearness(level.nodes, vectors)
        stand_ins = _stand_ins(level, stays, near)
        edges.append(_new_edges(edges[0], (sources[lost], targets[lost]), stand_ins, near, most))
        edges.append(_returning(edges, np.bincount(sources[kept], minlength=len(stays)), most))
    places = np.cumsum(stays) - 1
    first, second, distances = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    return _level(level.nodes[stays], places[first], places[second], distances)


class _Nearness:
    """Distances between the nodes of a level."""

    def __init__(self, nodes: Places, vectors: StoredVectors) -> None:
        self._nodes = nodes
        self._vectors = vectors
        self.width = vectors.width

    def take(self, places: Places) -> Distances:
        """Return the vectors of nodes; -1 gives the vector of the last node."""
        return self._vectors.take(self._nodes[places])

    def pairs(self, first: Places, second: Places) -> Distances:
        """Return the distances of pairs."""
        found = np.empty(len(first), np.float32)
        step = max(_CHUNK_VALUES // self.width, 1)
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            found[part] = self._vectors.between(self.take(first[part]), self.take(second[part]))
        return found

    def groups(self, first: Places, second: Places) -> Distances:
        """Return the distances of all pairs of ``first[n, a]`` and ``second[n, b]``: float32[n, a, b]."""
        vectors = [self.take(places.ravel()).reshape(*places.shape, self.width) for places in (first, second)]
        return self._vectors.among(*vectors)


def _stand_ins(level: GraphLevel, stays: NDArray[np.bool_], near: _Nearness) -> Places:
    """Return, for each node that goes, nearby nodes that stay.

    The result is int64[nodes, _STAND_INS], nearest first; -1 marks a missing value.
    """
    sources, targets, count = level.sources, level.neighbors, len(stays)
    direct = ~stays[sources] & stays[targets]
    found = _nearest(sources[direct], targets[direct], level.distances[direct], count, _STAND_INS)
    asking = ~stays[sources] & ~stays[targets] & (found[sources, _STAND_INS // 2 - 1] < 0)
    asked = _nearest(sources[asking], targets[asking], level.distances[asking], count, _ASKED)
    seekers = np.unique(sources[asking])
    for _ in range(_ROUNDS if len(seekers) else 0):
        answers = found[asked[seekers], : _STAND_INS // 2]
        answers[asked[seekers] < 0] = -1
        heard = np.concatenate([found[seekers], answers.reshape(len(seekers), -1)], axis=1)
        rows, columns = np.nonzero(heard >= 0)
        first, second = _distinct(seekers[rows], heard[rows, columns], count)
        before = found[seekers]
        found[seekers] = _nearest(first, second, near.pairs(first, second), count, _STAND_INS)[seekers]
        if np.array_equal(before, found[seekers]):
            break
    return found


def _new_edges(kept: Edges, lost: tuple[Places, Places], stand_ins: Places, near: _Nearness, most: int) -> Edges:
    """Return edges that replace lost ones, which are ordered by their sources.

    Parameters
    ----------
    kept
        Edges that stay, ordered by their sources.
    lost
        Sources and targets of the lost edges.
    stand_ins
        Nodes near those that go.
    near
        Distances.
    most
        Maximum number of neighbors of a node.
    """
    owners, firsts = np.unique(lost[0], return_index=True)
    firsts = np.append(firsts, len(lost[0]))
    step = max(_CHUNK_VALUES // (_CANDIDATES * max(near.width, most + _CANDIDATES)), 1)
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for start in range(0, len(owners), step):
        group = owners[start : start + step]
        part = slice(firsts[start], firsts[min(start + step, len(owners))])
        first = np.repeat(lost[0][part], _STAND_INS)
        second = stand_ins[lost[1][part]].ravel()
        real = (second >= 0) & (first != second)
        span = slice(*np.searchsorted(kept[0], (group[0], group[-1] + 1)))
        old = kept[0][span], kept[1][span], kept[2][span]
        first, second = _distinct(first[real], second[real], len(stand_ins), old[:2])
        parts.append(_chosen(group, old, first, second, near, most))
    first, second, distances = (np.concatenate(column) for column in zip(*parts, strict=True))
    return first, second, distances


def _chosen(group: Places, kept: Edges, first: Places, second: Places, near: _Nearness, most: int) -> Edges:
    """Return edges from the nodes of a group to candidates, the pairs `first` and `second`, in order."""
    distances = near.pairs(first, second)
    base = int(group[0])
    places = group - base
    candidates, far = _nearest_with(first - base, second, distances, int(places[-1]) + 1, _CANDIDATES)
    old = _nearest(kept[0] - base, kept[1], kept[2], int(places[-1]) + 1, most)
    candidates, far, old = candidates[places], far[places], old[places]
    chosen = _spread(candidates, far, old, near, most - (old >= 0).sum(axis=1))
    rows, columns = np.nonzero(chosen)
    return group[rows], candidates[rows, columns], far[rows, columns]


def _spread(
    candidates: Places, far: Distances, old: Places, near: _Nearness, room: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of the candidates that become neighbors.

    They are those that are nearer to their node than to its neighbors, nearest first. Some of the others are added, so
    that a node that lost many neighbors does not stay with few.

    Parameters
    ----------
    candidates : int64[nodes, candidates]
        Candidates, nearest first; -1 marks a missing value.
    far : float32[nodes, candidates]
        Distances of the candidates from their node.
    old : int64[nodes, neighbors]
        Present neighbors of the node; -1 marks a missing value.
    near
        Distances.
    room : int64[nodes]
        Number of further neighbors the node may have.
    """
    covered = candidates < 0
    if old.shape[1]:
        to_old = np.where(old[:, None] >= 0, near.groups(candidates, old), np.inf)
        covered |= to_old.min(axis=2) < far
    covers = near.groups(candidates, candidates) < far[:, None]
    chosen = np.zeros(candidates.shape, bool)
    left = room.copy()
    for place in range(candidates.shape[1]):
        takes = ~covered[:, place] & (left > 0)
        chosen[:, place] = takes
        left -= takes
        covered |= takes[:, None] & covers[:, place]
    others = (candidates >= 0) & ~chosen
    return chosen | (others & (np.cumsum(others, axis=1) <= np.minimum(left, _MERELY_NEAR)[:, None]))


def _returning(edges: list[Edges], degrees: NDArray[np.int64], most: int) -> Edges:
    """Return reverse edges of the new ones, the last of `edges`, to nodes that have room for them."""
    first, second, distances = edges[-1]
    count = len(degrees)
    known = np.sort(np.concatenate([sources * count + targets for sources, targets, _ in edges]))
    back = second * count + first
    missing = known[np.minimum(np.searchsorted(known, back), len(known) - 1)] != back
    first, second, distances = first[missing], second[missing], distances[missing]
    degrees = degrees + np.bincount(edges[-1][0], minlength=count)
    order = _by_distance(second, distances)
    rank = _ranks(second[order])
    order = order[rank < (most - degrees)[second[order]]]
    return second[order], first[order], distances[order]


def _connected(level: GraphLevel, entry_point: int, vectors: StoredVectors, most: int) -> GraphLevel:
    """Return a level with an edge to every node that is otherwise unreachable from the entry point."""
    near = _Nearness(level.nodes, vectors)
    reached = np.zeros(len(level.nodes), bool)
    fresh = np.searchsorted(level.nodes, [entry_point])
    degrees = np.diff(level.offsets)
    more: list[tuple[int, int, float]] = []
    while True:
        _reach(level, reached, fresh)
        missing = np.flatnonzero(~reached)
        if not len(missing):
            break
        place = int(missing[0])
        hosts = np.flatnonzero(reached & (degrees < most))
        hosts = hosts if len(hosts) else np.flatnonzero(reached)
        hosts = hosts[:: -(-len(hosts) // _TRIED)]
        distances = near.pairs(np.full(len(hosts), place), hosts)
        host = int(np.argmin(distances))
        more.append((int(hosts[host]), place, float(distances[host])))
        degrees[hosts[host]] += 1
        fresh = np.array([place])
    if not more:
        return level
    first, second, far = (np.array(column) for column in zip(*more, strict=True))
    return _level(
        level.nodes,
        np.concatenate([level.sources, first]),
        np.concatenate([level.neighbors, second]),
        np.concatenate([level.distances, far.astype(np.float32)]),
    )


def _reach(level: GraphLevel, reached: NDArray[np.bool_], fresh: Places) -> None:
    """Mark every node that is reachable by edges from the given nodes."""
    reached[fresh] = True
    while len(fresh):
        lengths = level.offsets[fresh + 1] - level.offsets[fresh]
        edges = np.repeat(level.offsets[fresh] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        targets = level.neighbors[edges]
        fresh = np.unique(targets[~reached[targets]])
        reached[fresh] = True


def _level(nodes: Places, first: Places, second: Places, distances: Distances) -> GraphLevel:
    order = np.argsort(first, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=len(nodes)))])
    return GraphLevel(nodes, offsets, second[order], distances[order])


def _distinct(
    first: Places, second: Places, count: int, without: tuple[Places, Places] | None = None
) -> tuple[Places, Places]:
    """Return distinct ordered pairs of numbers below `count`, without the pairs to exclude."""
    keys = (first * count + second) * 2 + 1
    if without is not None:
        keys = np.concatenate([keys, (without[0] * count + without[1]) * 2])
    keys.sort()
    fresh = np.diff(keys >> 1, prepend=-1) != 0
    keys = keys[fresh & (keys & 1 == 1)] >> 1
    first = keys // count
    return first, keys - first * count


def _nearest(first: Places, second: Places, distances: Distances, count: int, most: int) -> Places:
    """Return the nearest `second` of each `first` below `count`.

    The result is int64[count, most], nearest first; -1 marks a missing value.
    """
    return _nearest_with(first, second, distances, count, most)[0]


def _nearest_with(
    first: Places, second: Places, distances: Distances, count: int, most: int
) -> tuple[Places, Distances]:
    order = _by_distance(first, distances)
    rank = _ranks(first[order])
    order, rank = order[rank < most], rank[rank < most]
    found = np.full((count, most), -1)
    far = np.full((count, most), np.inf, np.float32)
    found[first[order], rank] = second[order]
    far[first[order], rank] = distances[order]
    return found, far


def _by_distance(first: Places, distances: Distances) -> Places:
    """Return the order of numbers below 2**31, ties broken by distance."""
    bits = distances.astype(np.float32).view(np.int32).astype(np.int64)
    ascending = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # integers in the order of the floats
    return np.argsort((first << 32) + ascending)


def _ranks(values: Places) -> Places:
    """Return the rank of each of some ordered values among those equal to it."""
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    return np.arange(len(values)) - np.repeat(starts, np.diff(starts, append=len(values)))
