"""Datasets for PyTorch, which needs the package torch."""

from __future__ import annotations

from lance_dataset.errors import UnsupportedError

try:
    import torch
except ModuleNotFoundError as error:
    raise UnsupportedError("lance_dataset.torch needs the package torch: pip install torch") from error

__all__ = ["preferred_device"]


def preferred_device(device: str | None = None) -> torch.device:
    """Return the device to compute on.

    Parameters
    ----------
    device
        Name of the device; None for ``cuda``, else ``mps``, else ``cpu``, whatever there is.
    """
    if device is not None:
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
