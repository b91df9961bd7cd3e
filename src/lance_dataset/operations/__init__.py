"""Public operations and transactions, and what they are for the table layer."""

from lance_dataset.operations.conversion import (
    from_table_operation,
    from_table_transaction,
    to_table_operation,
    to_table_transaction,
)
from lance_dataset.operations.records import LanceOperation, Transaction

__all__ = [
    "LanceOperation",
    "Transaction",
    "from_table_operation",
    "from_table_transaction",
    "to_table_operation",
    "to_table_transaction",
]
