"""fit, transform, inverse_transform and PowerFit: properties of the likelihood, and the documented guarantees."""

from __future__ import annotations

import copy
import inspect
import itertools
import json
import pickle
import warnings

import numpy as np
import oracles
import pytest
from fits import kernel_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import powerkern as pk
from powerkern import PowerFit, Status
from powerkern._estimators import limits
from powerkern._fit import fit as fitting
from powerkern._jit import JIT_DISABLED
from powerkern._status import Route

EPS = np.finfo(np.float64).eps
FAMILIES = ("box-cox", "yeo-johnson")
both_families = pytest.mark.parametrize("family", FAMILIES)

seeds = st.integers(0, 2**32 - 1)
#: Lengths of short columns, which are fitted in two passes, and of columns fitted in one pass.
sizes = st.integers(5, 60) if JIT_DISABLED else st.one_of(st.integers(5, 60), st.integers(250, 600))
spreads = st.floats(0.05, 3.0)


def skewed_column(family, seed, n, spread):
    """Return n lognormal values; for Yeo-Johnson, a shift of 0, 0.3 or 1, drawn at random, is subtracted from them.

    `spread` is the standard deviation of the logs.
    """
    rng = np.random.default_rng(seed)
    x = np.exp(spread * rng.normal(size=n))
    return x if family == "box-cox" else x - rng.choice([0.0, 1.0, 0.3])


def columns_of_all_spreads(family="yeo-johnson", n=60, p=19, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) * rng.uniform(0.2, 3.0, size=p)
    return np.exp(x) if family == "box-cox" else np.sinh(x)


def lambdas_agree(a, b, tolerance=1e-12):
    """Return whether lambdas agree within `tolerance`, absolutely if |lambda| < 1 and otherwise relatively."""
    return bool((np.abs(a - b) <= tolerance * np.maximum(1.0, np.abs(b))).all())


# --- laws of the likelihood ---------------------------------------------------------------------------


@given(seeds, sizes, spreads, st.integers(-900, 900), st.floats(1e-3, 1e3))
def test_box_cox_does_not_depend_on_the_unit(seed, n, spread, exponent, factor):
    x = skewed_column("box-cox", seed, n, spread)
    lmbda = pk.fit(x, "box-cox").lmbda
    assert lambdas_agree(pk.fit(2.0**exponent * x, "box-cox").lmbda, lmbda)
    # another unit rounds the data: half an ulp of a value is worth eps/spread of lambda
    assert lambdas_agree(pk.fit(factor * x, "box-cox").lmbda, lmbda, 1e-12 + 10.0 * EPS / spread**2)


@given(seeds, sizes, spreads)
def test_box_cox_of_reciprocals_has_the_opposite_lambda(seed, n, spread):
    """The optimum for 1/x is -lambda."""
    x = skewed_column("box-cox", seed, n, spread)
    assert lambdas_agree(pk.fit(1.0 / x, "box-cox").lmbda, -pk.fit(x, "box-cox").lmbda, 1e-12 + 10.0 * EPS / spread**2)


@given(seeds, sizes, spreads)
def test_yeo_johnson_of_mirrored_data_is_mirrored(seed, n, spread):
    x = skewed_column("yeo-johnson", seed, n, spread)
    fit, mirrored = pk.fit(x), pk.fit(-x)
    assert lambdas_agree(mirrored.lmbda, 2.0 - fit.lmbda)
    np.testing.assert_allclose(mirrored.transform(-x), -fit.transform(x), rtol=1e-9, atol=1e-11)


@both_families
@given(seed=seeds, n=sizes, spread=spreads)
def test_order_of_rows_does_not_matter(family, seed, n, spread):
    x = skewed_column(family, seed, n, spread)
    shuffled = np.random.default_rng(seed).permutation(x)
    assert lambdas_agree(pk.fit(shuffled, family).lmbda, pk.fit(x, family).lmbda)


@both_families
@given(seed=seeds, n=st.integers(5, 60), spread=spreads)
def test_integer_weights_repeat_rows(family, seed, n, spread):
    x = skewed_column(family, seed, n, spread)
    weight = np.random.default_rng(seed).integers(0, 4, size=n)
    weight[:2] = 1, 3
    weighted, repeated = pk.fit(x, family, sample_weight=weight), pk.fit(np.repeat(x, weight), family)
    assert lambdas_agree(weighted.lmbda, repeated.lmbda)
    assert weighted.n_obs == weight.sum() == repeated.n_obs
    np.testing.assert_allclose(weighted.nll, repeated.nll, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(weighted.transform(x), repeated.transform(x), rtol=1e-9, atol=1e-11)


@both_families
def test_weights_that_count_thousands(family):
    x = np.array([0.5, 1.0, 3.0, 9.0])
    weight = np.array([3000, 1, 0, 70_000])
    assert lambdas_agree(pk.fit(x, family, sample_weight=weight).lmbda, pk.fit(np.repeat(x, weight), family).lmbda)


@given(seeds, st.floats(1e-3, 1e3))
def test_only_ratios_of_weights_matter(seed, factor):
    x = columns_of_all_spreads(seed=seed % 100, p=3)
    weight = np.random.default_rng(seed).exponential(size=len(x))
    fit, scaled = (pk.fit(x, sample_weight=w) for w in (weight, factor * weight))
    assert lambdas_agree(scaled.lmbda, fit.lmbda)
    np.testing.assert_allclose(scaled.scale, fit.scale, rtol=1e-11)


@both_families
@given(seed=seeds, n=sizes, spread=spreads)
def test_missing_rows_are_dropped_rows(family, seed, n, spread):
    x = skewed_column(family, seed, n, spread)
    rng = np.random.default_rng(seed)
    with_gaps = np.insert(x, rng.integers(0, n + 1, size=n // 2), np.nan)
    fit, gaps = pk.fit(x, family), pk.fit(with_gaps, family)
    z = gaps.transform(with_gaps)
    np.testing.assert_array_equal(np.isnan(z), np.isnan(with_gaps))
    if gaps.route == fit.route == [Route.TWO_PASS.label]:
        np.testing.assert_array_equal(kernel_rows(gaps), kernel_rows(fit))
        np.testing.assert_array_equal(z[~np.isnan(z)], fit.transform(x))
    assert lambdas_agree(gaps.lmbda, fit.lmbda)  # with missing rows the algorithm or the order of summation may differ
    np.testing.assert_allclose(gaps.nll, fit.nll, rtol=1e-11)
    np.testing.assert_allclose(z[~np.isnan(z)], fit.transform(x), rtol=1e-10, atol=1e-10)


@both_families
@given(seed=seeds, n=sizes, spread=spreads, standardize=st.booleans())
def test_transforms_increase(family, seed, n, spread, standardize):
    x = np.sort(skewed_column(family, seed, n, spread))
    assert (np.diff(pk.fit(x, family, standardize=standardize).transform(x)) >= 0.0).all()


@both_families
@given(seed=seeds, n=sizes, spread=spreads, standardize=st.booleans())
def test_round_trips_are_accurate_to_a_few_ulps(family, seed, n, spread, standardize):
    """The error of a round trip is a few ulps of x plus a few ulps of z times dx/dz = scale/psi'(x)."""
    x = skewed_column(family, seed, n, spread)
    fit = pk.fit(x, family, standardize=standardize)
    z = fit.transform(x)
    if family == "box-cox":
        slope = x ** (fit.lmbda - 1.0)
    else:
        slope = np.where(x >= 0.0, (1.0 + abs(x)) ** (fit.lmbda - 1.0), (1.0 + abs(x)) ** (1.0 - fit.lmbda))
    scale = fit.scale if standardize else 1.0
    rounding = (1.0 + abs(x)) + (abs(z) + abs(z).max()) * scale / slope
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an end of the data may be rounded to the end of the range
        error = abs(fit.inverse_transform(z) - x)
    assert (error <= 20.0 * EPS * rounding * (1.0 + abs(fit.lmbda))).all()


@pytest.mark.slow
@both_families
@given(seed=seeds, n=sizes)
def test_float32_is_close_to_float64(family, seed, n):
    """float32 data are fitted as their float64 values; only the output is rounded, to within 0.53 ulp."""
    x = skewed_column(family, seed, n, 1.0).astype(np.float32)
    fit, exact = pk.fit(x, family), pk.fit(x.astype(np.float64), family)
    np.testing.assert_array_equal(kernel_rows(fit), kernel_rows(exact))
    z = fit.transform(x)
    assert z.dtype == np.float32
    wanted = exact.transform(x.astype(np.float64))
    ulp = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
    assert (np.abs(z - wanted) <= 0.53 * ulp).all()
    assert fit.inverse_transform(z, out_of_range="clip").dtype == np.float32


@pytest.mark.slow
@settings(max_examples=20)
@given(seed=seeds, n=st.integers(5, 30), spread=spreads)
def test_standardised_output_has_mean_0_and_sd_1_and_is_accurate(seed, n, spread):
    for family in FAMILIES:
        x = skewed_column(family, seed, n, spread)
        fit = pk.fit(x, family)
        z = fit.transform(x)
        np.testing.assert_allclose(z, oracles.standardized(family, fit.lmbda[0], x), rtol=1e-12, atol=1e-12)
        assert abs(z.mean()) <= 1e-12
        assert z.std() == pytest.approx(1.0, rel=1e-12)


# --- layouts ------------------------------------------------------------------------------------------

LAYOUTS = {
    "F": np.asfortranarray,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "inside another": lambda x: np.pad(x, ((1, 2), (3, 4)))[1:-2, 3:-4],
    "big-endian": lambda x: x.astype(">f8"),
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "list": lambda x: x.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@both_families
def test_layouts_give_the_same_bits(family, layout):
    for n, p in ((60, 19), (300, 40), (2, 9)):
        x = columns_of_all_spreads(family, n, p)
        view = LAYOUTS[layout](x)
        fit, other = pk.fit(x, family), pk.fit(view, family)
        np.testing.assert_array_equal(kernel_rows(other), kernel_rows(fit))
        z = fit.transform(x)
        np.testing.assert_array_equal(fit.transform(view), z)
        np.testing.assert_array_equal(fit.inverse_transform(LAYOUTS[layout](z)), fit.inverse_transform(z))


@pytest.mark.parametrize("dtype", ["f4", ">f4", "f2", "i4", ">i2", "u1", "i8", "longdouble"])
def test_narrow_types_are_fitted_as_their_numbers(dtype):
    x = np.round(columns_of_all_spreads(p=9) * 10.0).clip(0, 100).astype(dtype)
    fit, exact = pk.fit(x), pk.fit(x.astype(np.float64))
    np.testing.assert_array_equal(kernel_rows(fit), kernel_rows(exact))
    z = fit.transform(x)
    assert z.dtype == (np.float32 if dtype in ("f4", ">f4") else np.float64)
    np.testing.assert_array_equal(z, exact.transform(x.astype(np.float64)).astype(z.dtype))


@both_families
def test_order_of_columns_only_orders_the_results(family):
    x = columns_of_all_spreads(family, p=43)
    order = np.random.default_rng(1).permutation(43)
    fit, permuted = pk.fit(x, family), pk.fit(x[:, order], family)
    np.testing.assert_array_equal(kernel_rows(permuted), kernel_rows(fit)[order])
    np.testing.assert_array_equal(permuted.transform(x[:, order]), fit.transform(x)[:, order])
    for j in (0, 11, 42):
        np.testing.assert_array_equal(kernel_rows(pk.fit(x[:, j], family)), kernel_rows(fit)[[j]])


def test_many_rows_are_transformed_in_blocks():
    """Transforming five rows alone gives the same bits as transforming all rows, for row counts near the block size."""
    for n in (8191, 8192, 8193, 20_000):
        x = np.random.default_rng(n).normal(size=(n, 3))
        fit = pk.fit(x)
        z = fit.transform(x)
        for start in (0, n - 5):
            np.testing.assert_array_equal(fit.transform(x[start : start + 5]), z[start : start + 5])
        np.testing.assert_allclose(fit.inverse_transform(z), x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_output_has_the_order_of_the_input(order):
    x = np.array(columns_of_all_spreads(), order=order)
    fit = pk.fit(x)
    for view in (x, x[::2], x[::-1]):
        z = fit.transform(view)
        assert (z.flags.f_contiguous, z.flags.c_contiguous) == (order == "F", order == "C")


def test_input_is_not_changed():
    x = columns_of_all_spreads()
    before = x.copy()
    fit = pk.fit(x, sample_weight=np.ones(len(x)))
    fit.transform(x)
    fit.profile([0.0, 1.0])
    fit.confint()
    fit.inverse_transform(x, out_of_range="clip")
    np.testing.assert_array_equal(x, before)


# --- writing to out= ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_output_arrays_hold_the_bits_of_new_arrays(dtype, order):
    x = columns_of_all_spreads().astype(dtype, order=order)
    fit = pk.fit(x)
    z = fit.transform(x)
    out = np.full_like(x, np.nan)
    assert fit.transform(x, out=out) is out
    np.testing.assert_array_equal(out, z)
    mine = x.copy(order="K")
    assert fit.transform(mine, out=mine) is mine
    np.testing.assert_array_equal(mine, z)
    back = fit.inverse_transform(z)
    assert fit.inverse_transform(mine, out=mine) is mine
    np.testing.assert_array_equal(mine, back)
    strided = np.zeros((2 * len(x), x.shape[1]), dtype)[::2]
    np.testing.assert_array_equal(fit.transform(x, out=strided), z)


def test_vectors_are_transformed_in_place():
    x = columns_of_all_spreads(p=1)[:, 0]
    fit = pk.fit(x)
    z = fit.transform(x)
    assert z.shape == x.shape
    assert fit.transform(x, out=x) is x
    np.testing.assert_array_equal(x, z)


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.inf])
def test_a_refused_transform_in_place_leaves_everything(bad):
    x = columns_of_all_spreads("box-cox", n=9000, p=3)
    fit = pk.fit(x, "box-cox")
    good, x[8999, 2] = x[8999, 2], bad
    before = x.copy()
    with pytest.raises(ValueError, match="column 2, row 8999"):
        fit.transform(x, out=x)
    np.testing.assert_array_equal(x, before)
    # the fit still has its data
    x[8999, 2] = good
    assert np.isfinite(fit.profile(1.0)).all()


def test_a_refused_inverse_in_place_leaves_everything():
    x = np.random.default_rng(0).lognormal(sigma=0.3, size=(9000, 2)) ** -2.0
    fit = pk.fit(x, "box-cox", lmbda=-0.5)
    z = fit.transform(x)
    z[8999, 1] = 1e6
    before = z.copy()
    with pytest.raises(ValueError, match="column 1"):
        fit.inverse_transform(z, out=z, out_of_range="raise")
    np.testing.assert_array_equal(z, before)


# --- what a fit holds ---------------------------------------------------------------------------------


def test_attributes_have_one_entry_a_column():
    x = columns_of_all_spreads(p=5)
    fit = pk.fit(x, column_names=list("abcde"))
    assert fit.n_features == 5
    assert fit.column_names == list("abcde")
    assert (fit.family, fit.estimator, fit.standardize) == ("yeo-johnson", pk.ML(), True)
    for name in ("lmbda", "loc", "scale", "log_factor", "nll", "information", "n_obs", "n_iter", "x_min", "x_max"):
        values = getattr(fit, name)
        assert values.shape == (5,), name
        assert np.isfinite(values).all(), name
    assert fit.n_iter.dtype == fit.status.dtype == np.int64
    assert (fit.n_iter > 0).all()
    assert (fit.n_obs == 60).all()
    np.testing.assert_array_equal(fit.x_min, x.min(axis=0))
    np.testing.assert_array_equal(fit.x_max, x.max(axis=0))
    assert fit.status_text == ["optimum found and certified"] * 5


@both_families
def test_attributes_are_those_of_scipy(family):
    x = columns_of_all_spreads(family, p=3)
    fit = pk.fit(x, family)
    transform, llf = (
        (stats.boxcox, stats.boxcox_llf) if family == "box-cox" else (stats.yeojohnson, stats.yeojohnson_llf)
    )
    for j, c in enumerate(x.T):
        raw = transform(c, fit.lmbda[j])
        assert fit.loc[j] == pytest.approx(raw.mean(), rel=1e-11)
        assert fit.scale[j] == pytest.approx(raw.std(), rel=1e-11)
        assert fit.nll[j] == pytest.approx(-llf(fit.lmbda[j], c), rel=1e-11)
        raw_fit = pk.fit(c, family, lmbda=fit.lmbda[j], standardize=False)
        np.testing.assert_allclose(raw_fit.transform(c), raw, rtol=1e-12, atol=1e-14)
        h = 1e-3
        curvature = (llf(fit.lmbda[j] - h, c) - 2.0 * llf(fit.lmbda[j], c) + llf(fit.lmbda[j] + h, c)) / -(h**2)
        assert fit.information[j] == pytest.approx(curvature, rel=1e-3)


def test_attributes_cannot_be_assigned_by_accident():
    fit = pk.fit(columns_of_all_spreads(p=2))
    for name in ("lmbda", "loc", "scale", "x_min"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(fit, name)[0] = 1.0


def test_repr_counts_the_fitted_columns():
    with pytest.warns(UserWarning, match="column 0"):
        fit = pk.fit(np.column_stack([np.ones(5), np.arange(5.0)]))
    assert repr(fit).startswith("PowerFit(family='yeo-johnson', estimator=ML(), 1 of 2 columns fitted)\n")


def test_vectors_and_one_column_matrices_give_one_fit():
    x = columns_of_all_spreads(p=1)
    fit, vector = pk.fit(x), pk.fit(x[:, 0])
    np.testing.assert_array_equal(kernel_rows(vector), kernel_rows(fit))
    assert vector.lmbda.shape == (1,)
    assert vector.transform(x[:, 0]).shape == (60,)
    assert vector.transform(x).shape == (60, 1)
    assert fit.inverse_transform(fit.transform(x[:, 0])).shape == (60,)


def test_every_public_name_is_documented():
    members = inspect.getmembers(PowerFit, inspect.isfunction)
    methods = [function for name, function in members if not name.startswith("_")]
    for function in [fitting.fit, *methods]:
        assert inspect.getdoc(function), function
    assert {"transform", "inverse_transform", "profile", "confint", "to_json"} <= {f.__name__ for f in methods}


# --- JSON, pickle, copies -----------------------------------------------------------------------------


def hard_fit(**options):
    """Return a matrix and its Box-Cox fit. Results include NaN, large factors, and huge and negative numbers."""
    x = np.column_stack(
        [[0.1, 0.1, 0.1, 0.101], [3.0, 5.0, 7.0, 1.0], [2.0] * 4, [np.nan] * 4, [1e-300, 1.0, 1e300, 2.0]]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x, pk.fit(x, "box-cox", **options)


def assert_same(a, b):
    for name in ("family", "estimator", "standardize", "column_names", "n_features"):
        assert getattr(a, name) == getattr(b, name)
    assert kernel_rows(a).tobytes() == kernel_rows(b).tobytes()


@pytest.mark.parametrize("options", [{}, {"standardize": False}, {"column_names": ["a", "b", 'q"uote', "é", "5"]}])
def test_json_round_trip_is_bit_for_bit(options):
    x, fit = hard_fit(**options)
    text = fit.to_json()
    again = PowerFit.from_json(text)
    assert_same(again, fit)
    assert again.to_json() == text
    np.testing.assert_array_equal(again.transform(x), fit.transform(x))
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.slow
@given(seeds)
def test_json_round_trip_of_any_fit(seed):
    fit = pk.fit(np.random.default_rng(seed).normal(size=(7, 2)) * 10.0 ** (seed % 300 - 150))
    assert_same(PowerFit.from_json(fit.to_json()), fit)


def record():
    return json.loads(pk.fit(columns_of_all_spreads(p=3), column_names=list("abc")).to_json())


@pytest.mark.parametrize("key", ["family", "estimator", "standardize", "columns", "column_names", "vector", "families"])
def test_json_without_a_key_is_refused(key):
    damaged = record()
    del damaged[key]
    with pytest.raises(ValueError, match="damaged"):
        PowerFit.from_json(json.dumps(damaged), check=False)


@pytest.mark.parametrize("key", ["lmbda", "status", "x_max", "intercept"])
@pytest.mark.parametrize("damage", ["missing", "short", "text", "a number", "nested"])
def test_json_with_a_damaged_column_is_refused(key, damage):
    damaged = record()
    values = damaged["columns"].pop(key)
    replacements = {"short": values[:2], "text": ["x"] * 3, "a number": 1.0, "nested": [values]}
    if damage != "missing":
        damaged["columns"][key] = replacements[damage]
    with pytest.raises(ValueError, match="damaged"):
        PowerFit.from_json(json.dumps(damaged), check=False)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"format": "other"}, "not a fit: its format is 'other', not 'powerkern.PowerFit'"),
        ({"version": 99}, "version 99"),
        ({"version": None}, "version None"),
        ({"version": "1"}, "version '1'"),
        ({"family": "logit"}, "damaged"),
        ({"family": ["box-cox"]}, "damaged"),
        ({"column_names": ["a"]}, "damaged"),
        ({"columns": []}, "damaged"),
        ({"columns": None}, "damaged"),
    ],
)
def test_json_of_something_else_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        PowerFit.from_json(json.dumps({**record(), **changes}), check=False)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "3", '"text"', "{}", "lmbda\n1.0"])
def test_text_that_is_not_a_fit_is_refused(text):
    with pytest.raises(ValueError, match="not a fit"):
        PowerFit.from_json(text)


@pytest.mark.parametrize("clone", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy, copy.deepcopy])
def test_pickles_and_copies_are_bit_identical(clone):
    x, fit = hard_fit(column_names=list("abcde"))
    again = clone(fit)
    assert_same(again, fit)
    np.testing.assert_array_equal(again.transform(x), fit.transform(x))


def test_pickles_are_small():
    assert len(pickle.dumps(pk.fit(np.random.default_rng(0).normal(size=(100_000, 2))))) < 5000


# --- profiles and intervals ---------------------------------------------------------------------------


def longdouble_nll(family, lmbda, x, weight=None):
    """Return the weighted negative log-likelihood, maximised over mean and scale, without constants, in long double."""
    x = np.asarray(x, dtype=np.longdouble)
    weight = np.ones(x.size, dtype=np.longdouble) if weight is None else np.asarray(weight, dtype=np.longdouble)
    lam = np.longdouble(lmbda)

    def b(m, a):
        return a if m == 0 else np.expm1(m * a) / m

    a = np.log(x) if family == "box-cox" else np.log1p(abs(x))
    y = b(lam, a) if family == "box-cox" else np.where(x >= 0, b(lam, a), -b(2 - lam, a))
    jacobian = a if family == "box-cox" else np.copysign(a, x)
    total = weight.sum()
    mean = (weight * y).sum() / total
    variance = (weight * (y - mean) ** 2).sum() / total
    return float(total * np.log(variance) / 2 - (lam - 1) * (weight * jacobian).sum())


@pytest.mark.parametrize("weighted", [False, True])
@both_families
def test_profiles_agree_with_long_double(family, weighted):
    x = columns_of_all_spreads(family, p=4)
    x[3, 1] = np.nan
    weight = np.random.default_rng(3).exponential(size=60) if weighted else None
    fit = pk.fit(x, family, sample_weight=weight)
    lmbdas = [-3.0, 0.0, 0.5, 1.0, 2.0, 4.5]
    profile = fit.profile(lmbdas)
    assert profile.shape == (4, 6)
    for j in range(4):
        seen = ~np.isnan(x[:, j])
        exact = [longdouble_nll(family, v, x[seen, j], weight[seen] if weighted else None) for v in lmbdas]
        np.testing.assert_allclose(profile[j], exact, rtol=1e-12, atol=1e-11)
        np.testing.assert_array_equal(fit.profile(lmbdas[2])[j], profile[j, 2])
        assert fit.profile(fit.lmbda[j])[j] == pytest.approx(fit.nll[j], rel=1e-13, abs=1e-11)
    assert fit.profile(0.5).shape == (4,)
    assert fit.profile([]).shape == (4, 0)
    assert (fit.profile(np.linspace(-5, 5, 11)) >= fit.nll[:, None] - 1e-9).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("weighted", [False, True])
@both_families
def test_confidence_intervals_agree_with_root_finding(family, level, weighted):
    x = columns_of_all_spreads(family, p=3)
    weight = np.random.default_rng(4).exponential(size=60) if weighted else None
    fit = pk.fit(x, family, sample_weight=weight)
    low, high = fit.confint(level=level)
    drop = stats.chi2.ppf(level, 1) / 2.0
    for j, c in enumerate(x.T):
        best = longdouble_nll(family, fit.lmbda[j], c, weight)

        def excess(lmbda, c=c, best=best):
            return longdouble_nll(family, lmbda, c, weight) - best - drop

        far = 10.0 / np.sqrt(fit.information[j])
        assert low[j] == pytest.approx(optimize.brentq(excess, fit.lmbda[j] - far, fit.lmbda[j], xtol=1e-12), abs=1e-9)
        assert high[j] == pytest.approx(optimize.brentq(excess, fit.lmbda[j], fit.lmbda[j] + far, xtol=1e-12), abs=1e-9)


def test_intervals_are_those_of_scipy():
    x = columns_of_all_spreads("box-cox", p=1)[:, 0]
    _, _, (low, high) = stats.boxcox(x, alpha=0.1)
    np.testing.assert_allclose(np.ravel(pk.fit(x, "box-cox").confint(level=0.9)), [low, high], rtol=1e-6)


def test_intervals_nest_and_shrink_to_the_estimate():
    fit = pk.fit(columns_of_all_spreads(p=3))
    ends = [fit.confint(level=level) for level in (1e-9, 0.1, 0.5, 0.9, 0.999)]
    for inner, outer in itertools.pairwise(ends):
        assert (outer.low < inner.low).all()
        assert (inner.high < outer.high).all()
    np.testing.assert_allclose(ends[0].low, fit.lmbda, atol=1e-8)
    assert ends[0]._fields == ("low", "high")


def test_interval_ends_hold_where_the_profile_is_nearly_flat():
    """The ends of an interval are accurate although the profile g is nearly flat next to one of them.

    For two values a and b, g(lambda) = log(sinh(u)/u) - (2p - 1) u up to constants. Here u = lambda ln(a/b)/2, and p is
    the weight of a as a fraction of the total.
    """
    x, weight = np.array([13.40905732, 11.74807425]), np.array([1.46905760e-11, 4.87692408e-03])
    half, share = np.log(x[0] / x[1]) / 2.0, weight[0] / weight.sum()

    def nll(lmbda: float) -> float:
        u = abs(lmbda * half)
        above = 2.0 * share - 1.0
        return u + np.log1p(-np.exp(-2.0 * u)) - np.log(2.0 * u) - above * lmbda * half

    fit = pk.fit(x, "box-cox", sample_weight=weight)
    rises = [weight.sum() * (nll(end) - nll(fit.lmbda[0])) for end in np.ravel(fit.confint())]
    np.testing.assert_allclose(rises, 1.920729410347062, rtol=1e-7)


def test_columns_without_an_optimum_have_no_interval():
    x = np.column_stack([np.arange(1.0, 9.0), np.ones(8), np.arange(8.0) ** 2 + 1.0, [10.0] * 7 + [9.9]])
    with pytest.warns(UserWarning, match="column 1"):
        fit = pk.fit(x, "box-cox", lmbda=[np.nan, np.nan, 0.3, np.nan], ymax=1e4)
    assert fit.status.tolist() == [Status.OK, Status.CONSTANT, Status.FIXED, Status.AT_BOUND]
    low, high = fit.confint()
    assert np.isfinite(low).tolist() == np.isfinite(high).tolist() == [True, False, False, False]
    assert np.isnan(fit.profile(1.0)).tolist() == [False, True, False, False]


# --- remembered data ----------------------------------------------------------------------------------


def assert_forgotten(fit):
    for method in (fit.confint, lambda: fit.profile(1.0)):
        with pytest.raises(ValueError, match=r"no longer has its data.*pass X"):
            method()


@pytest.mark.parametrize("ymax", [6.0, 50.0, 1e6, 1e150, None])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_skipping_bounds_far_from_the_limit_changes_no_bit(monkeypatch, family, ymax):
    """Fits are compared with fits for which the bound on lambda is computed for every column."""
    rng = np.random.default_rng(9)
    power = rng.choice([0.5, -0.5, 0.2], 40)
    x = 10.0 ** rng.uniform(-2.0, 2.0, 40) * (1.0 + 0.1 * rng.normal(size=(60, 40))) ** power
    x *= rng.choice([1.0, -1.0], 40) if family == "yeo-johnson" else 1.0
    usual = fitting.fit(x, family, standardize=False, ymax=ymax)
    monkeypatch.setattr(limits, "may_exceed_limit", lambda family, results, ymax: np.full(len(results), True))
    every = fitting.fit(x, family, standardize=False, ymax=ymax)
    np.testing.assert_array_equal(kernel_rows(usual), kernel_rows(every))
    assert (usual.status == Status.AT_BOUND).any() == (ymax in (6.0, 50.0, 1e6))


@pytest.mark.parametrize("n", [60, 60_000])
def test_data_are_remembered(n):
    x = columns_of_all_spreads(n=n)
    fit = pk.fit(x)
    assert np.shares_memory(fit._data.values, x) == (n > 60)  # small data are copied
    np.testing.assert_array_equal(fit.confint(), fit.confint(X=x))
    np.testing.assert_array_equal(fit.profile([0.3, 1.0]), fit.profile([0.3, 1.0], x))


def test_weights_are_remembered_with_the_data():
    x, weight = columns_of_all_spreads(), np.random.default_rng(0).exponential(size=60)
    fit = pk.fit(x, sample_weight=weight)
    np.testing.assert_array_equal(fit.confint(), fit.confint(X=x, sample_weight=weight))
    assert (fit.profile(1.0) != fit.profile(1.0, x)).all()
    with pytest.raises(ValueError, match="sample_weight needs X"):
        fit.profile(1.0, sample_weight=weight)


def overwrite(fit, x):
    fit.transform(x, out=x)


def overwrite_from_elsewhere(fit, x):
    fit.transform(columns_of_all_spreads(n=9000, seed=9), out=x)


def overwrite_by_inverse(fit, x):
    fit.inverse_transform(fit.transform(columns_of_all_spreads(n=9000, seed=9)), out=x)


def overwrite_a_part(fit, x):
    fit.transform(x[:5], out=x[:5])


@pytest.mark.parametrize("how", [overwrite, overwrite_from_elsewhere, overwrite_by_inverse, overwrite_a_part])
def test_large_data_that_are_overwritten_are_forgotten(how):
    x = columns_of_all_spreads(n=9000)
    fit = pk.fit(x)
    before = fit.confint(X=x.copy())
    kept = x.copy()
    how(fit, x)
    assert_forgotten(fit)
    np.testing.assert_array_equal(fit.confint(X=kept), before)


def test_data_that_are_not_overwritten_are_kept():
    x = columns_of_all_spreads()
    fit = pk.fit(x)
    fit.transform(x, out=np.empty_like(x))
    fit.inverse_transform(fit.transform(x), out=np.empty_like(x))
    assert fit._data is not None


@pytest.mark.parametrize(
    "clone", [lambda f: pickle.loads(pickle.dumps(f)), copy.deepcopy, lambda f: PowerFit.from_json(f.to_json())]
)
def test_a_fit_travels_without_its_data(clone):
    x = columns_of_all_spreads()
    fit = pk.fit(x)
    again = clone(fit)
    assert_forgotten(again)
    np.testing.assert_array_equal(again.confint(X=x), fit.confint())


# --- lambda given, lambda bounded ---------------------------------------------------------------------


@pytest.mark.parametrize("lmbda", [0.0, 1.0, 2.0, -3.5, 1e-12, np.float32(0.5), 1])
@both_families
def test_a_given_lambda_is_used_unchanged(family, lmbda):
    x = columns_of_all_spreads(family, p=3)
    fit = pk.fit(x, family, lmbda=lmbda)
    assert (fit.lmbda == float(lmbda)).all()
    assert (fit.status == Status.FIXED).all()
    z = fit.transform(x)
    for j, c in enumerate(x.T):
        np.testing.assert_allclose(z[:, j], oracles.standardized(family, float(lmbda), c), rtol=1e-12, atol=1e-12)
        assert fit.nll[j] == pytest.approx(longdouble_nll(family, lmbda, c), rel=1e-12)


def test_columns_without_a_given_lambda_are_fitted():
    """Columns with NaN in `lmbda` are fitted. The results are bit-identical to those without `lmbda`."""
    x = columns_of_all_spreads(p=4)
    free = pk.fit(x)
    fit = pk.fit(x, lmbda=[np.nan, 0.5, np.nan, 2.0])
    assert fit.status.tolist() == [Status.OK, Status.FIXED, Status.OK, Status.FIXED]
    assert fit.lmbda.tolist() == [free.lmbda[0], 0.5, free.lmbda[2], 2.0]
    np.testing.assert_array_equal(kernel_rows(fit)[[0, 2]], kernel_rows(free)[[0, 2]])
    np.testing.assert_array_equal(kernel_rows(pk.fit(x, lmbda=np.nan)), kernel_rows(free))
    refit = pk.fit(x, lmbda=free.lmbda)
    assert lambdas_agree(refit.scale, free.scale, 1e-11)


@pytest.mark.parametrize("ymax", [1e3, 1e10, 1e300, np.finfo(np.float64).max])
@both_families
def test_ymax_bounds_only_columns_that_exceed_it(family, ymax):
    """The limit |psi| <= ymax holds on the data. Fits that satisfy it without the limit are unchanged."""
    x = np.column_stack([[10.0, 10.0, 10.0, 9.9], [1.0, 2.0, 3.0, 5.0], [0.1, 0.1, 0.1, 0.101]])
    free, fit = pk.fit(x, family), pk.fit(x, family, ymax=ymax)
    raw = pk.fit(x, family, standardize=False, lmbda=fit.lmbda).transform(x)
    active = fit.status == Status.AT_BOUND
    assert active.tolist() == [True, False, family == "box-cox"]
    np.testing.assert_array_equal(kernel_rows(fit)[~active], kernel_rows(free)[~active])
    assert (abs(raw[:, active]) <= ymax).all()
    np.testing.assert_allclose(abs(raw[:, active]).max(axis=0), ymax, rtol=1e-9)
    assert (fit.nll[active] > free.nll[active]).all()
    assert np.isfinite(fit.transform(x)).all()


def test_an_infinite_ymax_does_not_bound_lambda():
    x = np.array([10.0, 10.0, 10.0, 9.9])
    np.testing.assert_array_equal(kernel_rows(pk.fit(x, ymax=np.inf)), kernel_rows(pk.fit(x)))
    unbounded = pk.fit(x, "box-cox", ymax=np.inf, standardize=False)
    assert unbounded.lmbda[0] == pytest.approx(357.55143129823804)
    assert np.isinf(unbounded.transform(x)).all()
    with pytest.warns(UserWarning, match="column 0: transformed values overflow"):
        pk.fit(x[:, None], "box-cox", lmbda=400.0, standardize=False)


def test_default_bound_is_scipys_and_for_raw_output_only():
    x = np.array([10.0, 10.0, 10.0, 9.9])
    assert pk.fit(x, "box-cox").status[0] == Status.OK
    raw = pk.fit(x, "box-cox", standardize=False)
    assert raw.status[0] == Status.AT_BOUND
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scipys = stats.boxcox_normmax(x, method="mle")
    assert raw.lmbda[0] == pytest.approx(scipys, rel=1e-9)
    assert np.isfinite(raw.transform(x)).all()


@pytest.mark.parametrize("ymax", [0.0, -1.0, np.nan])
def test_bound_must_be_positive(ymax):
    with pytest.raises(ValueError, match="ymax must be positive"):
        pk.fit(columns_of_all_spreads(p=2), ymax=ymax)


def test_a_bound_that_no_lambda_satisfies_is_refused():
    with pytest.raises(ValueError, match="column 1: no lambda satisfies ymax=10; pass a larger ymax"):
        pk.fit(np.column_stack([np.arange(9.0), [-1e300, -1.0, -0.5, 0.0, 0.1, 0.2, 0.3, 1.0, 1e300]]), ymax=10.0)


def test_bounds_ignore_rows_of_weight_0():
    x = np.array([10.0, 10.0, 9.9, 10.0, 7.0])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    weighted, dropped = pk.fit(x, "box-cox", sample_weight=weight, ymax=1e9), pk.fit(x[:4], "box-cox", ymax=1e9)
    assert weighted.status[0] == Status.AT_BOUND
    assert lambdas_agree(weighted.lmbda, dropped.lmbda)


# --- values without an inverse ------------------------------------------------------------------------

BEYOND = [
    ("box-cox", 0.5, -1e3, "x_min"),
    ("box-cox", -0.5, 1e3, "x_max"),
    ("yeo-johnson", -0.5, 1e3, "x_max"),
    ("yeo-johnson", 2.5, -1e3, "x_min"),
]


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("family, lmbda, z, end", BEYOND)
def test_values_beyond_the_range_are_treated_as_requested(family, lmbda, z, end, standardize):
    """Values without an inverse become NaN with a warning, raise, or become the nearest end of the data.

    These are the results of `out_of_range` "nan" (the default), "raise" and "clip". Other values are inverted.
    """
    x = columns_of_all_spreads(family, p=2)
    fit = pk.fit(x, family, lmbda=lmbda, standardize=standardize, column_names=["first", "second"])
    image = fit.transform(x)
    image[[1, 5], 1] = z
    image[2, 0] = np.nan
    expected = fit.inverse_transform(fit.transform(x))
    expected[2, 0] = np.nan

    with pytest.warns(UserWarning, match="'second'") as caught:
        nan = fit.inverse_transform(image)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "first" not in str(caught[0].message)
    expected[[1, 5], 1] = np.nan
    np.testing.assert_array_equal(nan, expected)

    with pytest.raises(ValueError, match="'second'"):
        fit.inverse_transform(image, out_of_range="raise")

    clipped = fit.inverse_transform(image, out_of_range="clip")
    expected[[1, 5], 1] = getattr(fit, end)[1]
    np.testing.assert_array_equal(clipped, expected)
    in_place = image.copy()
    np.testing.assert_array_equal(fit.inverse_transform(in_place, out=in_place, out_of_range="clip"), expected)


@pytest.mark.parametrize("family, lmbda", [("box-cox", 0.0), ("yeo-johnson", 0.0), ("yeo-johnson", 1.3)])
def test_transforms_onto_the_line_have_inverses_everywhere(family, lmbda):
    fit = pk.fit(columns_of_all_spreads(family, p=1)[:, 0], family, lmbda=lmbda)
    z = np.linspace(-30.0, 30.0, 61)
    x = fit.inverse_transform(z, out_of_range="raise")
    assert (np.diff(x) > 0.0).all()
    np.testing.assert_allclose(fit.transform(x), z, rtol=1e-10, atol=1e-10)


# --- columns that cannot be fitted --------------------------------------------------------------------


def test_one_warning_lists_the_columns_that_were_not_fitted():
    x = columns_of_all_spreads(p=6)
    x[:, 1], x[:, 4], x[:, 5] = 7.0, np.nan, -0.0
    x[:3, 5] = 0.0
    with pytest.warns(UserWarning, match="not fitted") as caught:
        fit = pk.fit(x)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert "column 1, column 5: not fitted: fewer than two distinct values" in message
    assert "column 4: not fitted: no values" in message
    assert "column 0" not in message
    assert fit.status.tolist() == [0, 3, 0, 0, 4, 3]
    assert fit.status_text[1] == Status.CONSTANT.sentence
    np.testing.assert_array_equal(fit.lmbda[[1, 4, 5]], 1.0)
    z = fit.transform(x)
    np.testing.assert_array_equal(z[:, [1, 4, 5]], x[:, [1, 4, 5]])
    np.testing.assert_array_equal(fit.inverse_transform(z)[:, [1, 4, 5]], x[:, [1, 4, 5]])
    alone = pk.fit(x[:, [0, 2, 3]])
    np.testing.assert_array_equal(kernel_rows(fit)[[0, 2, 3]], kernel_rows(alone))


def test_names_in_warnings():
    with pytest.warns(UserWarning, match="'height'"):
        pk.fit(np.ones((3, 1)), column_names=["height"])


def test_ordinary_columns_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for family in FAMILIES:
            x = columns_of_all_spreads(family)
            fit = pk.fit(x, family)
            fit.inverse_transform(fit.transform(x))


# --- choices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"family": "boxcox"}, "'yeo-johnson', 'best', got 'boxcox'; did you mean 'box-cox'?"),
        ({"family": "Yeo_Johnson"}, "did you mean 'yeo-johnson'?"),
        ({"family": None}, "family must be one of"),
        ({"estimator": "mle2"}, "'carroll', 'mtl', 'ppcc', got 'mle2'; did you mean 'mle'?"),
    ],
)
def test_choices_are_named(options, message):
    with pytest.raises(ValueError) as error:
        pk.fit(columns_of_all_spreads(p=1), **options)
    assert message in str(error.value)


@pytest.mark.parametrize("seed", range(40))
def test_standardized_values_decrease_by_rounding_only(seed):
    """Scores of sorted values may decrease by 8 ulp of z or of the largest term of z (docs/accuracy.rst)."""
    rng = np.random.default_rng(seed)
    values = rng.lognormal(-6.0, 1.0, 200) * rng.choice([-1.0, 1.0])
    x = np.sort(np.r_[np.linspace(0.5, 4.0, 800) * 2.0**-53 * np.sign(values[0]), values])
    lmbda = 30.0 if seed < 20 else rng.uniform(-40.0, 40.0)
    z = pk.fit(x, lmbda=lmbda).transform(x)
    exponent, log = max(abs(lmbda), abs(2.0 - lmbda)), np.log1p(np.abs(x)).max()
    allowed = 2.0 * (1.0 + exponent * (1.0 + log)) * np.spacing(np.abs(z).max())
    falls = z[:-1] - z[1:]
    assert ((falls <= allowed) | (falls <= 8.0 * np.spacing(np.abs(z[1:])))).all()


def test_a_score_that_is_flat_on_both_sides_of_its_root_has_a_certified_optimum():
    """Regression test: Newton's steps alternated a hundred times; the result was NOT_CERTIFIED, with lambda 1.948."""
    x = [-0.62151526609708063, 0.95311696384284261, 710.37928112125348, -54.844240297785774, -28801752643.107159]
    x += [-255.47313115381823, 1.3611715572648129, 4.9309999848163955, 1.8423906507811740]
    w = [1.5537287763789054, 1.4852289293909653, 0.8668144607128967, 0.5953803934563935, 1.8460227283222457]
    w += [1.7273180015362182, 1.1112029368993626, 1.8785539495779742, 1.230611802587645]
    fit = pk.fit(x, sample_weight=w)
    assert fit.status[0] == Status.OK
    assert fit.lmbda[0] == pytest.approx(1.64323841144, abs=1e-10)
    assert fit.n_iter[0] < 40


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inverses_that_overflow_in_the_units_of_the_data_have_none(dtype: type) -> None:
    x = np.random.default_rng(0).lognormal(size=(200, 2)) * (1e305 if dtype == np.float64 else 1e37)
    fit = pk.fit(x.astype(dtype), "yeo-johnson", estimator=pk.AdaptiveRewML())
    z = np.array([[0.0, 20.0], [8.0, 0.0]], dtype)
    with pytest.warns(UserWarning, match="have no inverse"):
        back = fit.inverse_transform(z)
    assert np.isnan(back).tolist() == [[False, True], [True, False]]
    with pytest.raises(ValueError, match=r"^column 0, row 1: the value is 8\.0, beyond .* no inverse"):
        fit.inverse_transform(z, out_of_range="raise")
