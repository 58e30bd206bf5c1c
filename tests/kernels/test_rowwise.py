"""Transforms along rows: the bits of the transforms of columns."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern import Status
from powerkern._engine.by_column import fit_matrix
from powerkern.kernels import columnwise, rowwise
from powerkern.kernels.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.results import CENTER, DIVISOR, STATUS

FAMILIES = [BOX_COX, YEO_JOHNSON]
DIRECTIONS = range(4)


def columns(family, n=40):
    """Skewed to either side, one-signed (up, down, with zeros), tight, far from 1; NaN among them."""
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
    return fit_matrix(x.T, family, np.full(len(x), np.nan), np.empty(0), 1)


def by_column(family, direction, block, results):
    block, failures = block.copy(), np.zeros(len(block), dtype=np.int64)
    columnwise.APPLY[family, direction](block, results, failures)
    return block, failures


def cases(family, direction, values):
    """Fits, and what a column of `values` and its image are turned into by the loops of `rowwise`."""
    results = fits(columns(family), family)
    if direction in (columnwise.INVERSE, columnwise.INVERSE_STANDARDIZED):
        values = by_column(family, direction - 1, values, results)[0]
    return results, values, *by_column(family, direction, values, results)


def ordinary_columns(family, direction, results, values):
    c = rowwise.constants(family, direction, results)
    found = np.zeros(len(results), dtype=np.int64)
    rowwise.find_extreme(np.ascontiguousarray(values.T).ravel(), len(results), 0, rowwise.in_blocks(c), found)
    return c, found == 0


def along_rows(family, direction, x, c, stride, out, left=0):
    """Transform the matrix x; returns which columns of c have ordinary values only."""
    found = np.zeros(c.shape[1], dtype=np.int64)
    rowwise.APPLY[family, direction](x.ravel(), stride, left, rowwise.in_blocks(c), found, out.ravel())
    return found == 0


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_bits_are_those_of_columns(family, direction):
    results, values, expected, failures = cases(family, direction, columns(family))
    c, ordinary = ordinary_columns(family, direction, results, values)
    assert ordinary.sum() >= len(results) // 3
    x = np.ascontiguousarray(values.T)
    out = np.empty_like(x)
    np.testing.assert_array_equal(along_rows(family, direction, x, c, x.shape[1], out), ordinary)
    np.testing.assert_array_equal(out.T[ordinary], expected[ordinary])
    assert not failures[ordinary].any()
    in_place = x.copy()
    along_rows(family, direction, in_place, c, x.shape[1], in_place)
    np.testing.assert_array_equal(in_place.T[ordinary], expected[ordinary])


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_part_of_a_row_and_several_rows_in_one(family, direction):
    results, values, expected, _ = cases(family, direction, columns(family))
    c, ordinary = ordinary_columns(family, direction, results, values)
    x = np.ascontiguousarray(values.T)
    n, p = x.shape
    left, right = 3, 10
    out = np.full_like(x, -7.0)
    inside = along_rows(family, direction, x, np.ascontiguousarray(c[:, left:right]), p, out, left)
    np.testing.assert_array_equal(inside, ordinary[left:right])
    np.testing.assert_array_equal(out.T[left:right][inside], expected[left:right][inside])
    assert (np.delete(out, np.s_[left:right], axis=1) == -7.0).all()
    for times in 3, 27:  # neither divides n: the last block is shorter; 27 make several blocks
        assert n % times != 0
        found = along_rows(family, direction, x, np.tile(c, (1, times)), times * p, out)
        np.testing.assert_array_equal(found.reshape(times, p).all(axis=0), ordinary)
        np.testing.assert_array_equal(out.T[ordinary], expected[ordinary])
    assert times * p > 2 * rowwise.ROW_BLOCK


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_values_without_an_image_are_extreme(family, direction):
    """Whatever the loops over columns count as a failure, or might handle apart, is found."""
    results = fits(columns(family), family)
    nasty = [np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, -1e308, 5e-324, -1e5, 1e5, 0.5]
    for value in nasty:
        values = np.full((len(results), 1), value)
        expected, failures = by_column(family, direction, values, results)
        c, ordinary = ordinary_columns(family, direction, results, values)
        assert not failures[ordinary].any()
        out = np.empty(len(results))
        along_rows(family, direction, values, c, len(results), out)
        np.testing.assert_array_equal(out[ordinary], expected[ordinary, 0])


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_columns_that_pass_or_are_rescaled_have_no_ordinary_value(family, direction):
    results = fits(columns(family), family)
    results[0, STATUS] = Status.CONSTANT
    results[1, CENTER] = 1.0
    results[2, DIVISOR] = 2.0
    c = rowwise.constants(family, direction, results)
    n = 3 if family == YEO_JOHNSON else 1  # scale is nothing to Box-Cox
    assert (c[rowwise.LOW, :n] > c[rowwise.HIGH, :n]).all()
