"""Records that users and JSON see: operations, transactions, fragments, indices, settings, results."""
