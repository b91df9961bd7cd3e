"""Statements about datasets that Spark's parser does not know."""
