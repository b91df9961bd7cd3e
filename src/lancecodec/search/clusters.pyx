"""Clusters of vectors: the nearest centroid of each, and the sums of clusters.

Vectors are 32-bit floats. The score of a centroid is its product with a vector plus a bias: minus half the squared
length of the centroid for Euclidean distances, zero for products.
"""

from libc.stdint cimport int64_t, uint8_t

from lancecodec.buffers cimport ByteView, readable, writable

from lancecodec.errors import CodecError

cdef extern from "kernels/clusters.h" nogil:
    int LC_PANEL
    void lc_nearest_centroids(const uint8_t *values, int64_t n, int64_t width, const uint8_t *panels, int64_t n_panels,
                              const uint8_t *biases, uint8_t *clusters, uint8_t *scores)
    int lc_cluster_sums(const uint8_t *values, int64_t n, int64_t width, const uint8_t *clusters, int64_t count,
                        uint8_t *sums, uint8_t *sizes)

#: Centroids of a panel.
PANEL = LC_PANEL
#: Largest dimension of vectors, and largest number of centroids.
MAX_DIMENSION, MAX_CENTROIDS = 1 << 24, 1 << 30


def nearest(vectors, int64_t dimension, panels, biases, clusters, scores):
    """Write the number and the score of the centroid with the highest score, for each vector.

    The first of equally near centroids is taken; the first of all, with the score minus infinity, if no score is a
    number above that.

    Parameters
    ----------
    vectors
        32-bit floats [n, dimension].
    dimension
        Number of values of a vector.
    panels
        Centroids, 32-bit floats [panels, dimension, PANEL].
    biases
        32-bit floats [panels, PANEL]; minus infinity for centroids that only fill a panel.
    clusters, scores
        Outputs for n 32-bit numbers, and n 32-bit floats.

    Raises
    ------
    CodecError
        A number is out of range, or the sizes of the buffers do not fit each other.
    """
    cdef ByteView source = readable(vectors), centroids = readable(panels), added = readable(biases)
    cdef ByteView numbers = writable(clusters), found = writable(scores)
    cdef int64_t n = count_of(source, dimension), n_panels = added.size // (4 * LC_PANEL)
    if not n_panels or n_panels > MAX_CENTROIDS // LC_PANEL or added.size % (4 * LC_PANEL):
        raise CodecError(f"{added.size} bytes are not the biases of panels of {LC_PANEL} centroids")
    if centroids.size % (4 * LC_PANEL * dimension) or centroids.size // (4 * LC_PANEL * dimension) != n_panels:
        raise CodecError(f"{centroids.size} bytes are not {n_panels} panels of centroids of {dimension} values")
    if numbers.size // 4 < n or found.size // 4 < n:
        raise CodecError(f"the outputs are too small for {n} vectors")
    with nogil:
        lc_nearest_centroids(source.data, n, dimension, centroids.data, n_panels, added.data, numbers.data, found.data)


def add_up(vectors, int64_t dimension, clusters, int64_t count, sums, sizes):
    """Add vectors to the sums of their clusters, and count them.

    Parameters
    ----------
    vectors
        32-bit floats [n, dimension].
    dimension
        Number of values of a vector.
    clusters
        Numbers of the clusters, n of 32 bits.
    count
        Number of clusters.
    sums, sizes
        64-bit floats [count, dimension] and 64-bit numbers [count] to add to.

    Raises
    ------
    CodecError
        A number is out of range, or the sizes of the buffers do not fit each other.
    """
    cdef ByteView source = readable(vectors), numbers = readable(clusters)
    cdef ByteView totals = writable(sums), counts = writable(sizes)
    cdef int64_t n = count_of(source, dimension)
    cdef int known
    if not 0 <= count <= MAX_CENTROIDS:
        raise CodecError(f"there cannot be {count} clusters")
    if numbers.size // 4 < n:
        raise CodecError(f"{numbers.size} bytes are too few for {n} clusters")
    if totals.size // (8 * dimension) < count or counts.size // 8 < count:
        raise CodecError(f"the outputs are too small for {count} clusters")
    with nogil:
        known = lc_cluster_sums(source.data, n, dimension, numbers.data, count, totals.data, counts.data)
    if not known:
        raise CodecError(f"a cluster is not below {count}")


cdef int64_t count_of(ByteView vectors, int64_t dimension) except -1:
    if not 1 <= dimension <= MAX_DIMENSION:
        raise CodecError(f"vectors must have 1 to {MAX_DIMENSION} values, not {dimension}")
    if vectors.size % (4 * dimension):
        raise CodecError(f"{vectors.size} bytes are not a whole number of vectors of {dimension} values")
    return vectors.size // (4 * dimension)
