"""Random Arrow data, as functions of a seed and as hypothesis strategies."""
