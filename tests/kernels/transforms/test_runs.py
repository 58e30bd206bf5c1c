"""Transforms of runs of rows with one fit each have the bits of transforms of columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from powerkern._estimators.routes import fit_in_memory
from powerkern.kernels.results import CENTER, DIVISOR, LMBDA
from powerkern.kernels.transforms import gather, runs
from powerkern.kernels.transforms.family import BOX_COX, FORWARD, FORWARD_STANDARDIZED, YEO_JOHNSON


@pytest.mark.parametrize("direction", [FORWARD, FORWARD_STANDARDIZED])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_runs_are_transformed_as_columns(family, direction):
    """Compare runs with columns transformed by the same fits, one of which is of a constant column.

    Runs without a fit become NaN.
    """
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


@pytest.mark.parametrize("n_runs", [128, 129])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_many_runs_with_rescaled_fits_are_transformed_by_their_own_fits(family, n_runs):
    """Compare with SciPy's transforms, for as many runs as a block of constants has (128), and for one more."""
    rng = np.random.default_rng(n_runs)
    results = np.tile(fit_in_memory(np.exp(rng.normal(size=(20, 1))), family, np.full(1, np.nan), None, 1), (5, 1))
    results[:, LMBDA] = [-1.0, 0.0, 0.5, 1.0, 2.5]
    results[[1, 4], CENTER], results[[1, 4], DIVISOR] = -0.5, 3.0
    codes = rng.integers(-1, 5, n_runs)
    lengths = rng.integers(0, 3, n_runs)
    starts = np.cumsum(lengths) - lengths
    x = rng.gamma(2.0, size=lengths.sum()) + 0.1
    out, failures = np.empty_like(x), np.zeros(5, dtype=np.int64)
    runs.APPLY[family, FORWARD](x, codes, starts, lengths, results, failures, out)
    transform, own = stats.boxcox if family == BOX_COX else stats.yeojohnson, np.repeat(codes, lengths)
    expected = np.full(x.size, np.nan)
    for code in range(5):
        rows = own == code
        expected[rows] = transform((x[rows] - results[code, CENTER]) / results[code, DIVISOR], results[code, LMBDA])
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)
    assert not failures.any()
    x[:] = np.inf
    runs.APPLY[family, FORWARD](x, codes, starts, lengths, results, failures, out)
    assert failures.tolist() == np.bincount(own[own >= 0], minlength=5).tolist()
