"""Random filters, expressions and changes of tables."""
