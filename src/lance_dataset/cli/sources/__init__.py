"""Input of `import` and `merge`: files of other formats, as one stream of batches."""
