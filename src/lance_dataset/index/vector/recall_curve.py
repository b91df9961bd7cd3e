"""Curves of recall: what searches with some parameters find of the nearest rows, as the details of an index keep it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_dataset._proto import vector_index_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.table.messages import parse_message

__all__ = ["CURVE", "RecallCurve", "RecallPoint", "details_with_curve", "kept_curve"]

#: Name of a curve in the details of an index.
CURVE: Final = "lance_dataset.recall"
#: Points of a curve that details keep, and numbers in it.
_MOST_POINTS, _MOST_NUMBER = 64, 1 << 40
#: Part by which the number of vectors of an index may differ from that of its curve.
_TOLERATED = 0.25


@dataclass(frozen=True)
class RecallPoint:
    """Measured recall of parameters.

    Attributes
    ----------
    probes
        Number of partitions of each segment.
    refine
        Candidates to compare exactly for each row to find; None to trust the distances of the index.
    recall
        Mean share of the nearest rows that were found.
    seconds
        Median time of a query.
    """

    probes: int
    refine: int | None
    recall: float
    seconds: float


@dataclass(frozen=True)
class RecallCurve:
    """Measured recall of an index.

    Attributes
    ----------
    k
        Number of rows to find.
    partitions
        Numbers of partitions of its segments, ascending.
    vectors
        Number of its vectors.
    points
        The measured parameters.
    """

    k: int
    partitions: tuple[int, ...]
    vectors: int
    points: tuple[RecallPoint, ...]

    def fits(self, partitions: Iterable[int], vectors: int) -> bool:
        """Return True if an index has these segments still, and about as many vectors as when it was measured."""
        return tuple(sorted(partitions)) == self.partitions and (
            abs(vectors - self.vectors) <= _TOLERATED * self.vectors
        )

    @property
    def best(self) -> tuple[RecallPoint, ...]:
        """The points that no faster one reaches, the fastest first."""
        found: list[RecallPoint] = []
        for point in sorted(self.points, key=lambda each: (each.seconds, -each.recall)):
            if not found or point.recall > found[-1].recall:
                found.append(point)
        return tuple(found)

    @property
    def text(self) -> str:
        """The best points as JSON text: probes, refine factor (0 for none), recall and microseconds of each."""
        points = [
            [each.probes, each.refine or 0, round(each.recall, 4), round(each.seconds * 1e6, 1)] for each in self.best
        ]
        value = {
            "k": self.k,
            "partitions": list(self.partitions),
            "vectors": self.vectors,
            "points": points[-_MOST_POINTS:],
        }
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> RecallCurve | None:
        """Read a curve; None for any other text. Only the choice of parameters depends on it."""
        try:
            value = parse_json(text)
        except (ValueError, RecursionError):
            return None
        found = value if isinstance(value, dict) else {}
        k: Any = found.get("k")
        vectors: Any = found.get("vectors")
        partitions, points = found.get("partitions"), found.get("points")
        if not _are_counts([k, vectors]) or not isinstance(partitions, list) or not _are_counts(partitions):
            return None
        if not isinstance(points, list) or not 0 < len(points) <= _MOST_POINTS or not all(map(_is_point, points)):
            return None
        read = (RecallPoint(each[0], each[1] or None, float(each[2]), each[3] / 1e6) for each in points)
        return cls(k, tuple(sorted(partitions)), vectors, tuple(read))


def _are_counts(values: Sequence[Any]) -> bool:
    return bool(values) and all(type(each) is int and 0 < each < _MOST_NUMBER for each in values)


def _is_point(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 4 or not _are_counts(value[:1]):
        return False
    refine, numbers = value[1], value[2:]
    if type(refine) is not int or not 0 <= refine <= 1 << 16:
        return False
    return all(type(each) in (int, float) and math.isfinite(each) and each >= 0 for each in numbers) and value[2] <= 1


def details_with_curve(details: bytes, curve: RecallCurve | None) -> bytes:
    """Return the details of a segment with a curve, or without any, instead of the one that they have.

    Parameters
    ----------
    details
        A serialized `VectorIndexDetails`. The reference ignores hints that it does not know, and copies them.
    curve
        The curve; None for none.
    """
    message = vector_index_pb2.VectorIndexDetails.FromString(details)
    if curve is not None:
        message.runtime_hints[CURVE] = curve.text
    elif CURVE in message.runtime_hints:
        del message.runtime_hints[CURVE]
    else:
        return details
    return message.SerializeToString()


def kept_curve(
    details: Iterable[bytes], k: int, partitions: Sequence[int], vectors: int
) -> tuple[RecallPoint, ...] | None:
    """Return the points of a curve that the details of segments keep; None without one that fits the index.

    Parameters
    ----------
    details
        Serialized details of the segments of an index.
    k
        Number of rows to find.
    partitions
        Numbers of partitions of the segments.
    vectors
        Number of vectors of all segments.
    """
    for each in details:
        try:
            message = parse_message(vector_index_pb2.VectorIndexDetails, each, "details of a vector index")
        except CorruptFileError:  # a search does not need them
            continue
        text = message.runtime_hints.get(CURVE, "")
        curve = RecallCurve.of_text(text) if text else None
        if curve is not None and curve.k == k and curve.fits(partitions, vectors):
            return curve.points
    return None
