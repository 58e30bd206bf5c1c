"""Transforms along the rows of a matrix, compared with transforms of its columns: the bits are equal."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern import Status
from powerkern._estimators.routes import fit_in_memory
from powerkern._jit import JIT_DISABLED
from powerkern.kernels.results import CENTER, DIVISOR, INTERCEPT, LMBDA, LOG_FACTOR, REF, SLOPE, STATUS
from powerkern.kernels.transforms import gather
from powerkern.kernels.transforms import matrix as rowwise
from powerkern.kernels.transforms.branch import BLOCK
from powerkern.kernels.transforms.columns import WIDTH
from powerkern.kernels.transforms.family import (
    BOX_COX,
    FORWARD_STANDARDIZED,
    INVERSE,
    INVERSE_STANDARDIZED,
    YEO_JOHNSON,
)
from powerkern.kernels.transforms.lines import rows_joined

FAMILIES = [BOX_COX, YEO_JOHNSON]
DIRECTIONS = range(4)


def columns(family, n=40):
    """Return a matrix (12, n) whose rows are columns of data; some values are NaN.

    The columns are skewed to the right or left, tight, huge or tiny; for Yeo-Johnson also of one sign and of both.
    """
    rng = np.random.default_rng(7)
    z = rng.normal(size=(12, n))
    x = np.exp(z * np.linspace(0.2, 1.5, 12)[:, np.newaxis])
    x[1] = 1.0 / x[1]
    x[2] = 30.0 + 1e-7 * z[2]
    x[3] *= 1e100
    x[4] *= 1e-100
    if family == YEO_JOHNSON:
        x[5] = np.floor(x[5])
        x[6:9] *= -1.0
        x[9:] = z[9:] * 3.0
    x[:, 5] = np.nan
    x[:, 6] = np.copysign(np.nan, -1.0)
    return x


def fits(x, family):
    return fit_in_memory(x.T, family, np.full(len(x), np.nan), None, 1)


def by_column(family, direction, block, results):
    block, failures = block.copy(), np.zeros(len(block), dtype=np.int64)
    gather.APPLY[family, direction](block, results, failures)
    return block, failures


def cases(family, direction, values):
    """Return test data for one family and direction.

    Parameters
    ----------
    family, direction : int
        Codes of family and direction.
    values : (p, n) ndarray
        Data of the columns; for an inverse, their transforms are the input.

    Returns
    -------
    results : (p, N_RESULTS) ndarray
        Fits of `columns`.
    values : (p, n) ndarray
        The input.
    images : (p, n) ndarray
        Images of the input by `by_column`.
    failures : (p,) ndarray of int
        Number of values without an image, by column.
    """
    results = fits(columns(family), family)
    if direction in (INVERSE, INVERSE_STANDARDIZED):
        values = by_column(family, direction - 1, values, results)[0]
    return results, values, *by_column(family, direction, values, results)


def along(family, direction, x, results, out, upright=False):
    """Write the transforms of a matrix to `out` by the row kernels.

    Parameters
    ----------
    family, direction : int
        Transform and direction, as in `rowwise.APPLY`.
    x, out : (n, p) ndarray, or (p, n) if `upright`
        The matrix and its images.
    results : (p, N_RESULTS) ndarray
        Fits of the columns.
    upright : bool
        Whether the rows of `x` are the columns of the data.

    Returns
    -------
    bounds : (EXTREME, p) ndarray
        Bounds of each column, such as those of ordinary values.
    is_ordinary : (p,) ndarray of bool
        Whether all values of a column are ordinary.
    """
    found = np.zeros((rowwise.N_BOUNDS, len(results)))
    stride, height = x.shape[1], x.shape[1 if upright else 0]
    where = lines_from(0, stride, 1, height, stride)
    rowwise.APPLY[family, direction](
        x.ravel(), where, rowwise.select_fields(results), found, out.ravel(), upright, np.empty(BLOCK)
    )
    return found[: rowwise.EXTREME], found[rowwise.EXTREME] == 0.0


def lines_from(begin, stride, within, height, out_stride):
    """Return the description of a matrix in memory that the row kernels take.

    Parameters
    ----------
    begin : int
        Offset of the first value.
    stride, within : int
        Strides from one line to the next, and within a line.
    height : int
        Number of rows of data.
    out_stride : int
        Stride from one line of the output to the next; the output begins at offset 0.
    """
    return np.array([begin, stride, within, height, 0, out_stride, 0, rows_joined(out_stride)])


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_and_columns_have_the_same_bits(family, direction, upright):
    """Rows and columns are longer than a block; the output is another matrix, or the input itself."""
    x = np.repeat(columns(family), 7, axis=1)
    results, values, expected, failures = cases(family, direction, x)
    lines = values if upright else np.ascontiguousarray(values.T)
    turned = (lambda out: out) if upright else (lambda out: out.T)
    assert max(lines.shape) > 2 * BLOCK
    out, before = np.empty_like(lines), lines.copy()
    bounds, ordinary = along(family, direction, lines, results, out, upright)
    np.testing.assert_array_equal(lines, before)
    assert ordinary.sum() >= len(results) // 3
    with np.errstate(invalid="ignore"):
        outside = (values < bounds[0][:, None]) | (values > bounds[1][:, None])
    np.testing.assert_array_equal(ordinary, ~outside.any(axis=1))
    np.testing.assert_array_equal(turned(out)[ordinary], expected[ordinary])
    assert not failures[ordinary].any()
    along(family, direction, lines, results, lines, upright)
    np.testing.assert_array_equal(turned(lines)[ordinary], expected[ordinary])


@pytest.mark.parametrize(
    ("family", "farthest"), [(BOX_COX, 1e-310), (BOX_COX, 1e301), (BOX_COX, 1.7e308), (YEO_JOHNSON, 1.7e308)]
)
def test_references_near_the_limits_of_float64(family, farthest):
    """A column has no ordinary values if the reciprocal of its reference is subnormal or infinite."""
    z = np.random.default_rng(8).normal(size=(2, 40))
    x = np.exp(np.log(farthest) * 0.9 + 3.0 * z)
    x[0, 3] = farthest
    direction = FORWARD_STANDARDIZED
    results = fits(x, family)
    results[:, LMBDA] = 1e-3 if farthest > 1.0 else -1e-3
    results[:, REF] = x.max(axis=1) if farthest > 1.0 else x.min(axis=1)
    expected, _ = by_column(family, direction, x, results)
    lines = np.ascontiguousarray(x.T)
    out = np.empty_like(lines)
    (low, high), ordinary = along(family, direction, lines, results, out)
    assert low[0] > high[0]
    assert ordinary.tolist() == [False, True]
    np.testing.assert_array_equal(out[:, 1], expected[1])


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_watched_images_are_marked_and_ends_are_restored(family, upright):
    """Columns with values outside the safe bounds are marked; only images of the two extreme values are replaced."""
    x = np.repeat(columns(family)[:, 10:], 5, axis=1)
    results = fits(x, family)
    z, _ = by_column(family, FORWARD_STANDARDIZED, x, results)
    expected, _ = by_column(family, INVERSE_STANDARDIZED, z, results)
    low, high = z.min(axis=1), z.max(axis=1)
    found = np.zeros((rowwise.WATCHED_MAX + 1, len(results)))
    found[rowwise.INNER_LOW], found[rowwise.INNER_HIGH] = np.nextafter(low, np.inf), np.nextafter(high, -np.inf)
    found[rowwise.SAFE_LOW], found[rowwise.SAFE_HIGH] = low, high
    found[rowwise.SAFE_LOW, 1] = found[rowwise.INNER_LOW, 1] = np.median(z[1])
    found[rowwise.SAFE_HIGH, 2] = found[rowwise.INNER_HIGH, 2] = np.median(z[2])
    found[rowwise.Z_MIN], found[rowwise.Z_MAX] = low, high
    found[rowwise.WATCHED_MIN], found[rowwise.WATCHED_MAX] = -7.0 - np.arange(len(results)), 7.0
    lines = z if upright else np.ascontiguousarray(z.T)
    out, where = np.empty_like(lines), lines_from(0, lines.shape[1], 1, z.shape[1], lines.shape[1])
    fields = rowwise.select_fields(results)
    rowwise.APPLY[family, INVERSE_STANDARDIZED](
        lines.ravel(), where, fields, found, out.ravel(), upright, np.empty(BLOCK)
    )
    out = out if upright else out.T
    ordinary = found[rowwise.EXTREME] == 0.0
    assert ordinary.sum() > len(results) // 2
    assert ordinary[1:3].all()
    np.testing.assert_array_equal(np.flatnonzero(found[rowwise.BEYOND]), [1, 2])
    for j in np.flatnonzero(ordinary):
        ends = np.where(z[j] == low[j], -7.0 - j, np.where(z[j] == high[j], 7.0, expected[j]))
        np.testing.assert_array_equal(out[j], ends)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_part_of_a_row_and_several_rows_in_one(family, direction):
    results, values, expected, _ = cases(family, direction, columns(family))
    x = np.ascontiguousarray(values.T)
    n, p = x.shape
    _, ordinary = along(family, direction, x, results, np.empty_like(x))
    left, right = 3, 10
    out, found = np.full_like(x, -7.0), np.zeros((rowwise.N_BOUNDS, right - left))
    end = n * p - (p - right)
    part, where = np.ascontiguousarray(results[left:right]), lines_from(0, p, 1, n, p)
    rowwise.APPLY[family, direction](
        x.ravel()[left:end], where, rowwise.select_fields(part), found, out.ravel()[left:end], False, np.empty(BLOCK)
    )
    inside = found[rowwise.EXTREME] == 0.0
    np.testing.assert_array_equal(inside, ordinary[left:right])
    np.testing.assert_array_equal(out.T[left:right][inside], expected[left:right][inside])
    assert (np.delete(out, np.s_[left:right], axis=1) == -7.0).all()
    for times in 3, 27:  # 27 make several blocks
        several = x[: n - n % times]
        out = np.empty_like(several)
        every = np.tile(results, (times, 1))
        _, found = along(family, direction, several.reshape(-1, times * p), every, out.reshape(-1, times * p))
        inside = along(family, direction, several, results, np.empty_like(several))[1]
        np.testing.assert_array_equal(found.reshape(times, p).all(axis=0), inside)
        np.testing.assert_array_equal(out.T[inside], expected[inside, : len(several)])
    assert times * p > 2 * BLOCK


@pytest.mark.parametrize("upright", [False] if JIT_DISABLED else [False, True])
@pytest.mark.parametrize("direction", [INVERSE, FORWARD_STANDARDIZED])
@pytest.mark.parametrize("family", FAMILIES)
def test_matrices_with_more_columns_than_a_band_have_the_same_bits(family, direction, upright):
    results, values, expected, _ = cases(family, direction, columns(family))
    times = rowwise.BAND // len(results) + 20
    many = np.tile(values, (times, 1))
    lines = many if upright else np.ascontiguousarray(many.T)
    out = np.empty_like(lines)
    every = np.tile(results, (times, 1))
    _, ordinary = along(family, direction, lines, every, out, upright)
    image = out if upright else out.T
    np.testing.assert_array_equal(image[ordinary], np.tile(expected, (times, 1))[ordinary])
    np.testing.assert_array_equal(ordinary, np.tile(ordinary[: len(results)], times))


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("height", [5, 64] if JIT_DISABLED else [1, 5, 20, 63, 64])
@pytest.mark.parametrize("direction", [INVERSE, INVERSE_STANDARDIZED])
@pytest.mark.parametrize("family", FAMILIES)
def test_short_columns_have_the_bits_of_separate_columns(family, direction, height, gap):
    """Short columns are joined before they are divided into blocks; images equal those of separate columns."""
    results, values, expected, _ = cases(family, direction, columns(family, 80))
    times = 10 if JIT_DISABLED else 30
    lines = np.full((times * len(values), height + gap), -7.0)
    lines[:, :height] = np.tile(values[:, -height:], (times, 1))
    lines[::7, height // 2] = np.inf
    x, out = lines.ravel()[: lines.size - gap], np.full(lines.size - gap, -7.0)
    found = np.zeros((rowwise.N_BOUNDS, len(lines)))
    every = np.tile(results, (times, 1))
    where = lines_from(0, height + gap, 1, height, height + gap)
    rowwise.APPLY[family, direction](x, where, rowwise.select_fields(every), found, out, True, np.empty(BLOCK))
    within = lines[:, :height]
    with np.errstate(invalid="ignore"):
        outside = (within < found[:1].T) | (within > found[1:2].T)
    np.testing.assert_array_equal(found[rowwise.EXTREME] > 0.0, outside.any(axis=1))
    images = np.append(out, np.full(gap, -7.0)).reshape(lines.shape)
    assert (images[:, height:] == -7.0).all()
    np.testing.assert_array_equal(images[:, :height][~outside], np.tile(expected[:, -height:], (times, 1))[~outside])
    assert outside.any(axis=1)[::7].all()
    assert outside[found[0] <= found[1]].mean() < 0.7


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("within", [2, -1] if JIT_DISABLED else [1, 2, -1, -3])
@pytest.mark.parametrize(
    "shape", [(300, 5), (9, 1030)] if JIT_DISABLED else [(300, 5), (40, 600), (9, 1030), (700, 70)]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_strided_values_have_the_bits_of_contiguous_ones(family, shape, within, upright):
    """Compare lines of any stride with contiguous lines; short lines are joined in blocks, long ones are not."""
    direction = FORWARD_STANDARDIZED
    results, values, _, _ = cases(family, direction, columns(family, 50))
    n, p = shape
    some = np.arange(p) % len(results)
    x = np.resize(values[some], (p, n)) if upright else np.resize(values[some].T, (n, p))
    x[:, ::11] = np.inf
    expected = np.empty_like(x)
    _, ordinary = along(family, direction, x, results[some], expected, upright)
    for stride in (3 * x.shape[1] + 2, -3 * x.shape[1] - 2):
        memory = np.full((len(x) - 1) * abs(stride) + (x.shape[1] - 1) * abs(within) + 1, -7.0)
        begin = (len(x) - 1) * max(-stride, 0) + (x.shape[1] - 1) * max(-within, 0)
        at = begin + stride * np.arange(len(x))[:, None] + within * np.arange(x.shape[1])
        memory[at] = x
        out, found = np.empty_like(x), np.zeros((rowwise.N_BOUNDS, p))
        where = lines_from(begin, stride, within, n, x.shape[1])
        rowwise.APPLY[family, direction](
            memory, where, rowwise.select_fields(results[some]), found, out.ravel(), upright, np.empty(BLOCK)
        )
        np.testing.assert_array_equal(found[rowwise.EXTREME] == 0.0, ordinary)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("p", [3, 100] if JIT_DISABLED else [1, 3, 100, 250, 511])
@pytest.mark.parametrize("direction", [INVERSE, FORWARD_STANDARDIZED])
@pytest.mark.parametrize("family", FAMILIES)
def test_short_rows_have_the_bits_of_columns(family, direction, p):
    """Short rows are joined in blocks. A single value that is not ordinary is detected in any row."""
    n = 60 if JIT_DISABLED else 700
    results, values, expected, _ = cases(family, direction, columns(family, n))
    some = np.arange(p) % len(results)
    x = np.ascontiguousarray(values[some].T)
    out = np.empty_like(x)
    bounds, ordinary = along(family, direction, x, results[some], out)
    with np.errstate(invalid="ignore"):
        outside = (x < bounds[0]) | (x > bounds[1])
    np.testing.assert_array_equal(ordinary, ~outside.any(axis=0))
    np.testing.assert_array_equal(out[~outside], expected[some].T[~outside])
    for row in (0, 1, n - 1):
        at = x.copy()
        at[row, p // 2] = np.inf
        assert not along(family, direction, at, results[some], np.empty_like(at))[1][p // 2]


@pytest.mark.parametrize("family", FAMILIES)
def test_large_values_are_not_ordinary_for_inverses_with_small_exponents(family):
    """Below exponent 1/8, inverses of large values need a more accurate logarithm: they are not ordinary."""
    small = np.array([0.0, 1e-300, 0.1, np.nextafter(0.125, 0.0), -0.12])
    lmbdas = np.concatenate([small, small + 2.0 if family == YEO_JOHNSON else [], [0.125, -0.125, 0.7]])
    results = np.tile(fits(columns(family), family)[:1], (lmbdas.size, 1))
    results[:, LMBDA] = lmbdas
    for value, expected in ((0.5, True), (13.0, False)):
        values = np.full((1, lmbdas.size), value)
        _, ordinary = along(family, INVERSE, values, results, values, False)
        np.testing.assert_array_equal(ordinary[: small.size], expected)
    values = np.full((1, lmbdas.size), 0.5)
    _, ordinary = along(family, INVERSE, values, results, values, False)
    assert ordinary.all()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_values_that_column_kernels_treat_specially_are_extreme(family, direction):
    """The row kernels detect every value that the column kernels count as a failure or may treat specially."""
    results = fits(columns(family), family)
    nasty = [np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, -1e308, 5e-324, -1e5, 1e5, 0.5]
    for value in nasty:
        values = np.full((len(results), 1), value)
        expected, failures = by_column(family, direction, values, results)
        out = np.empty((1, len(results)))
        _, ordinary = along(family, direction, values.T.copy(), results, out)
        assert not failures[ordinary].any()
        np.testing.assert_array_equal(out[0, ordinary], expected[ordinary, 0])


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_columns_that_pass_or_are_rescaled_have_no_ordinary_value(family, direction):
    results = fits(columns(family), family)
    results[0, STATUS] = Status.CONSTANT
    results[1, CENTER] = 1.0
    results[2, DIVISOR] = 2.0
    nothing = np.empty((0, len(results)))
    (low, high), _ = along(family, direction, nothing, results, nothing)
    assert (low[:3] > high[:3]).all()


# --- parts of the procedure ---------------------------------------------------------------------------


def test_columns_that_are_not_transformed_or_are_rescaled_have_no_fields():
    results = np.tile(fits(columns(BOX_COX), BOX_COX)[:1], (4, 1))
    results[1, CENTER], results[2, DIVISOR], results[3, STATUS] = 0.5, 2.0, Status.CONSTANT
    found = rowwise.select_fields(results)
    assert found[:, 0].tolist() == results[0, [LMBDA, REF, SLOPE, INTERCEPT, LOG_FACTOR]].tolist()
    assert np.isnan(found[:, 1:]).all()
    raw = rowwise.raw_fields(found, np.array([BOX_COX, YEO_JOHNSON, BOX_COX, YEO_JOHNSON]))
    assert raw[:, 0].tolist() == [results[0, LMBDA], 1.0, 1.0, 0.0, 0.0]
    assert raw[1:, 1].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert np.isnan(raw[0, 1:]).all()


@pytest.mark.parametrize(("p", "width"), [(3, 3), (3, 14), (100, 250), (128, 256), (130, 260)])
def test_constants_of_columns_are_repeated_along_joined_rows(p, width):
    c = np.arange(3.0 * 2 * WIDTH).reshape(3, 2, WIDTH)
    first = [c[j // BLOCK, :, j % BLOCK].tolist() for j in range(p)]
    rowwise._repeat(c, p, width)
    assert [c[j // BLOCK, :, j % BLOCK].tolist() for j in range(width)] == [first[j % p] for j in range(width)]


@pytest.mark.parametrize(("first", "height", "p"), [(0, 1, 4), (3, 1, 4), (5, 3, 6), (0, 20, 1)])
def test_columns_with_values_outside_their_bounds_are_marked(first, height, p):
    x = np.array([0.0, 1.0, 2.0, np.nan, -1.0, 3.0, 1.5, 1.0])
    c = np.array([np.full(8, 1.0), np.full(8, 2.0)])
    outside = (x < 1.0) | (x > 2.0)
    assert rowwise._count_outside(x, c[0], c[1]) == outside.sum() == 3
    assert rowwise._any_extreme(x, c)
    assert not rowwise._any_extreme(x[[1, 2, 3]], c[:, :3])
    extreme = np.zeros(p)
    rowwise._note_extreme(x, c, first, height, extreme)
    marked = {(first + i) // height % p for i in np.flatnonzero(outside)}
    assert extreme.tolist() == [float(j in marked) for j in range(p)]


@pytest.mark.parametrize(
    ("n", "first", "height", "left"), [(5, 0, 1, 0), (40, 2, 1, 1), (64, 3, 5, 0), (70, 0, 100, 1)]
)
def test_watched_values_are_marked_and_listed_one_by_one(n, first, height, left):
    """Check the marks of columns with values outside two kinds of bounds, and the list of extremes to restore.

    The bounds are those of values that need no special treatment, and the safe bounds. Only values outside the inner
    bounds are examined.
    """
    rng = np.random.default_rng(n)
    right, x = left + 3, np.round(rng.normal(size=n) * 2.0, 1)
    x[n // 2] = np.nan
    bounds = np.zeros((rowwise.WATCHED_MAX + 1, 5))
    for row, value in ((rowwise.LOW, -4.0), (rowwise.HIGH, 4.0), (rowwise.SAFE_LOW, -3.0), (rowwise.SAFE_HIGH, 2.5)):
        bounds[row] = value + 0.1 * np.arange(5)
    owner = left + (first + np.arange(n)) // height % 3
    bounds[rowwise.Z_MIN], bounds[rowwise.Z_MAX] = np.nanmin(x), np.nanmax(x)
    bounds[rowwise.WATCHED_MIN], bounds[rowwise.WATCHED_MAX] = 100.0 + np.arange(5), 200.0 + np.arange(5)
    c, restored = np.tile([[-1.5], [1.5]], n), np.zeros((3, n))
    expected = bounds.copy()
    pairs = []
    for i in np.flatnonzero((x < -1.5) | (x > 1.5)):
        z, k = x[i], owner[i]
        expected[rowwise.EXTREME, k] += not bounds[rowwise.LOW, k] <= z <= bounds[rowwise.HIGH, k]
        expected[rowwise.BEYOND, k] += not bounds[rowwise.SAFE_LOW, k] <= z <= bounds[rowwise.SAFE_HIGH, k]
        if z in (np.nanmin(x), np.nanmax(x)):
            pairs.append((float(i), (100.0 if z == np.nanmin(x) else 200.0) + k))
    marks = [rowwise.EXTREME, rowwise.BEYOND]
    expected[marks] = expected[marks] > 0.0
    count = rowwise._note_watched(x, c, first, height, bounds, left, right, restored)
    np.testing.assert_array_equal(bounds, expected)
    assert list(zip(*restored[:2, :count].tolist(), strict=True)) == pairs
    assert len(pairs) >= 2
