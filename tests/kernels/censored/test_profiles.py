"""Profile likelihoods of columns with censored cells, compared with maxima by SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from powerkern._typing import FloatArray
from powerkern.kernels.censored import fit
from powerkern.kernels.censored.scratch import new_censored_work
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import CENTER, DIVISOR, LMBDA, LOC, LOG_FACTOR, N_OBS, N_RESULTS, NLL, SCALE, STATUS
from powerkern.kernels.status_codes import FEW_OBSERVED, FIXED, SCANNED
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

INF, NAN = math.inf, math.nan
#: Cells as (value or end, other end) for positive data; values are equal in all but the first of them.
CELLS = {
    "values": [
        (0.5, NAN),
        (1.2, NAN),
        (2.0, NAN),
        (3.1, NAN),
        (0.7, -INF),
        (0.7, -INF),
        (2.5, INF),
        (1.0, 1.9),
        (3.0, 2.0),
    ],
    "equal values": [(1.5, NAN), (1.5, NAN), (1.5, NAN), (0.7, -INF), (1.0, -INF), (2.5, INF), (0.9, 2.2), (0.9, 2.2)],
    "equal values and limits": [(1.5, NAN), (1.5, NAN), (0.7, -INF), (0.7, -INF), (2.5, INF), (1.9, INF)],
    "no values": [(0.7, -INF), (1.0, -INF), (2.5, INF), (1.6, 2.2), (0.9, 1.6), (1.1, INF)],
    "equal values and intervals": [(1.5, NAN), (1.5, NAN), (0.6, 1.2), (1.1, 2.2), (1.7, 4.0), (0.2, 0.9)],
}
KINDS = ("Box-Cox", "positive", "negative", "both signs")


def case(name: str, kind: str, is_weighted: bool) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Return the cells of a case as arrays `x`, `other` and weights, and the family.

    If a cell is a value, its entry in `other` is NaN. If a cell has one limit, the limit is in `x`, and `other` is -inf
    (below the limit) or inf (above it). If a cell has two limits, one is in each array.

    Parameters
    ----------
    name : str
        Key of CELLS.
    kind : str
        One of KINDS: the family, and for Yeo-Johnson the sign of the cells.
    is_weighted : bool
        Whether weights are random; otherwise their array is empty.
    """
    x, other = np.array(CELLS[name]).T.copy()
    if kind == "both signs":
        x, other = x - 1.7, other - 1.7
    if kind == "negative":
        x, other = -x, -other
    weight = np.random.default_rng(1).uniform(0.5, 2.0, x.size) if is_weighted else np.empty(0)
    return x, other, weight, BOX_COX if kind == "Box-Cox" else YEO_JOHNSON


def transform(x: FloatArray, family: int, lmbda: float) -> FloatArray:
    y: FloatArray = (stats.boxcox if family == BOX_COX else stats.yeojohnson)(np.asarray(x, dtype=float), lmbda)
    return y


def likeliest(
    x: FloatArray, other: FloatArray, weight: FloatArray, family: int, lmbda: float
) -> tuple[float, float, float]:
    """Return the minimum of the negative log-likelihood over mean and scale at `lmbda`, and this mean and scale.

    Parameters
    ----------
    x, other, weight : (n,) ndarray
        Cells in the form that `case` describes.
    family : int
        Code of the transform.
    lmbda : float
        Lambda.
    """
    w = weight if weight.size > 0 else np.ones(x.size)
    is_value, is_limit = np.isnan(other), np.isinf(other)
    y = transform(x, family, lmbda)
    end = np.where(is_value | is_limit, other, 0.0)
    end[~is_value & ~is_limit] = transform(other[~is_value & ~is_limit], family, lmbda)
    low, high = np.fmin(y, end), np.fmax(y, end)
    slope = np.log(abs(x)) if family == BOX_COX else np.sign(x) * np.log1p(abs(x))

    def nll(parameters: FloatArray) -> float:
        mean, scale = parameters[0], math.exp(parameters[1])
        a, b = (low - mean) / scale, (high - mean) / scale
        mirrored = a > 0.0
        upper, lower = np.where(mirrored, -a, b), np.where(mirrored, -b, a)
        with np.errstate(all="ignore"):
            cdf = stats.norm.logcdf(upper) + np.log1p(-np.exp(stats.norm.logcdf(lower) - stats.norm.logcdf(upper)))
        density = stats.norm.logpdf((y - mean) / scale) - parameters[1] + (lmbda - 1.0) * slope
        return float(-np.sum(w * np.where(is_value, density, cdf)))

    start = np.array([np.mean(y), math.log(np.std(y) + 0.1)])
    best = optimize.minimize(nll, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 2000})
    return best.fun, best.x[0], math.exp(best.x[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CELLS)
def test_profiles_are_maxima_over_the_mean_and_the_scale(name: str, kind: str) -> None:
    lmbdas = np.array([-0.4, 1.0, 1.6])
    for is_weighted, checked in ((False, lmbdas[1:2]), (True, lmbdas[::2])):
        x, other, weight, family = case(name, kind, is_weighted)
        arguments, w = (x[np.newaxis], other[np.newaxis], weight, family), weight if is_weighted else np.ones(x.size)
        work = new_work(x.size), new_censored_work(x.size, x.size)
        profile, row, fields = np.empty((1, 3)), np.empty((1, N_RESULTS)), np.empty((1, fit.N_CENSORED_FIELDS))
        fit.profile_censored_columns(*arguments, lmbdas, *work, profile)
        values = w[np.isnan(other)].sum()
        for lmbda in checked:
            found = profile[0, np.searchsorted(lmbdas, lmbda)]
            nll, mean, scale = likeliest(x, other, weight, family, lmbda)
            assert found * w.sum() + 0.5 * values * (1.0 + math.log(2.0 * math.pi)) == pytest.approx(nll, abs=1e-8)
            fit.fit_censored_columns(*arguments, np.array([lmbda]), *work, row, fields)
            assert (row[0, STATUS], row[0, LMBDA], row[0, CENTER], row[0, DIVISOR]) == (FIXED, lmbda, 0.0, 1.0)
            assert row[0, NLL] == pytest.approx(found, rel=1e-12)
            assert row[0, N_OBS] == pytest.approx(w.sum(), rel=1e-14)
            factor = math.exp(row[0, LOG_FACTOR])
            assert row[0, LOC] * factor == pytest.approx(mean, abs=2e-5)
            assert row[0, SCALE] * factor == pytest.approx(scale, rel=2e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["values", "equal values"])
def test_no_lambda_has_a_higher_likelihood_than_the_optimum(name: str, kind: str) -> None:
    x, other, weight, family = case(name, kind, True)
    work = new_work(x.size), new_censored_work(x.size, x.size)
    row, fields, arguments = (
        np.empty((1, N_RESULTS)),
        np.empty((1, fit.N_CENSORED_FIELDS)),
        (x[np.newaxis], other[np.newaxis]),
    )
    fit.fit_censored_columns(*arguments, weight, family, np.array([NAN]), *work, row, fields)
    if row[0, STATUS] != SCANNED:
        return
    profile = np.empty((1, 23))
    lmbdas = row[0, LMBDA] + np.array([*np.linspace(-3.0, 3.0, 21), -1e-3, 1e-3])
    fit.profile_censored_columns(*arguments, weight, family, lmbdas, *work, profile)
    assert (profile >= row[0, NLL] - 1e-13).all()
    kinds = other[:, np.newaxis] == [-INF, INF]
    expected = weight[kinds[:, 0]].sum(), weight[kinds[:, 1]].sum(), weight[np.isfinite(other)].sum()
    np.testing.assert_allclose(fields[0, [fit.N_BELOW, fit.N_ABOVE, fit.N_BETWEEN]], expected, rtol=1e-13)


@pytest.mark.parametrize(
    "cells, is_fitted",
    [
        ([(1.0, NAN), (1.0, NAN), (2.0, -INF)], False),  # two points
        ([(1.0, NAN), (2.0, -INF), (0.5, INF)], True),
        ([(1.0, NAN), (1.0, -INF), (2.0, INF)], False),
        ([(1.0, 2.0), (1.0, 2.0)], False),
        ([(1.0, 2.0), (1.5, 2.5)], True),
        ([(1.0, 2.0), (1.0, 1.5)], True),
        ([(1.0, INF), (2.0, -INF)], False),
        ([(1.0, INF), (2.0, -INF), (1.5, INF)], True),
    ],
)
def test_lambda_needs_three_points_unless_values_differ(cells: list[tuple[float, float]], is_fitted: bool) -> None:
    x, other = np.array(cells).T.copy()
    work = new_work(x.size), new_censored_work(x.size, x.size)
    row, fields = np.empty((1, N_RESULTS)), np.empty((1, fit.N_CENSORED_FIELDS))
    arguments = x[np.newaxis], other[np.newaxis], np.empty(0), BOX_COX, np.array([0.5])
    fit.fit_censored_columns(*arguments, *work, row, fields)
    assert row[0, STATUS] == (FIXED if is_fitted else FEW_OBSERVED)
