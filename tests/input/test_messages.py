"""Warnings name the user's line that called the package, however many internal calls lie between."""

import numpy as np
import pytest

from powerkern._fit.fit import fit
from powerkern._input.messages import warn
from powerkern.location import location_scale
from powerkern.sketch import fit_chunks, location_chunks

EMPTY = np.column_stack([np.arange(1.0, 9.0), np.full(8, np.nan)])


@pytest.mark.parametrize(
    "call",
    [
        lambda: warn("directly"),
        lambda: fit(EMPTY),
        lambda: fit_chunks([EMPTY]),
        lambda: location_scale(EMPTY),
        lambda: location_chunks([EMPTY]),
    ],
)
def test_warnings_name_the_line_of_the_caller(call):
    with pytest.warns() as caught:
        call()
    assert [warning.filename for warning in caught] == [__file__]


def test_the_category_is_kept():
    with pytest.warns(RuntimeWarning, match="^said$"):
        warn("said", RuntimeWarning)
