"""Every method of location and scale: invariances, and comparison with NumPy, SciPy and multiprecision."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from fractions import Fraction

import make_location_reference
import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from reference_files import make_again, read_reference

from powerkern._jit import JIT_DISABLED
from powerkern.location import LocationScale, LocationStatus, location_scale

CONSISTENT = 1.4826022185056018
METHODS = [
    *(f"{center}-{spread}" for center in ("mean", "median", "trimmed") for spread in ("sd", "mad", "niqr", "qn")),
    "trimmed",
    "huber",
    "huber-scale",
    "huber-proposal2",
    "bisquare",
    "bisquare-proposal2",
    "biweight",
]
methods = pytest.mark.parametrize("method", METHODS)


def gamma_with_far_values(n=60, p=7, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, size=(n, p)) * 10.0 ** rng.integers(-3, 4, p)
    x[rng.random((n, p)) < 0.1] *= 50.0
    return x


def with_holes(n=60, p=7, seed=0):
    x = gamma_with_far_values(n, p, seed)
    x[np.random.default_rng(seed + 1).random((n, p)) < 0.2] = np.nan
    return x


def assert_same(a, b):
    for name in ("loc", "scale", "n_iter", "status"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# --- extreme values -----------------------------------------------------------------------------------

EXTREMES = {
    "two signs": [1e308, 1e308, -1e308, 1.0],
    "both ends": [-1.7e308, -0.9e308, 0.0, 0.8e308, 1.7e308, 1e300, -1e300],
    "one sign": [1.2e308, 1.25e308, 1.3e308, 1.5e308, 1.6e308, 1.7e308],
    "outliers": [1.0, 2.0, 3.0, 4.0, 5.0, -1.7e308, 1.7e308],
}


@methods
@pytest.mark.parametrize("values", EXTREMES.values(), ids=EXTREMES.keys())
@pytest.mark.parametrize("weighted", [False, True])
def test_no_difference_and_no_sum_overflows(method, values, weighted):
    x = np.array(values)
    w = np.arange(float(x.size), 0.0, -1.0) if weighted else None
    unit = 2.0**-60
    expected = location_scale(x * unit, method, sample_weight=w)
    if expected.scale[0] > np.finfo(float).max * unit:
        pytest.skip("the scale itself overflows")
    found = location_scale(x, method, sample_weight=w)
    np.testing.assert_allclose(np.array(found) * unit, expected, rtol=1e-13)
    assert found.status.tolist() == expected.status.tolist()


@pytest.mark.parametrize("spread", ["mad", "niqr"])
@pytest.mark.parametrize("largest", [1.0, 1e12, 1e290])
def test_trimmed_means_of_huge_values_agree_with_fractions(spread, largest):
    rng = np.random.default_rng(0)
    x = 1e300 * rng.standard_cauchy(40)
    w = largest * rng.random(40)
    found = location_scale(x, f"trimmed-{spread}", sample_weight=w, sides="upper")
    order = np.argsort(x)
    weights, values = [Fraction(v) for v in w[order]], [Fraction(v) for v in x[order]]
    left = sum(weights) - Fraction(math.floor(sum(weights) / 10)) if largest < 1e15 else sum(weights) * 9 / 10
    kept, total = left, Fraction(0)
    for value, weight in zip(values, weights, strict=True):
        total += value * min(weight, kept)
        kept -= min(weight, kept)
    assert found.loc[0] == pytest.approx(float(total / left), rel=1e-11)  # trimming ignores up to 1e-12 of the weight
    assert np.isfinite(found.scale).all()
    assert found.status.tolist() == [LocationStatus.CONVERGED]


def test_trimmed_means_do_not_see_what_is_trimmed():
    x = [1.0, 2.0, 3.5, 1e20, 1e20, 1e20, 1e308]
    for w in (None, np.ones(7)):
        assert location_scale(x, "trimmed", fraction=0.6, sides="upper", sample_weight=w).loc[0] == pytest.approx(
            6.5 / 3.0, rel=1e-15
        )


@pytest.mark.parametrize("method", METHODS)
def test_one_dominant_weight_determines_location_and_scale(method):
    """One value has nearly all of the weight.

    The location is close to this value, and the scale is less than a thousandth of it.
    """
    x = [5.0060962283254685e236, 2.189131805958055e-211, 1.1160364130934942e-227, -8.950792081301045e-255, -7.8e18]
    w = [23552137.18109192, 0.0009785146262961844, 0.22745490846835234, 1.5728206997789287e-07, 0.0003481362672128941]
    found = location_scale(x, method, sample_weight=w)
    assert found.loc[0] == pytest.approx(x[0], rel=1e-3 if method.startswith("mean") else 1e-6)
    assert 0.0 <= found.scale[0] < 1e-3 * x[0]
    assert found.status[0] in (LocationStatus.CONVERGED, LocationStatus.ZERO_SCALE)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_that_is_not_finite_is_called_converged(method):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8, 150)) * 10.0 ** rng.uniform(-300, 300, (8, 150))
    for power in (0.0, 15.0, 250.0):
        w = 10.0 ** rng.uniform(-power, power, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            loc, scale = found = location_scale(x, method, sample_weight=w)
        settled = np.isin(found.status, [LocationStatus.CONVERGED, LocationStatus.ZERO_SCALE])
        assert np.isfinite(loc[settled]).all()
        assert np.isfinite(scale[settled]).all()


@pytest.mark.parametrize("method", ["median-mad", "huber", "bisquare"])
def test_a_scale_beyond_float64_is_reported(method):
    with pytest.warns(UserWarning, match="column 0: location or scale is beyond the range of float64"):
        found = location_scale([-1.7e308, -1.7e308, 0.0, 1.7e308, 1.7e308], method)
    assert found.status.tolist() == [LocationStatus.OVERFLOW]
    assert found.scale.tolist() == [np.inf]


# --- values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", ["mean", "median", "trimmed"])
@pytest.mark.parametrize("spread", ["sd", "mad", "niqr", "qn"])
def test_centers_and_spreads_agree_with_numpy_and_scipy(center, spread):
    x = with_holes()
    loc, scale = location_scale(x, f"{center}-{spread}")
    for j in range(x.shape[1]):
        column = np.sort(x[~np.isnan(x[:, j]), j])
        kept = column[column.size // 10 : column.size - column.size // 10]
        centers = {"mean": column.mean(), "median": np.median(column), "trimmed": kept.mean()}
        spreads = {
            "sd": column.std(),
            "mad": scipy.stats.median_abs_deviation(column, scale=1.0 / CONSISTENT),
            "niqr": scipy.stats.iqr(column) / 1.3489795003921634,
            "qn": 2.2191444659850757 * oracles.qn(column),
        }
        assert loc[j] == pytest.approx(centers[center], rel=1e-14)
        assert scale[j] == pytest.approx(spreads[spread], rel=1e-14)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 31, 200])
def test_qn_is_the_distance_of_its_rank_among_all_pairs(n):
    rng = np.random.default_rng(n)
    for x in (rng.normal(size=n), np.round(rng.gamma(2.0, size=n)), 1e12 + rng.normal(size=n), rng.standard_cauchy(n)):
        weight = rng.integers(0, 4, n) + (np.arange(n) < 2)
        repeated = np.repeat(x, weight)
        assert location_scale(x, "median-qn").scale[0] == pytest.approx(2.219144465985076 * oracles.qn(x), rel=1e-15)
        weighted = location_scale(x, "median-qn", sample_weight=weight).scale[0]
        assert weighted == pytest.approx(2.219144465985076 * oracles.qn(repeated), rel=1e-15)


def test_trimmed_means_agree_with_scipy():
    x = gamma_with_far_values(50)
    loc, _ = location_scale(x, "trimmed-sd", fraction=0.2)
    np.testing.assert_allclose(loc, scipy.stats.trim_mean(x, 0.2), rtol=1e-14)
    loc, _ = location_scale(x, "trimmed-sd", fraction=0.2, sides="upper")
    np.testing.assert_allclose(loc, np.sort(x, axis=0)[:40].mean(axis=0), rtol=1e-14)
    loc, _ = location_scale(x, "trimmed", fraction=0.0)
    np.testing.assert_allclose(loc, x.mean(axis=0), rtol=1e-14)
    loc, _ = location_scale(x, "trimmed", fraction=0.58, sides="upper")  # floor(29), although 0.58 * 50 is below 29
    np.testing.assert_allclose(loc, np.sort(x, axis=0)[:21].mean(axis=0), rtol=1e-14)


def test_biweight_and_one_step_are_the_obvious_ones():
    x = gamma_with_far_values()
    loc, scale = location_scale(x, "biweight", c_location=5.0)
    one_loc, one_scale = location_scale(x, "huber-scale", center="huber-one-step")
    beta = float(oracles.clipped_normal_variance(1.5))
    for j in range(x.shape[1]):
        np.testing.assert_allclose((loc[j], scale[j]), oracles.biweight(x[:, j], 5.0, 9.0), rtol=1e-12)
        np.testing.assert_allclose((one_loc[j], one_scale[j]), oracles.huber_one_step(x[:, j], 1.5, beta), rtol=1e-12)


#: By name of the reference value: method, constants, and 0 for the location or 1 for the scale.
REFERENCES = {
    "median": ("median-mad", {}, 0),
    "nmad": ("median-mad", {}, 1),
    "niqr": ("median-niqr", {}, 1),
    "huber_location_1.345": ("huber", {"k": 1.345}, 0),
    "huber_location_1.5": ("huber", {}, 0),
    "bisquare_location": ("bisquare", {}, 0),
    "huber_scale_1.345": ("huber-scale", {"k": 1.345}, 1),
    "huber_scale_1.5": ("huber-scale", {}, 1),
    "huber_scale_2.5_ddof1": ("huber-scale", {"k": 2.5, "ddof": 1}, 1),
    "proposal2_1.345": ("huber-proposal2", {"k": 1.345}, slice(2)),
    "proposal2_1.5": ("huber-proposal2", {}, slice(2)),
    "proposal2_1.345_1.5": ("huber-proposal2", {"k_location": 1.345}, slice(2)),
    "bisquare_proposal2": ("bisquare-proposal2", {}, slice(2)),
    "biweight_location": ("biweight", {}, 0),
    "biweight_scale": ("biweight", {}, 1),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_methods_agree_with_multiprecision_references(name):
    method, constants, part = REFERENCES[name]
    for sample in read_reference("location.json")["samples"]:
        result = location_scale(sample["x"], method, **constants)
        if sample["exact"]["nmad"] == 0.0:  # a constant column
            assert np.array(result).ravel().tolist() == [3.0, 0.0]
        else:
            np.testing.assert_allclose(
                np.array(result).ravel()[part], sample["exact"][name], rtol=3e-14, err_msg=sample["name"]
            )


def test_the_script_still_writes_its_file():
    drawn = list(make_location_reference.samples())
    samples = read_reference("location.json")["samples"]
    for (name, x), sample in zip(drawn, samples, strict=True):
        assert name == sample["name"]
        np.testing.assert_allclose(x, sample["x"], rtol=1e-9)
    assert make_again(make_location_reference.record(*drawn[0])) == samples[0]


@methods
def test_location_and_scale_are_equivariant(method):
    x = gamma_with_far_values(40, 3)
    loc, scale = location_scale(x, method)
    moved = location_scale(8.0 * x - 4.0, method)
    np.testing.assert_allclose(moved.loc, 8.0 * loc - 4.0, rtol=1e-11)
    np.testing.assert_allclose(moved.scale, 8.0 * scale, rtol=1e-12)


@methods
def test_a_large_offset_costs_no_digits(method):
    x = np.round(gamma_with_far_values(41, 3) * 1024.0) / 1024.0
    np.testing.assert_allclose(location_scale(x + 1e8, method).scale, location_scale(x, method).scale, rtol=1e-13)


@methods
def test_weights_repeat_rows(method):
    x, w = with_holes(), np.random.default_rng(3).integers(0, 4, 60)
    weighted = location_scale(x, method, sample_weight=w)
    repeated = location_scale(np.repeat(x, w, axis=0), method)
    np.testing.assert_allclose(weighted.loc, repeated.loc, rtol=1e-12)
    np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-12)
    np.testing.assert_array_equal(weighted.status, repeated.status)


def test_rows_without_weight_do_not_count():
    x = np.array([[1.0], [2.0], [4.0], [np.inf]])
    assert_same(location_scale(x, sample_weight=[1, 1, 1, 0]), location_scale(x[:3]))


# --- nasty columns ------------------------------------------------------------------------------------


@methods
def test_extreme_columns_have_finite_results(method):
    rng = np.random.default_rng(5)
    z = rng.normal(size=50)
    columns = {
        "huge": 1e300 * z,
        "tiny": 1e-300 * z,
        "subnormal": 1e-320 * rng.integers(-9, 10, 50),
        "both": np.where(np.arange(50) < 3, 1e250, z),
        "far": 1e12 + rng.exponential(size=50),
        "binary": (z > 0.3).astype(float),
        "zero-inflated": np.where(z > 0.4, z, 0.0),
        "ties": np.round(z),
    }
    result = location_scale(np.column_stack(list(columns.values())), method)
    for j, (name, x) in enumerate(columns.items()):
        if name == "both" and "sd" in method:
            continue  # the squares overflow in float64, the classical scale does not
        assert x.min() <= result.loc[j] <= x.max(), name
        assert 0.0 <= result.scale[j] < np.inf, name
        assert result.status[j] in (LocationStatus.CONVERGED, LocationStatus.ZERO_SCALE), name
    unit = location_scale(z, method)
    for j, factor in enumerate((1e300, 1e-300)):
        assert result.loc[j] / factor == pytest.approx(unit.loc[0], rel=1e-12)
        assert result.scale[j] / factor == pytest.approx(unit.scale[0], rel=1e-12)


@methods
def test_constant_and_single_columns_have_scale_zero(method):
    x = np.array([[3.0, np.nan], [3.0, 7.0], [3.0, np.nan]])
    result = location_scale(x, method)
    assert result.loc.tolist() == [3.0, 7.0]
    assert result.scale.tolist() == [0.0, 0.0]
    assert result.status.tolist() == [LocationStatus.ZERO_SCALE] * 2


@methods
def test_columns_without_values_are_reported(method):
    x = np.array([[1.0, np.nan, np.nan], [2.0, np.nan, np.nan], [4.0, np.nan, np.nan]])
    with pytest.warns(UserWarning, match="^column 1, column 2: no values$"):
        result = location_scale(x, method)
    assert np.isnan([result.loc[1:], result.scale[1:]]).all()
    assert result.status_text[1:] == ["no values"] * 2
    assert np.isfinite([result.loc[0], result.scale[0]]).all()


def test_columns_that_do_not_converge_are_reported():
    with pytest.warns(UserWarning, match="column 0: not converged"):
        location_scale([0.0, 1.0, 2.0, 3.0], "bisquare", c=1e-3)


# --- any input, any threads ---------------------------------------------------------------------------


@methods
def test_layout_threads_and_order_do_not_change_a_bit(method):
    n, p = (60, 9) if JIT_DISABLED else (900, 41)
    x = with_holes(n, p)
    expected = np.array(location_scale(x, method, n_threads=1))
    for other in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        for n_threads in (1, 3):
            np.testing.assert_array_equal(np.array(location_scale(other, method, n_threads=n_threads)), expected)
    np.testing.assert_array_equal(np.array(location_scale(x[:, ::-1], method)), expected[:, ::-1])
    np.testing.assert_array_equal(np.array(location_scale(x[::-1], method)), expected)
    w = np.ones(n)
    np.testing.assert_array_equal(
        np.array(location_scale(x, method, sample_weight=w, n_threads=1)),
        np.array(location_scale(np.asfortranarray(x), method, sample_weight=w, n_threads=3)),
    )


def test_input_is_not_modified():
    x = np.asfortranarray(with_holes())
    before = x.copy()
    location_scale(x)
    np.testing.assert_array_equal(x, before)


def test_every_kind_of_input_gives_the_same_result():
    x = np.array([[1, 5], [2, 9], [7, 6], [3, 8]])
    expected = location_scale(x.astype(float), "huber")
    masked = np.ma.masked_array(np.vstack([x, [[99, 99]]]), mask=np.vstack([np.zeros((4, 2)), [[1, 1]]]))
    for other in (x.tolist(), x.astype(np.float32), x.astype(">f8"), pd.DataFrame(x), pl.DataFrame(x), masked):
        assert_same(location_scale(other, "huber"), expected)
    assert location_scale(x[:, 0], "huber").loc.tolist() == expected.loc[:1].tolist()


def test_progress_does_not_change_the_result():
    assert_same(location_scale(gamma_with_far_values(), progress=True), location_scale(gamma_with_far_values()))


def test_result_is_a_pair_that_pickles_and_copies():
    result = location_scale(gamma_with_far_values(), "huber-proposal2")
    loc, scale = result
    assert loc is result.loc
    assert scale is result.scale
    for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert isinstance(twin, LocationScale)
        assert_same(twin, result)
    assert result.n_iter.min() >= 1
    assert result.status_text == ["converged"] * 7


# --- bad input ----------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"price": [1.0, 2.0, 4.0], "size": [1.0, -np.inf, 2.0]})


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: location_scale(FRAME), ValueError, r"column 1 \('size'\), row 1: the value is -inf"),
        (lambda: location_scale([1.0, np.inf]), ValueError, "^row 1: the value is inf"),
        (lambda: location_scale([["a", "b"]]), TypeError, "not a real number"),
        (lambda: location_scale(np.empty((0, 3))), ValueError, "no rows"),
        (lambda: location_scale([1.0, 2.0], "median_mad"), ValueError, "did you mean 'median-mad'"),
        (
            lambda: location_scale([1.0, 2.0], "huber", c=2.0),
            TypeError,
            "method 'huber' has no constant 'c'; it has: k",
        ),
        (lambda: location_scale([1.0, 2.0], k=2.0), TypeError, "it has: none"),
        (lambda: location_scale([1.0, 2.0], "huber", k=0.0), ValueError, "k must be a number in \\(0, inf\\)"),
        (lambda: location_scale([1.0, 2.0], "huber", k="big"), TypeError, "k must be a number"),
        (lambda: location_scale([1.0, 2.0], "huber", k=None), TypeError, "k must be a number"),
        (lambda: location_scale([1.0, 2.0], "huber", k=[1.0]), TypeError, "k must be a number"),
        (
            lambda: location_scale([1.0, 2.0], "trimmed", fraction=1.0, sides="upper"),
            ValueError,
            "fraction must be a number in \\[0, ",
        ),
        (
            lambda: location_scale([1.0, 2.0], "trimmed", fraction=0.5, sides="both"),
            ValueError,
            "fraction must be a number in .0, 0.5",
        ),
        (lambda: location_scale([1.0, 2.0], "trimmed", sides="lower"), ValueError, "sides must be one of"),
        (lambda: location_scale([1.0, 2.0], "huber-scale", center="mean"), ValueError, "center must be one of"),
        (
            lambda: location_scale([1.0, 2.0], "huber-scale", center="huber", ddof=1),
            ValueError,
            "ddof works only with center=",
        ),
        (
            lambda: location_scale([1.0, 2.0], "huber-scale", ddof=-1),
            ValueError,
            "ddof must be a number in \\[0, inf\\)",
        ),
        (
            lambda: location_scale([1.0, 2.0], "huber-scale", ddof=np.nan),
            ValueError,
            "ddof must be a number in \\[0, inf\\)",
        ),
        (lambda: location_scale([1.0, 2.0], sample_weight=[1.0]), ValueError, "one weight per row"),
        (lambda: location_scale([1.0, 2.0], n_threads=0), ValueError, "n_threads"),
    ],
)
def test_invalid_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
