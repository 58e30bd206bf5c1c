"""Bounds on lambda in every interface: lambda is the clipped free optimum; all else is as in a fit at this lambda."""

from __future__ import annotations

import json
import warnings
from functools import partial
from typing import Any

import numpy as np
import oracles
import pytest
from fits import kernel_rows
from numpy.testing import assert_allclose, assert_array_equal
from samples import lognormal_columns

import powerkern as pk
from powerkern import Status
from powerkern import __main__ as cli
from powerkern.federated import ProtocolError, Server, fit_federated
from powerkern.sketch import fit_chunks

FIGURES = ("lmbda", "loc", "scale", "log_factor", "nll", "information", "n_obs", "x_min", "x_max")
ROBUST = ("robust", "rewml-nr", "mtl")
four_lognormals = partial(lognormal_columns, sigma=(0.5, 0.2, 1.0, 0.1), mean=2.0)


def around(lmbda: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds (low, high) that raise the first lambda, lower the second, and leave the others unchanged."""
    return lmbda + np.array([0.3, -2.0, -1.0, -np.inf]), lmbda + np.array([1.0, -0.2, 2.0, np.inf])


def same(fit: pk.PowerFit, other: pk.PowerFit, rtol: float = 1e-13) -> None:
    for name in FIGURES:
        assert_allclose(getattr(fit, name), getattr(other, name), rtol=rtol, atol=rtol, err_msg=name)


# --- maximum likelihood -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 700])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_lambda_is_clipped_and_all_else_is_as_for_this_lambda(family: str, weighted: bool, n: int) -> None:
    X = four_lognormals(n)
    X[::7, 1] = np.nan
    weight = np.arange(n) % 3 + 0.5 if weighted else None
    free = pk.fit(X, family, sample_weight=weight)
    low, high = around(free.lmbda)
    fit = pk.fit(X, family, sample_weight=weight, bounds=(low, high))
    assert_array_equal(fit.lmbda, np.clip(free.lmbda, low, high))
    assert fit.status.tolist() == [Status.AT_BOUND, Status.AT_BOUND, Status.OK, Status.OK]
    same(fit[:2], pk.fit(X, family, sample_weight=weight, lmbda=fit.lmbda)[:2], 0.0)
    assert_array_equal(kernel_rows(fit)[2:], kernel_rows(free)[2:])
    assert (fit.nll[:2] > free.nll[:2]).all()
    if weight is None:
        assert_allclose(np.nanmean(fit.transform(X), axis=0), 0.0, atol=1e-13)


def test_no_lambda_within_the_bounds_is_likelier() -> None:
    X = four_lognormals(50)
    fit = pk.fit(X, "box-cox", bounds=(0.4, 0.9))
    inside = fit.profile(np.linspace(0.4, 0.9, 101), X)
    held = fit.status == Status.AT_BOUND
    assert held.any()
    assert (fit.nll <= inside.min(axis=1) + 1e-10).all()
    assert_allclose(fit.nll[held], inside.min(axis=1)[held], rtol=0, atol=1e-10)


@pytest.mark.parametrize("bounds", [(None, 0.1), (0.0, None), [None, None], np.array([[-0.1], [0.1]]), (0.2, 0.2)])
def test_bounds_may_be_none_scalars_or_arrays(bounds: Any) -> None:
    X = four_lognormals(60)
    ends = [(-np.inf, np.inf)[k] if end is None else end for k, end in enumerate(bounds)]
    if isinstance(bounds, np.ndarray):
        bounds = np.repeat(bounds, 4, axis=1)
    assert_array_equal(pk.fit(X, bounds=bounds).lmbda, np.clip(pk.fit(X).lmbda, *ends))


def test_given_lambdas_stay_as_they_are() -> None:
    X = four_lognormals(60)
    fit = pk.fit(X, bounds=(0.0, 0.5), lmbda=[3.0, np.nan, 0.2, np.nan])
    assert_array_equal(fit.lmbda[[0, 2]], [3.0, 0.2])
    assert fit.status[[0, 2]].tolist() == [Status.FIXED] * 2
    assert ((fit.lmbda[[1, 3]] >= 0.0) & (fit.lmbda[[1, 3]] <= 0.5)).all()


def test_constant_and_empty_columns_keep_lambda_1() -> None:
    X = np.column_stack([np.ones(9), np.full(9, np.nan), np.arange(9.0)])
    with pytest.warns(UserWarning, match="not fitted"):
        fit = pk.fit(X, bounds=(2.0, 3.0))
    assert fit.status.tolist() == [Status.CONSTANT, Status.EMPTY, Status.AT_BOUND]
    assert fit.lmbda.tolist() == [1.0, 1.0, 2.0]


def test_bounds_and_ymax_both_hold() -> None:
    x = np.array([1950.0, 1997.0, 2000.0, 2003.0, 2007.0])
    by_ymax = pk.fit(x, "box-cox", ymax=1e6)
    assert_array_equal(kernel_rows(pk.fit(x, "box-cox", ymax=1e6, bounds=(0.0, 100.0))), kernel_rows(by_ymax))
    assert pk.fit(x, "box-cox", ymax=1e6, bounds=(None, 1.5)).lmbda[0] == 1.5
    with pytest.raises(ValueError, match=r"column 0: no lambda within bounds, 3 to 4, satisfies ymax=1e\+06"):
        pk.fit(x, "box-cox", ymax=1e6, bounds=(3.0, 4.0))
    raw = pk.fit(x, "box-cox", bounds=(400.0, 500.0), standardize=False)  # its raw output would overflow
    assert raw.lmbda[0] == 400.0


def test_breast_cancer_within_bounds() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    X = datasets.load_breast_cancer().data
    free, fit = pk.fit(X), pk.fit(X, bounds=(-5.0, 5.0))
    assert free.lmbda.min() < -200.0
    assert_array_equal(fit.lmbda, np.clip(free.lmbda, -5.0, 5.0))
    assert_array_equal(fit.status == Status.AT_BOUND, abs(free.lmbda) > 5.0)
    assert_allclose(fit.transform(X).std(axis=0), 1.0, rtol=1e-9)


def test_bounds_with_a_shift_and_with_family_best() -> None:
    X = four_lognormals(80)
    moved = pk.fit(X - 1.0, "box-cox", shift=1.0, bounds=(0.5, 0.7))
    same(moved[:4], pk.fit(X - 1.0, "box-cox", shift=1.0, lmbda=moved.lmbda), 0.0)
    best = pk.fit(X, "best", bounds=(0.5, 0.7))
    nll = [pk.fit(X, family, bounds=(0.5, 0.7)).nll for family in ("yeo-johnson", "box-cox")]
    assert_array_equal(best.nll, np.min(nll, axis=0))


def test_bounded_fits_ignore_threads_and_order_and_survive_json() -> None:
    X = four_lognormals(100)
    fit = pk.fit(X, bounds=(0.9, 1.1), n_threads=1)
    assert_array_equal(kernel_rows(pk.fit(np.asfortranarray(X), bounds=(0.9, 1.1), n_threads=2)), kernel_rows(fit))
    assert_array_equal(kernel_rows(pk.fit(X[:, ::-1], bounds=(0.9, 1.1))), kernel_rows(fit)[::-1])
    assert_array_equal(kernel_rows(pk.PowerFit.from_json(fit.to_json())), kernel_rows(fit))


def test_no_intervals_nor_tests_at_a_bound() -> None:
    X = four_lognormals(100)
    fit = pk.fit(X, bounds=(pk.fit(X).lmbda + 0.1 * np.array([1.0, -1.0, 1.0, -1.0]), None))
    held = fit.status == Status.AT_BOUND
    assert held.tolist() == [True, False, True, False]
    for method in ("profile", "wald"):
        assert_array_equal(np.isnan(fit.confint(method=method).low), held)
    assert_array_equal(np.isnan(fit.lr_test(1.0).pvalue), held)


@pytest.mark.slow
def test_long_columns_from_power_sums() -> None:
    X = four_lognormals(1_000_001)[:, :2]
    fit = pk.fit(X, bounds=(0.5, None))
    assert set(fit.route) == {"power sums"}
    assert_array_equal(fit.lmbda, [0.5, 0.5])
    same(fit, pk.fit(X, lmbda=0.5), 1e-14)


WRONG = {
    "one number": (2.0, TypeError, r"bounds must be a pair \(low, high\)"),
    "three": ((0.0, 1.0, 2.0), TypeError, "must be a pair"),
    "text": ("02", TypeError, "must be a pair"),
    "texts": (("0", "2"), TypeError, "the lower end of bounds must be a real number"),
    "NaN": ((np.nan, 2.0), ValueError, "must be an interval, low <= high; for column 0, low is nan and high 2"),
    "crossed": ((2.0, [3.0, 1.0, 3.0, 3.0]), ValueError, "for column 1, low is 2 and high 1"),
    "too many": (([0.0, 0.0], 2.0), ValueError, r"one number or one per column \(4\)"),
    "beyond": ((np.inf, np.inf), ValueError, "must be an interval"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_bounds_are_rejected(case: str) -> None:
    bounds, error, match = WRONG[case]
    with pytest.raises(error, match=match):
        pk.fit(four_lognormals(20), bounds=bounds)  # type: ignore[arg-type]


# --- other estimators ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 700])
@pytest.mark.parametrize("estimator", ROBUST)
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_bounded_robust_fits_keep_the_same_values(family: str, estimator: str, n: int) -> None:
    X = four_lognormals(n)
    X[:3] = 1e3
    free = pk.fit(X, family, estimator)
    low, high = around(free.lmbda)
    fit = pk.fit(X, family, estimator, bounds=(low, high))
    assert_array_equal(fit.lmbda, np.clip(free.lmbda, low, high))
    assert (fit.status[:2] == Status.AT_BOUND).all()
    assert_array_equal(kernel_rows(fit)[2:], kernel_rows(free)[2:])
    assert_array_equal(fit.weights(X), free.weights(X))
    for j in range(2):
        kept = X[free.weights(X)[:, j] > 0.0, j]
        plain = pk.fit((kept - free.center[j]) / free.divisor[j], family, lmbda=fit.lmbda[j])
        assert_allclose(fit.loc[j], plain.loc[0], rtol=1e-11)
        assert_allclose(fit.scale[j] / free.scale[j], plain.scale[0] / _sd(kept, family, free, j), rtol=1e-9)
        assert_allclose(fit.nll[j], plain.nll[0] + kept.size * np.log(free.divisor[j]), rtol=1e-11)
        assert fit.n_kept[j] == kept.size
        assert fit.lmbda0[j] == free.lmbda0[j]


def _sd(kept: np.ndarray, family: str, free: pk.PowerFit, j: int) -> float:
    return float(pk.fit((kept - free.center[j]) / free.divisor[j], family, lmbda=free.lmbda[j]).scale[0])


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_carrolls_scale_solves_its_equations_at_the_bound(family: str) -> None:
    X = four_lognormals(101)
    X[:4] *= 20.0
    free = pk.fit(X, family, "carroll")
    fit = pk.fit(X, family, "carroll", bounds=(free.lmbda + 0.1, None))
    assert (fit.status == Status.AT_BOUND).all()
    u = fit.transform(X)
    clipped = np.clip(u, -1.5, 1.5)
    assert_allclose(clipped.sum(axis=0), 0.0, atol=1e-9)
    assert_allclose((clipped * u).sum(axis=0), 101 * 0.8663855974622838, rtol=1e-9)  # P(|Z| < 1.5)


def test_ppcc_at_a_bound_equals_the_fit_of_that_lambda() -> None:
    X = four_lognormals(60)
    free = pk.fit(X, estimator="ppcc")
    fit = pk.fit(X, estimator="ppcc", bounds=(free.lmbda + 0.2, None))
    same(fit, pk.fit(X, lmbda=free.lmbda + 0.2), 1e-13)
    assert (fit.status == Status.AT_BOUND).all()


# --- interfaces ---------------------------------------------------------------------------------------


def test_bounds_with_chunks_and_dask() -> None:
    X = four_lognormals(600)
    expected = pk.fit(X, bounds=([0.5] * 4, 0.9))
    same(fit_chunks([X[:100], X[100:]], bounds=([0.5] * 4, 0.9)), expected, 1e-11)
    da = pytest.importorskip("dask.array")
    from powerkern.dask import fit as dask_fit

    same(dask_fit(da.from_array(X, chunks=(100, 2)), bounds=([0.5] * 4, 0.9)), expected, 1e-11)


@pytest.mark.parametrize("quantum", [None, 2.0**-80])
def test_federated_bounds_equal_those_of_a_pooled_fit(quantum: float | None) -> None:
    X = four_lognormals(600)
    bounds = (0.5, [0.7, 0.7, 0.9, 0.6])
    expected = pk.fit(X, bounds=bounds)
    fit = fit_federated(np.array_split(X, 3), quantum=quantum, bounds=bounds)
    assert_array_equal(fit.status, expected.status)
    assert (fit.status == Status.AT_BOUND).any()
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert_allclose(fit.scale, expected.scale, rtol=1e-9)


def test_federated_bounds_are_checked_when_the_server_is_made() -> None:
    with pytest.raises(ValueError, match="bounds must be an interval"):
        Server(["a"], bounds=(2.0, 1.0))
    with pytest.raises(ProtocolError, match=r"end of bounds must be one number or one per column \(4\)"):
        fit_federated([four_lognormals(200)], bounds=([1.0, 2.0], 3.0))


def test_scikit_learn_takes_bounds() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone

    from powerkern.sklearn import PowerTransformer

    X = four_lognormals(300)
    transformer = clone(PowerTransformer(bounds=(0.5, 0.9)))
    expected = pk.fit(X, bounds=(0.5, 0.9))
    assert_array_equal(transformer.fit(X).lambdas_, expected.lmbda)
    assert_allclose(clone(transformer).partial_fit(X[:99]).partial_fit(X[99:]).lambdas_, expected.lmbda, rtol=1e-11)
    robust = PowerTransformer(bounds=(2.0, None), estimator="robust").fit(X)
    assert (robust.lambdas_ >= 2.0).all()


def test_command_line_takes_bounds(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    X = four_lognormals(50)
    np.save(tmp_path / "x.npy", X)
    for text, bounds in (("0.5,0.9", (0.5, 0.9)), (",0.1", (None, 0.1)), ("0.5,", (0.5, None))):
        assert cli.main(["fit", str(tmp_path / "x.npy"), f"--bounds={text}", "--json"]) == 0
        columns = json.loads(capsys.readouterr().out)["columns"]
        expected = pk.fit(X, bounds=bounds)  # type: ignore[arg-type]
        assert [one["lmbda"] for one in columns] == expected.lmbda.tolist()
        assert [one["status"] for one in columns] == expected.status_text
    assert cli.main(["fit", "x.npy", "--bounds=1"]) == 2
    assert "not two comma-separated numbers" in capsys.readouterr().err


def test_columns_with_ties_are_fitted_to_the_other_values_at_a_bound() -> None:
    others = four_lognormals(40)[:, 0]
    x = np.concatenate([np.full(60, 5.0), others])
    free = pk.fit(x, "box-cox", "robust")
    assert free.status[0] == Status.TIED
    fit = pk.fit(x, "box-cox", "robust", bounds=(free.lmbda[0] + 0.5, None))
    alone = pk.fit(others, "box-cox", "robust", bounds=(free.lmbda[0] + 0.5, None))
    assert fit.status[0] == Status.AT_BOUND
    for name in ("loc", "scale", "nll", "information"):
        assert_allclose(getattr(fit, name), getattr(alone, name), rtol=1e-12)


def test_columns_with_ties_that_keep_a_far_tail_are_fitted_to_the_other_values_at_a_bound() -> None:
    z = np.random.default_rng(1).normal(size=100)
    z[:20] = -12.0
    options = {"family": "box-cox", "estimator": pk.AdaptiveRewML(n_reweight=2, adaptive_cutoff=False, rectify="one")}
    with pytest.warns(UserWarning, match="no value was left out on one side"):
        assert pk.fit(np.append(np.exp(z), np.full(120, 5.0)), **options).status[0] == Status.TAIL_KEPT
    with pytest.warns(UserWarning, match="no value was left out on one side"):
        fit = pk.fit(np.append(np.exp(z), np.full(120, 5.0)), bounds=(1, 2), **options)
    with pytest.warns(UserWarning, match="no value was left out on one side"):
        alone = pk.fit(np.exp(z), bounds=(1, 2), **options)
    for name in ("loc", "scale", "nll", "information"):
        assert_allclose(getattr(fit, name), getattr(alone, name), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("center", [300.0, 900.0, 1e4])
@pytest.mark.parametrize("estimator", ["robust", "rewml-nr", "mtl", "carroll", pk.MTL(prestandardize="none")], ids=str)
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_bounded_fits_whose_scale_overflows_float64_are_standardised(
    family: str, estimator: Any, center: float
) -> None:
    """Kept values must have mean 0 and the standard deviation of the free fit, both computed with 60 digits."""
    x = center + 3.0 * np.random.default_rng(1).gamma(2.0, size=200)
    x = -x if family == "yeo-johnson" and center == 900.0 else x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # lambda is large
        free = pk.fit(x, family, estimator)
        lmbda = free.lmbda[0] / 2.0
        fit = pk.fit(x, family, estimator, bounds=(lmbda, lmbda))
    z, kept = fit.transform(x), free.weights(x) > 0.0
    if estimator == "carroll":
        clipped = np.clip(z, -1.5, 1.5)
        assert abs(clipped.sum()) < 1e-8
        assert (clipped * z).sum() == pytest.approx(200 * 0.8663855974622838, rel=1e-9)
        return
    expected = oracles.standardized(family, lmbda, (x[kept] - free.center[0]) / free.divisor[0])
    assert_allclose(z[kept], np.array(expected) * free.transform(x)[kept].std(), atol=1e-9)
