"""Schemas with field ids."""

from lance_dataset.records.schema import LanceField, LanceSchema

__all__ = ["LanceField", "LanceSchema"]
