"""The error of commits that do not go together, and the type of commit locks, where the reference has them."""

from lance_dataset.errors import CommitConflictError
from lance_dataset.io.base import CommitLock

__all__ = ["CommitConflictError", "CommitLock"]
