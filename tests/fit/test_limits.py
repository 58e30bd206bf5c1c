"""Fits of columns with censored cells, compared with likelihoods computed by SciPy."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.testing as npt
import pandas as pd
import pytest
from scipy import optimize, special, stats

import powerkern as pk
from powerkern._typing import FloatArray
from powerkern.kernels.results import N_EVAL

RNG = np.random.default_rng(43)
LOGNORMAL = RNG.lognormal(size=(60, 3))
LOW = np.quantile(LOGNORMAL, 0.3, axis=0)


def psi(lmbda: float, x: Any, family: str) -> FloatArray:
    """Return the power transform of x."""
    x = np.asarray(x, dtype=float)
    if family == "box-cox":
        return np.asarray(stats.boxcox(x, lmbda))
    return np.asarray(stats.yeojohnson(x, lmbda))


def minus_log_likelihood(
    parameters: Any, x: FloatArray, low: FloatArray, high: FloatArray, weight: FloatArray, family: str
) -> float:
    """Return minus the log-likelihood of a column with censored cells.

    Parameters
    ----------
    parameters : sequence of 3 float
        Lambda, mean and log of the standard deviation.
    x : (n,) ndarray
        The values; NaN where a cell is only known to lie between `low` and `high`.
    low, high : (n,) ndarray
        Ends of the intervals, used where x is NaN. An end that is not finite is open.
    weight : (n,) ndarray
        Weights of the cells.
    family : str
        "box-cox" or "yeo-johnson".
    """
    lmbda, mean, log_sd = parameters
    sd, is_value = np.exp(log_sd), ~np.isnan(x)
    logs = np.log(x) if family == "box-cox" else np.sign(x) * np.log1p(np.abs(x))
    terms = np.empty(x.size)
    terms[is_value] = stats.norm.logpdf(psi(lmbda, x[is_value], family), mean, sd) + (lmbda - 1.0) * logs[is_value]
    below, above = (np.full(x.size, end) for end in (-np.inf, np.inf))
    has_low, has_high = ~is_value & np.isfinite(low), ~is_value & np.isfinite(high)
    below[has_low] = (psi(lmbda, low[has_low], family) - mean) / sd
    above[has_high] = (psi(lmbda, high[has_high], family) - mean) / sd
    probability = stats.norm.cdf(above[~is_value]) - stats.norm.cdf(below[~is_value])
    terms[~is_value] = np.log(np.maximum(probability, 1e-300))
    return float(-(weight * terms).sum())


def check_maximum(
    fit: pk.PowerFit, x: FloatArray, low: FloatArray, high: FloatArray, weight: FloatArray | None = None
) -> None:
    """Check that a fit of one column maximises the likelihood, and check its information by finite differences.

    Other arguments are as in `minus_log_likelihood`. The weights are 1 by default.
    """
    given = (x, low, high, np.ones(x.size) if weight is None else weight, fit.families[0])
    best = np.array([fit.lmbda[0], fit.loc[0], np.log(fit.scale[0])])
    found = optimize.minimize(minus_log_likelihood, best, given, method="Nelder-Mead", options={"xatol": 1e-7})
    assert minus_log_likelihood(best, *given) <= found.fun + 1e-8
    npt.assert_allclose(found.x, best, atol=2e-3)
    step = 0.5 / np.sqrt(fit.information[0])
    beside = [
        optimize.minimize(lambda p, at=at: minus_log_likelihood([at, *p], *given), best[1:], method="BFGS").fun
        for at in (best[0] - step, best[0] + step)
    ]
    curvature = (sum(beside) - 2.0 * minus_log_likelihood(best, *given)) / step**2
    npt.assert_allclose(fit.information[0], curvature, rtol=0.05)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("kind", ["below", "above", "both", "between", "each cell"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_fit_maximises_the_likelihood(family: str, kind: str, is_weighted: bool) -> None:
    rng = np.random.default_rng(len(kind) + 10 * is_weighted)
    x = rng.lognormal(size=50) if family == "box-cox" else rng.normal(0.5, 2.0, 50)
    low, high = np.full(50, -np.inf), np.full(50, np.inf)
    bottom, top = np.quantile(x, [0.25, 0.8])
    limits = None
    if kind in ("below", "both"):
        high[x < bottom] = bottom
    if kind in ("above", "both"):
        low[x > top] = top
    if kind == "each cell":
        own = np.quantile(x, rng.uniform(0.1, 0.6, 50))
        high[x < own] = own[x < own]
    if kind == "between":
        low, high = np.floor(4.0 * x) / 4.0, np.floor(4.0 * x) / 4.0 + 0.25
        if family == "box-cox":
            low[low == 0.0] = -np.inf
    is_value = np.isinf(low) & np.isinf(high)
    weight = rng.uniform(0.5, 2.0, 50) if is_weighted else None
    if kind in ("below", "above", "both"):
        limits = (bottom if kind != "above" else None, top if kind != "below" else None)
        fit = pk.fit(x, family, limits=limits, sample_weight=weight)
    else:
        ends = (np.where(is_value, np.nan, end) for end in (low, high))
        fit = pk.fit(x, family, between=tuple(ends), sample_weight=weight)
    check_maximum(fit, np.where(is_value, x, np.nan), low, high, weight)
    counts = np.ones(50) if weight is None else weight
    npt.assert_allclose(fit.n_censored, counts[~is_value].sum())
    npt.assert_allclose(fit.n_obs, counts.sum())


def test_masks_and_limits_say_the_same() -> None:
    by_limits = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None))
    by_masks = pk.fit(np.maximum(LOGNORMAL, LOW), "box-cox", below=LOGNORMAL <= LOW)
    npt.assert_array_equal(by_limits.lmbda, by_masks.lmbda)
    missing = np.where(LOGNORMAL <= LOW, np.nan, LOGNORMAL)
    npt.assert_array_equal(
        pk.fit(missing, "box-cox", below=LOGNORMAL <= LOW, limits=(LOW, None)).lmbda, by_limits.lmbda
    )


def test_a_column_without_censored_cells_has_the_bits_of_a_fit_without_limits() -> None:
    fit = pk.fit(LOGNORMAL, "box-cox", limits=([LOW[0], 1e-9, -np.inf], None))
    plain = pk.fit(LOGNORMAL, "box-cox")
    npt.assert_array_equal(fit._table.kernel_rows[1:], plain._table.kernel_rows[1:])
    assert fit.n_censored.tolist() == [18.0, 0.0, 0.0]
    assert fit.lmbda[0] != plain.lmbda[0]


def test_integer_weights_repeat_rows_and_missing_cells_are_ignored() -> None:
    x = LOGNORMAL[:, 0]
    weight = np.arange(60) % 3
    with_missing = np.append(x, [np.nan, np.nan])
    weighted = pk.fit(with_missing, "box-cox", limits=(LOW[0], None), sample_weight=np.append(weight, [1, 2]))
    repeated = pk.fit(np.repeat(x, weight), "box-cox", limits=(LOW[0], None))
    npt.assert_allclose(weighted.lmbda, repeated.lmbda, rtol=1e-10)
    npt.assert_allclose(weighted.information, repeated.information, rtol=1e-8)


def test_negative_columns_are_mirrored() -> None:
    x = -LOGNORMAL[:, 0]
    fit = pk.fit(x, limits=(None, -LOW[0]))
    mirrored = pk.fit(-x, limits=(LOW[0], None))
    npt.assert_allclose(fit.lmbda, 2.0 - mirrored.lmbda, rtol=1e-9)
    npt.assert_allclose(fit.loc, -mirrored.loc, rtol=1e-9)


def test_a_shift_applies_to_limits_too() -> None:
    x = LOGNORMAL[:, 0]
    fit = pk.fit(x - 0.05, "box-cox", shift=0.05, limits=(LOW[0] - 0.05, None))
    plain = pk.fit(x, "box-cox", limits=(LOW[0], None))
    npt.assert_allclose(fit.lmbda, plain.lmbda, rtol=1e-9)
    npt.assert_allclose(fit.fraction_below(LOW[0] - 0.05), plain.fraction_below(LOW[0]), rtol=1e-9)


def test_groups_are_fits_of_their_rows() -> None:
    labels = np.arange(60) % 2
    fit = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None), groups=labels)
    for label in (0, 1):
        part = pk.fit(LOGNORMAL[labels == label], "box-cox", limits=(LOW, None))
        npt.assert_array_equal(fit[label].lmbda, part.lmbda)
        npt.assert_array_equal(fit[label].n_censored, part.n_censored)
        npt.assert_allclose(fit[label].confint(), part.confint())


def test_bounds_hold_and_given_lambdas_are_kept() -> None:
    free = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None))
    bounded = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None), bounds=(free.lmbda[0] + 0.1, 2.0))
    assert bounded.status[0] == pk.Status.AT_BOUND
    given = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None), lmbda=bounded.lmbda)
    npt.assert_allclose(bounded.loc, given.loc, rtol=1e-12)
    assert (given.status == pk.Status.FIXED).all()


def test_masks_are_aligned_by_label() -> None:
    frame = pd.DataFrame(np.maximum(LOGNORMAL, LOW), columns=list("abc"), index=np.arange(60) + 5)
    mask = pd.DataFrame(LOGNORMAL <= LOW, columns=list("abc"), index=frame.index)
    plain = pk.fit(frame, "box-cox", below=mask)
    turned = pk.fit(frame, "box-cox", below=mask[["c", "a", "b"]].sample(frac=1.0, random_state=1))
    npt.assert_array_equal(turned.lmbda, plain.lmbda)
    limits = pd.Series(LOW, index=list("abc"))
    npt.assert_array_equal(pk.fit(frame, "box-cox", limits=(limits[["b", "c", "a"]], None)).lmbda, plain.lmbda)


NAMED = pd.DataFrame(LOGNORMAL, columns=["lead", "zinc", "iron"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"below": (NAMED < 0.5).rename(columns={"iron": "tin"})},
            "below has the columns 'lead', 'zinc', 'tin', and not 'lead', 'zinc', 'iron'; use the same labels",
        ),
        ({"below": (NAMED < 0.5).set_axis(range(5, 65))}, "below has no row labelled 0, which X has"),
        (
            {"limits": (pd.Series({"lead": 0.5, "zinc": 0.2, "tin": 0.1}), None)},
            "the lower end of limits has the label 'tin', and the columns are 'lead', 'zinc', 'iron'",
        ),
    ],
)
def test_marks_and_limits_with_other_labels_are_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pk.fit(NAMED, "box-cox", **arguments)


def test_a_limit_may_be_above_observed_values() -> None:
    x, below = LOGNORMAL[:, 0].copy(), LOGNORMAL[:, 0] < LOW[0]
    x[below], x[0], below[0] = LOW[0], 50.0, True
    fit = pk.fit(x, "box-cox", below=below)
    check_maximum(fit, np.where(below, np.nan, x), np.full(60, -np.inf), np.where(below, x, np.inf))


@pytest.mark.parametrize("n_observed", [0, 1])
def test_a_column_with_too_few_observed_values_is_named(n_observed: int) -> None:
    limit = np.sort(NAMED["zinc"])[-2:].mean() if n_observed else 1e3
    with pytest.warns(UserWarning, match=r"column 1 \('zinc'\): not fitted: fewer than two distinct values"):
        fit = pk.fit(NAMED, "box-cox", limits=([0.1, limit, 0.1], None))
    assert fit.status[1] == pk.Status.FEW_OBSERVED


def make_flagged_frame() -> tuple[pd.DataFrame, np.ndarray]:
    """Return a data frame and the mask of its flagged cells, (60, 2).

    The data frame has values in columns a and b, flags in nondetect (of a) and flag (of b), groups in site, weights in
    w.
    """
    flags = LOGNORMAL[:, :2] < LOW[:2]
    frame = pd.DataFrame(np.where(flags, LOW[:2], LOGNORMAL[:, :2]), columns=["a", "b"])
    frame.insert(1, "nondetect", flags[:, 0])  # between the columns of values, so that their positions shift
    return frame.assign(flag=flags[:, 1].astype(int), site=["u", "v", "v"] * 20, w=np.arange(60) % 3 + 1.0), flags


FLAGS = {"a": "nondetect", "b": "flag"}


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_columns_may_hold_flags(kind: str) -> None:
    frame, mask = make_flagged_frame()
    values = frame[["a", "b"]].to_numpy()
    convert = {
        "pandas": lambda: frame,
        "polars": lambda: pytest.importorskip("polars").from_pandas(frame),
        "pyarrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(frame),
    }[kind]
    data = convert()
    fit = pk.fit(data, "box-cox", below=FLAGS, sample_weight="w", non_numeric="ignore")
    expected = pk.fit(values, "box-cox", below=mask, sample_weight=frame["w"].to_numpy())
    assert list(fit.column_names) == ["a", "b"]
    npt.assert_array_equal(fit.lmbda, expected.lmbda)
    grouped = pk.fit(data, "box-cox", below=FLAGS, groups="site", sample_weight="w")
    for site in ("u", "v"):
        rows = (frame["site"] == site).to_numpy()
        part = pk.fit(values[rows], "box-cox", below=mask[rows], sample_weight=frame["w"].to_numpy()[rows])
        npt.assert_allclose(grouped[site].lmbda, part.lmbda, rtol=1e-9)
    scores = fit.expected(data, below=FLAGS)  # columns of flags pass through like other columns
    found = np.column_stack([np.asarray(scores[name]) for name in ("a", "b")])
    npt.assert_allclose(found, expected.expected(values, below=mask))


def test_flags_mark_only_the_columns_that_are_named() -> None:
    frame, mask = make_flagged_frame()
    part = frame[["a", "nondetect", "b"]]
    fit = pk.fit(part, "box-cox", above={"b": "nondetect"})
    mask = np.column_stack([np.zeros(60, bool), mask[:, 0]])
    npt.assert_array_equal(fit.lmbda, pk.fit(frame[["a", "b"]].to_numpy(), "box-cox", above=mask).lmbda)
    assert fit.n_censored.tolist() == [0, mask.sum()]


@pytest.mark.parametrize(
    "flags, error, message",
    [
        ({"a": "nondetected"}, ValueError, r"below\['a'\]='nondetected': there is no column of that name among 'a', "),
        (
            {"c": "flag"},
            ValueError,
            r"below=\{'c': \.\.\.\}: 'c' is not a fitted column; the columns are 'a', 'nondetect', 'b'",
        ),
        ({"a": "site"}, TypeError, r"below\['a'\]='site': column 'site' must hold flags, True or False$"),
        ({"a": "w"}, ValueError, r"column 'w', row 1: flags are True or False \(below\['a'\]\), got 2$"),
        (["nondetect", "flag"], TypeError, r"say which column each flag marks, as in below=\{'value': 'flag'\}$"),
        ("flag", TypeError, r"say which column each flag marks, as in below=\{'value': 'flag'\}$"),
    ],
)
def test_wrong_flags_are_refused_by_name(flags: Any, error: type[Exception], message: str) -> None:
    frame, _ = make_flagged_frame()
    with pytest.raises(error, match=message):
        pk.fit(frame, "yeo-johnson", below=flags, non_numeric="ignore")


def test_flags_need_a_data_frame() -> None:
    with pytest.raises(TypeError, match="names a column of flags, but X is a ndarray, not a data frame"):
        pk.fit(LOGNORMAL, "box-cox", below={"a": "flag"})


def test_profile_intervals_fall_by_half_a_quantile() -> None:
    fit = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, np.quantile(LOGNORMAL, 0.9)))
    low, high = fit.confint()
    for end in (low, high):
        falls = [fit.profile(end[j])[j] - fit.nll[j] for j in range(3)]
        npt.assert_allclose(falls, 0.5 * stats.chi2.ppf(0.95, 1), rtol=1e-8)
    assert (low < fit.lmbda).all()
    assert (fit.lmbda < high).all()
    test = fit.lr_test(low)
    npt.assert_allclose(test.pvalue, 0.05, rtol=1e-7)


def test_expectations_are_conditional_means() -> None:
    fit = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None))
    scores = fit.expected(LOGNORMAL)
    t = fit.transform(LOW[np.newaxis])[0]
    censored = LOGNORMAL <= LOW
    npt.assert_allclose(scores[~censored], fit.transform(LOGNORMAL)[~censored])
    for j in range(3):
        npt.assert_allclose(scores[censored[:, j], j], stats.truncnorm(-np.inf, t[j]).mean(), rtol=1e-9)
    raw = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None), standardize=False).expected(LOGNORMAL)
    npt.assert_allclose(raw, fit.loc + fit.scale * scores, rtol=1e-12)


def test_draws_are_from_the_truncated_distribution() -> None:
    x = np.random.default_rng(5).lognormal(size=4000)
    low, high = np.quantile(x, [0.4, 0.8])
    fit = pk.fit(x, "box-cox", limits=(low, high))
    drawn = fit.draw(x, rng=1)
    for chosen, ends in ((x <= low, (-np.inf, low)), (x >= high, (high, np.inf))):
        a, b = (end if np.isinf(end) else fit.transform([end])[0] for end in ends)
        assert stats.kstest(drawn[chosen], stats.truncnorm(a, b).cdf).pvalue > 1e-3
    again = fit.draw(x, rng=1, scale="data")
    npt.assert_array_equal(again[(x > low) & (x < high)], x[(x > low) & (x < high)])
    npt.assert_allclose(fit.transform(again), drawn, atol=1e-9)
    npt.assert_array_equal(fit.draw(x, rng=1), drawn)


@pytest.mark.parametrize("scale", ["scores", "data"])
def test_columns_that_were_not_fitted_have_no_draws(scale: str) -> None:
    x = LOGNORMAL.copy()
    x[:, 1] = 0.1  # all values are below the limit
    with pytest.warns(UserWarning, match="column 1: not fitted"):
        fit = pk.fit(x, "box-cox", limits=(0.5, None))
    drawn = fit.draw(x, scale=scale, rng=1)
    assert np.isnan(drawn[:, 1]).all()
    npt.assert_array_equal(np.isnan(fit.expected(x)[:, 1]), True)
    assert np.isfinite(drawn[:, [0, 2]]).all()


def test_fractions_below_are_normal_probabilities() -> None:
    fit = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None))
    npt.assert_allclose(fit.fraction_below(LOW), stats.norm.cdf(fit.transform(LOW[np.newaxis])[0]), rtol=1e-12)
    assert fit.fraction_below(0.0).tolist() == [0.0] * 3


def test_a_fit_is_stored_with_its_counts() -> None:
    fit = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None))
    copied = pickle.loads(pickle.dumps(fit))
    npt.assert_array_equal(copied.n_censored, fit.n_censored)
    npt.assert_array_equal(copied.expected(LOGNORMAL), fit.expected(LOGNORMAL))
    npt.assert_allclose(copied.confint(method="wald"), fit.confint(method="wald"))
    assert fit[1:].n_censored.tolist() == fit.n_censored[1:].tolist()
    with pytest.raises(ValueError, match="needs the fitted data with their limits"):
        copied.confint()


@pytest.mark.parametrize("method", ["normality", "central_normality"])
def test_methods_that_need_numbers_refuse(method: str) -> None:
    fit = pk.fit(LOGNORMAL, "box-cox", limits=(LOW, None))
    with pytest.raises(ValueError, match="this fit has censored cells"):
        getattr(fit, method)()
    with pytest.raises(ValueError, match="this fit has censored cells"):
        getattr(fit, method)(LOGNORMAL)
    assert "only known to lie in an interval" in str(fit.summary())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"below": np.zeros((60, 2), bool)},
            ValueError,
            r"below must have the shape of X, .*got shape \(60, 2\)",
        ),
        ({"above": np.full((60, 3), 2)}, ValueError, "above, column 0, row 0: marks are True or False, got 2"),
        ({"below": np.ones((60, 3), bool), "above": np.ones((60, 3), bool)}, ValueError, "by both below= and above="),
        ({"between": 3}, TypeError, r"between must be a pair \(low, high\)"),
        ({"limits": (1.0, 0.5)}, ValueError, "limits must be .* low < high; for column 0 they are 1 and 0.5"),
        (
            {"limits": ([1.0, 2.0], None)},
            ValueError,
            "the lower end of limits must be one number or one per",
        ),
        ({"limits": 0.5}, TypeError, r"limits must be a pair \(low, high\)"),
        ({"between": (np.full((60, 3), 2.0), np.ones((60, 3)))}, ValueError, "a lower end above its upper end"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pk.fit(LOGNORMAL, "box-cox", **arguments)


def test_marked_cells_need_a_number_in_the_domain() -> None:
    x = np.where(LOGNORMAL <= LOW, np.nan, LOGNORMAL)
    with pytest.raises(ValueError, match="is marked but has no number"):
        pk.fit(x, "box-cox", below=LOGNORMAL <= LOW)
    with pytest.raises(ValueError, match="positive"):
        pk.fit(np.where(LOGNORMAL <= LOW, 0.0, LOGNORMAL), "box-cox", below=LOGNORMAL <= LOW)


def test_the_first_marked_cell_without_a_number_is_named_by_column_and_row() -> None:
    X, below = np.random.default_rng(0).lognormal(size=(9, 3)), np.zeros((9, 3), bool)
    below[[5, 7, 2], [1, 1, 2]] = True
    X[below] = np.nan
    with pytest.raises(ValueError, match=r"^column 1, row 5 is marked but has no number"):
        pk.fit(X, "box-cox", below=below)


@pytest.mark.parametrize("n_observed", [0, 1])
def test_too_few_observed_values_have_a_status(n_observed: int) -> None:
    x = np.arange(1.0, 11.0)
    with pytest.warns(UserWarning, match="fewer than two distinct values besides censored cells"):
        fit = pk.fit(x, "box-cox", limits=(10.5 - n_observed, None))
    assert fit.status[0] == pk.Status.FEW_OBSERVED
    npt.assert_array_equal(fit.transform(x), x)
    assert np.isnan(fit.expected(x)[0])
    assert np.isnan(fit.fraction_below(3.0)[0])


def transform_complex(x: FloatArray, lmbda: complex, family: str) -> Any:
    """Return the power transform of x at a complex lambda.

    The formula is accurate only if |x| > 1e-3 and lambda is close to a real number other than 0 and 2.
    """
    if family == "box-cox":
        return (np.exp(lmbda * np.log(x)) - 1.0) / lmbda
    m, sign = np.where(x < 0.0, 2.0 - lmbda, lmbda), np.where(x < 0.0, -1.0, 1.0)
    return sign * (np.exp(m * np.log1p(abs(x))) - 1.0) / m


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("limit", ["of the column", "of each cell", "on both sides", "intervals"])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_the_likelihood_of_a_long_column_has_no_slope_at_the_fit(family: str, limit: str, is_weighted: bool) -> None:
    rng = np.random.default_rng(len(limit))
    n = 2500
    z = rng.normal(size=n)
    x = np.exp(0.3 * z) if family == "box-cox" else 2.0 * z + 0.5
    moved = 0.1 * rng.normal(size=n) if limit == "of each cell" else np.zeros(n)
    lower, upper = (np.quantile(x, share) + moved for share in (0.3, 0.9))
    low, high = np.full((2, n), np.nan)
    below, above = x < lower, x > upper
    if limit == "intervals":
        low[below] = np.floor(4.0 * x[below]) / 4.0
        high[below] = low[below] + 0.25
    else:
        low[below], high[below] = -np.inf, lower[below]
    if limit == "on both sides":
        low[above], high[above] = upper[above], np.inf
    weight = rng.uniform(0.5, 2.0, n) if is_weighted else np.ones(n)
    fit = pk.fit(x, family, between=(low, high), sample_weight=weight if is_weighted else None)
    assert fit.status[0] == pk.Status.SCANNED
    lmbda, loc, scale = (float(each[0]) for each in (fit.lmbda, fit.loc, fit.scale))

    def standardize(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return standardised transforms of `points` and their derivatives in lambda, computed by a complex step."""
        inside = np.where(np.isfinite(points), points, 1.0)
        y = transform_complex(inside, lmbda + 1e-30j, family)
        return np.where(np.isfinite(points), (y.real - loc) / scale, points), y.imag / 1e-30 / scale

    observed, bounded = np.isnan(low), ~np.isnan(low)
    z, z1 = standardize(x[observed])
    jacobian = np.log(x) if family == "box-cox" else np.sign(x) * np.log1p(abs(x))
    (a, a1), (b, b1) = standardize(low[bounded]), standardize(high[bounded])
    probability = np.where(a > 0.0, special.ndtr(-a) - special.ndtr(-b), special.ndtr(b) - special.ndtr(a))
    at_a, at_b = (np.exp(-0.5 * end**2) / np.sqrt(2.0 * np.pi) / probability for end in (a, b))
    w, v = weight[observed], weight[bounded]
    finite_a, finite_b = np.where(np.isfinite(a), a, 0.0), np.where(np.isfinite(b), b, 0.0)
    slopes = (
        w @ (jacobian[observed] - z * z1) + v @ (at_b * b1 - at_a * a1),
        w @ z - v @ (at_b - at_a),
        w @ (z * z - 1.0) - v @ (at_b * finite_b - at_a * finite_a),
    )
    npt.assert_allclose(slopes, 0.0, atol=1e-9 * np.sqrt(n))


def test_profiles_far_from_the_optimum_show_no_minima_that_are_failures_to_converge() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.standard_t(3, size=(15, 200)))
    limit = np.quantile(x, rng.uniform(0.0, 0.6, 15), axis=0)
    fit = pk.fit(np.where(x < limit, limit, x), "box-cox", below=x < limit)
    profile = fit.profile(np.linspace(-12.0, 12.0, 241))
    for values in profile[fit.status == pk.Status.SCANNED]:
        falls = np.diff(values[np.isfinite(values)]) < 0.0
        assert np.count_nonzero(falls[:-1] & ~falls[1:]) == 1


#: Cells (lower end, upper end, weight): two values, and wide intervals with one distant end.
WIDE = np.array(
    [
        [-4.3163, -0.1388, 0.8120],
        [-0.2104, -0.2104, 0.3233],
        [-0.0673, -0.0673, 1.7905],
        [-4.3163, -0.1388, 1.6399],
        [-0.1388, 2.0958, 0.7643],
        [-0.1388, 2.0958, 0.4995],
    ]
)
#: Cells below or above individual limits: the profile has one minimum, and is hard to evaluate far below it.
ONE_SIDED = np.array(
    [
        [6.5134, np.inf, 0.7247],
        [-np.inf, 6.8592, 1.2014],
        [-np.inf, 3.7701, 1.7739],
        [-np.inf, 4.1860, 1.4574],
        [-1.2505, np.inf, 1.3675],
        [3.6106, 3.6106, 0.3501],
        [18.2928, 18.2928, 0.6741],
        [-np.inf, 17.8307, 1.4762],
        [2.1251, np.inf, 1.0618],
        [-np.inf, -1.0643, 0.9747],
        [-np.inf, -1.2076, 1.3838],
        [-1.7172, np.inf, 0.9713],
    ]
)


def fit_intervals(cells: FloatArray) -> pk.PowerFit:
    """Fit cells given as rows of (lower end, upper end, weight); equal ends denote an observed value."""
    low, high, weight = cells.T
    values = np.where(np.isinf(low), high, low)
    return pk.fit(
        values, between=(np.where(low == high, np.nan, low), np.where(low == high, np.nan, high)), sample_weight=weight
    )


@pytest.mark.parametrize("cells", [WIDE, ONE_SIDED])
def test_columns_of_few_values_and_far_ends_have_one_minimum(cells: FloatArray) -> None:
    fit = fit_intervals(cells)
    assert fit.status[0] == pk.Status.SCANNED
    profile = fit.profile(fit.lmbda[0] + np.linspace(-9.0, 9.0, 181) / np.sqrt(fit.information[0]))[0]
    falls = np.diff(profile) < 0.0
    assert np.isfinite(profile).all()
    assert np.count_nonzero(falls[:-1] & ~falls[1:]) == 1


def test_intervals_with_one_end_far_out_keep_the_digits_of_the_other() -> None:
    fit, (low, high, weight) = fit_intervals(WIDE), WIDE.T
    given = (np.where(low == high, low, np.nan), low, high, weight, "yeo-johnson")
    step = 1.0 / np.sqrt(fit.information[0])
    constant = 0.5 * weight[low == high].sum() * (1.0 + np.log(2.0 * np.pi))

    def oracle(lmbda: float) -> float:
        """Return the minimum of minus the log-likelihood over mean and standard deviation, at `lmbda`."""
        y = psi(lmbda, low[low == high], "yeo-johnson")
        return optimize.minimize(
            lambda p: minus_log_likelihood([lmbda, *p], *given),
            [y.mean(), np.log(y.std())],
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 2000},
        ).fun

    lmbdas = fit.lmbda[0] + step * np.array([-3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0])
    expected = np.array([oracle(lmbda) for lmbda in lmbdas])
    npt.assert_allclose(fit.profile(lmbdas)[0] + constant, expected, rtol=1e-9)
    curvature = (expected[2] + expected[4] - 2.0 * expected[3]) / (0.1 * step) ** 2
    npt.assert_allclose(fit.information[0], curvature, rtol=0.02)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.filterwarnings("ignore:column 0:UserWarning")
def test_searches_of_hostile_columns_end(family: str) -> None:
    """Few evaluations suffice for subnormal, huge, nearly constant and tied values, with a limit at any quantile."""
    rng = np.random.default_rng(5)
    units = (1.0, 1e-310, 1e300, 1e-30)
    evaluations = []
    for k in range(120):
        x = rng.lognormal(sigma=(1e-8, 0.1, 1.0, 30.0)[k % 4], size=(3, 5, 12, 60)[k // 4 % 4])
        x = np.round(x, 1) + 0.1 if k % 5 == 0 else 1e15 + np.round(x) if k % 5 == 1 else x
        x = x[np.log10(x) < 308.0 - np.log10(units[k // 16 % 4])] * units[k // 16 % 4]
        x = x[x > 0.0]
        if x.size == 0:
            continue
        low, high = np.quantile(x, [0.3, 0.8])
        limits = (low, None) if k % 3 == 0 or low == high else (None, high) if k % 3 == 1 else (low, high)
        fit = pk.fit(x, family, limits=limits)
        assert fit.status[0] in list(pk.Status)
        assert np.isfinite(fit.lmbda[0])
        evaluations.append(fit._table.kernel_rows[0, N_EVAL])
    assert len(evaluations) > 100
    assert max(evaluations) <= 1000
