"""Values that a fit cannot transform raise, become NaN, are clipped or stay, and are counted."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import powerkern as pk

N_FRAMES = 60


def _counts(message, kind):
    """Return the number of values of a kind that a warning reports, and a dictionary of their numbers by column.

    `kind` is a regular expression that matches the name of the kind, such as "infinite values?". The result is ``(0,
    {})`` if the warning reports none.
    """
    found = re.search(rf"(\d+) {kind} (?:is|are) [^(]*(\(.*?\))(?:;|$)", message)
    if found is None:
        return 0, {}
    by_column = {int(j): int(n) for j, n in re.findall(r"column (\d+)(?: \('[^']*'\))?: (\d+)", found[2])}
    return int(found[1]), by_column


def _called(function, *args, **options):
    """Return the result of a call and the text of its only warning, "" if there was none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args, **options)
    assert len(caught) <= 1
    return result, str(caught[0].message) if caught else ""


def _fit(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pk.fit(*args, **options)


def _hostile_column(rng, n, positive):
    """Return n training values of a random kind, with NaN and infinite values; finite ones are positive if `positive`.

    Other implementations fail on these kinds.
    """
    kinds = [
        lambda: rng.lognormal(sigma=rng.uniform(0.1, 3.0), size=n),
        lambda: rng.standard_cauchy(n),
        lambda: np.full(n, rng.choice([1e-300, 3.0, 1e300])),
        lambda: np.full(n, np.nan),
        lambda: (rng.random(n) < 0.05).astype(float) + 1.0,
        lambda: 1e9 + rng.random(n),
        lambda: rng.integers(1, 4, n).astype(float),
        lambda: rng.random(n) * 1e-310,
        lambda: 10.0 ** rng.uniform(-300.0, 300.0, n),
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-200, 200),
        lambda: np.where(rng.random(n) < 0.8, 5.0, rng.lognormal(size=n)),
    ]
    x = kinds[rng.integers(len(kinds))]()
    if positive:
        x = np.abs(x) + np.finfo(float).tiny
    x[rng.random(n) < 0.1] = np.nan
    x[rng.random(n) < 0.1] = rng.choice([np.inf, -np.inf])
    return x


def _hostile_frames(seed):
    """Return a random case: family, estimator, data frame for the fit, and data frame of new rows for the transform."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 40)), int(rng.integers(1, 6))
    family = str(rng.choice(["yeo-johnson", "box-cox"]))
    estimator = "robust" if seed % 5 == 0 else "mle"
    names = [f"c{j}" for j in range(p)]
    train = pd.DataFrame({name: _hostile_column(rng, n, family == "box-cox") for name in names})
    new = pd.DataFrame({name: _hostile_column(rng, 20, False) for name in names})
    edges = [0.0, -1.0, 5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan]
    new.iloc[: len(edges)] = rng.permutation(edges)[:, np.newaxis]
    if seed % 3 == 0:
        with np.errstate(over="ignore"):
            train, new = train.astype(np.float32), new.astype(np.float32)
    return family, estimator, train, new


def _check_hostile_frames(seed):
    family, estimator, train, new = _hostile_frames(seed)
    given = train.to_numpy(dtype=float)
    if family == "box-cox" and (given[np.isfinite(given)] <= 0.0).any():  # float32 rounds tiny values to zero
        train = train.where(~(train <= 0.0), np.float32(1e-30))
        given = train.to_numpy(dtype=float)
    fit = _fit(train, family, estimator, infinite="missing")
    result, message = _called(fit.transform, new, out_of_range="clip", infinite="missing")
    assert list(result.columns) == list(new.columns)
    z, x = result.to_numpy(dtype=float), new.to_numpy(dtype=float)
    seen = np.where(np.isfinite(given), given, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without values
        low, high = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
    has_range = ~np.isnan(low)
    outside = np.isfinite(x) & ((x < low) | (x > high))
    lost = np.isfinite(x) & ~has_range & (z != z)  # without values, a column has no range to clip to
    assert not np.isinf(z).any()
    assert np.array_equal(np.isnan(z), ~np.isfinite(x) | lost)
    assert not (lost.any() and family != "box-cox" and not np.isnan(z[lost]).all())
    n_clipped, clipped = _counts(message, "values?")
    n_missing, missing = _counts(message, "infinite values?")
    moved = outside | lost
    assert n_clipped == moved.sum()
    assert clipped == {j: n for j, n in enumerate(moved.sum(axis=0)) if n}
    infinite = np.isinf(x).sum(axis=0)
    assert n_missing == infinite.sum()
    assert missing == {j: n for j, n in enumerate(infinite) if n}
    inside = np.where(np.isfinite(x), np.clip(x, low, high), np.nan)[:, has_range & ~np.isin(fit.status, [4])]
    if inside.shape[1]:
        own = fit[[j for j in range(len(fit)) if has_range[j] and fit.status[j] != 4]]
        largest = np.finfo(train.dtypes.iloc[0]).max
        expected = np.clip(own.transform(inside), -largest, largest)
        assert np.allclose(
            z[:, has_range],
            expected,
            rtol=1e-4 if train.dtypes.iloc[0] == np.float32 else 0.0,
            atol=0.0,
            equal_nan=True,
        )


@pytest.mark.parametrize("seed", range(N_FRAMES))
def test_hostile_frames_never_stop_a_pipeline(seed):
    _check_hostile_frames(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_more_hostile_frames_never_stop_a_pipeline(part):
    for seed in range(N_FRAMES + part * 110, N_FRAMES + (part + 1) * 110):
        _check_hostile_frames(seed)


NEW = np.array([[0.5, -1.0], [0.0, 1e308], [np.inf, 2.0], [np.nan, -np.inf], [1e-300, 3.0]])


def _train():
    return np.random.default_rng(0).lognormal(size=(60, 2))


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_clipping_is_numpys(family, dtype, order):
    X = _train().astype(dtype)
    with np.errstate(over="ignore"):
        new = np.asarray(NEW.astype(dtype), order=order)
    fit = pk.fit(X, family)
    z, message = _called(fit.transform, new, out_of_range="clip", infinite="missing")
    clipped = np.clip(np.where(np.isinf(new), np.nan, new), X.min(axis=0), X.max(axis=0))
    np.testing.assert_array_equal(z, fit.transform(clipped))
    assert z.dtype == dtype
    finite = np.isfinite(new)
    assert _counts(message, "values?")[0] == (finite & ((new < X.min(axis=0)) | (new > X.max(axis=0)))).sum()
    assert _counts(message, "infinite values?")[0] == np.isinf(new).sum()


def test_nan_changes_only_values_without_a_transform():
    fit = pk.fit(_train(), "box-cox", lmbda=[-3.0, 3.0])
    new = np.array([[1e-200, 0.5], [0.5, 1e200], [0.0, -1.0], [np.inf, np.nan]])
    z, message = _called(fit.transform, new, out_of_range="nan", infinite="missing")
    assert np.isnan(z).tolist() == [[True, False], [False, True], [True, True], [True, True]]
    np.testing.assert_array_equal(z[[0, 1], [1, 0]], fit.transform(np.full((1, 2), 0.5))[0, ::-1])
    assert _counts(message, "values?") == (4, {0: 2, 1: 2})
    assert _counts(message, "infinite values?") == (1, {0: 1})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.0, np.inf], "row 1: the value is inf; replace"),
        ([-2.0, 1.0], "row 0: the value is -2.0, and the Box-Cox"),
    ],
)
@pytest.mark.parametrize("in_place", [False, True])
def test_by_default_values_without_a_transform_are_refused_before_anything_is_written(values, reason, in_place):
    fit = pk.fit(_train()[:, 0], "box-cox", lmbda=-3.0)
    x = np.array(values)
    with pytest.raises(ValueError, match=f"^{reason}"):
        fit.transform(x, out=x if in_place else None)
    assert x.tolist() == values


def test_infinite_values_are_passed_on_and_back():
    X = _train()
    X[3, 0], X[5, 1] = np.inf, -np.inf
    fit, message = _called(pk.fit, X, infinite="keep")
    assert message == ""
    np.testing.assert_array_equal(fit.lmbda, pk.fit(np.where(np.isinf(X), np.nan, X)).lmbda)
    z, message = _called(fit.transform, X)
    assert message == ""
    assert np.isposinf(z[3, 0])
    assert np.isneginf(z[5, 1])
    back, message = _called(fit.inverse_transform, z)
    assert message == ""
    np.testing.assert_array_equal(back[np.isinf(X)], X[np.isinf(X)])
    again = pk.PowerFit.from_json(fit.to_json())
    np.testing.assert_array_equal(again.transform(X), z)


def test_a_fit_counts_the_infinite_values_that_it_treats_as_missing():
    X = pd.DataFrame(_train(), columns=["age", "fare"])
    X.loc[:2, "fare"] = np.inf
    fit, message = _called(pk.fit, X, infinite="missing")
    assert message == "3 infinite values are treated as missing (column 1 ('fare'): 3)"
    assert fit.n_obs.tolist() == [60, 57]
    low = fit.profile([0.0], X)  # data passed later are read in the same way
    assert np.isfinite(low).all()
    with pytest.raises(ValueError, match=r"row 0: the value is inf; .* or use infinite='missing'"):
        pk.fit(X)


def test_columns_that_pass_unchanged_have_the_same_rules():
    X = np.column_stack([np.full(9, 3.0), np.full(9, np.nan)])
    fit = _fit(X, "box-cox")
    new = np.array([[-1.0, -1.0], [np.inf, np.inf], [3.0, 2.0]])
    with pytest.raises(ValueError, match=r"column 0, row 1: the value is inf"):
        fit.transform(new)
    z, message = _called(fit.transform, new, out_of_range="clip", infinite="missing")
    np.testing.assert_array_equal(z, [[3.0, -1.0], [np.nan, np.nan], [3.0, 2.0]])
    assert _counts(message, "values?") == (1, {0: 1})


@pytest.mark.parametrize("options", [{}, {"shift": 3.0}])
def test_raw_output_that_overflows_at_the_ends_of_the_data_becomes_the_largest_number(options):
    with pytest.warns(UserWarning, match="overflow"):
        fit = pk.fit(1.0 + _train(), "box-cox", lmbda=3000.0, standardize=False, **options)
    z, _ = _called(fit.transform, 1.0 + _train(), out_of_range="clip")
    assert z.max() == np.finfo(float).max
    assert np.isfinite(z).all()


@pytest.mark.parametrize("how", ["clip", "nan"])
def test_groups_are_treated_as_fits_of_their_own(how):
    X, groups = _train(), np.arange(60) % 3
    fit = pk.fit(X, "box-cox", groups=groups)
    new, g = np.vstack([np.where(NEW == 1e308, 1e38, NEW)] * 3).astype(np.float32), np.repeat([0, 1, 2], len(NEW))
    z, message = _called(fit.transform, new, g, out_of_range=how, infinite="missing")
    n = 0
    for k in range(3):
        own, text = _called(fit[k].transform, new[g == k].astype(float), out_of_range=how, infinite="missing")
        np.testing.assert_array_equal(z[g == k], own.astype(np.float32))
        n += _counts(text, "values?")[0]
    assert _counts(message, "values?")[0] == n
    assert z.dtype == np.float32
    with pytest.raises(ValueError, match=r"column 0, row 1: the value is 0\.0"):
        fit.transform(new, g, infinite="missing")


def test_transforms_that_overflow_are_infinite_or_replaced():
    X = _train()
    fit = pk.fit(X, groups=np.arange(60) % 2, lmbda=9.0)
    new = np.full((2, 2), 1e6, dtype=np.float32)
    assert np.isposinf(fit.transform(new, [0, 1])).all()
    assert np.isposinf(fit.transform(new, [0, 1], infinite="missing")).all()
    alone = pk.fit(X, "box-cox", lmbda=-3.0)
    assert np.isneginf(alone.transform(np.full((1, 2), 1e-200))).all()
    assert np.isneginf(alone.transform(np.full((1, 2), 1e-200), infinite="keep")).all()
    assert np.isnan(_called(fit.transform, new, [0, 1], out_of_range="nan")[0]).all()


def test_float32_images_that_overflow_are_counted_once():
    """Images of a robust fit overflow in float32 but not in float64. The data also contain infinite values."""
    _, _, train, new = _hostile_frames(210)
    x = np.maximum(train.c1.to_numpy(), np.float32(1e-30))
    fit = _fit(x, "box-cox", "robust", infinite="missing")
    values = np.append(new.c1.to_numpy(), np.float32(1e-30))
    assert np.isfinite(fit.transform(np.array([1e-30])))
    z, message = _called(fit.transform, values, out_of_range="nan", infinite="missing")
    assert np.isnan(z[-1])
    assert not np.isinf(z).any()
    assert _counts(message, "values?")[0] == (np.isnan(z) & np.isfinite(values)).sum()


def test_chunks_leave_infinite_values_out():
    X = _train()
    X[3, 0] = np.inf
    fit = pk.sketch.fit_chunks([X[:30], X[30:]], infinite="missing")
    np.testing.assert_allclose(fit.lmbda, _fit(X, infinite="missing").lmbda, rtol=1e-10)
    assert fit.n_obs.tolist() == [59, 60]
    with pytest.raises(ValueError, match="the value is inf"):
        pk.sketch.fit_chunks([X[:30], X[30:]])


@pytest.mark.parametrize("name", ["out_of_range", "infinite"])
def test_words_are_checked(name):
    with pytest.raises(ValueError, match=f"^{name} must be one of"):
        pk.fit(_train()).transform(NEW, **{name: "drop"})


@pytest.mark.parametrize("groups", [None, [0]])
def test_raw_output_that_overflows_is_infinite_by_default(groups):
    fit = pk.fit(_train()[:, 0], lmbda=9.0, standardize=False, groups=None if groups is None else np.zeros(60))
    given = () if groups is None else (groups,)
    assert np.isposinf(fit.transform(np.array([1e200]), *given)).all()
    with pytest.raises(ValueError, match="the value is inf"):
        fit.transform(np.array([np.inf]), *given)


def test_values_that_overflow_when_they_are_rescaled_have_the_image_of_the_largest_number():
    x = np.random.default_rng(0).lognormal(size=40) * 1e-310
    fit = _fit(x, estimator="robust")
    z, _ = _called(fit.transform, np.array([1e-310, 1.0, 2.0]), out_of_range="nan")
    assert np.isfinite(z[0])
    assert not np.isinf(z).any()


# --- the inverse --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(
    "family, lmbda",
    [("box-cox", -1.0), ("box-cox", 0.0), ("box-cox", 1.5), ("yeo-johnson", -0.5), ("yeo-johnson", 3.0)],
)
def test_clipped_inverses_keep_order(family, lmbda, standardize, dtype):
    """Clipped inverses do not decrease as z grows beyond the ends of the data and of the range of psi."""
    x = np.random.default_rng(0).lognormal(size=(100, 1)).astype(dtype)
    X = np.hstack([x, 5.0 * x, np.full_like(x, 3.0)])
    fit = _fit(X, family, lmbda=[lmbda, lmbda, 1.0], standardize=standardize)
    ends = fit.transform(np.array([X.min(axis=0), X.max(axis=0)]))
    steps = np.concatenate(
        [np.linspace(-8.0, 9.0, 4001), np.linspace(-1e-6, 1e-6, 101), 1.0 + np.linspace(-1e-6, 1e-6, 101)]
    )
    z = (ends[0] + np.sort(steps)[:, np.newaxis] * (ends[1] - ends[0])).astype(dtype)
    for order in "CF":
        found, message = _called(fit.inverse_transform, np.array(z, order=order), out_of_range="clip")
        assert message == ""
        assert (np.diff(found[:, :2], axis=0) >= 0.0).all()
        np.testing.assert_array_equal(found[[0, -1], :2], [X.min(axis=0)[:2], X.max(axis=0)[:2]])
    inside = (z[:, 0] > ends[0, 0]) & (z[:, 0] < ends[1, 0])
    plain, _ = _called(fit.inverse_transform, z[inside])
    np.testing.assert_allclose(found[inside, 0], plain[:, 0], rtol=1e-12 if dtype == np.float64 else 1e-4)
    groups = _fit(X, family, lmbda=[lmbda, lmbda, 1.0], standardize=standardize, groups=[0, 1] * 50)
    for label in (0, 1):
        found = groups.inverse_transform(z, groups=np.full(len(z), label), out_of_range="clip")
        assert (np.diff(found[:, :2], axis=0) >= 0.0).all()
        expected = groups[label].inverse_transform(z, out_of_range="clip")
        np.testing.assert_allclose(found[:, :2], expected[:, :2], rtol=1e-12 if dtype == np.float64 else 1e-5)


def test_clipped_inverses_pass_infinite_values_of_a_fit_that_keeps_them():
    x = np.random.default_rng(0).lognormal(size=50)
    fit = pk.fit(x, "box-cox", lmbda=-1.0, infinite="keep")
    found = fit.inverse_transform([-9.0, np.nan, 99.0, np.inf], out_of_range="clip")
    np.testing.assert_array_equal(found, [x.min(), np.nan, x.max(), np.inf])


# --- in place -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("infinite", ["raise", "missing", "keep"])
@pytest.mark.parametrize("out_of_range", ["raise", "nan", "clip"])
def test_data_are_overwritten_whole_or_not_at_all(out_of_range, infinite, dtype, order):
    """An error in the last cell, which is transformed last, leaves all cells of the data unchanged."""
    train = np.random.default_rng(0).lognormal(size=(200, 3)).astype(dtype)
    fit = pk.fit(train, "box-cox")
    for wrong in (np.inf, -1.0):
        X = np.array(train, order=order)
        X[-1, -1] = wrong
        before = X.copy()
        options = {"out_of_range": out_of_range, "infinite": infinite}
        if (infinite if wrong == np.inf else out_of_range) == "raise":
            with pytest.raises(ValueError, match="row 199"):
                fit.transform(X, out=X, **options)
            np.testing.assert_array_equal(X, before)
        else:
            expected, _ = _called(fit.transform, before, **options)
            result, _ = _called(fit.transform, X, out=X, **options)
            assert result is X
            np.testing.assert_array_equal(X, expected)
