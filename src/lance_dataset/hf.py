"""Values of datasets that were made from Hugging Face datasets."""

from lance_dataset.api.hugging_face import HuggingFaceConverter

__all__ = ["HuggingFaceConverter"]
