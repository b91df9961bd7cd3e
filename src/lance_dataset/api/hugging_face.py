"""Values of datasets that were made from Hugging Face datasets."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.io.external.base import required_package

if TYPE_CHECKING:
    import torch
    from PIL import Image

__all__ = ["HuggingFaceConverter"]


class HuggingFaceConverter:
    """Makes of Arrow arrays what Hugging Face's ``datasets`` makes of them: pictures of image columns.

    Parameters
    ----------
    ds_info
        Description of the dataset, which Hugging Face keeps in the metadata of the schema, as JSON at the key
        ``huggingface``.
    """

    def __init__(self, ds_info: dict[str, Any]) -> None:
        self.ds_info = ds_info

    def to_pytorch(self, col: str, array: pa.Array) -> torch.Tensor | list[Image.Image] | None:
        """Return the pictures of an image column, or None if the description does not have the column.

        Parameters
        ----------
        col
            Name of the column.
        array
            Its values: structs of ``bytes`` and ``path``. Of a null there is no picture but None.

        Raises
        ------
        UnsupportedError
            The column has values of another kind, or the package ``pillow`` is not installed.
        InvalidInputError
            The values are not those of an image column.
        """
        kind = self._kind(col)
        if kind is None:
            return None
        if kind != "Image":
            raise UnsupportedError(f"Conversion to {kind} is not implemented")
        return [self._to_pil_image(scalar) for scalar in array]

    def _kind(self, col: str) -> str | None:
        value: Any = self.ds_info
        for key in ("info", "features", col, "_type"):
            if not isinstance(value, Mapping) or key not in value:
                return None
            value = value[key]
        return str(value)

    def _to_pil_image(self, scalar: pa.StructScalar) -> Any:
        value = scalar.as_py()
        if value is None:
            return None
        content, path = (value.get("bytes"), value.get("path")) if isinstance(value, Mapping) else (None, None)
        if content is None and path is None:
            raise InvalidInputError(f"a picture must have bytes or a path, not {value!r:.100}")
        images = required_package("PIL.Image", "images", "decoding a picture")
        return images.open(io.BytesIO(content) if content is not None else path)
