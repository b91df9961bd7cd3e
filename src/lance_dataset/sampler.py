"""Samplers, which choose the rows that a training loop reads."""

from lance_dataset.api.sampler import (
    FragmentSampler,
    FullScanSampler,
    Sampler,
    ShardedBatchIterator,
    ShardedBatchSampler,
    ShardedFixedBatchSampler,
    ShardedFragmentSampler,
    maybe_sample,
    reservoir_sampling,
)
from lance_dataset.log import LOGGER

__all__ = [
    "LOGGER",
    "FragmentSampler",
    "FullScanSampler",
    "Sampler",
    "ShardedBatchIterator",
    "ShardedBatchSampler",
    "ShardedFixedBatchSampler",
    "ShardedFragmentSampler",
    "maybe_sample",
    "reservoir_sampling",
]
