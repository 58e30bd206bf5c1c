"""Transforms of runs of rows with one fit each have the bits of transforms of columns."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern._estimators.routes import fit_in_memory
from powerkern.kernels.transforms import gather, runs
from powerkern.kernels.transforms.family import BOX_COX, FORWARD, FORWARD_STANDARDIZED, YEO_JOHNSON


@pytest.mark.parametrize("direction", [FORWARD, FORWARD_STANDARDIZED])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_runs_are_transformed_as_columns(family, direction):
    """Runs have the bits of columns transformed with their fit, which may be constant; without a fit, NaN."""
    rng = np.random.default_rng(1)
    fitted = np.exp(rng.normal(size=(20, 3)))
    fitted[:, 1] = 2.0
    results = fit_in_memory(fitted, family, np.full(3, np.nan), None, 1)
    lengths = np.array([4, 0, 7, 5, 1, 3, 6])
    codes = np.array([0, 2, 1, -1, 2, 1, 0])
    starts = np.cumsum(lengths) - lengths
    x = np.exp(rng.normal(size=lengths.sum()))
    x[[1, 5, -1]] = np.inf
    out, failures = np.empty_like(x), np.zeros(3, dtype=np.int64)
    runs.APPLY[family, direction](x, codes, starts, lengths, results, failures, out)
    expected = np.zeros(3, dtype=np.int64)
    for code, start, length in zip(codes, starts, lengths, strict=True):
        images, count = x[start : start + length][np.newaxis].copy(), np.zeros(1, dtype=np.int64)
        if code < 0:
            images[:] = np.nan
        else:
            gather.APPLY[family, direction](images, results[code : code + 1], count)
            expected[code] += count[0]
        np.testing.assert_array_equal(out[start : start + length], images[0])
    assert failures.tolist() == expected.tolist() == [2, 1, 0]
