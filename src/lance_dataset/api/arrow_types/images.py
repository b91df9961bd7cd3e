"""Arrow extension types of images: their URIs, their encoded bytes, or the numbers of their pixels."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.io.resolve import resolve

__all__ = [
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
]


class ImageScalar(pa.ExtensionScalar):
    """One value of an array of images."""

    def as_py(self, **kwargs: Any) -> object:
        """Return the URI, the bytes, or the numbers of the pixels; None for null."""
        return None if self.value is None else self.value.as_py(**kwargs)


class ImageURIScalar(ImageScalar):
    """One URI of an image."""


class EncodedImageScalar(ImageScalar):
    """One encoded image."""


class FixedShapeImageTensorScalar(ImageScalar):
    """Pixels of one image."""


class _ImageType(pa.ExtensionType):
    """Base class of the types without metadata."""

    _name = ""
    _storages: tuple[pa.DataType, ...] = ()
    _kind = ""

    def __init__(self, storage_type: pa.DataType | None = None) -> None:
        storage = self._storages[0] if storage_type is None else storage_type
        if storage not in self._storages:
            raise InvalidInputError(f"storage_type must be a {self._kind} type, not {storage}")
        super().__init__(storage, self._name)

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the metadata of the type, which is empty."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _ImageType:
        """Make the type from its storage and metadata."""
        return cls(storage_type)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.storage_type,)


class ImageURIType(_ImageType):
    """Arrow extension type of URIs of images.

    Parameters
    ----------
    storage_type
        ``string`` or ``large_string``.
    """

    _name = "lance.arrow.image_uri"
    _storages = (pa.string(), pa.large_string())
    _kind = "string"

    def __arrow_ext_class__(self) -> type:
        """Return the class of arrays."""
        return ImageURIArray

    def __arrow_ext_scalar_class__(self) -> type:
        """Return the class of scalars."""
        return ImageURIScalar


class EncodedImageType(_ImageType):
    """Arrow extension type of encoded images, such as PNG or JPEG.

    Parameters
    ----------
    storage_type
        ``binary`` or ``large_binary``.
    """

    _name = "lance.arrow.encoded_image"
    _storages = (pa.binary(), pa.large_binary())
    _kind = "binary"

    def __arrow_ext_class__(self) -> type:
        """Return the class of arrays."""
        return EncodedImageArray

    def __arrow_ext_scalar_class__(self) -> type:
        """Return the class of scalars."""
        return EncodedImageScalar


class FixedShapeImageTensorType(pa.ExtensionType):
    """Arrow extension type of pixels of images that all have the same shape.

    Parameters
    ----------
    arrow_type
        Type of the numbers.
    shape
        Numbers in each dimension, such as height, width, channels.
    """

    def __init__(self, arrow_type: pa.DataType, shape: Iterable[int]) -> None:
        self.arrow_type = arrow_type
        self.shape = [int(each) for each in shape]
        if any(each < 0 for each in self.shape):
            raise InvalidInputError(f"shape must not have negative numbers: {self.shape}")
        super().__init__(pa.list_(arrow_type, int(np.prod(self.shape))), "lance.arrow.fixed_shape_image_tensor")

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the shape as JSON."""
        return json.dumps({"shape": self.shape}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> FixedShapeImageTensorType:
        """Make the type from its storage and metadata."""
        try:
            shape = [int(each) for each in json.loads(serialized)["shape"]]
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(f"metadata of an image type must name its shape, not {serialized!r}") from error
        if not pa.types.is_fixed_size_list(storage_type) or storage_type.list_size != int(np.prod(shape)):
            raise InvalidInputError(f"images of the shape {shape} cannot be stored as {storage_type}")
        return cls(storage_type.value_type, shape)

    def __arrow_ext_class__(self) -> type:
        """Return the class of arrays."""
        return FixedShapeImageTensorArray

    def __arrow_ext_scalar_class__(self) -> type:
        """Return the class of scalars."""
        return FixedShapeImageTensorScalar

    def __reduce__(self) -> tuple[Any, ...]:
        return FixedShapeImageTensorType, (self.arrow_type, self.shape)


class ImageArray(pa.ExtensionArray):
    """Base class of arrays of images."""

    @classmethod
    def from_array(cls, images: pa.Array | Iterable[str | os.PathLike[str] | None]) -> ImageArray:
        """Make the array that fits some images.

        Parameters
        ----------
        images
            Array of texts (URIs), binaries (encoded images) or tensors (pixels), or an iterable of URIs.

        Raises
        ------
        TypeError
            The value is not one of these.
        """
        if isinstance(images, ImageArray):
            return images
        if isinstance(images, pa.FixedShapeTensorArray):
            kind = FixedShapeImageTensorType(images.type.value_type, images.type.shape)
            return _wrapped(kind, images.storage)
        if isinstance(images, (pa.BinaryArray, pa.LargeBinaryArray)):
            return _wrapped(EncodedImageType(images.type), images)
        if isinstance(images, (pa.StringArray, pa.LargeStringArray)) or (
            isinstance(images, Iterable) and not isinstance(images, (pa.Array, str, bytes))
        ):
            return ImageURIArray.from_uris(images)
        raise TypeError(f"Cannot build a ImageArray from {type(images)}")

    def __repr__(self) -> str:
        return f"<lance_dataset.arrow.{type(self).__name__} object at {id(self):#018x}>\n{self._text()}"

    def _text(self) -> str:
        return repr(self.storage.to_pylist())


class ImageURIArray(ImageArray):
    """Arrow array of URIs of images."""

    @classmethod
    def from_uris(cls, uris: Iterable[str | os.PathLike[str] | None]) -> ImageURIArray:
        """Make an array of URIs or paths; None is null.

        Raises
        ------
        TypeError
            A value is neither text nor a path.
        """
        if isinstance(uris, (str, bytes)):
            raise TypeError(f"from_uris takes URIs, for example a list of them, not {uris!r}")
        if isinstance(uris, (pa.StringArray, pa.LargeStringArray)):
            return cast(ImageURIArray, _wrapped(ImageURIType(uris.type), uris))
        texts = [None if uri is None else os.fspath(uri) for uri in uris]
        if not all(uri is None or isinstance(uri, str) for uri in texts):
            raise TypeError("Cannot build a ImageURIArray from bytes; a URI is text")
        return cast(ImageURIArray, _wrapped(ImageURIType(), pa.array(texts, pa.string())))

    def read_uris(self, storage_type: pa.DataType | None = None) -> EncodedImageArray:
        """Read the images.

        Parameters
        ----------
        storage_type
            ``binary``, the default, or ``large_binary``, which more than 2 GiB need.

        Raises
        ------
        MissingFileError, StorageError
            An image does not exist, or cannot be read.
        """
        kind = EncodedImageType(storage_type)
        read = [None if uri is None else _content(uri) for uri in self.storage.to_pylist()]
        return cast(EncodedImageArray, _wrapped(kind, pa.array(read, kind.storage_type)))


class EncodedImageArray(ImageArray):
    """Arrow array of encoded images."""

    def _text(self) -> str:
        return repr([None if each is None else f"{len(each)} bytes" for each in self.storage.to_pylist()])

    def to_tensor(
        self, decoder: Callable[[pa.Array], NDArray[Any] | pa.FixedShapeTensorArray] | None = None
    ) -> FixedShapeImageTensorArray:
        """Decode the images, which must have the same shape.

        Parameters
        ----------
        decoder
            Function that makes an array of pixels of the array of bytes; Pillow by default.

        Raises
        ------
        InvalidInputError
            There are nulls, an image cannot be decoded, or shapes differ.
        UnsupportedError
            Pillow is not installed.
        """
        if self.null_count:
            raise InvalidInputError("images with nulls cannot become tensors; drop the nulls first")
        pixels = _decoded(self.storage) if decoder is None else decoder(self.storage)
        if isinstance(pixels, pa.FixedShapeTensorArray):
            return cast(FixedShapeImageTensorArray, ImageArray.from_array(pixels))
        if not isinstance(pixels, np.ndarray) or pixels.ndim < 2:
            raise InvalidInputError("the decoder must return an array with one image along its first dimension")
        values = pa.array(np.ascontiguousarray(pixels).ravel())
        kind = FixedShapeImageTensorType(values.type, pixels.shape[1:])
        storage = pa.FixedSizeListArray.from_arrays(values, kind.storage_type.list_size)
        return cast(FixedShapeImageTensorArray, _wrapped(kind, storage))


class FixedShapeImageTensorArray(ImageArray):
    """Arrow array of the pixels of images of one shape."""

    def to_numpy(self, zero_copy_only: bool = False) -> NDArray[Any]:
        """Return the pixels, one image along the first dimension.

        Raises
        ------
        InvalidInputError
            There are nulls.
        """
        if self.null_count:
            raise InvalidInputError("Cannot convert null values to numpy; fill or drop the nulls first")
        return cast("NDArray[Any]", self.storage.flatten().to_numpy().reshape(len(self), *self.type.shape))

    def to_encoded(
        self,
        encoder: Callable[[NDArray[Any]], pa.Array | list[bytes]] | None = None,
        storage_type: pa.DataType | None = None,
    ) -> EncodedImageArray:
        """Encode the images.

        Parameters
        ----------
        encoder
            Function that makes an array or list of bytes of the array of pixels; PNG with Pillow by default.
        storage_type
            ``binary``, the default, or ``large_binary``, which more than 2 GiB need.

        Raises
        ------
        InvalidInputError
            Pillow cannot encode the pixels.
        UnsupportedError
            Pillow is not installed.
        """
        kind = EncodedImageType(storage_type)
        pixels = self.to_numpy()
        encoded = _png(pixels) if encoder is None else encoder(pixels)
        if not isinstance(encoded, (pa.Array, list)) or len(encoded) != len(self):
            raise TypeError("the encoder must return an Arrow array or a list with the bytes of each image")
        storage = encoded.cast(kind.storage_type) if isinstance(encoded, pa.Array) else encoded
        return cast(EncodedImageArray, _wrapped(kind, pa.array(storage, kind.storage_type)))


def _wrapped(kind: pa.ExtensionType, storage: pa.Array) -> ImageArray:
    return cast(ImageArray, pa.ExtensionArray.from_storage(kind, storage))


def _content(uri: str) -> bytes:
    """Return the bytes of a file."""
    folder, _, name = uri.replace(os.sep, "/").rpartition("/")
    store, root = resolve(folder or str(Path.cwd()))
    return store.read(f"{root}/{name}")


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "images are decoded and encoded with the package Pillow: pip install pillow; or pass a function"
        ) from error
    return Image


def _decoded(storage: pa.Array) -> NDArray[Any]:
    image = _pillow()
    found: list[NDArray[Any]] = []
    for number, data in enumerate(storage.to_pylist()):
        try:
            found.append(np.array(image.open(io.BytesIO(data))))
        except (OSError, SyntaxError, ValueError) as error:
            raise InvalidInputError(f"image {number} cannot be decoded: {error}") from error
        if found[-1].shape != found[0].shape:
            raise InvalidInputError(
                f"all images must have the same shape: image {number} has {found[-1].shape}, image 0 {found[0].shape}"
            )
    if not found:
        raise InvalidInputError("an array without images does not have a shape")
    return np.stack(found)


def _png(pixels: NDArray[Any]) -> list[bytes]:
    image = _pillow()
    found = []
    for number, each in enumerate(pixels):
        output = io.BytesIO()
        try:
            image.fromarray(each).save(output, format="PNG")
        except (OSError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"image {number} of shape {each.shape} and type {each.dtype} cannot be encoded as PNG: {error}"
            ) from error
        found.append(output.getvalue())
    return found


for _type in (ImageURIType(), EncodedImageType(), FixedShapeImageTensorType(pa.uint8(), [1])):
    with suppress(pa.ArrowKeyError):  # another package has registered the type
        pa.register_extension_type(_type)
