"""Full-text search: the rows that a query finds, through indices or by reading texts."""
