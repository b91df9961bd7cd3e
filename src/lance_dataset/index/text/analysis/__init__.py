"""Analysis of texts for searching: texts are divided into tokens, which filters change or leave out."""
