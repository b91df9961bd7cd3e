"""Logical types and schemas."""
