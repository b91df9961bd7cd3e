"""Scans that read no more than a query needs: a rule of Spark's optimizer tells them."""
