"""Fits of every numeric column of public data sets, checked by an independent score function and by round trips."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_files import SHARED

import powerkern as pk
from powerkern import PowerFit, Status

FAMILIES = ("yeo-johnson", "box-cox")


def _bundled(name: str) -> np.ndarray:
    datasets = pytest.importorskip("sklearn.datasets")
    data = getattr(datasets, f"load_{name}")()
    return np.column_stack([data.data, data.target]).astype(np.float64)


def _file(name: str) -> np.ndarray:
    return np.genfromtxt(SHARED / "data" / name, delimiter=",", skip_header=1)


DATA: dict[str, tuple[Callable[[str], np.ndarray], tuple[int, int]]] = {
    "iris": (_bundled, (150, 5)),
    "wine": (_bundled, (178, 14)),
    "diabetes": (_bundled, (442, 11)),
    "linnerud": (_bundled, (20, 6)),
    "breast_cancer": (_bundled, (569, 31)),
    "digits": (_bundled, (1797, 65)),
    "data_VOC.csv": (_file, (512, 19)),
    "data_brands.csv": (_file, (39, 7)),
    "data_clothes.csv": (_file, (28, 5)),
    "data_mortality.csv": (_file, (198, 91)),
    "data_philips.csv": (_file, (677, 9)),
    "topgear.csv": (_file, (297, 13)),
    "topgear_paper.csv": (_file, (296, 11)),
    "data_glass.csv.gz": (_file, (180, 750)),
    "data_dposs.csv.gz": (_file, (20000, 21)),
}
#: Data sets in which no column is entirely positive.
NEVER_POSITIVE = ("digits",)
CASES = [(name, family) for name in DATA for family in FAMILIES if family != "box-cox" or name not in NEVER_POSITIVE]
every_case = pytest.mark.parametrize(
    "name, family",
    [pytest.param(*case, marks=pytest.mark.needs_shared_data if DATA[case[0]][0] is _file else ()) for case in CASES],
)


@cache
def load(name: str) -> np.ndarray:
    read, shape = DATA[name]
    X = read(name)
    assert X.shape == shape
    X.flags.writeable = False
    return X


@cache
def load_and_fit(name: str, family: str) -> tuple[np.ndarray, PowerFit]:
    """Return the columns of a data set that lie inside the domain of the family, as a matrix, and their fit."""
    X = load(name)
    if family == "box-cox":
        with np.errstate(invalid="ignore"):
            X = X[:, ~np.any(X <= 0, axis=0)]
    assert X.shape[1] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constant columns
        return X, pk.fit(X, family=family)


def columns(X: np.ndarray, fit: PowerFit) -> list[int]:
    """Return the indices of the columns that have been fitted without a warning."""
    return [j for j in range(X.shape[1]) if fit.status[j] == Status.OK]


def seen(column: np.ndarray) -> np.ndarray:
    return column[~np.isnan(column)]


@every_case
def test_all_columns_are_fitted_but_constant_ones(name: str, family: str) -> None:
    X, fit = load_and_fit(name, family)
    for j in range(X.shape[1]):
        distinct = np.unique(seen(X[:, j])).size
        assert fit.status[j] == (Status.OK if distinct > 1 else Status.CONSTANT if distinct else Status.EMPTY), j
        assert fit.n_obs[j] == seen(X[:, j]).size


@pytest.mark.slow
@every_case
def test_lambda_is_where_the_score_changes_sign(name: str, family: str) -> None:
    """The score in long double has opposite signs at lambda - d and lambda + d.

    The distance d is the larger of two tolerances: 1e-12 (relative if |lambda| > 1), and ten times the change of lambda
    when the data change by half an ulp.
    """
    X, fit = load_and_fit(name, family)
    rng = np.random.default_rng(0)
    for j in columns(X, fit):
        x = seen(X[:, j]).astype(np.longdouble)
        lmbda = np.longdouble(fit.lmbda[j])

        def score(at: np.longdouble, x: np.ndarray = x) -> np.longdouble:
            return oracles.longdouble_score(family, at, x)

        unit = 1e-12 * max(1.0, abs(fit.lmbda[j]))
        curvature = (score(lmbda + 1e6 * unit) - score(lmbda - 1e6 * unit)) / (2e6 * unit)
        nudged = x * (1 + 2.0**-54 * rng.choice([-1, 1], size=(3, x.size)))
        half_ulp = max(abs(score(lmbda, y) - score(lmbda)) for y in nudged) / curvature
        delta = max(unit, 10 * half_ulp)
        assert score(lmbda - delta) < 0 < score(lmbda + delta), (j, lmbda, delta)


@every_case
def test_transformed_columns_have_mean_0_and_sd_1(name: str, family: str) -> None:
    X, fit = load_and_fit(name, family)
    Z = fit.transform(X)
    assert_array_equal(np.isnan(Z), np.isnan(X))
    for j in columns(X, fit):
        z = seen(Z[:, j])
        assert np.isfinite(z).all()
        assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-12, err_msg=str(j))


@every_case
def test_inverse_round_trips_to_the_accuracy_of_the_data(name: str, family: str) -> None:
    X, fit = load_and_fit(name, family)
    Z = fit.transform(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column.* so flat there")  # counts that are mostly 0
        back = fit.inverse_transform(Z)
    assert_array_equal(np.isfinite(back), ~np.isnan(X))
    for j in columns(X, fit):
        x, z = seen(X[:, j]), seen(Z[:, j])
        # dx/dz = sd/psi'(x), with ln psi'(x) = (lambda - 1) J, converts an ulp of z to units of x
        jacobian = np.log(x) if family == "box-cox" else np.sign(x) * np.log1p(np.abs(x))
        with np.errstate(over="ignore"):
            worth = np.exp(np.log(fit.scale[j]) + fit.log_factor[j] - (fit.lmbda[j] - 1) * jacobian)
        allowed = 16 * np.maximum(np.spacing(np.abs(x)), np.finfo(float).eps * (1 + np.abs(z)) * worth)
        assert (np.abs(seen(back[:, j]) - x) <= allowed).all(), j


@every_case
def test_any_number_of_threads_and_any_order_give_the_same_bits(name: str, family: str) -> None:
    X, fit = load_and_fit(name, family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        others = [pk.fit(X, family=family, n_threads=3), pk.fit(np.asfortranarray(X), family=family, n_threads=1)]
    for other in others:
        assert_array_equal(other.lmbda, fit.lmbda)
        assert_array_equal(other.nll, fit.nll)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shift", [0.0, 100.0, -3.0, -100.0])
def test_the_oracle_agrees_with_multiprecision(family: str, shift: float) -> None:
    """The score in long double, this module's oracle, agrees with the multiprecision derivative of the likelihood."""
    x = np.random.default_rng(0).normal(size=20) + shift
    if family == "box-cox":
        x = np.exp(x / 10)
    for lmbda in (-2.5, 0.0, 1e-9, 0.3, 1.0, 2.0, 4.0):
        expected = float(oracles.likelihood(family, lmbda, x.tolist())[1])
        actual = float(oracles.longdouble_score(family, np.longdouble(lmbda), x))
        assert_allclose(actual, expected, rtol=1e-13, atol=1e-16)
