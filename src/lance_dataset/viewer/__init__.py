"""A page that shows a dataset, served on this machine: rows, statistics, versions, storage. Extra ``viewer``."""

from lance_dataset.viewer.server import Viewer, view

__all__ = ["Viewer", "view"]
