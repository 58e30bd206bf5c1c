"""Invalid and odd input through the public interface, as a new user might try it.

Each input gives the right answer, or an error that names column, row and remedy. Nothing is partly fitted or hangs.
"""

from __future__ import annotations

import datetime as dt
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import PowerFit, Status

NAN, INF = np.nan, np.inf
FAMILIES = ("yeo-johnson", "box-cox")
GOOD = np.random.default_rng(0).lognormal(size=(60, 3))
GOOD.flags.writeable = False

FITS = {
    "yeo-johnson": lambda: pk.fit(GOOD),
    "box-cox": lambda: pk.fit(GOOD, family="box-cox"),
    "raw": lambda: pk.fit(GOOD, standardize=False),
}


@pytest.fixture(scope="module", params=FITS)
def fitted(request: pytest.FixtureRequest) -> PowerFit:
    return FITS[request.param]()


def with_value(value: Any, i: int, j: int, dtype: Any = np.float64, order: Any = "C") -> np.ndarray:
    X = GOOD.astype(dtype, order=order)
    X[i, j] = value
    return X


def same_fit(a: PowerFit, b: PowerFit) -> None:
    for name in ("lmbda", "loc", "scale", "nll", "n_obs", "n_iter", "status", "x_min", "x_max"):
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


# --- data that are not a matrix of real numbers -------------------------------------------------------


def _object_matrix() -> np.ndarray:
    X = np.ones((4, 3), dtype=object)
    X[2, 1] = dt.date(2020, 1, 1)
    return X


NO_NUMBERS: dict[str, tuple[Any, type[Exception], str]] = {
    "text": (np.full((4, 3), "a"), TypeError, "column 0, row 0: 'a' is not a real number; convert"),
    "one cell of text": ([[1, 2, 3], [1, "b", 3]], TypeError, "column 1, row 1: 'b' is not a real number; convert"),
    "file name": ("data.csv", TypeError, "is a str; pass a table"),
    "objects": (np.ones((4, 3), dtype=object), TypeError, r"type object.*\.astype\(float\)"),
    "one object": (_object_matrix(), TypeError, r"column 1, row 2: .*\(date\) is not a real number"),
    "integers beyond float64": ([[10**400], [1]], ValueError, "integers beyond the range of float64"),
    "complex": (np.ones((4, 3), dtype=complex), TypeError, "is complex .*; fit its real and imaginary parts"),
    "dates": (np.full((4, 3), "2020-01-01", dtype="M8[D]"), TypeError, "dates or times .*; convert it to numbers"),
    "durations": (np.ones((4, 3), dtype="m8[s]"), TypeError, "dates or times .*; convert it to numbers"),
    "records": (np.ones(4, dtype=[("a", "f8"), ("b", "f8")]), TypeError, "structured_to_unstructured"),
    "sparse": (scipy.sparse.csr_matrix(np.eye(3)), TypeError, r"sparse.*\.toarray\(\)"),
    "sparse array": (scipy.sparse.csc_array(np.eye(3)), TypeError, r"sparse.*\.toarray\(\)"),
    "None": (None, TypeError, "is a NoneType; pass a table"),
    "dict": ({"a": [1.0, 2.0]}, TypeError, "is a dict; pass a table"),
    "generator": (iter([1.0, 2.0]), TypeError, "iterator; pass a table"),
    "scalar": (1.0, ValueError, "is a float; pass a table"),
    "3-D": (np.ones((2, 3, 2)), ValueError, "has 3 dimensions; pass a table"),
    "no rows": (np.ones((0, 3)), ValueError, "has no rows"),
    "no columns": (np.ones((3, 0)), ValueError, "has no columns"),
    "empty list": ([], ValueError, "has no rows"),
    "list of an empty list": ([[]], ValueError, "has no columns"),
    "ragged": ([[1.0, 2, 3], [1, 2]], ValueError, "ragged: row 0 has 3 values, row 1 has 2 values; all rows need"),
}


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_input_other_than_a_matrix_of_real_numbers_is_refused(case: str, fitted: PowerFit) -> None:
    X, error, message = NO_NUMBERS[case]
    with pytest.raises(error, match=message):
        pk.fit(X, family=fitted.family)
    for apply in (fitted.transform, fitted.inverse_transform):
        with pytest.raises(error, match=message):
            apply(X)


def test_data_frame_with_text_names_the_column() -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"price": [1.0, 2.0], "maker": ["Alfa", "Audi"]})
    with pytest.raises(TypeError, match=r"column 1 \('maker'\), row 0: 'Alfa' is not a real number; convert .* leave"):
        pk.fit(X)


# --- values outside the domain ------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("value", [INF, -INF])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_infinite_value_is_named(family: str, value: float, dtype: str, order: str) -> None:
    X = with_value(value, 17, 1, dtype, order)
    message = rf"column 1, row 17: the value is {value}; replace infinite values, or mark them missing with NaN"
    with pytest.raises(ValueError, match=message):
        pk.fit(X, family=family)
    with pytest.raises(ValueError, match=message):
        pk.fit(GOOD, family=family).transform(X)


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, -1e300, -5e-324])
def test_box_cox_needs_positive_values(value: float) -> None:
    X = with_value(value, 59, 2)
    named = re.escape(f"column 2, row 59: the value is {value}, ")
    message = rf"{named}.*strictly positive data; shift or drop.*family='yeo-johnson'"
    with pytest.raises(ValueError, match=message):
        pk.fit(X, family="box-cox")
    with pytest.raises(ValueError, match=message):
        pk.fit(GOOD, family="box-cox").transform(X)
    assert np.isfinite(pk.fit(X).transform(X)).all()


@pytest.mark.parametrize("X", [[[0, 1], [1, 2]], [[False, True], [True, True]]])
def test_box_cox_refuses_zero_in_integers_and_booleans(X: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"column 0, row 0: the value is 0\.0, .*strictly positive"):
        pk.fit(X, family="box-cox")


def test_first_column_and_its_first_row_are_named() -> None:
    X = GOOD.copy()
    X[[5, 9], 2] = INF
    X[[40, 41], 1] = -INF
    with pytest.raises(ValueError, match="column 1, row 40: the value is -inf"):
        pk.fit(X)


def test_every_number_of_threads_names_the_same_column() -> None:
    X = np.random.default_rng(1).lognormal(size=(500, 200))
    X[3, [50, 199]] = INF
    for n_threads in (1, 2, 8):
        with pytest.raises(ValueError, match="column 50, row 3"):
            pk.fit(X, n_threads=n_threads)


def test_data_frame_columns_are_named() -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(with_value(INF, 4, 1), columns=["a", "price", "c"])
    with pytest.raises(ValueError, match=r"column 1 \('price'\), row 4: the value is inf"):
        pk.fit(X)
    with pytest.raises(ValueError, match=r"column 1 \('price'\), row 4: the value is inf"):
        pk.fit(GOOD, column_names=["a", "price", "c"]).transform(X)


@pytest.mark.parametrize("family, value", [("yeo-johnson", INF), ("box-cox", 0.0)])
def test_vectors_have_rows_only(family: str, value: float) -> None:
    x = with_value(value, 30, 0)[:, 0]
    with pytest.raises(ValueError, match=r"^row 30: the value is"):
        pk.fit(x, family=family)
    with pytest.raises(ValueError, match=r"^row 30: the value is"):
        pk.fit(GOOD[:, 0], family=family).transform(x)


def test_longdouble_beyond_float64_is_refused_as_infinite() -> None:
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("longdouble is float64 here")
    X = with_value(np.longdouble("1e400"), 2, 1, np.longdouble)
    with pytest.raises(ValueError, match="column 1, row 2: the value is inf"):
        pk.fit(X)
    with pytest.raises(ValueError, match="column 1, row 2: the value is inf"):
        pk.fit(GOOD).transform(X)


# --- nothing is done halfway --------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_refused_data_are_unchanged(order: str, dtype: str) -> None:
    X = with_value(INF, 59, 2, dtype, order)
    before = X.copy()
    fit = pk.fit(GOOD)
    for call in (lambda: pk.fit(X), lambda: fit.transform(X), lambda: fit.transform(X, out=X)):
        with pytest.raises(ValueError, match="column 2, row 59"):
            call()
        assert_array_equal(X, before)


def test_refused_inverse_in_place_leaves_the_data() -> None:
    fit = pk.fit(GOOD, lmbda=-1.0)
    Z = fit.transform(GOOD)
    Z[7, 1] = 1e3  # beyond the range of the transform
    before = Z.copy()
    with pytest.raises(ValueError, match=r"^column 1, row 7: the value is 1000\.0, .*no inverse; use out_of_range="):
        fit.inverse_transform(Z, out=Z, out_of_range="raise")
    assert_array_equal(Z, before)


def test_fit_does_not_change_its_input() -> None:
    X = GOOD.copy(order="F")
    before, weights = X.copy(), np.linspace(0, 1, 60)
    fit = pk.fit(X, sample_weight=weights)
    fit.inverse_transform(fit.transform(X))
    fit.confint()
    assert_array_equal(X, before)
    assert_array_equal(weights, np.linspace(0, 1, 60))


# --- columns that cannot be fitted --------------------------------------------------------------------

UNFITTABLE: dict[str, tuple[Any, Status]] = {
    "constant": (np.full(60, 3.7), Status.CONSTANT),
    "zeros": (np.zeros(60), Status.CONSTANT),
    "signed zeros": (np.tile([0.0, -0.0], 30), Status.CONSTANT),
    "all missing": (np.full(60, NAN), Status.EMPTY),
    "one value": (np.r_[2.0, np.full(59, NAN)], Status.CONSTANT),
    "constant and missing": (np.tile([2.0, NAN], 30), Status.CONSTANT),
    "huge constant": (np.full(60, 1.7e308), Status.CONSTANT),
    "tiny constant": (np.full(60, 5e-324), Status.CONSTANT),
}


@pytest.mark.parametrize("case", UNFITTABLE)
def test_unfittable_column_passes_unchanged_and_leaves_the_others(case: str) -> None:
    column, status = UNFITTABLE[case]
    X = np.column_stack([GOOD[:, :2], column, GOOD[:, 2]])
    with pytest.warns(UserWarning, match=r"column 2 \('odd'\): not fitted") as caught:
        fit = pk.fit(X, column_names=["a", "b", "odd", "c"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert fit.status.tolist() == [Status.OK, Status.OK, status, Status.OK]
    assert fit.lmbda[2] == 1.0
    alone = pk.fit(GOOD)
    assert_array_equal(fit.lmbda[[0, 1, 3]], alone.lmbda)
    Z = fit.transform(X)
    assert_array_equal(Z[:, [0, 1, 3]], alone.transform(GOOD))
    assert_array_equal(Z[:, 2], column)
    assert_array_equal(fit.inverse_transform(Z)[:, 2], column)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_row_is_not_fitted(family: str) -> None:
    with pytest.warns(UserWarning, match="column 0, column 1, column 2: not fitted: fewer than two distinct values"):
        fit = pk.fit(GOOD[:1], family=family)
    assert_array_equal(fit.transform(GOOD), GOOD)
    assert_array_equal(pk.fit(GOOD, family=family).transform(GOOD[:1]), pk.fit(GOOD, family=family).transform(GOOD)[:1])


def test_many_unfittable_columns_make_one_short_warning() -> None:
    with pytest.warns(UserWarning, match=r"column 9 and 290 more: not fitted") as caught:
        fit = pk.fit(np.ones((5, 300)))
    assert len(caught) == 1
    assert len(str(caught[0].message)) < 300
    assert (fit.status == Status.CONSTANT).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_two_distinct_values_are_standardised(family: str) -> None:
    fit = pk.fit([[1.0, 5.0], [3.0, 7.0], [3.0, 5.0]], family=family)
    assert (fit.status == Status.OK).all()
    assert_allclose(fit.transform([[1.0, 5.0], [3.0, 7.0], [3.0, 5.0]]).std(axis=0), 1.0, rtol=1e-12)


def test_weights_can_leave_a_column_without_values() -> None:
    X = np.array([[1.0, 1.0], [2.0, 2.0], [NAN, 3.0], [NAN, 4.0]])
    with pytest.warns(UserWarning, match="column 0: not fitted: no values"):
        fit = pk.fit(X, sample_weight=[0, 0, 1, 1])
    assert fit.status.tolist() == [Status.EMPTY, Status.OK]


# --- odd but good -------------------------------------------------------------------------------------

COUNTS = np.random.default_rng(2).poisson(9.0, size=(60, 3)) + 1


def _read_only_memmap(folder: Path) -> np.ndarray:
    GOOD.tofile(folder / "x")
    return np.memmap(folder / "x", dtype=np.float64, mode="r", shape=GOOD.shape)


ODD_ARRAYS: dict[str, Callable[[Path], Any]] = {
    "big-endian": lambda _: GOOD.astype(">f8"),
    "longdouble": lambda _: GOOD.astype(np.longdouble),
    "Fortran order": lambda _: np.asfortranarray(GOOD),
    "every second row": lambda _: np.repeat(GOOD, 2, axis=0)[::2],
    "every second column": lambda _: np.repeat(GOOD, 2, axis=1)[:, ::2],
    "reversed rows": lambda _: GOOD[::-1].copy()[::-1],
    "reversed columns": lambda _: GOOD[:, ::-1].copy()[:, ::-1],
    "reversed both, transposed": lambda _: GOOD.T[::-1, ::-1].copy()[::-1, ::-1].T,
    "unaligned": lambda _: np.frombuffer(b"x" + GOOD.tobytes(), dtype=np.uint8)[1:].view("f8").reshape(60, 3),
    "read-only memmap": _read_only_memmap,
    "lists": lambda _: GOOD.tolist(),
    "masked array, nothing masked": lambda _: np.ma.array(GOOD),
}


@pytest.mark.parametrize("case", ODD_ARRAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_odd_arrays_fit_and_transform_bit_for_bit(case: str, family: str, tmp_path: Path) -> None:
    X = ODD_ARRAYS[case](tmp_path)
    plain = pk.fit(GOOD, family=family)
    fit = pk.fit(X, family=family)
    same_fit(fit, plain)
    Z = fit.transform(X)
    assert Z.dtype == np.float64
    assert_array_equal(Z, plain.transform(GOOD))
    assert_array_equal(fit.inverse_transform(Z), plain.inverse_transform(Z))


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", "f2", "f4"])
@pytest.mark.parametrize("family", FAMILIES)
def test_narrow_types_fit_as_float64(dtype: str, family: str) -> None:
    X = COUNTS.astype(dtype)
    same_fit(pk.fit(X, family=family), pk.fit(COUNTS.astype(np.float64), family=family))
    Z = pk.fit(X, family=family).transform(X)
    assert Z.dtype == (np.float32 if dtype == "f4" else np.float64)
    assert_allclose(Z, pk.fit(COUNTS, family=family).transform(COUNTS), rtol=1e-6, atol=1e-6)


def test_booleans_are_fitted_as_0_and_1() -> None:
    X = np.array([[True, False], [False, False], [True, True], [True, False]])
    fit = pk.fit(X)
    same_fit(fit, pk.fit(X.astype(float)))
    assert_allclose(fit.transform(X).mean(axis=0), 0.0, atol=1e-15)


@pytest.mark.parametrize("x", [[2**62, 2**61, 2**60, 5], np.array([2**64 - 1, 1, 2**63], dtype=np.uint64)])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings(r"ignore:X holds integers beyond 2\*\*53")
def test_huge_integers_are_fitted_as_float64(x: Any, family: str) -> None:
    fit = pk.fit(x, family=family)
    assert fit.status[0] == Status.OK
    Z = fit.transform(x)
    assert_allclose([Z.mean(), Z.std()], [0, 1], atol=1e-14)
    assert_allclose(fit.inverse_transform(Z), np.asarray(x, dtype=np.float64), rtol=1e-12)


def test_masks_and_nan_are_missing_values_alike() -> None:
    holes = np.random.default_rng(3).random(GOOD.shape) < 0.2
    X = np.where(holes, NAN, GOOD)
    expected = pk.fit(X)
    assert_array_equal(expected.n_obs, (~holes).sum(axis=0))
    disguised: list[Any] = [np.ma.array(GOOD, mask=holes), np.ma.masked_invalid(X)]
    for X_masked in disguised:
        same_fit(pk.fit(X_masked), expected)
        assert_array_equal(expected.transform(X_masked), expected.transform(X))
    assert_array_equal(np.isnan(expected.transform(X)), holes)
    for j in range(3):
        same_fit(pk.fit(X[~holes[:, j], j]), pk.fit(X[:, j]))


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("family, sign", [("yeo-johnson", 1), ("yeo-johnson", -1), ("yeo-johnson", 0), ("box-cox", 1)])
def test_missing_values_do_not_affect_the_fit(n: int, family: str, sign: int) -> None:
    """Results equal those of the column without its missing values.

    They are bit-identical for short columns, which are fitted in two passes, and agree up to rounding for long columns,
    which are fitted in one pass.
    """
    rng = np.random.default_rng(n)
    X = sign * rng.lognormal(size=(n, 9)) if sign else rng.standard_t(4, size=(n, 9))
    X[rng.random(X.shape) < np.linspace(0, 0.5, 9)] = NAN
    fit = pk.fit(X, family=family, n_threads=1)
    for j in range(9):
        alone = pk.fit(X[~np.isnan(X[:, j]), j], family=family)
        if n < 500:
            assert_array_equal(
                [fit.lmbda[j], fit.nll[j], fit.n_iter[j]], [alone.lmbda[0], alone.nll[0], alone.n_iter[0]]
            )
        else:
            assert_allclose([fit.lmbda[j], fit.nll[j]], [alone.lmbda[0], alone.nll[0]], rtol=1e-12, atol=1e-12)


def test_nullable_and_mixed_types_of_pandas_are_read() -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(
        {
            "float": GOOD[:, 0],
            "count": pd.array([None, *COUNTS[1:, 1]], dtype="Int64"),
            "flag": pd.array([True, None, *([False, True] * 29)], dtype="boolean"),
            "single": GOOD[:, 2].astype(np.float32),
        }
    )
    fit = pk.fit(X)
    assert fit.column_names == ["float", "count", "flag", "single"]
    same_fit(fit, pk.fit(X.astype(float).to_numpy(na_value=NAN)))


def test_frames_of_polars_are_read() -> None:
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"float": GOOD[:, 0], "count": [None, *COUNTS[1:, 1].tolist()]})
    fit = pk.fit(X)
    assert fit.column_names == ["float", "count"]
    same_fit(fit, pk.fit(np.column_stack([GOOD[:, 0], np.r_[NAN, COUNTS[1:, 1]]])))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_output_arrays_hold_the_bits_of_new_arrays(dtype: str, order: Any, fitted: PowerFit, tmp_path: Path) -> None:
    X = GOOD.astype(dtype, order=order)
    Z = fitted.transform(X)
    outs = [
        np.empty((60, 3), dtype=dtype),
        np.empty((60, 3), dtype=dtype, order="F"),
        np.empty((120, 6), dtype=dtype)[::-2, ::2],
        np.memmap(tmp_path / "out", dtype=dtype, mode="w+", shape=(60, 3)),
        X.copy(order="K"),
    ]
    for out in outs:
        assert fitted.transform(X, out=out) is out
        assert_array_equal(out, Z)
    here = X.copy(order="K")
    assert fitted.transform(here, out=here) is here
    assert_array_equal(here, Z)
    assert fitted.inverse_transform(here, out=here) is here
    assert_array_equal(here, fitted.inverse_transform(Z))


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_transformed_in_place(family: str) -> None:
    x = np.repeat(GOOD[:, 0], 2)[::2]
    fit = pk.fit(x, family=family)
    Z = fit.transform(x)
    assert Z.shape == (60,)
    assert fit.transform(x, out=x) is x
    assert_array_equal(x, Z)


# --- extreme magnitudes -------------------------------------------------------------------------------

MAGNITUDES: dict[str, list[float]] = {
    "near the largest float": [1e308, 1e300, 1.7e308, 3e305],
    "around 1e-300": [1e-300, 3e-300, 2e-299, 4e-300],
    "subnormal": [5e-324, 1e-323, 2e-320, 3e-322],
    "all of float64": [5e-324, 1.0, 1.7e308, 1e-100],
    "years": [1990.0, 1991.0, 1995.0, 2003.0],
    "neighbors": [1.0, 1.0 + 2**-52, 1.0 + 2**-50, 1.0 + 2**-51],
    "neighbors at 1e300": [1e300, np.nextafter(1e300, INF), 1.0000000000000004e300, 1.00000000000001e300],
    "outlier": [1.0, 1.1, 1.2, 1e200],
    "rare ones": [0.0] * 50 + [1.0],
    "rare huge": [0.0] * 50 + [1e12],
    "both signs, huge": [-1.7e308, 1.7e308, 1.0, -3.0],
    "both signs, uneven": [-1e-200, 1e200, 1.0, -3.0],
    "negative": [-1e300, -1.0, -1e-300, -7.0],
    "zero beside tiny": [0.0, 1e-12, 2e-12, 5e-12],
}


IN_DOMAIN = [("yeo-johnson", case) for case in MAGNITUDES]
IN_DOMAIN += [("box-cox", case) for case, x in MAGNITUDES.items() if min(x) > 0]


@pytest.mark.parametrize("family, case", IN_DOMAIN)
def test_values_of_any_magnitude_are_standardised(family: str, case: str) -> None:
    x = np.array(MAGNITUDES[case])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the optimal lambda may be beyond float64; the status says so
        fit = pk.fit(x, family=family)
    assert fit.n_iter[0] < 200
    assert fit.status[0] in (Status.OK, Status.UNREPRESENTABLE)
    Z = fit.transform(x)
    if fit.status[0] == Status.UNREPRESENTABLE:
        assert_array_equal(Z, x)
    else:
        assert_allclose([Z.mean(), Z.std()], [0, 1], atol=1e-12)
        assert (np.diff(Z[np.argsort(x)]) >= 0).all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # flat transforms warn that they lose digits
            back = fit.inverse_transform(Z)
        assert np.isfinite(back).all()
        # x is restored, or at least a value with the same z
        close = np.isclose(fit.transform(back), Z, rtol=1e-9, atol=1e-9)
        assert (close | (np.abs(back - x) <= 4 * np.spacing(np.abs(x)))).all()


@pytest.mark.parametrize("family, case", IN_DOMAIN)
def test_raw_values_of_any_magnitude_are_finite(family: str, case: str) -> None:
    x = np.array(MAGNITUDES[case])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pk.fit(x, family=family, standardize=False)
        assert np.isfinite(fit.transform(x)).all()


@given(
    hnp.arrays(np.float64, st.integers(2, 12), elements=st.floats(allow_infinity=False, width=64)),
    st.sampled_from(FAMILIES),
)
def test_any_finite_column_is_fitted_or_says_why(x: np.ndarray, family: str) -> None:
    if family == "box-cox":
        x = np.abs(x)
        assume(not np.any(x == 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pk.fit(x, family=family)
        Z = fit.transform(x)
    assert fit.n_iter[0] < 200
    assert_array_equal(np.isnan(Z), np.isnan(x))
    status = Status(fit.status[0])
    seen = x[~np.isnan(x)]
    if status.failed:
        assert status == Status.UNREPRESENTABLE or len(set(seen)) < 2
        assert_array_equal(Z, x)
    else:
        assert status == Status.OK
        z = Z[~np.isnan(x)]
        assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-9)
        assert (np.diff(z[np.argsort(seen)]) >= 0).all()


@pytest.mark.parametrize("lmbda", [None, -1.0, 0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_new_data_of_the_sign_that_was_not_fitted(lmbda: float | None, sign: float) -> None:
    x = sign * GOOD[:, 0]
    fit = pk.fit(x, lmbda=lmbda)
    raw = scipy.stats.yeojohnson(x, fit.lmbda[0])
    new = np.array([-50.0, -3.0, -0.5, -1e-3, 1e-3, 0.5, 2.0, 30.0])
    Z = fit.transform(new)
    assert_allclose(Z, (scipy.stats.yeojohnson(new, fit.lmbda[0]) - raw.mean()) / raw.std(), rtol=1e-10)
    assert_allclose(fit.inverse_transform(Z), new, rtol=1e-6)


# --- values without an inverse ------------------------------------------------------------------------


def test_values_beyond_the_range_become_nan_with_one_warning() -> None:
    fit = pk.fit(GOOD, family="box-cox", lmbda=-1.0)
    Z = np.full((4, 3), 1e3)
    Z[0] = 0.0
    with pytest.warns(UserWarning, match=r"column 0, column 1, column 2.*no inverse and became NaN.*'clip'") as caught:
        X = fit.inverse_transform(Z)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isfinite(X[0]).all()
    assert np.isnan(X[1:]).all()
    assert_array_equal(fit.inverse_transform(Z, out_of_range="clip")[1:], np.tile(fit.x_max, (3, 1)))
    with pytest.raises(ValueError, match=r"^column 0, row 1: .*no inverse; use out_of_range="):
        fit.inverse_transform(Z, out_of_range="raise")


@pytest.mark.parametrize("value", [INF, -INF])
def test_inverse_of_infinity_never_is_a_number(value: float, fitted: PowerFit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        X = fitted.inverse_transform(np.full((1, 3), value))
    ends = [0.0] if fitted.family == "box-cox" else []
    assert (~np.isfinite(X) | np.isin(X, ends)).all()


# --- arguments ----------------------------------------------------------------------------------------

BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "family near": ({"family": "boxcox"}, ValueError, "family must be one of .*got 'boxcox'; did you mean 'box-cox'"),
    "family other near": ({"family": "Yeo_Johnson"}, ValueError, "did you mean 'yeo-johnson'"),
    "family far": ({"family": "log"}, ValueError, "family must be one of 'box-cox', 'yeo-johnson', 'best', got 'log'$"),
    "family None": ({"family": None}, ValueError, "family must be one of"),
    "family list": ({"family": ["box-cox"]}, ValueError, "family must be one of"),
    "estimator near": ({"estimator": "mlee"}, ValueError, "estimator must be one of .*did you mean 'mle'"),
    "estimator far": ({"estimator": "magic"}, ValueError, "estimator must be one of"),
    "n_threads 0": ({"n_threads": 0}, ValueError, "n_threads must be at least 1"),
    "n_threads -1": ({"n_threads": -1}, ValueError, "n_threads must be at least 1"),
    "n_threads text": ({"n_threads": "2"}, TypeError, "n_threads must be a whole number"),
    "n_threads float": ({"n_threads": 1.5}, TypeError, "n_threads must be a whole number"),
    "n_threads bool": ({"n_threads": True}, TypeError, "n_threads must be a whole number"),
    "too few lmbda": ({"lmbda": [1.0, 2.0]}, ValueError, r"lmbda must be one number or one per column \(3\)"),
    "too many lmbda": ({"lmbda": [1.0] * 4}, ValueError, r"lmbda must be one number or one per column \(3\)"),
    "lmbda matrix": ({"lmbda": [[1.0] * 3]}, ValueError, r"lmbda must be one number or one per column \(3\)"),
    "lmbda infinite": ({"lmbda": INF}, ValueError, "lmbda must be finite"),
    "lmbda text": ({"lmbda": "auto"}, (TypeError, ValueError), "lmbda"),
    "lmbda complex": ({"lmbda": 1j}, (TypeError, ValueError), "lmbda"),
    "ymax 0": ({"ymax": 0.0}, ValueError, "ymax must be positive"),
    "ymax negative": ({"ymax": -1.0}, ValueError, "ymax must be positive"),
    "ymax NaN": ({"ymax": NAN}, ValueError, "ymax must be positive"),
    "ymax text": ({"ymax": "10"}, (TypeError, ValueError), "ymax"),
    "ymax list": ({"ymax": [1.0, 2.0, 3.0]}, (TypeError, ValueError), "ymax"),
    "column_names short": ({"column_names": ["a"]}, ValueError, "column_names has 1 name, X has 3 columns"),
    "column_names equal": ({"column_names": ["a", "b", "a"]}, ValueError, "column_names has 'a' more than once"),
    "column_names numbers": ({"column_names": [1, 2, None]}, TypeError, r"column_names\[2\] is None, a NoneType"),
    "column_names text": ({"column_names": "abc"}, TypeError, "column_names is one string"),
    "weights short": ({"sample_weight": [1.0]}, ValueError, r"sample_weight has shape \(1,\), X has 60 rows"),
    "weights per column": ({"sample_weight": np.ones((60, 3))}, ValueError, r"sample_weight has shape \(60, 3\)"),
    "weights negative": ({"sample_weight": np.r_[-1.0, np.ones(59)]}, ValueError, "row 0: the weight is -1"),
    "weights NaN": ({"sample_weight": np.r_[np.ones(59), NAN]}, ValueError, "row 59: the weight is nan"),
    "weights infinite": ({"sample_weight": np.r_[INF, np.ones(59)]}, ValueError, "row 0: the weight is inf"),
    "weights zero": ({"sample_weight": np.zeros(60)}, ValueError, "sample_weight is zero in every row"),
    "weights text": ({"sample_weight": ["a"] * 60}, TypeError, "sample_weight, row 0: 'a' is not a real number"),
    "weights scalar": ({"sample_weight": 1.0}, ValueError, "sample_weight is a float"),
    "unknown": ({"standardise": True}, TypeError, "standardise"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_invalid_arguments_of_fit_are_refused(case: str) -> None:
    arguments, error, message = BAD_ARGUMENTS[case]
    with pytest.raises(error, match=message):
        pk.fit(GOOD, **arguments)


@pytest.mark.parametrize("family", FAMILIES)
def test_ymax_that_no_lambda_satisfies_names_the_column(family: str) -> None:
    X = np.array([[0.5, 1e-8], [2.0, 1e8], [1.0, 1.0]]) if family == "box-cox" else np.array([[0, -9.0], [1, 9.0]])
    with pytest.raises(ValueError, match=r"column \d: no lambda satisfies ymax=1e-06"):
        pk.fit(X, family=family, ymax=1e-6)


@pytest.mark.parametrize(
    "X, message",
    [
        (np.ones((4, 2)), "X has 2 columns, the fit has 3"),
        (np.ones((4, 4)), "X has 4 columns, the fit has 3"),
        (np.ones((3, 4)), "X has 4 columns, the fit has 3"),
        (np.ones(3), "X has 1 column, the fit has 3"),
    ],
)
def test_another_number_of_columns_than_fitted_is_refused(X: np.ndarray, message: str, fitted: PowerFit) -> None:
    for apply in (fitted.transform, fitted.inverse_transform):
        with pytest.raises(ValueError, match=message):
            apply(X)


BAD_OUT: dict[str, tuple[Any, type[Exception], str]] = {
    "shape": (np.empty((3, 60)), ValueError, r"out has shape \(3, 60\), the result has \(60, 3\)"),
    "vector": (np.empty(180), ValueError, r"out has shape \(180,\)"),
    "integers": (np.empty((60, 3), dtype=int), ValueError, "out has dtype int64, the result has float64"),
    "float32": (np.empty((60, 3), dtype="f4"), ValueError, "out has dtype float32, the result has float64"),
    "big-endian": (np.empty((60, 3), dtype=">f8"), ValueError, "out has dtype >f8"),
    "read-only": (np.broadcast_to(1.0, (60, 3)), ValueError, "out is read-only"),
    "list": ([[0.0] * 3] * 60, TypeError, "out is a list"),
    "masked": (np.ma.zeros((60, 3)), TypeError, "out is a MaskedArray"),
}


@pytest.mark.parametrize("case", BAD_OUT)
def test_invalid_out_is_refused(case: str, fitted: PowerFit) -> None:
    out, error, message = BAD_OUT[case]
    for apply in (fitted.transform, fitted.inverse_transform):
        with pytest.raises(error, match=message):
            apply(GOOD, out=out)


def test_out_that_overlaps_the_input_is_refused() -> None:
    buffer = np.ones((61, 3))
    buffer[1:] = GOOD
    before = buffer.copy()
    fit = pk.fit(GOOD)
    for apply in (fit.transform, fit.inverse_transform):
        with pytest.raises(ValueError, match="out overlaps X in memory"):
            apply(buffer[1:], out=buffer[:-1])
    assert_array_equal(buffer, before)


@pytest.mark.parametrize("n_threads, error", [(0, ValueError), (-1, ValueError), ("2", TypeError), (1.5, TypeError)])
def test_invalid_n_threads_are_refused_when_applying(n_threads: Any, error: type[Exception], fitted: PowerFit) -> None:
    for apply in (fitted.transform, fitted.inverse_transform):
        with pytest.raises(error, match="n_threads must be"):
            apply(GOOD, n_threads=n_threads)


@pytest.mark.parametrize("value", ["ignore", None, "NaN"])
def test_invalid_out_of_range_is_refused(value: Any, fitted: PowerFit) -> None:
    with pytest.raises(ValueError, match="out_of_range must be one of 'nan', 'raise', 'clip', got"):
        fitted.inverse_transform(GOOD, out_of_range=value)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.5, NAN])
def test_invalid_levels_are_refused(level: float, fitted: PowerFit) -> None:
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        fitted.confint(level=level)


@pytest.mark.parametrize("lmbdas", [NAN, [0.0, INF], [[1.0]]])
def test_invalid_lambdas_of_a_profile_are_refused(lmbdas: Any, fitted: PowerFit) -> None:
    with pytest.raises(ValueError, match="lmbdas must be a finite number or a one-dimensional array"):
        fitted.profile(lmbdas)


def test_likelihood_after_the_data_are_gone() -> None:
    fit = pk.fit(GOOD)
    for gone in (pickle.loads(pickle.dumps(fit)), PowerFit.from_json(fit.to_json())):
        with pytest.raises(ValueError, match=r"no longer has its data.*pass X"):
            gone.confint()
        assert_array_equal(gone.confint(X=GOOD).low, fit.confint().low)
        with pytest.raises(ValueError, match="X has 2 columns, the fit has 3"):
            gone.profile(1.0, X=GOOD[:, :2])
    X = np.tile(GOOD, (1 + 131_072 // GOOD.nbytes, 1))  # smaller data are copied
    fit = pk.fit(X)
    fit.transform(X, out=X)
    with pytest.raises(ValueError, match=r"no longer has its data.*pass X"):
        fit.profile(0.0)


def _damaged() -> Iterator[tuple[str, str]]:
    text = pk.fit(np.arange(1.0, 9.0)).to_json()
    yield "", "neither JSON text nor a file"
    yield "{", "not JSON"
    yield text[: len(text) // 2], "not JSON"
    yield "[1, 2]", "not a fit"
    yield '{"lmbda": [1.0]}', "not a fit"
    yield text.replace('"version": 1', '"version": 99'), "version 99"
    yield text.replace("yeo-johnson", "box-muller"), "damaged"
    yield text.replace('"columns": {', '"columns": {}, "x": {'), "damaged"
    yield text.replace('"lmbda": [', '"lmbda": ["abc", '), "damaged"
    yield text.replace('"lmbda": [', '"lmbda": [1.0, '), "damaged"


@pytest.mark.parametrize("k", range(10))
def test_damaged_json_is_refused(k: int) -> None:
    text, message = list(_damaged())[k]
    with pytest.raises(ValueError, match=message):
        PowerFit.from_json(text, check=False)
