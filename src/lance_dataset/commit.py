"""Error of conflicting commits and type of commit locks, in the module where the reference has them."""

from lance_dataset.errors import CommitConflictError
from lance_dataset.io.guarded import CommitLock

__all__ = ["CommitConflictError", "CommitLock"]
