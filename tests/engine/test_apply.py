"""Transforms of whole matrices in every memory layout."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from fits import family_codes, fit_from_rows, kernel_rows

import powerkern as pk
from powerkern.kernels.results import CENTER, DIVISOR
from powerkern.kernels.transforms.family import FAMILIES


@pytest.mark.parametrize("n, p", [(1, 1), (3, 1000), (700, 500), (30_000, 3)])
@pytest.mark.parametrize("family", FAMILIES)
def test_transforms_do_not_depend_on_the_memory_layout(family, n, p):
    """Compare other layouts, and one column alone, with a matrix in C order that has several blocks."""
    x = np.exp(np.random.default_rng(n).normal(size=(n, p)))
    fit = pk.fit(x[:, :1] if n > 1 else np.array([[1.0], [2.0]]), family)
    fit = fit_from_rows(np.repeat(kernel_rows(fit), p, axis=0), family)
    z = fit.transform(x)
    back = fit.inverse_transform(z)
    np.testing.assert_allclose(back, x, rtol=1e-12)
    for other in (np.asfortranarray(x), np.pad(x, ((0, 0), (1, 2)))[:, 1:-2], x[::-1, ::-1][::-1, ::-1]):
        out = np.empty_like(other)
        np.testing.assert_array_equal(fit.transform(other, out=out, n_threads=2), z)
        np.testing.assert_array_equal(fit.inverse_transform(out, n_threads=2), back)
    single = fit_from_rows(kernel_rows(fit)[:1], family)
    np.testing.assert_array_equal(single.transform(x[:, -1:]), z[:, -1:])


def layouts(x):
    """Return views with the values of x: row-major, column-major, strided, and unaligned."""
    n, p = x.shape
    bytes_ = np.zeros(x.nbytes + 1, np.uint8)
    unaligned = bytes_[1:].view(x.dtype).reshape(n, p)
    unaligned[:] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    return {
        "rows": x.copy(),
        "columns": x.copy(order="F"),
        "some of each row": np.pad(x, ((1, 0), (3, 4)))[1:, 3:-4],
        "every other row": np.repeat(x, 2, axis=0)[::2],
        "every third value": np.repeat(x, 3, axis=1)[:, ::3],
        "upside down": x[::-1].copy()[::-1],
        "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
        "columns, every other row": np.asfortranarray(np.repeat(x, 2, axis=0))[::2],
        "columns, every other": np.asfortranarray(np.repeat(x, 2, axis=1))[:, ::2],
        "unaligned": unaligned,
        "read-only": read_only,
    }


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family, extreme", [("box-cox", 1e-300), ("yeo-johnson", 1e250)])
@pytest.mark.parametrize("n, p", [(1_200_000, 1), (8_000, 150), (400, 3_000), (7, 170_000)])
def test_threads_transform_a_large_matrix_to_the_same_bits(n, p, family, extreme, dtype, order):
    """Compare 1, 2 and 5 threads with transforms of parts of the matrix. A few values need slower kernels."""
    rng = np.random.default_rng(p)
    x = rng.standard_gamma(3.0, (n, p))
    fit = pk.fit(x[:200, :1] if n > 7 else x[:, :200].T[:, :1], family)
    fit = fit_from_rows(np.repeat(kernel_rows(fit), p, axis=0), family)
    x = x.astype(dtype, order=order)
    x[rng.integers(n, size=5), rng.integers(p, size=5)] = extreme if dtype is np.float64 else 1e-30
    z = np.vstack([fit.transform(part) for part in np.array_split(x, max(1, n // 50_000))])
    for n_threads in (1, 2, 5):
        out = np.full_like(x, np.nan)
        fit.transform(x, out=out, n_threads=n_threads)
        np.testing.assert_array_equal(out, z)


def test_pickled_fits_and_parts_of_fits_transform_alike():
    fit = pk.fit(np.exp(np.random.default_rng(0).normal(size=(50, 3))), "box-cox")
    x = np.array([[1.0, 2.0, 3.0]])
    z = fit.transform(x)
    travelled = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(travelled.transform(x), z)
    np.testing.assert_array_equal(fit[[2, 0]].transform(x[:, [2, 0]]), z[:, [2, 0]])


@pytest.mark.parametrize("standardize, dtype", [(False, np.float64), (True, np.float64), (True, np.float32)], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "n, p",
    [
        pytest.param(1, 2000, marks=pytest.mark.slow),
        pytest.param(20, 1100, marks=pytest.mark.slow),
        *((20, 600), (300, 7), (3000, 40), (70_000, 1), (2, 1), (1, 1)),
    ],
)
def test_bits_do_not_depend_on_layout_threads_or_neighbors(family, n, p, standardize, dtype):
    """Compare layouts, dtypes, in-place transforms, and columns in another order.

    The data have constant columns, missing and huge values, and values without an inverse.
    """
    rng = np.random.default_rng(n + p)
    x = rng.standard_gamma(3.0, (max(n, 40), p)) - (0.0 if family == "box-cox" else 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if p > 3:
            x[:, 3] = 2.0
        fit = pk.fit(x, family, standardize=standardize)
        x = x[:n].astype(dtype)
        x[rng.random(x.shape) < 0.02] = np.nan
        x[rng.random(x.shape) < 0.01] = 1e30
        z = fit.transform(x, n_threads=1)
        assert z.dtype == dtype
        z[rng.random(x.shape) < 0.01] = -1e8
        back = fit.inverse_transform(z, n_threads=1)
        for name, view in layouts(x).items():
            np.testing.assert_array_equal(fit.transform(view, n_threads=2), fit.transform(x), err_msg=name)
        for name, view in layouts(z).items():
            np.testing.assert_array_equal(fit.inverse_transform(view, n_threads=2), back, err_msg=name)
            if view.flags.writeable:
                out = np.empty_like(view)
                assert fit.inverse_transform(view, out=out) is out
                np.testing.assert_array_equal(out, back, err_msg=name)
                fit.inverse_transform(view, out=view, n_threads=2)
                np.testing.assert_array_equal(view, back, err_msg=name)
        order = rng.permutation(p)
        shuffled = fit_from_rows(kernel_rows(fit)[order], family, standardize=standardize)
        np.testing.assert_array_equal(shuffled.inverse_transform(z[:, order]), back[:, order])
        single = fit_from_rows(kernel_rows(fit)[-1:], family, standardize=standardize)
        np.testing.assert_array_equal(single.inverse_transform(z[:, -1:]), back[:, -1:])
        np.testing.assert_array_equal(single.inverse_transform(z[:, -1]), back[:, -1])


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_float32_results_are_rounded_float64_results(family, standardize):
    """Nearly all float32 results are within 0.52 ulp of the float64 results, and all within about one ulp."""
    rng = np.random.default_rng(5)
    x = (np.exp(1.5 * rng.normal(size=(5000, 9))) - (0.0 if family == "box-cox" else 1.0)).astype(np.float32)
    fit = pk.fit(x, family, standardize=standardize, lmbda=np.linspace(-1.0, 3.0, 9))
    z, exact = fit.transform(x), fit.transform(x.astype(np.float64))
    assert np.isfinite(exact).all()
    assert (abs(z - exact) <= 0.52 * np.spacing(abs(exact.astype(np.float32)))).mean() > 0.9999
    np.testing.assert_allclose(z, exact, rtol=1.2e-7, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the images of the largest values may round to the end of the range
        back, exact = fit.inverse_transform(z), fit.inverse_transform(z.astype(np.float64))
    at_low, at_high = z == z.min(axis=0), z == z.max(axis=0)  # more than one value, where psi is flat
    np.testing.assert_array_equal(back[at_low], np.broadcast_to(x.min(axis=0), x.shape)[at_low])
    np.testing.assert_array_equal(back[at_high], np.broadcast_to(x.max(axis=0), x.shape)[at_high])
    back, exact = back[~at_low & ~at_high], exact[~at_low & ~at_high]
    np.testing.assert_allclose(back[np.isfinite(exact)], exact[np.isfinite(exact)], rtol=1.2e-7)


def test_columns_of_two_families_and_rescaled_ones_in_float32():
    """Compare the bits with those of each column transformed alone."""
    rng = np.random.default_rng(6)
    x = np.exp(rng.normal(size=(400, 12))).astype(np.float32)
    fit = pk.fit(x, "best")
    results = kernel_rows(fit).copy()
    results[::4, CENTER] = -0.5
    fit = fit_from_rows(results, family_codes(fit))
    z = fit.transform(x)
    back = fit.inverse_transform(z)
    for j in range(12):
        alone = fit_from_rows(results[j : j + 1], family_codes(fit)[j : j + 1])
        np.testing.assert_array_equal(alone.transform(x[:, j : j + 1]), z[:, j : j + 1])
        np.testing.assert_array_equal(alone.inverse_transform(z[:, j : j + 1]), back[:, j : j + 1])
    own = x.copy()
    np.testing.assert_array_equal(fit.transform(own, out=own), z)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_rescaled_columns_transform_as_x_minus_center_over_divisor(family, standardize, order):
    """Compare rescaled and other columns, in both memory orders, with transforms of (x - center)/divisor."""
    x = np.exp(np.random.default_rng(1).normal(size=(40, 30)))
    plain = pk.fit(x, family, standardize=standardize)
    results = kernel_rows(plain).copy()
    results[::2, CENTER], results[::3, DIVISOR] = -1.5, 4.0
    rescaled = fit_from_rows(results, family, standardize=standardize)
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
def test_columns_that_the_row_kernels_cannot_transform(family, n, p, standardize):
    """Compare both memory orders for a matrix with a constant column, huge values, and values without an inverse."""
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
