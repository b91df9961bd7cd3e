"""Arrow extension types for bfloat16 and images, which importing this module registers."""

from lance_dataset.api.arrow_types.bfloat16 import (
    BFloat16,
    BFloat16Array,
    BFloat16Scalar,
    BFloat16Type,
    bfloat16_array,
)
from lance_dataset.api.arrow_types.casts import cast
from lance_dataset.api.arrow_types.images import (
    EncodedImageArray,
    EncodedImageScalar,
    EncodedImageType,
    FixedShapeImageTensorArray,
    FixedShapeImageTensorScalar,
    FixedShapeImageTensorType,
    ImageArray,
    ImageScalar,
    ImageURIArray,
    ImageURIScalar,
    ImageURIType,
)

try:
    from lance_dataset.api.arrow_types.pandas_bfloat16 import PandasBFloat16Array
except ModuleNotFoundError as error:  # only this needs pandas
    if error.name != "pandas":
        raise

__all__ = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Scalar",
    "BFloat16Type",
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
    "PandasBFloat16Array",
    "bfloat16_array",
    "cast",
]
