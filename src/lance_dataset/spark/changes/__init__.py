"""Changes of a dataset by Spark jobs, each in one commit."""
