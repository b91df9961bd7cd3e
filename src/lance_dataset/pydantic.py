"""Models of pydantic as schemas of datasets, and annotations of vectors for their fields."""

from lance_dataset.types.pydantic_models import (
    FixedSizeListMixin,
    MultiVector,
    Vector,
    get_extras,
    is_nullable,
    pydantic_to_schema,
)

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "get_extras", "is_nullable", "pydantic_to_schema"]
