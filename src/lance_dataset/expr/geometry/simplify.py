"""Simplification of lines and rings."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_dataset.expr.geometry.shapes import shapely

__all__ = ["by_area", "by_distance", "simplified"]

_Points = NDArray[np.float64]
#: Points of the smallest ring.
_RING: Final = 4


def simplified(shape: Any, keep: Callable[[_Points, float, bool], _Points], limit: float) -> Any:
    """Return a geometry with fewer points; points stay, and so do the parts of collections.

    Parameters
    ----------
    shape
        The geometry.
    keep
        Returns the points that are left of a line or ring.
    limit
        What `keep` gets; nothing changes unless it is positive.
    """
    if not limit > 0 or shape.is_empty:
        return shape
    library = shapely()

    def thinned(part: Any, is_ring: bool) -> _Points:
        return keep(library.get_coordinates(part, include_z=bool(part.has_z)), limit, is_ring)

    match shape.geom_type:
        case "LineString":
            return library.linestrings(thinned(shape, False))
        case "Polygon":
            outer, *inner = [_closed(thinned(ring, True)) for ring in library.get_rings(shape)]
            return library.polygons(outer, [library.linearrings(ring) for ring in inner] or None)
        case "MultiLineString":
            return library.multilinestrings([simplified(part, keep, limit) for part in shape.geoms])
        case "MultiPolygon":
            return library.multipolygons([simplified(part, keep, limit) for part in shape.geoms])
    return shape


def _closed(ring: _Points) -> _Points:
    """Return a ring with as many points as the library demands."""
    return ring if len(ring) >= _RING else np.concatenate([ring, np.repeat(ring[-1:], _RING - len(ring), axis=0)])


def by_distance(points: _Points, limit: float, is_ring: bool) -> _Points:
    """Return the points that are left of a line within a distance (Ramer 1972, Douglas and Peucker 1973).

    A section of a ring stays as it is if the ring would have too few points without it.
    """
    kept = np.ones(len(points), bool)
    left = len(points)
    waiting = [(0, len(points) - 1)]
    while waiting:
        first, last = waiting.pop()
        inside = last - first - 1
        if inside < 1:
            continue
        distances = _distances(points[first + 1 : last, :2], points[first, :2], points[last, :2])
        farthest = int(distances.argmax())
        if distances[farthest] > limit:
            middle = first + 1 + farthest
            waiting += [(middle, last), (first, middle)]
        elif not is_ring or left - inside >= _RING:
            kept[first + 1 : last] = False
            left -= inside
    return points[kept]


def _distances(points: _Points, start: _Points, end: _Points) -> _Points:
    """Return the distances of points from a line segment."""
    along = end - start
    length = float(along @ along)
    place = np.zeros(len(points)) if length == 0 else np.clip((points - start) @ along / length, 0, 1)
    found: _Points = np.hypot(*(points - start - place[:, None] * along).T)
    return found


def by_area(points: _Points, limit: float, is_ring: bool) -> _Points:
    """Return the points that are left when those with the smallest triangles are removed (Visvalingam, Whyatt 1993)."""
    count = len(points)
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    rows = points[:, :2].tolist()

    def area(one: int, two: int, three: int) -> float:
        (ax, ay), (bx, by), (cx, cy) = rows[one], rows[two], rows[three]
        return abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay)) / 2

    heap = [(area(place - 1, place, place + 1), place - 1, place, place + 1) for place in range(1, count - 1)]
    heapq.heapify(heap)
    gone = np.zeros(count, bool)
    while heap:
        size, left, place, right = heapq.heappop(heap)
        if size > limit:
            break
        if gone[place] or before[place] != left or after[place] != right:
            continue  # a neighbour was removed since
        gone[place] = True
        after[left], before[right] = right, left
        for middle in (left, right):
            if 0 < middle < count - 1:
                outer = before[middle], middle, after[middle]
                heapq.heappush(heap, (area(*outer), *outer))
    return points[~gone]
