"""Schemas with field ids, and Arrow schemas as JSON."""

from lance_dataset.records.schema import LanceField, LanceSchema
from lance_dataset.types.schema_json import json_to_schema, schema_to_json

__all__ = ["LanceField", "LanceSchema", "json_to_schema", "schema_to_json"]
