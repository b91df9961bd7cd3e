from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.scan.encoded_column import EncodedColumn
from lance_dataset.scan.selection import Known, MaskedSelection
from lance_dataset.scan.windows import Window


def test_columns_taken_for_the_rows_of_a_mask_are_not_taken_again() -> None:
    selection = MaskedSelection(Window(()), pa.array([True, False, True]), {})
    values = pa.array([7, 9])
    known = Known(EncodedColumn([values], values.type, "x"), selection.places)
    more = selection.knowing({1: known})
    assert more.places is selection.places
    assert more.known[1].at(more.places).buffers()[1].address == values.buffers()[1].address


def test_places_of_a_mask_are_computed_on_demand() -> None:
    selection = MaskedSelection(Window(()), pa.array([True, False, True]), {})
    more = selection.knowing({1: Known(EncodedColumn([pa.array([1, 2, 3])], pa.int64(), "x"))})
    assert "places" not in more.__dict__
    np.testing.assert_array_equal(more.places, [0, 2])
