"""Digits lost in transforms: ends are restored exactly, and warnings name the values with too few digits."""

from __future__ import annotations

import re
import warnings

import mpmath
import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern._results.inversion import Inversion

#: Largest relative error of a value without a warning: six digits in float64, three in float32.
PROMISE = {"f8": 1e-6, "f4": 1e-3}
#: The warning starts early: just beyond its first value, errors exceed at least this fraction of the promise.
CAREFUL = 1.0 / 20.0


def sample(lmbda: float) -> np.ndarray:
    return np.exp(np.random.default_rng(3).normal(size=200) * 1.5 / max(1.0, abs(lmbda)))


def far_and_near(lmbda: float, n: int = 4001) -> np.ndarray:
    """Return n values between e^-60 and e^60, or between e^-r and e^r with r = 50/|lambda| if this is less."""
    reach = min(60.0, 50.0 / max(abs(lmbda), 0.1))
    return np.exp(np.linspace(-reach, reach, n))


def round_trip(fit: pk.PowerFit, x: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """Return x after transform and inverse, and the ends of the range that the warning names.

    The ends are a dictionary whose keys, "from" and "up to", are the words of the warning.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        back = fit.inverse_transform(fit.transform(x))
    texts = [str(each.message) for each in caught if "so flat there" in str(each.message)]
    assert len(texts) <= 1
    return back, {side: float(value) for side, value in re.findall(r"(from|up to) x = (\S+)", "".join(texts))}


def spread_at_center(family: str, fit: pk.PowerFit) -> float:
    """Return the derivative dx/dz at the score z = 0. The derivative of psi is computed with 60 digits."""
    center = fit.inverse_transform([0.0])[0]
    with mpmath.workdps(60):
        slope = oracles.power_transform_slope(family, center, fit.lmbda[0])
        return float(mpmath.mpf(float(fit.scale[0])) * mpmath.exp(float(fit.log_factor[0])) / slope)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    "family, sign", [("box-cox", 1.0), ("yeo-johnson", 1.0), ("yeo-johnson", -1.0)], ids=["bc", "yj", "yj negative"]
)
@pytest.mark.parametrize("lmbda", [-40.0, -9.5, -3.0, -1.2, -0.5, 0.0, 0.4, 1.0, 1.7, 2.6, 5.0, 15.0, 50.0])
def test_a_warning_names_exactly_the_values_that_lose_more_than_the_promise(
    lmbda: float, family: str, sign: float, dtype: str
) -> None:
    """Values outside the range named in the warning have relative errors within PROMISE[dtype].

    Inside the range, close to its limit, some errors exceed a twentieth of it.
    """
    exponent = lmbda if sign > 0.0 else 2.0 - lmbda
    fit = pk.fit((sign * sample(exponent)).astype(dtype), family, lmbda=lmbda)
    x = (sign * far_and_near(exponent)).astype(dtype)
    smallest = 0.0 if family == "box-cox" else spread_at_center(family, fit)

    def errors_of(x: np.ndarray) -> np.ndarray:
        back = round_trip(fit, x)[0].astype(np.float64)
        errors = abs(back - x) / np.maximum(abs(x.astype(np.float64)), smallest)
        return np.where(np.isnan(back), np.inf, errors)

    first = round_trip(fit, x)[1]
    is_named = (x >= first.get("from", np.inf) * (1.0 - 0.01 * sign)) | (
        x <= first.get("up to", -np.inf) * (1.0 + 0.01 * sign)
    )
    assert (errors_of(x[~is_named]) <= PROMISE[dtype]).all()
    for side, begin in first.items():
        outwards = 1.0 if (side == "from") == (sign > 0.0) else -1.0
        beyond = begin * np.exp(outwards * np.linspace(0.01, min(0.2, 2.0 / abs(exponent)), 500))
        assert errors_of(beyond.astype(dtype)).max() > CAREFUL * PROMISE[dtype]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("lmbda", [-12.0, -8.0, -3.0, 5.0, 9.0, 14.0])
@pytest.mark.parametrize("seed", [4, 7])
def test_a_column_is_named_once_where_the_centre_itself_loses_digits(
    seed: int, lmbda: float, standardize: bool, dtype: str
) -> None:
    """The transform is flat over half of each column. Errors outside the named range are within PROMISE[dtype]."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_cauchy(size=60) * 10.0 ** rng.uniform(1, 6)).astype(dtype)
    fit = pk.fit(x, lmbda=lmbda, standardize=standardize)
    back, first = round_trip(fit, x)
    assert len(first) == 1, first
    ((side, begin),) = first.items()
    assert side == ("from" if lmbda < 1.0 else "up to")
    near = x < begin - 0.01 * abs(begin) if side == "from" else x > begin + 0.01 * abs(begin)
    near &= ~np.isnan(back)  # raw values beyond float32 have no inverse; another warning reports them
    truth = x[near].astype(float)
    errors = abs(back[near] - truth) / np.maximum(abs(truth), spread_at_center("yeo-johnson", fit))
    assert near.any() or (dtype == "f4" and not standardize)
    assert (errors <= PROMISE[dtype]).all()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit.inverse_transform(fit.transform(x))
    assert [str(each.message).count("column 0") for each in caught if "flat" in str(each.message)] == [1]


def test_warnings_occur_at_both_ends_in_both_families() -> None:
    """Without these warnings, the tests of their limits would check nothing."""
    cases = [(-3.0, "box-cox", "from"), (5.0, "box-cox", "up to"), (-3.0, "yeo-johnson", "from")]
    for lmbda, family, side in cases:
        fit = pk.fit(sample(lmbda), family, lmbda=lmbda)
        assert side in round_trip(fit, far_and_near(lmbda))[1]
    negative = pk.fit(-sample(3.0), lmbda=5.0)
    assert "up to" in round_trip(negative, -far_and_near(3.0))[1]


# --- columns that are mostly one value ----------------------------------------------------------------


def counts(rate: float, n: int = 20_000) -> np.ndarray:
    return np.random.default_rng(0).poisson(rate, n).astype(float)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_rare_indicator_comes_back_and_is_named(sign: float, standardize: bool) -> None:
    x = sign * (np.random.default_rng(0).random(20_000) < 0.0035)
    fit = pk.fit(x, standardize=standardize)
    where = r"column 0 from x = 0\.0\d+ on" if sign > 0.0 else r"column 0 up to x = -0\.0\d+"
    with pytest.warns(UserWarning, match=rf"^{where} \(no digits at -?1\): the transform is so flat there"):
        assert_array_equal(fit.inverse_transform(fit.transform(x)), x)
    assert re.search(rf"\n{where} .*: the inverse transform restores fewer than 6 digits", str(fit.summary()))


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_extremes_come_back_exactly(order: str, dtype: str, standardize: bool) -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack(
        [counts(0.02, 5000), 10.0 - counts(0.02, 5000), rng.lognormal(size=5000), rng.normal(size=5000)]
    )
    X = np.asarray(X, dtype, order=order)
    X[::7, 2] = np.nan
    with pytest.warns(UserWarning, match="column 1: .lambda. is large"):
        fit = pk.fit(X, standardize=standardize)
    for n_threads in (1, 2):
        with pytest.warns(
            UserWarning, match="column 0 from .*, column 1 up to x = 9" if standardize else "column 0 from"
        ):
            back = fit.inverse_transform(fit.transform(X), n_threads=n_threads)
        for j in range(4):
            for end in (np.nanmin(X[:, j]), np.nanmax(X[:, j])):
                assert (back[X[:, j] == end, j] == end).all()


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("shape", [(50, 1), (200, 7), (40, 600), (30, 2100), (1000, 30)])
def test_ends_are_restored_exactly_in_every_layout(
    shape: tuple[int, int], family: str, order: str, dtype: str, standardize: bool
) -> None:
    """Layouts differ in shape, memory order and strides, and in whether the output overwrites the input."""
    X = np.asarray(np.random.default_rng(7).lognormal(0.0, 0.4, shape), dtype, order=order)
    fit = pk.fit(X, family, standardize=standardize)
    Z = fit.transform(X)
    ends = np.arange(shape[1]), (X.argmin(axis=0), X.argmax(axis=0))
    strided, over = np.full((shape[0], 2 * shape[1]), np.nan, dtype), Z.copy(order="K")
    strided[:, ::2] = Z
    fit.inverse_transform(over, out=over)
    for back in (fit.inverse_transform(Z), fit.inverse_transform(strided[:, ::2]), over):
        assert_allclose(back, X, rtol=1e-9 if dtype == "f8" else 1e-3)
        for rows in ends[1]:
            assert_array_equal(back[rows, ends[0]], X[rows, ends[0]])


def test_ends_come_back_exactly_in_families_side_by_side() -> None:
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.lognormal(0.0, 0.4, (300, 10)), rng.normal(size=(300, 10))])[:, rng.permutation(20)]
    fit = pk.fit(X, family="best")
    assert len(set(fit.families)) == 2
    back = fit.inverse_transform(fit.transform(X))
    assert_array_equal(back.min(axis=0), X.min(axis=0))
    assert_array_equal(back.max(axis=0), X.max(axis=0))


def test_only_doubtful_columns_are_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the column with a far value, which loses digits, is inspected; ordinary columns cost nothing extra."""
    inspected = []

    def spy(self: Inversion, images: np.ndarray, places: np.ndarray, numbers: np.ndarray) -> None:
        inspected.extend(numbers.tolist())
        inspect(self, images, places, numbers)

    inspect = Inversion.inspect
    monkeypatch.setattr(Inversion, "inspect", spy)
    X = np.random.default_rng(9).lognormal(0.0, 0.4, (300, 5))
    fit = pk.fit(X, lmbda=[1.0, 0.5, -1.5, 0.0, 1.2])
    Z = fit.transform(X)
    fit.inverse_transform(Z)
    assert not inspected
    Z[17, 2] = fit.transform(np.full((1, 5), 1e9))[0, 2]
    with pytest.warns(UserWarning, match="^column 2 from"):
        fit.inverse_transform(Z)
    assert inspected == [2]


def test_ordinary_columns_are_not_warned_of() -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack([
        rng.lognormal(size=5000), rng.gamma(0.3, size=5000), rng.standard_cauchy(5000), 1e12 * rng.normal(size=5000),
        1e-9 * rng.normal(size=5000), 1990.0 + rng.normal(size=5000), counts(0.3, 5000), counts(3.0, 5000),
        np.where(rng.random(5000) < 0.8, 0.0, rng.gamma(2.0, size=5000)), rng.beta(5.0, 0.5, size=5000),
    ])  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*lambda. is large")
        fit = pk.fit(X)
    assert_allclose(fit.inverse_transform(fit.transform(X)), X, rtol=1e-6, atol=1e-12)
    assert "restores fewer" not in str(fit.summary(method="wald"))


# --- interfaces ---------------------------------------------------------------------------------------


def test_groups_name_the_group() -> None:
    x, groups = np.append(counts(0.02, 4000), counts(2.0, 4000)), np.repeat(["a", "b"], 4000)
    fit = pk.fit(x, groups=groups)
    with pytest.warns(
        UserWarning, match=r"^group 'a' from x = \S+ on \(no digits at [123]\): the transform is so flat"
    ):
        back = fit.inverse_transform(fit.transform(x, groups), groups)
    assert_array_equal(back[x == x[:4000].max()][:1], x[:4000].max())
    assert_allclose(back[4000:], x[4000:], rtol=1e-9, atol=1e-9)


def test_frames_name_the_column() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"rare": counts(0.02), "often": counts(3.0)})
    fit = pk.fit(frame)
    with pytest.warns(UserWarning, match=r"^column 0 \('rare'\) from x = .*; keep the original values, or"):
        fit.inverse_transform(fit.transform(frame))


def test_bounds_keep_the_digits() -> None:
    x = counts(0.02)
    fit = pk.fit(x, bounds=(-5, 5))
    assert_allclose(fit.inverse_transform(fit.transform(x)), x, rtol=1e-9, atol=1e-9)


def test_the_transformer_is_as_silent_as_that_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from powerkern.sklearn import PowerTransformer

    x = counts(0.02)[:, np.newaxis]
    transformer = PowerTransformer()
    back = transformer.inverse_transform(transformer.fit_transform(x))
    assert back.max() == x.max()
