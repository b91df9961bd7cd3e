"""A fuzzer of whole datasets: their folders are damaged, and read and changed through all public calls."""
