"""Shifted Box-Cox: every interface with a shift, compared with mpmath and with Box-Cox of the shifted values."""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import shifted_box_cox, shifted_box_cox_lambda

import powerkern as pk
from powerkern import __main__ as cli
from powerkern._estimators.shift import convert_to_data_units
from powerkern.kernels.results import CENTER, DIVISOR, KEPT_HIGH, KEPT_LOW, N_RESULTS, NLL, X_MAX, X_MIN
from powerkern.sketch import Range, extend, finish, fit_chunks, merge, range_of, summarize_chunk

SHIFT = np.array([3.0, 0.0, -2.0, 0.1])
ESTIMATORS = ("mle", "robust", "rewml-nr", "carroll", "mtl", "ppcc")


def columns(n: int, seed: int = 0, shift: np.ndarray = SHIFT) -> np.ndarray:
    """Return columns, (n, k) for `k` shifts, that are lognormal after `shift` is added."""
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(size=(n, shift.size)) * 0.5 + 0.3) - shift


def sums(X: np.ndarray) -> np.ndarray:
    """Return X + SHIFT as float64, for reference fits without a shift."""
    return np.asarray(X, dtype=np.float64) + SHIFT


def same_fit(fit: pk.PowerFit, of_sums: pk.PowerFit, tolerance: float = 0.0) -> None:
    for name in ("lmbda", "loc", "scale", "nll", "information", "n_obs", "n_kept", "lmbda0"):
        np.testing.assert_allclose(getattr(fit, name), getattr(of_sums, name), rtol=tolerance, atol=tolerance)
    assert fit.status.tolist() == of_sums.status.tolist()


# --- against mpmath -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 700])
def test_lambda_is_the_root_of_the_score_at_60_digits(n: int) -> None:
    X = columns(n, seed=n)
    fit = pk.fit(X, "box-cox", shift=SHIFT)
    for j, c in enumerate(SHIFT):
        exact = shifted_box_cox_lambda(X[:, j], c, fit.lmbda[j])
        assert abs(fit.lmbda[j] - float(exact)) < 1e-12


@pytest.mark.parametrize("standardize", [False, True])
def test_transform_is_that_of_the_sum_at_60_digits(standardize: bool) -> None:
    X = columns(50)
    lmbda = [-0.7, 0.0, 0.5, 2.0]
    fit = pk.fit(X, "box-cox", shift=SHIFT, lmbda=lmbda, standardize=standardize)
    Z = fit.transform(X)
    for j, c in enumerate(SHIFT):
        exact = [shifted_box_cox(x, c, lmbda[j]) for x in X[:, j]]
        if standardize:
            mean = sum(exact) / len(exact)
            sd = (sum((y - mean) ** 2 for y in exact) / len(exact)) ** 0.5
            exact = [(y - mean) / sd for y in exact]
        np.testing.assert_allclose(Z[:, j], np.array(exact, dtype=float), rtol=0, atol=1e-12)


def test_the_sum_is_exact_where_value_and_shift_nearly_cancel() -> None:
    x = 1e6 + np.arange(1, 60) * 2.0**-30
    fit = pk.fit(x, "box-cox", shift=-1e6, standardize=False)
    assert abs(fit.lmbda[0] - float(shifted_box_cox_lambda(x, -1e6, fit.lmbda[0]))) < 1e-12
    np.testing.assert_array_equal(fit.inverse_transform(fit.transform(x)), x)


# --- every route against Box-Cox of the sums ----------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n", [40, 600])
def test_every_estimator_fits_the_sums(estimator: str, n: int) -> None:
    X = columns(n)
    X[3, 1] = np.nan
    fit = pk.fit(X, "box-cox", estimator, shift=SHIFT)
    of_sums = pk.fit(sums(X), "box-cox", estimator)
    same_fit(fit, of_sums)
    np.testing.assert_array_equal(fit.transform(X), of_sums.transform(sums(X)))
    np.testing.assert_array_equal(fit.weights(X), of_sums.weights(sums(X)))
    np.testing.assert_array_equal(fit.outliers(X), of_sums.outliers(sums(X)))
    np.testing.assert_allclose(np.array(fit.cutoffs()) + SHIFT, of_sums.cutoffs(), rtol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_shifted_fits_of_any_layout_and_dtype(order: str, dtype: str) -> None:
    X = np.array(10.0 * sums(columns(300)) - SHIFT, dtype=dtype, order=order)
    before = X.copy()
    fit = pk.fit(X, "box-cox", shift=SHIFT)
    same_fit(fit, pk.fit(sums(X), "box-cox"))
    np.testing.assert_array_equal(X, before)
    Z = fit.transform(X)
    back = fit.inverse_transform(Z)
    np.testing.assert_allclose(
        back, X, rtol=3e-5 if dtype == "float32" else 1e-12, atol=1e-5 if dtype == "float32" else 1e-13
    )
    assert Z.dtype == (np.float32 if dtype == "float32" else np.float64)


def test_weights_are_repeated_rows() -> None:
    X, weight = columns(80), np.arange(80) % 4
    fit = pk.fit(X, "box-cox", shift=SHIFT, sample_weight=weight)
    same_fit(fit, pk.fit(sums(X), "box-cox", sample_weight=weight))
    np.testing.assert_array_equal(fit.x_min, X[weight > 0].min(axis=0))
    same_fit(pk.fit(X, "box-cox", "robust", shift=SHIFT, sample_weight=weight),
             pk.fit(np.repeat(X, weight, axis=0), "box-cox", "robust", shift=SHIFT), 1e-5)  # fmt: skip


@pytest.mark.parametrize("order", ["C", "F"])
def test_shifted_fits_of_long_columns(order: str) -> None:
    X = np.asarray(columns(1_000_001)[:, :2], order=order)
    fit = pk.fit(X, "box-cox", shift=SHIFT[:2])
    same_fit(fit, pk.fit(X + SHIFT[:2], "box-cox"), 1e-12)
    assert set(fit.route) == {"power sums"}
    assert (fit.confint().low < fit.lmbda).all()


def test_profile_confint_and_bounded_lambda() -> None:
    X = columns(300)
    fit, of_sums = pk.fit(X, "box-cox", shift=SHIFT), pk.fit(sums(X), "box-cox")
    points = [-1.0, 0.0, 0.5]
    for own in (fit, pickle.loads(pickle.dumps(fit))):
        data = () if own is fit else (X,)
        np.testing.assert_array_equal(own.profile(points, *data), of_sums.profile(points))
        np.testing.assert_array_equal(own.confint(*data, level=0.9), of_sums.confint(level=0.9))
    raw = pk.fit(X, "box-cox", shift=SHIFT, standardize=False).transform(X)
    ymax = 0.98 * float(np.abs(raw).max())
    bounded = pk.fit(X, "box-cox", shift=SHIFT, ymax=ymax, standardize=False)
    same_fit(bounded, pk.fit(sums(X), "box-cox", ymax=ymax, standardize=False))
    assert (bounded.status == pk.Status.AT_BOUND).any()
    assert np.abs(bounded.transform(X)).max() <= ymax


# --- a shift of 0 is none -----------------------------------------------------------------------------


def bits(fit: pk.PowerFit) -> str:
    return fit.to_json()


@pytest.mark.parametrize(
    "route",
    [
        *(functools.partial(pk.fit, family="box-cox", estimator=name) for name in ESTIMATORS),
        functools.partial(pk.fit),
        functools.partial(pk.fit, family="best"),
        functools.partial(pk.fit, family="box-cox", sample_weight=np.arange(1.0, 301.0)),
        lambda X, **shift: fit_chunks([X[:100], X[100:]], "box-cox", **shift),
        lambda X, **shift: finish(extend(extend(None, X[:50], "box-cox", **shift), X[50:])),
    ],
)
def test_a_shift_of_0_changes_no_bit(route: Callable[..., pk.PowerFit]) -> None:
    X = columns(300) + SHIFT
    assert bits(route(X, shift=0.0)) == bits(route(X)) == bits(route(X, shift=np.zeros(4)))


def test_a_column_with_shift_0_beside_shifted_ones_changes_no_bit() -> None:
    X = columns(300)
    fit, alone = pk.fit(X, "box-cox", shift=SHIFT), pk.fit(X[:, 1], "box-cox")
    assert fit.lmbda[1] == alone.lmbda[0]
    np.testing.assert_array_equal(fit.transform(X)[:, 1], alone.transform(X[:, 1]))


# --- what a fit says of the data ----------------------------------------------------------------------


def test_results_are_in_the_units_of_the_data() -> None:
    X = columns(200)
    X[:, 2] = 0.1  # constant, outside the domain of shift -2
    X[:, 2] += 2.0
    with pytest.warns(UserWarning, match="fewer than two distinct"):
        fit = pk.fit(X, "box-cox", shift=SHIFT)
    np.testing.assert_array_equal(fit.shift, SHIFT)
    np.testing.assert_array_equal(fit.center, -SHIFT)
    np.testing.assert_array_equal(fit.x_min, X.min(axis=0))
    np.testing.assert_array_equal(fit.x_max, X.max(axis=0))
    np.testing.assert_array_equal(fit.transform(X)[:, 2], X[:, 2])
    np.testing.assert_array_equal(pk.fit(columns(20)).shift, np.zeros(4))
    clipped = fit.inverse_transform(np.full((2, 4), [[-1e9], [1e9]]), out_of_range="clip")
    assert (clipped[0, [0, 1, 3]] > -SHIFT[[0, 1, 3]]).all()


def test_extremes_are_values_of_the_data_where_the_sum_is_rounded() -> None:
    x = np.array([1e-20, 1.0, 2.0, 4.0])
    assert pk.fit(x, "box-cox", shift=1.0).x_min[0] == 1e-20


def test_cutoffs_end_where_the_domain_does() -> None:
    x = np.append(np.linspace(0.5, 1.5, 9), 9.0) - SHIFT[:, np.newaxis]
    np.testing.assert_array_equal(pk.fit(x.T, "box-cox", shift=SHIFT, lmbda=1.0).cutoffs().low, -SHIFT)


@pytest.mark.parametrize("c", [3.0, -1e6, 1e-3, 1.0])
def test_the_interval_of_values_kept_is_exact_to_the_last_bit(c: float) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=200), rng.normal(size=200) * 1e-12, -c + rng.lognormal(size=200)])
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])
    for low, high in rng.choice(x + c, size=(100, 2)):
        row = np.zeros((1, N_RESULTS))
        row[0, [KEPT_LOW, KEPT_HIGH]] = low, high
        convert_to_data_units(row, np.array([c]))
        kept = (x >= row[0, KEPT_LOW]) & (x <= row[0, KEPT_HIGH])
        np.testing.assert_array_equal(kept, (x + c >= low) & (x + c <= high))


@pytest.mark.parametrize("estimator", ["mle", "robust"])
def test_json_restores_every_bit(estimator: str) -> None:
    X = columns(60)
    fit = pk.fit(X, "box-cox", estimator, shift=SHIFT)
    again = pk.PowerFit.from_json(fit.to_json())
    assert again.to_json() == fit.to_json()
    np.testing.assert_array_equal(again.shift, SHIFT)
    np.testing.assert_array_equal(again.transform(X), fit.transform(X))


@pytest.mark.parametrize(("field", "value"), [("center", 5.0), ("divisor", 2.0), ("ref", -1.0), ("x_min", -3.0)])
def test_json_that_no_shifted_fit_has_written(field: str, value: float) -> None:
    record = json.loads(pk.fit(columns(60), "box-cox", shift=SHIFT).to_json())
    record["columns"][field][0] = value
    with pytest.raises(ValueError, match="damaged"):
        pk.PowerFit.from_json(json.dumps(record), check=False)


# --- complaints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["yeo-johnson", "best"])
def test_other_families_have_no_shift(family: str) -> None:
    with pytest.raises(ValueError, match=rf"shift works only with family='box-cox', not with family='{family}'"):
        pk.fit(columns(20), family, shift=1.0)


@pytest.mark.parametrize(
    ("shift", "error", "complaint"),
    [
        (np.nan, ValueError, "shift must be finite, got nan"),
        ([3.0, 0.0, -np.inf, 1.0], ValueError, "shift must be finite, got -inf"),
        ([1.0, 2.0], ValueError, r"one number or one per column \(4\), got shape \(2,\)"),
        (np.ones((4, 1)), ValueError, "got shape"),
        ("3", TypeError, "shift must be a real number"),
        (None, TypeError, "shift must be a real number"),
    ],
)
def test_invalid_shifts_are_rejected(shift: Any, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        pk.fit(columns(20), "box-cox", shift=shift)


def test_values_outside_the_domain_are_named() -> None:
    X = columns(20)
    fit = pk.fit(X, "box-cox", shift=SHIFT, column_names=list("abcd"))
    X[17, 0] = -3.2
    said = r"column 0 \('a'\), row 17: the value is -3.2 and not above -shift = -3.0, .*fit with a larger shift"
    target = X.copy()
    for job in (
        lambda: pk.fit(X, "box-cox", shift=SHIFT, column_names=list("abcd")),
        lambda: pk.fit(X, "box-cox", "robust", shift=SHIFT, column_names=list("abcd")),
        lambda: fit.transform(X),
        lambda: fit.transform(target, out=target),
        lambda: fit.profile([0.0], X),
        lambda: range_of(X, "box-cox", shift=SHIFT, column_names=list("abcd")),
    ):
        with pytest.raises(ValueError, match=said):
            job()
    np.testing.assert_array_equal(target, X)
    X[17, 0] = -3.0
    with pytest.raises(ValueError, match=r"row 17: the value is -3\.0 and not above"):
        fit.transform(X)
    X[17, 0] = np.nextafter(-3.0, 0.0)
    assert np.isfinite(fit.transform(X)).all()
    with pytest.raises(
        ValueError, match=r"column 1, row 1: the value is 1e\+308, which plus shift = 1.7e\+308 overflows"
    ):
        pk.fit([[1.0, 1.0], [2.0, 1e308]], "box-cox", shift=[0.0, 1.7e308])


# --- chunks, Dask, scikit-learn, the command line -----------------------------------------------------


def test_chunks_streams_and_their_bytes() -> None:
    X = columns(500)
    whole = pk.fit(X, "box-cox", shift=SHIFT)
    same_fit(fit_chunks([X[:200], X[200:]], "box-cox", shift=SHIFT), whole, 1e-10)
    total = extend(extend(None, X[:100], "box-cox", shift=SHIFT), X[100:])
    same_fit(finish(total), whole, 1e-9)
    assert type(total).from_bytes(total.to_bytes()) == total
    np.testing.assert_array_equal(type(total).from_bytes(total.to_bytes()).grid.shift, SHIFT)
    found = range_of(X, "box-cox", shift=SHIFT)
    assert Range.from_bytes(found.to_bytes()) == found
    np.testing.assert_allclose(found.x_min, X.min(axis=0), rtol=0, atol=1e-15)
    fit = finish(summarize_chunk(X, found.grid()))
    same_fit(fit, whole, 1e-10)
    np.testing.assert_allclose(fit.transform(X), whole.transform(X), rtol=0, atol=1e-9)
    assert pk.PowerFit.from_json(fit.to_json()).to_json() == fit.to_json()
    np.testing.assert_allclose(fit.confint(), whole.confint(), atol=1e-8)


def test_summaries_of_other_shifts_do_not_merge() -> None:
    X = columns(50)
    a, b = range_of(X, "box-cox", shift=SHIFT), range_of(X, "box-cox", shift=[4.0, *SHIFT[1:]])
    with pytest.raises(ValueError, match=r"column 0 has shift 3.0 in one chunk and 4.0 in another; pass the same"):
        merge(a, b)
    with pytest.raises(ValueError, match="pass the same shift for all"):
        merge(summarize_chunk(X, a.grid()), summarize_chunk(X, b.grid()))
    assert a != b


def test_shifted_fits_with_dask() -> None:
    da = pytest.importorskip("dask.array")
    from powerkern.dask import fit, transform

    X = columns(500)
    lazy = da.from_array(X, chunks=(200, 3))
    fitted, whole = fit(lazy, "box-cox", shift=SHIFT), pk.fit(X, "box-cox", shift=SHIFT)
    same_fit(fitted, whole, 1e-10)
    np.testing.assert_allclose(transform(lazy, fitted).compute(), whole.transform(X), rtol=0, atol=1e-9)
    same_fit(fit(lazy, "box-cox", shift=3.5), pk.fit(X, "box-cox", shift=3.5), 1e-10)
    with pytest.raises(ValueError, match="one per column"):
        fit(lazy, "box-cox", shift=[1.0])


def test_shifted_fits_in_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from powerkern.sklearn import PowerTransformer

    X = columns(200)
    whole = pk.fit(X, "box-cox", shift=SHIFT)
    transformer = PowerTransformer("box-cox", shift=SHIFT)
    assert transformer.get_params()["shift"] is SHIFT
    np.testing.assert_array_equal(clone(transformer).fit(X).transform(X), whole.transform(X))
    np.testing.assert_allclose(transformer.fit(X).inverse_transform(transformer.transform(X)), X, atol=1e-12)
    pipeline = make_pipeline(PowerTransformer("box-cox", shift=3.0), StandardScaler())
    assert np.isfinite(pipeline.fit_transform(X[:, [0, 1, 3]])).all()
    stream = PowerTransformer("box-cox", shift=SHIFT).partial_fit(X[:90]).partial_fit(X[90:])
    np.testing.assert_allclose(stream.lambdas_, whole.lmbda, atol=1e-9)
    with pytest.raises(ValueError, match="shift differs from the shift of the rows seen so far"):
        stream.set_params(shift=3.0).partial_fit(X)
    raw = PowerTransformer("box-cox", standardize=False, shift=1.0)
    raw.lambdas_ = [0.0, 2.0]
    np.testing.assert_allclose(raw.transform([[0.5, 2.0]]), [[np.log(1.5), 4.0]], atol=1e-15)
    assert not transformer.__sklearn_tags__().input_tags.positive_only
    with pytest.raises(ValueError, match="shift works only with method='box-cox'"):
        PowerTransformer(shift=1.0).fit(X)


def test_data_frames_keep_their_names() -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(columns(50), columns=list("abcd"))
    fit = pk.fit(X, "box-cox", shift=SHIFT)
    assert list(fit.transform(X).columns) == list("abcd")
    np.testing.assert_allclose(fit.inverse_transform(fit.transform(X)), X, atol=1e-12)


def test_command_line_round_trip(tmp_path: Any, capsys: Any) -> None:
    X = columns(40)[:, :2] - [0.0, 0.5]
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b", comments="", fmt="%.17g")
    data, fit, z, back = (str(tmp_path / name) for name in ("x.csv", "fit.json", "z.csv", "back.csv"))
    assert cli.main(["fit", data, "--family", "box-cox", "--shift", "3,0.5", "-o", fit]) == 0
    head, _, first, _ = capsys.readouterr().out.splitlines()[:4]
    assert head.split()[:3] == ["column", "family", "shift"]
    assert first.split()[:3] == ["a", "box-cox", "3"]
    assert cli.main(["transform", data, "--fit", fit, "-o", z]) == 0
    assert cli.main(["inverse", z, "--fit", fit, "-o", back]) == 0
    np.testing.assert_allclose(np.loadtxt(back, delimiter=",", skiprows=1), X, atol=1e-12)
    assert cli.main(["fit", data, "--family", "box-cox", "--shift", "0.5"]) == 2
    assert "x.csv, column 'a', line" in (said := capsys.readouterr().err)
    assert "not above -shift = -0.5" in said
    assert cli.main(["fit", data, "--family", "box-cox", "--shift", "three"]) == 2


@pytest.mark.parametrize("shift, divisor", [(0.0, 4.0), (3.0, None), (-2.0, 0.5), (0.0, None)])
def test_results_are_converted_from_shifted_and_scaled_columns(shift: float, divisor: float | None) -> None:
    before = np.arange(1.0, 2.0 * N_RESULTS + 1.0).reshape(2, N_RESULTS)
    before[:, KEPT_LOW], before[:, KEPT_HIGH] = [1.25, np.nan], [7.0, np.nan]
    results = before.copy()
    convert_to_data_units(results, np.full(2, shift), None if divisor is None else np.full(2, divisor))
    unit, expected = divisor or 1.0, before.copy()
    expected[:, CENTER] = unit * before[:, CENTER] - shift
    expected[:, DIVISOR] *= unit
    expected[:, NLL] += np.log(unit)
    for end in (X_MIN, X_MAX, KEPT_LOW, KEPT_HIGH):
        expected[:, end] = unit * before[:, end] - shift
    np.testing.assert_allclose(results, expected, rtol=1e-15)
