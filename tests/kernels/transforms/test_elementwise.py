"""Transforms with one lambda per element equal those of the scalar kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from powerkern.kernels.transforms import boxcox, elementwise, yeojohnson


def each(function, x, lmbda):
    out = np.empty(x.size)
    function(x, lmbda, out)
    return out


LMBDA = np.array([-2.0, 0.0, 0.5, 1.0, 2.0, 3.5])
POSITIVE = np.array([0.1, 0.5, 1.0, 2.0, 5.0, 9.0])
SIGNED = np.array([-3.0, -1.0, 0.0, 1e-9, 2.0, -0.5])


@pytest.mark.parametrize(
    "function, scalar, x",
    [
        (elementwise.boxcox_each, boxcox.boxcox, POSITIVE),
        (elementwise.inv_boxcox_each, boxcox.inv_boxcox, POSITIVE / 20.0),
        (elementwise.yeojohnson_each, yeojohnson.yeojohnson, SIGNED),
        (elementwise.inv_yeojohnson_each, yeojohnson.inv_yeojohnson, SIGNED / 20.0),
    ],
)
def test_each_element_has_its_own_lambda(function, scalar, x):
    expected = [scalar(value, lmbda) for value, lmbda in zip(x, LMBDA, strict=True)]
    np.testing.assert_allclose(each(function, x, LMBDA), expected, rtol=1e-14)


def test_transforms_agree_with_scipy():
    expected = special.boxcox(POSITIVE, LMBDA)
    np.testing.assert_allclose(each(elementwise.boxcox_each, POSITIVE, LMBDA), expected, rtol=1e-13)
    expected = [stats.yeojohnson(np.array([x]), lmbda)[0] for x, lmbda in zip(SIGNED, LMBDA, strict=True)]
    np.testing.assert_allclose(each(elementwise.yeojohnson_each, SIGNED, LMBDA), expected, rtol=1e-13)


@pytest.mark.parametrize(
    "there, back, x",
    [
        (elementwise.boxcox_each, elementwise.inv_boxcox_each, POSITIVE),
        (elementwise.yeojohnson_each, elementwise.inv_yeojohnson_each, SIGNED),
    ],
)
def test_inverses_return_the_values(there, back, x):
    np.testing.assert_allclose(each(back, each(there, x, LMBDA), LMBDA), x, rtol=1e-13)


@pytest.mark.parametrize("lmbda", LMBDA)
@pytest.mark.parametrize("n", [0, 1, 128, 150])
@pytest.mark.parametrize(
    ("by_one", "by_each", "is_box_cox"),
    [
        (elementwise.boxcox_array, elementwise.boxcox_each, True),
        (elementwise.inv_boxcox_array, elementwise.inv_boxcox_each, True),
        (elementwise.yeojohnson_array, elementwise.yeojohnson_each, False),
        (elementwise.inv_yeojohnson_array, elementwise.inv_yeojohnson_each, False),
    ],
)
def test_a_vector_with_one_lambda_is_transformed_as_its_elements(by_one, by_each, is_box_cox, n, lmbda):
    """Compare a transform of a vector with transforms of its elements, also if the output is the input."""
    x = np.resize(POSITIVE / 30.0 if is_box_cox else SIGNED / 30.0, n)
    expected = each(by_each, x, np.full(n, lmbda))
    np.testing.assert_allclose(each(by_one, x, lmbda), expected, rtol=4e-15, atol=1e-24)
    by_one(x, lmbda, x)
    np.testing.assert_allclose(x, expected, rtol=4e-15, atol=1e-24)
