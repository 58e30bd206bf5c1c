"""Transforms of whole matrices, however they lie in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import powerkern as pk
from powerkern.kernels.family import FAMILIES
from powerkern.kernels.results import CENTER, DIVISOR


@pytest.mark.parametrize("n, p", [(1, 1), (3, 1000), (700, 500), (30_000, 3)])
@pytest.mark.parametrize("family", FAMILIES)
def test_transforms_do_not_depend_on_how_the_matrix_lies(family, n, p):
    """More blocks than one each way; the values of a column in its own vector, whatever stands beside it."""
    x = np.exp(np.random.default_rng(n).normal(size=(n, p)))
    fit = pk.fit(x[:, :1] if n > 1 else np.array([[1.0], [2.0]]), family)
    fit = pk.PowerFit(family, np.repeat(fit._results, p, axis=0))
    z = fit.transform(x)
    back = fit.inverse_transform(z)
    np.testing.assert_allclose(back, x, rtol=1e-12)
    for other in (np.asfortranarray(x), np.pad(x, ((0, 0), (1, 2)))[:, 1:-2], x[::-1, ::-1][::-1, ::-1]):
        out = np.empty_like(other)
        np.testing.assert_array_equal(fit.transform(other, out=out, n_threads=2), z)
        np.testing.assert_array_equal(fit.inverse_transform(out, n_threads=2), back)
    single = pk.PowerFit(family, fit._results[:1])
    np.testing.assert_array_equal(single.transform(x[:, -1:]), z[:, -1:])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_transformed_is_x_less_center_over_divisor(family, standardize, order):
    """Along rows and by columns, rescaled columns beside others."""
    x = np.exp(np.random.default_rng(1).normal(size=(40, 30)))
    plain = pk.fit(x, family, standardize=standardize)
    results = plain._results.copy()
    results[::2, CENTER], results[::3, DIVISOR] = -1.5, 4.0
    rescaled = pk.PowerFit(family, results, standardize=standardize)
    center, divisor = results[:, CENTER], results[:, DIVISOR]
    given = np.asarray(center + divisor * x, order=order)
    expected = plain.transform((given - center) / divisor)
    np.testing.assert_array_equal(rescaled.transform(given), expected)
    np.testing.assert_allclose(rescaled.inverse_transform(expected), given, rtol=1e-12)
    given[3, 4] = -1.5 if family == "box-cox" else -np.inf
    with pytest.raises(ValueError, match="column 4, row 3"):
        rescaled.transform(given, out=given)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("family, n, p", [("box-cox", 60, 1100), ("yeo-johnson", 500, 30)])
def test_values_that_do_not_go_along_rows(family, n, p, standardize):
    """Among ordinary columns: constant, far outside the fitted range, without an inverse."""
    rng = np.random.default_rng(p)
    x = rng.standard_gamma(rng.uniform(2.0, 9.0, p), (n, p)) - (0.0 if family == "box-cox" else 4.0)
    x[:, 7] = 3.0
    if family == "yeo-johnson":
        x[:, 5] = -np.expm1(x[:, 5] + 4.0)
    x[rng.random((n, p)) < 0.01] = np.nan
    with pytest.warns(UserWarning, match="column 7"):
        fit = pk.fit(x, family, standardize=standardize)
    far = np.where(rng.random((n, p)) < 1e-3, abs(x) * 1e30, x)
    z = fit.transform(far)
    np.testing.assert_array_equal(z, fit.transform(np.asfortranarray(far)))
    z[:, 5] *= -1e6 if family == "box-cox" else 1e6  # beyond the range, which is a half line
    for out_of_range in ("nan", "clip"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            back = fit.inverse_transform(np.asfortranarray(z), out_of_range=out_of_range)
            np.testing.assert_array_equal(fit.inverse_transform(z, out_of_range=out_of_range), back)
            own = z.copy()
            np.testing.assert_array_equal(fit.inverse_transform(own, out=own, out_of_range=out_of_range), back)
    own = z.copy()
    with pytest.raises(ValueError, match="no inverse"):
        fit.inverse_transform(own, out=own, out_of_range="raise")
    np.testing.assert_array_equal(own, z)
