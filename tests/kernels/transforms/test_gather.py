"""Columns copied from matrices of any layout and back, and transforms of a block in place."""

from __future__ import annotations

import mpmath
import numpy as np
import oracles
import pytest
from scipy import stats

from powerkern import Status
from powerkern.kernels.likelihood import mle
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import CENTER, DIVISOR, LMBDA, LOC, N_RESULTS, SCALE, STATUS
from powerkern.kernels.transforms import gather as columnwise
from powerkern.kernels.transforms.branch import BLOCK
from powerkern.kernels.transforms.family import (
    BOX_COX,
    FORWARD,
    FORWARD_STANDARDIZED,
    INVERSE,
    INVERSE_STANDARDIZED,
    YEO_JOHNSON,
)

NAMES = {BOX_COX: "box-cox", YEO_JOHNSON: "yeo-johnson"}

#: Views that hold the same numbers: name -> view of a given C-ordered matrix.
LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "rows reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "columns reversed": lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "inside another": lambda x: np.pad(x, ((1, 2), (3, 4)))[1:-2, 3:-4],
    "transposed and reversed": lambda x: np.asfortranarray(x[::-1, ::-1])[::-1, ::-1],
}
SHAPES = [(1, 1), (1, 9), (5, 7), (6, 8), (3, 17), (20, 3)]


def normal_values(shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.parametrize("writeable", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_gathered_columns_have_the_values_of_the_matrix(shape, layout, writeable):
    x = normal_values(shape)
    view = LAYOUTS[layout](x)
    view.flags.writeable = writeable
    block = np.full(shape[::-1], np.nan)
    columnwise.gather(view, block)
    np.testing.assert_array_equal(block, x.T)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_scattered_columns_are_written_to_the_matrix(shape, layout):
    x = normal_values(shape)
    out = LAYOUTS[layout](np.zeros(shape))
    columnwise.scatter(np.ascontiguousarray(x.T), out)
    np.testing.assert_array_equal(out, x)


def test_scatter_touches_nothing_else():
    big = np.zeros((10, 12))
    columnwise.scatter(np.ones((9, 4)), big[2:6, 1:10])
    assert big.sum() == 36.0
    assert big[2:6, 1:10].all()


def test_gather_and_scatter_preserve_bits():
    """NaN with a payload, -0.0 and subnormal values are copied exactly."""
    bits = np.array([[0x7FF8000000000123, -0x8000000000000000, 1], [-1, 0x7FF0000000000000, 0]], dtype=np.int64)
    x = bits.view(np.float64)
    block, out = np.empty((3, 2)), np.empty((2, 3))
    columnwise.gather(x, block)
    columnwise.scatter(block, out)
    np.testing.assert_array_equal(out.view(np.int64), bits)


# --- transforms ---------------------------------------------------------------------------------------


def fits(columns, family, lmbda=np.nan):
    """Fit columns, given as the rows of a block; return the rows of results."""
    out = np.empty((columns.shape[0], N_RESULTS))
    lmbdas = np.full(columns.shape[0], lmbda)
    mle.fit_columns(columns.copy(), np.empty(0), family, lmbdas, new_work(columns.shape[1]), out)
    return out


def block_for(family):
    """Return four columns as the rows of a block, all positive for Box-Cox; the last is a tight cluster."""
    z = np.random.default_rng(11).normal(size=(4, 25))
    z[3] = 30.0 + 1e-7 * z[3]
    return np.exp(z) if family == BOX_COX else z


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("direction", range(4))
def test_transforms_of_a_block_agree_with_mpmath(family, direction):
    """Transforms and inverses of a block, raw and standardised, agree with mpmath."""
    standardized = direction in (FORWARD_STANDARDIZED, INVERSE_STANDARDIZED)
    # psi of the tight column is constant in float64: only its standardised form can be used
    x = block_for(family) if standardized else block_for(family)[:3]
    rows = fits(x, family)
    image = np.array([images(NAMES[family], row, column, standardized) for row, column in zip(rows, x, strict=True)])
    before, after = (x, image) if direction in (FORWARD, FORWARD_STANDARDIZED) else (image, x)
    block, failures = before.copy(), np.zeros(len(x), dtype=np.int64)
    columnwise.APPLY[family, direction](block, rows, failures)
    assert not failures.any()
    np.testing.assert_allclose(block, after, rtol=1e-12, atol=1e-12)


def images(family, row, x, standardized):
    if standardized:
        return oracles.standardized(family, row[LMBDA], x)
    with mpmath.workdps(60):
        return [float(oracles.power_derivatives(family, row[LMBDA], v)[0]) for v in x]


@pytest.mark.parametrize("direction", range(4))
@pytest.mark.parametrize("family", NAMES)
def test_columns_that_were_not_fitted_pass_unchanged(family, direction):
    x = np.array([[np.nan, -1.0, np.inf, 0.0], [1.0, 2.0, 3.0, 4.0]])
    rows = fits(np.array([[2.0, 2.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0]]), family)
    assert rows[0, STATUS] == Status.CONSTANT
    block, failures = x.copy(), np.zeros(2, dtype=np.int64)
    columnwise.APPLY[family, direction](block, rows, failures)
    np.testing.assert_array_equal(block[0], x[0])
    assert failures[0] == (direction in (FORWARD, FORWARD_STANDARDIZED))  # the infinite value
    assert (block[1] != x[1]).any()


@pytest.mark.parametrize("standardized", [False, True])
@pytest.mark.parametrize("family", NAMES)
def test_values_without_a_transform_are_counted(family, standardized):
    """Infinite values are counted, and under Box-Cox values that are not positive. NaN is not counted and stays NaN."""
    x = np.array([[1.0, np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324]])
    rows = fits(np.array([[1.0, 2.0, 4.0, 9.0]]), family)
    expected = 5 if family == BOX_COX else 2
    failures = np.full(1, 10, dtype=np.int64)
    block = x.copy()
    direction = FORWARD_STANDARDIZED if standardized else FORWARD
    columnwise.APPLY[family, direction](block, rows, failures)
    assert failures[0] == 10 + expected
    assert np.isnan(block[0, 1])
    for view in (x.T, np.asfortranarray(x.T)[::-1]):
        failures[0] = 0
        columnwise.count_outside(view, np.array([family]), rows, failures)
        assert failures[0] == expected


@pytest.mark.parametrize("lmbda", [-0.5, 0.5, 3.0])
@pytest.mark.parametrize("family", NAMES)
def test_values_without_an_inverse_are_counted(family, lmbda):
    """Values beyond the range of psi, which ends at -1/lambda or (if lambda > 2) 1/(2 - lambda), are counted."""
    x = np.array([[0.5, 1.0, 2.0, 4.0]])
    rows = fits(x, family, lmbda)
    ends = [-1.0 / lmbda]
    if family == YEO_JOHNSON:
        ends = [-1.0 / lmbda if lmbda < 0.0 else 1.0 / (2.0 - lmbda)] if not 0.0 <= lmbda <= 2.0 else []
    psi = np.array([[0.01, np.nan, *(1.5 * e for e in ends), *(0.9 * e for e in ends)]])
    failures = np.zeros(1, dtype=np.int64)
    block = psi.copy()
    columnwise.APPLY[family, INVERSE](block, rows, failures)
    assert failures[0] == len(ends)
    assert np.isfinite(block[0, [0, *range(2 + len(ends), psi.size)]]).all()
    standardized = (psi - rows[0, LOC]) / rows[0, SCALE]
    failures[0] = 0
    columnwise.APPLY[family, INVERSE_STANDARDIZED](standardized, rows, failures)
    assert failures[0] == len(ends)
    np.testing.assert_allclose(standardized[~np.isnan(block)], block[~np.isnan(block)], rtol=1e-12)


@pytest.mark.parametrize("shape", [(8, 8), (16, 24), (17, 26), (511, 3), (512, 9), (513, 3), (1040, 1)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_squares_of_cache_lines_and_the_rest_are_copied(shape, dtype):
    x = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    block, out = np.full(shape[::-1], -1.0), np.full(shape, -1.0)
    (columnwise.gather if dtype is np.float64 else columnwise.gather_widened)(x, block)
    np.testing.assert_array_equal(block, x.T)
    columnwise.scatter(block, out)
    np.testing.assert_array_equal(out, x)


def rescaled_row(center, divisor):
    row = np.zeros(N_RESULTS)
    row[[CENTER, DIVISOR]] = center, divisor
    return row


def test_rescaled_values_that_overflow_become_the_largest_number():
    largest = np.finfo(float).max
    x = np.array([3.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.5])
    with np.errstate(over="ignore"):
        columnwise.prestandardize(x, rescaled_row(0.5, 1e-10))
    np.testing.assert_allclose(x, [2.5e10, largest, -largest, np.inf, -np.inf, np.nan, 0.0])


def test_inverses_of_rescaled_values_that_overflow_are_counted():
    x = np.array([3.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.0])
    with np.errstate(over="ignore"):
        assert columnwise._unprestandardize(x, rescaled_row(0.5, 1e10)) == 2
    np.testing.assert_array_equal(x, [3e10 + 0.5, np.inf, -np.inf, np.inf, -np.inf, np.nan, 0.5])


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("p", [3, BLOCK, BLOCK + 2])
def test_columns_are_rescaled_before_they_are_transformed_and_after_they_are_inverted(family, p):
    """Compare with SciPy's transforms of (x - center)/divisor.

    A third of the columns have a center and a divisor, and a third were not fitted. The largest matrix has more columns
    than a block of constants.
    """
    x = np.random.default_rng(p).gamma(2.0, size=(p, 2)) + 1.0
    rows = np.tile(fits(np.array([[1.0, 2.0, 4.0, 9.0]]), family), (p, 1))
    rows[:, LMBDA] = np.linspace(-1.0, 2.0, p)
    rows[::3, [CENTER, DIVISOR]] = 0.5, 2.0
    rows[1::3, STATUS] = Status.CONSTANT
    transform = stats.boxcox if family == BOX_COX else stats.yeojohnson
    expected = x.copy()
    for j in range(p):
        if j % 3 != 1:
            expected[j] = transform((x[j] - 0.5) / 2.0 if j % 3 == 0 else x[j], rows[j, LMBDA])
    block, failures = x.copy(), np.zeros(p, dtype=np.int64)
    columnwise.APPLY[family, FORWARD](block, rows, failures)
    np.testing.assert_allclose(block, expected, rtol=1e-12, atol=1e-13)
    columnwise.APPLY[family, INVERSE](block, rows, failures)
    np.testing.assert_allclose(block, x, rtol=1e-11)
    assert not failures.any()
    block[:, 1] = np.inf  # of inverses only a fit without a limit has an image for it
    columnwise.APPLY[family, FORWARD](block, rows, failures)
    assert (failures == 1).all()


@pytest.mark.parametrize(("family", "end"), [(BOX_COX, 0.5), (YEO_JOHNSON, -np.inf)])
def test_the_domain_of_a_rescaled_fit_begins_at_its_center(family, end):
    row = fits(np.array([[1.0, 2.0, 4.0, 9.0]]), family)
    row[0, [CENTER, DIVISOR]] = 0.5, 2.0
    assert columnwise.end_of_domain(row[0], family) == end
    failures = np.zeros(1, dtype=np.int64)
    x = np.array([[0.5], [np.nextafter(0.5, 1.0)], [-3.0], [np.inf], [np.nan]])
    columnwise.count_outside(x, np.array([family]), row, failures)
    assert failures[0] == (3 if family == BOX_COX else 1)
