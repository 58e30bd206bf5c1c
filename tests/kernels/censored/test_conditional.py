"""Conditional mean of a normal variable in an interval, compared with SciPy's truncated normal distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from powerkern.kernels.censored.conditional import interval_means

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    "low, high",
    [(-1.0, 2.0), (0.5, 3.0), (-4.0, -1.5), (-0.1, 0.1), (-INF, 0.7), (-0.3, INF), (-INF, -2.0), (6.0, INF)],
)
def test_means_are_those_of_the_truncated_normal_distribution(low: float, high: float) -> None:
    out = np.empty(1)
    interval_means(np.array([low]), np.array([high]), out)
    np.testing.assert_allclose(out[0], stats.truncnorm.mean(low, high), rtol=1e-10)


def test_means_of_a_point_of_the_whole_line_and_with_nan_ends() -> None:
    low, high, out = np.array([1.5, -INF, NAN, 0.0]), np.array([1.5, INF, 1.0, NAN]), np.empty(4)
    interval_means(low, high, out)
    np.testing.assert_array_equal(out, [1.5, 0.0, NAN, NAN])
