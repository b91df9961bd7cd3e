"""Plots with matplotlib, which is loaded only when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_dataset.errors import UnsupportedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_of_size", "check_axes"]


def check_axes(axes: object) -> Axes | None:
    """Return the axes that a user gave to draw in, or None.

    Raises
    ------
    UnsupportedError
        matplotlib is not installed.
    TypeError
        The value is not an object of matplotlib's class.
    """
    try:
        from matplotlib.axes import Axes
    except ModuleNotFoundError as error:
        raise UnsupportedError(f"plots need {error.name}: pip install 'lance-dataset[plot]'") from error
    if axes is not None and not isinstance(axes, Axes):
        raise TypeError(f"axes must be matplotlib.axes.Axes or None, not {type(axes).__name__}")
    return axes


def axes_of_size(given: Axes | None, width: float, height: float) -> Axes:
    """Return the axes that were given, or those of a new figure of a size in inches."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1] if given is None else given
