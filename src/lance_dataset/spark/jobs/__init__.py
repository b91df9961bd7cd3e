"""Work in tasks of Spark, and the commit of what they wrote."""
