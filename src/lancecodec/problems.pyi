"""Problem numbers of the kernels, as exceptions: the words are in one place, the kernels return numbers.

Nothing here is for Python; the other compiled modules cimport ``fail``.
"""
