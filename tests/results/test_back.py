"""Means and quantiles on the scale of the data, compared with mpmath, closed forms and R's forecast."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import powerkern as pk

X = np.random.default_rng(0).lognormal(size=50)
SLOW = pytest.mark.slow
PLACES = [(0.0, 0.1), (0.1, 0.5), (1.0, 0.3), (-1.0, 0.2), (-2.0, 1.0), (0.3, 2.0)]


def raw_fit(family: str, lmbda: float) -> pk.PowerFit:
    return pk.fit(X if family == "box-cox" else X - 1.0, family, lmbda=lmbda, standardize=False)


def inverse(lmbda: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    return mpmath.exp(y) if lmbda == 0 else max(1 + lmbda * y, mpmath.mpf(0)) ** (1 / lmbda)


def end_of(lmbda: mpmath.mpf, mean: mpmath.mpf, sd: mpmath.mpf, zero: mpmath.mpf) -> mpmath.mpf:
    """Return the upper limit of the integral over one branch of the inverse transform.

    The limit is infinite for lambda >= 0 and the end of the range of psi for lambda < -1. For other lambdas the
    integral diverges at the end of the range. The limit is then the last minimum of the integrand, inverse times
    density, before that end, or NaN if there is no minimum.

    `mean` and `sd` describe the normal distribution on the scale of psi. The limit and `zero`, the image of the point
    where the branches meet, are standardised: they are in units of `sd`, relative to `mean`.
    """
    if lmbda >= 0:
        return mpmath.inf
    end = (-1 / lmbda - mean) / sd
    if lmbda < -1:
        return end
    rest = end * end + 4 / lmbda
    return max((end + mpmath.sqrt(rest)) / 2, min(zero, end)) if end > 0 and rest >= 0 else mpmath.nan


def tail(lmbda: mpmath.mpf, sd: mpmath.mpf, end: mpmath.mpf, near: mpmath.mpf) -> mpmath.mpf:
    """Integrate ``(1 + lambda y)**(1/lambda)`` times the normal density of t, for lambda < -1.

    Here y = mean + sd t, and t runs from `near` to the pole `end`, where ``1 + lambda y`` is 0.
    """
    k = -1 / lmbda
    longest = (end - near) ** (1 - k)
    inner = mpmath.quad(lambda w: mpmath.npdf(end - w ** (1 / (1 - k))), mpmath.linspace(0, longest, 5))
    return (-lmbda * sd) ** (-k) / (1 - k) * inner


def side(
    lmbda: mpmath.mpf, mean: mpmath.mpf, sd: mpmath.mpf, start: mpmath.mpf, end: mpmath.mpf, offset: int
) -> mpmath.mpf:
    """Integrate (inverse - offset) times the normal density over one branch of the inverse transform.

    `mean` and `sd` describe the normal distribution on the scale of psi. `start` and `end` are standardised, as in
    `end_of`.
    """
    stop = min(end, mpmath.mpf(30))
    if start >= stop:
        return mpmath.mpf(0)
    points = sorted({start, stop, *(mpmath.mpf(t) for t in range(-30, 31, 3) if start < t < stop)})
    singular = lmbda < -1 and stop == end
    body = points[:-1] if singular else points
    total = mpmath.mpf(0)
    if len(body) > 1:
        total += mpmath.quad(lambda t: (inverse(lmbda, mean + sd * t) - offset) * mpmath.npdf(t), body)
    if singular:
        total += tail(lmbda, sd, end, points[-2]) - offset * (mpmath.ncdf(end) - mpmath.ncdf(points[-2]))
    return total


def exact_mean(family: str, lmbda: float, mean: float, sd: float) -> float:
    lam, m, s = mpmath.mpf(lmbda), mpmath.mpf(mean), mpmath.mpf(sd)
    if family == "box-cox":
        low = (-1 / lam - m) / s if lam > 0 else -mpmath.inf
        high = end_of(lam, m, s, -mpmath.inf)
        if mpmath.isnan(high):
            return np.inf
        total = side(lam, m, s, max(low, mpmath.mpf(-30)), high, 0)
    else:
        zero = -m / s
        high, down = end_of(lam, m, s, zero), end_of(2 - lam, -m, s, -zero)
        if mpmath.isnan(high) or mpmath.isnan(down):
            return np.inf if mpmath.isnan(high) else -np.inf
        low = -down
        total = side(lam, m, s, zero, high, 1) - side(2 - lam, -m, s, -zero, down, 1)
    return float(total / (mpmath.ncdf(high) - mpmath.ncdf(low)))


CASES = [
    *(("box-cox", lmbda) for lmbda in (-1.0, 0.0, 0.5)),
    *(("yeo-johnson", lmbda) for lmbda in (-1.2, 2.0)),
]
MORE_CASES = [
    *(("box-cox", lmbda) for lmbda in (-4.0, -2.0, -1.05, -0.1, 0.01, 0.7, 1.0, 2.0, 5.0)),
    *(("yeo-johnson", lmbda) for lmbda in (-3.0, -0.4, 0.0, 0.2, 1.0, 2.2, 3.3, 6.0)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "lmbda"), [*CASES, *(pytest.param(*each, marks=SLOW) for each in MORE_CASES)])
def test_means_are_the_integral_inside_the_range(family: str, lmbda: float) -> None:
    mean, sd = np.array(PLACES).T
    found = raw_fit(family, lmbda).inverse_mean(mean, sd)
    with mpmath.workdps(30):
        exact = np.array([exact_mean(family, lmbda, m, s) for m, s in PLACES])
    finite = np.isfinite(exact)
    assert_array_equal(found[~finite], exact[~finite])
    assert_allclose(found[finite], exact[finite], rtol=1e-10, atol=1e-12)
    assert finite.sum() >= 2


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_means_for_lambda_1_over_k_are_truncated_moments(k: int) -> None:
    """For lambda = 1/k, the mean of (1 + y/k)**k over y > -k follows from a recursion for truncated moments."""
    m, s = np.linspace(-3.0, 3.0, 7), 0.7
    a = (-k - m) / s
    density, above = np.exp(-0.5 * a * a) / np.sqrt(2.0 * np.pi), special.ndtr(-a)
    moments = [above, density]
    for power in range(2, k + 1):
        moments.append((power - 1) * moments[power - 2] + a ** (power - 1) * density)
    center, scale = 1.0 + m / k, s / k
    exact = sum(special.comb(k, i) * center ** (k - i) * scale**i * moments[i] for i in range(k + 1)) / above
    assert_allclose(raw_fit("box-cox", 1.0 / k).inverse_mean(m, s), exact, rtol=1e-11)


def test_lognormal_means_are_exact() -> None:
    m, s = np.array([-3.0, 0.0, 2.0, 5.0]), np.array([0.1, 1.0, 3.0, 10.0])
    assert_allclose(raw_fit("box-cox", 0.0).inverse_mean(m, s), np.exp(m + s * s / 2.0), rtol=1e-12)


def test_means_with_centers_far_beyond_the_range_are_exact() -> None:
    """For lambda = 1, the result is the mean of a truncated normal distribution.

    The distribution is restricted to values above 0, and its center is r standard deviations below 0.
    """
    r = np.array([5.0, 20.0, 30.0])
    hazard = np.sqrt(2.0 / np.pi) / special.erfcx(r / np.sqrt(2.0))
    assert_allclose(raw_fit("box-cox", 1.0).inverse_mean(-1.0 - r, 1.0), hazard - r, rtol=1e-9)


#: lambda -> InvBoxCox(c(-1, 0, 0.5, 1, 2), lambda, biasadj = TRUE, fvar = 0.09) in R 4.2.2 with forecast 8.20.
FORECAST = {
    -0.5: [0.457777777777778, 1.0675, 1.99111111111111, 5.08, np.nan],
    0.0: [0.384434016024157, 1.045, 1.72291372788163, 2.8406045107397, 7.72156362338253],
    0.3: [0.324129355836136, 1.0315, 1.63135740324357, 2.4424827026466, 4.84965885989033],
    1.0: [np.nan, 1.0, 1.5, 2.0, 3.0],
}


@pytest.mark.parametrize("lmbda", FORECAST)
def test_means_agree_with_forecast(lmbda: float) -> None:
    """R's InvBoxCox(biasadj=TRUE) stops after the second derivative, so the remainder is of the order of sd**4."""
    z, theirs, variance = np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), np.array(FORECAST[lmbda]), 0.09
    with np.errstate(divide="ignore", invalid="ignore"):
        base = np.exp(z) if lmbda == 0.0 else (1.0 + lmbda * z) ** (1.0 / lmbda)
        series = base * (1.0 + 0.5 * variance * (1.0 - lmbda) / (1.0 + lmbda * z) ** 2)
    known = np.isfinite(theirs) & (1.0 + lmbda * z > 0.0)
    assert_allclose(series[known], theirs[known], rtol=1e-12)
    fit = raw_fit("box-cox", lmbda)
    near = known & (1.0 + lmbda * z > 0.6)
    assert near.sum() >= 3
    assert_allclose(fit.inverse_mean(z, np.sqrt(variance))[near], theirs[near], rtol=0.06)
    at, small = z[near], 0.01
    two = fit.inverse_mean(at, small) - base[near] * (1.0 + 0.5 * small**2 * (1 - lmbda) / (1 + lmbda * at) ** 2)
    assert abs(two).max() < 1e3 * small**4


# --- scales, shapes, ends -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_standardised_and_raw_fits_give_the_same_means(family: str) -> None:
    data = np.exp(np.random.default_rng(1).normal(size=(60, 3)) * [0.5, 1.0, 0.2])
    raw, fit = pk.fit(data, family, standardize=False), pk.fit(data, family)
    z, sd = np.random.default_rng(2).normal(size=(5, 3)), 0.4
    expected = fit.inverse_mean(z, sd)
    assert_allclose(raw.inverse_mean(raw.loc + raw.scale * z, raw.scale * sd), expected, rtol=1e-11)
    assert_allclose(fit.inverse_quantile(z, sd, 0.5), fit.inverse_transform(z), rtol=1e-14)
    at_9 = fit.inverse_quantile(z, sd, 0.9)
    assert_allclose(at_9, fit.inverse_transform(z + sd * special.ndtri(0.9)), rtol=1e-13)


def test_shapes_of_arguments_are_broadcast() -> None:
    vector, matrix = pk.fit(X), pk.fit(np.column_stack([X, X * X]))
    assert vector.inverse_mean(0.0, 0.3).shape == ()
    assert vector.inverse_mean(np.zeros((2, 3, 4)), 0.3).shape == (2, 3, 4)
    assert vector.inverse_mean(np.zeros((0,)), 0.3).shape == (0,)
    assert matrix.inverse_mean(0.0 * np.ones(2), [[0.1], [0.2], [0.3]]).shape == (3, 2)
    assert matrix.inverse_quantile(np.zeros(2), 0.1, np.full((4, 3, 1), 0.5)).shape == (4, 3, 2)
    each = [matrix[j : j + 1].inverse_mean([[0.2]], 0.3)[0, 0] for j in range(2)]
    assert_array_equal(matrix.inverse_mean([0.2, 0.2], 0.3), each)
    many = np.linspace(-2.0, 2.0, 3000)
    assert_array_equal(vector.inverse_mean(many, 0.3)[::50], vector.inverse_mean(many[::50], 0.3))


def test_means_of_shifted_robust_and_best_fits_agree() -> None:
    fit = pk.fit(X - 1.0, "box-cox", shift=1.0)
    assert_allclose(fit.inverse_mean([0.0, 1.0], 0.3), pk.fit(X, "box-cox").inverse_mean([0.0, 1.0], 0.3) - 1.0)
    for options in ({"estimator": "robust"}, {"family": "best"}, {}):
        robust = pk.fit(np.column_stack([X, -X, X - 1.0]), **options)  # type: ignore[arg-type]
        t, w = np.polynomial.hermite_e.hermegauss(64)
        means = (w[:, None] / w.sum() * robust.inverse_transform(0.2 + 0.05 * np.repeat(t[:, None], 3, axis=1))).sum(0)
        assert_allclose(robust.inverse_mean(np.full(3, 0.2), 0.05), means, rtol=1e-9)


def test_means_under_extreme_lambdas_are_close_to_the_data() -> None:
    years = np.array([1950.0, 1980.0, 1991.0, 1997.0, 1999.0, 2000.0, 2003.0, 2007.0, 2009.0, 2009.0])
    for data, family in ((years, "box-cox"), (years, "yeo-johnson"), (-years, "yeo-johnson"), (1.0 / years, "box-cox")):
        fit = pk.fit(data, family)
        means = fit.inverse_mean(fit.transform(data), 0.01)
        assert_allclose(means, data, rtol=1e-3)
        assert (means != data).all()


def test_no_spread_missing_values_and_unfitted_columns_are_special_cases() -> None:
    fit = pk.fit(X)
    assert_array_equal(fit.inverse_mean([0.1, np.nan], 0.0)[:1], fit.inverse_transform([0.1]))
    assert np.isnan(fit.inverse_mean([0.1, np.nan], 0.2)[1])
    for family, low, high in (("yeo-johnson", -np.inf, np.inf), ("box-cox", 0.0, np.inf)):
        assert_array_equal(raw_fit(family, 0.5).inverse_mean([-np.inf, np.inf], 0.2), [low, high])
    with pytest.warns(UserWarning, match="not fitted"):
        constant = pk.fit(np.ones(5))
    assert constant.inverse_mean(3.0, 1.0) == 3.0


def test_quantiles_beyond_the_range_are_the_end_of_the_domain() -> None:
    for family, lmbda, q, end in (
        ("box-cox", 1.0, 1e-3, 0.0),
        ("box-cox", -1.0, 0.999, np.inf),
        ("yeo-johnson", 3.0, 1e-3, -np.inf),
    ):
        assert raw_fit(family, lmbda).inverse_quantile(0.0, 1.0, q) == end


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0.0, -1.0), "sd must be finite and not negative, got -1"),
        ((0.0, np.inf), "sd must be finite and not negative, got inf"),
        (([0.0, 0.0, 0.0], 1.0), "must have the 2 columns of the fit"),
        ((np.zeros((3, 2)), np.zeros((4, 2))), r"common shape, got mean \(3, 2\), sd \(4, 2\)$"),
    ],
)
def test_invalid_arguments_are_refused(arguments: tuple[object, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        pk.fit(np.column_stack([X, X])).inverse_mean(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="quantile must be between 0 and 1"):
        pk.fit(X).inverse_quantile(0.0, 1.0, [0.5, 1.0])
    with pytest.raises(ValueError, match=r"common shape, got mean \(2,\), sd \(\), quantile \(3,\)"):
        pk.fit(X).inverse_quantile([0.0, 1.0], 1.0, [0.2, 0.5, 0.9])


@pytest.mark.parametrize("sd", [5e-324, 1e-310, 1e-300])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_a_standard_deviation_near_the_smallest_number_gives_the_median(family, sd):
    fit = pk.fit(np.random.default_rng(0).lognormal(size=(30, 3)), family)
    z = np.array([[-1.0, 0.0, 0.5]])
    np.testing.assert_allclose(fit.inverse_mean(z, sd), fit.inverse_transform(z), rtol=1e-12)


@pytest.mark.parametrize("lmbda", [0.5, 1.3, 2.0, 2.8])
@pytest.mark.parametrize("standardize", [True, False])
def test_columns_of_negative_values_mirror_positive_ones(lmbda, standardize):
    """Results are compared with results for the mirrored column and with an integral of the inverse transform."""
    x = 5.0 + X
    up = pk.fit(x, lmbda=2.0 - lmbda, standardize=standardize)
    down = pk.fit(-x, lmbda=lmbda, standardize=standardize)
    mean, sd = (0.3, 0.8) if standardize else (up.transform(x).mean(), 0.5 * up.transform(x).std())
    assert_allclose(down.inverse_mean(-mean, sd), -up.inverse_mean(mean, sd), rtol=1e-12)
    z = np.linspace(-8.0, 8.0, 4001)
    density = np.exp(-0.5 * z**2)
    images = down.inverse_transform(-mean + sd * z, out_of_range="clip")
    if not (up.inverse_transform(mean + sd * z, out_of_range="clip") == up.x_min).any() and 0.0 <= 2.0 - lmbda <= 1.0:
        assert_allclose(down.inverse_mean(-mean, sd), (images * density).sum() / density.sum(), rtol=1e-9)
