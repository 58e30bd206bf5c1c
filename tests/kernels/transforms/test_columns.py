"""Columns transformed in blocks, with values outside the bounds of a block one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern._jit import LANES
from powerkern.kernels.transforms import columns
from powerkern.kernels.transforms.branch import BLOCK, Fit
from powerkern.kernels.transforms.family import (
    BOX_COX,
    FORWARD,
    FORWARD_STANDARDIZED,
    INVERSE,
    INVERSE_STANDARDIZED,
    YEO_JOHNSON,
)

RNG = np.random.default_rng(2)


@pytest.mark.parametrize(
    ("first", "height", "n"), [(0, 5, 40), (3, 5, 17), (0, 8, 24), (7, 8, 9), (0, 20, 100), (19, 20, 2)]
)
@pytest.mark.parametrize(("height_of_all", "offset"), [(False, 0), (True, 120)])
def test_constants_are_repeated_for_the_values_of_their_columns(first, height, n, height_of_all, offset):
    """Value i belongs to column (first + i)//height; the constants of column j are in block j//128."""
    c = RNG.normal(size=(3, 2, columns.WIDTH))
    first += offset * height  # the columns are divided among two blocks of constants
    out = np.full((2, n + LANES), 7.0)
    columns.broadcast_constants(c, first, n, height, out)
    owners = (first + np.arange(n)) // height
    np.testing.assert_array_equal(out[:, :n], c[owners // BLOCK, :, owners % BLOCK].T)


X = np.array([1.0, -2.0, 0.0, math.nan, math.inf, -math.inf, 3.0, 0.5])


def test_counts_ignore_missing_values():
    assert columns.count_outside(X, 0.0) == 4
    assert columns.count_outside(X, -2.0) == 3
    assert columns.count_outside(X, -math.inf) == 2
    assert columns.count_infinite(X) == 2
    assert columns._count_not_finite(X) == 3
    assert columns._count_extreme(X, 0.0, 1.0) == 4
    assert columns._count_extreme(X, 0.5, 3.0) == 4


def test_values_without_an_image_are_outside_the_domain_or_overflow():
    place, image = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 7.0]), np.array([1.0, 1.0, 1.0, 1.0, -math.inf, 2.0, math.inf])
    assert columns._count_without_image(X, place, image, 0.0) == 4  # -2, 0, inf, and 3 with an infinite image
    assert columns._count_without_image(X, place, image, -math.inf) == 2
    assert columns._count_without_image(X, place[:1], image, 1.0) == 1


@pytest.mark.parametrize("n", [1, 8, 20])
def test_extreme_values_are_taken_out_with_their_places(n):
    x = np.resize(X, n)
    extreme, place = np.full(n + LANES, 7.0), np.full(n + LANES, 7.0)
    whole = columns._take_extreme(x, 0.0, 1.0, extreme, place)
    places = np.flatnonzero((x < 0.0) | (x > 1.0))
    assert whole == -(-places.size // LANES) * LANES
    assert place[: places.size].tolist() == places.tolist()
    assert extreme[: places.size].tolist() == x[places].tolist()
    assert (extreme[places.size : whole] == 1.0).all()


FIT = Fit(0.4, 1.5, 0.7, 0.1, 0.0)


@pytest.mark.parametrize("direction", [FORWARD, INVERSE, FORWARD_STANDARDIZED, INVERSE_STANDARDIZED])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 13])
def test_images_and_failures_are_those_of_single_values(family, direction, n):
    """Compare images and the number of failures with those of single values; one block has only extreme values."""
    transform, column = columns.TRANSFORMS[family, direction], columns.column_transform(family, direction)
    x = (
        RNG.normal(size=n)
        if family == YEO_JOHNSON or direction in (INVERSE, INVERSE_STANDARDIZED)
        else RNG.gamma(2.0, size=n)
    )
    x[n // 2 :: 7] = np.resize([math.inf, 1e305, 0.0, -1e305, math.nan, -math.inf, -1.0, 5e-324], x[n // 2 :: 7].size)
    if n > BLOCK:
        x[BLOCK : BLOCK + 40] = 1e302  # the start of the second block, or all of it
    c, out, room = np.zeros((1, transform.n_constants, 1)), np.empty(n), np.empty((columns.N_ROOM, columns.WIDTH))
    with np.errstate(all="ignore"):
        transform.prepare(FIT, c[0], 0)
        n_failures = column(x, c, 0, FIT, out, room)
        expected = np.array([transform.image(np.float64(v), FIT) for v in x])
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)
    if direction in (INVERSE, INVERSE_STANDARDIZED):
        extreme = (x < c[0, 0, 0]) | (x > c[0, 1, 0])
        assert n_failures == np.sum(extreme & ~np.isfinite(expected))
    else:
        end = 0.0 if family == BOX_COX else -math.inf
        assert n_failures == np.sum((x <= end) | np.isposinf(x) | np.isinf(expected))
