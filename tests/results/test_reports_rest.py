"""The line of a printed fit that counts the columns not listed."""

from __future__ import annotations

import numpy as np
import pytest

import powerkern as pk


@pytest.mark.parametrize(("n_columns", "rest"), [(8, None), (9, "... and 1 more columns"), (10, "... and 2 more")])
def test_columns_that_are_not_shown_are_counted(n_columns: int, rest: str | None) -> None:
    fit = pk.fit(np.random.default_rng(0).normal(size=(30, n_columns)))
    lines = [line for line in repr(fit).splitlines() if line.lstrip().startswith("...")]
    assert [line.lstrip()[: len(rest or "")] for line in lines] == ([rest] if rest else [])
