"""Rank of this process: among the processes of ``torch.distributed``, and among the workers of a loader."""

from __future__ import annotations

import torch.distributed
from torch.utils.data import get_worker_info

__all__ = [
    "get_dist_rank",
    "get_dist_world_size",
    "get_global_rank",
    "get_global_world_size",
    "get_mp_rank",
    "get_mp_world_size",
]


def _is_distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def get_dist_world_size() -> int:
    """Return the number of processes of ``torch.distributed``; 1 if it is not used."""
    return torch.distributed.get_world_size() if _is_distributed() else 1


def get_dist_rank() -> int:
    """Return the rank of this process in ``torch.distributed``; 0 if it is not used."""
    return torch.distributed.get_rank() if _is_distributed() else 0


def get_mp_world_size() -> int:
    """Return the number of workers of the loader that this worker belongs to; 1 outside of workers."""
    info = get_worker_info()
    return 1 if info is None else info.num_workers


def get_mp_rank() -> int:
    """Return the number of this worker among those of its loader; 0 outside of workers."""
    info = get_worker_info()
    return 0 if info is None else info.id


def get_global_world_size() -> int:
    """Return the number of workers of all processes."""
    return get_dist_world_size() * get_mp_world_size()


def get_global_rank() -> int:
    """Return the number of this worker among those of all processes."""
    return get_dist_rank() * get_mp_world_size() + get_mp_rank()
