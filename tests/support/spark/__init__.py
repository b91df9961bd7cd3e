"""Programs that tests of Spark run in processes of their own."""
